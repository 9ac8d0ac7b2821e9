import { type ErrorMeaning, errorMeaning, registerErrors } from "../../kernel/errors.ts";

/** Longest secret: keys are far shorter. */
export const SECRET_LENGTH_MAX = 512;
/** Flags that one check evaluates. */
export const FLAGS_MAX = 50;
/** The same for reverse proxies, which get their variants in one header. */
export const PROXY_FLAGS_MAX = 20;
/** Longest list of scopes in a header, in bytes: with the other headers it stays below what proxies read of an answer. */
export const SCOPES_HEADER_BYTES_MAX = 4 * 1024;

const codes = registerErrors({
  invalid_key: [401, "No key of this project."],
  revoked: [401, "The key was revoked."],
  deleted: [401, "The project of the key was deleted."],
  expired: [401, "The key has expired."],
  disabled: [403, "The key is paused."],
  ip_not_allowed: [403, "The key does not work from this address."],
  insufficient_scope: [403, "The key lacks a scope."],
  no_meter: [403, "The key has no meter to pay from."],
  rate_limited: [429, "A rate limit of the key is exceeded; `Retry-After` says when to try again."],
  usage_exceeded: [429, "The key has no uses left."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Why a request is not let in, in the order in which it is looked for. */
export const DENIALS = [
  ...(["invalid_key", "revoked", "deleted", "expired", "disabled", "ip_not_allowed"] as const),
  ...(["insufficient_scope", "rate_limited", "usage_exceeded", "no_meter"] as const),
  "insufficient_balance",
] as const;
/** One of {@link DENIALS}. */
export type Denial = (typeof DENIALS)[number];

/** What became of a check. */
export const CHECK_CODES = ["ok", ...DENIALS] as const;
/** One of {@link CHECK_CODES}. */
export type CheckCode = (typeof CHECK_CODES)[number];

/** The status that the customer's request is to be answered with. */
export function statusOf(code: CheckCode): number {
  return code === "ok" ? 200 : errorMeaning(code)[0];
}
