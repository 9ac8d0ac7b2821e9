import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";

const codes = registerErrors({
  project_limit_exceeded: [403, "The account has as many projects as its tier allows."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}
