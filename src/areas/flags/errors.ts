import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";

const codes = registerErrors({
  "gate.rule_invalid": [400, "`enabled` is not true or false."],
  "gate.feature_not_found": [404, "There is no flag with this key."],
  flag_not_found: [404, "There is no flag with this key."],
  "gate.evaluation_failed": [500, "The flag could not be evaluated. Nothing was charged."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}
