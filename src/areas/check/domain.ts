import { type ErrorMeaning, errorMeaning, registerErrors } from "../../kernel/errors.ts";

/** Maximum characters of a secret. Keys are much shorter. */
export const SECRET_LENGTH_MAX = 512;
/** Checks per request: each takes about as long as a request. */
export const CHECKS_MAX = 20;
/** Flags per check. */
export const FLAGS_MAX = 50;
/** Flags per check of a reverse proxy, which gets their variants in one header. */
export const PROXY_FLAGS_MAX = 20;
/** Maximum bytes of the scopes header. All headers together stay below the limits of proxies. */
export const SCOPES_HEADER_BYTES_MAX = 4 * 1024;

const codes = registerErrors({
  invalid_key: [
    401,
    "The key is not a key of this project.",
    "The caller needs a key of this project. The text must be complete: nothing is trimmed.",
  ],
  revoked: [401, "The key was revoked.", "Issue a new key to the caller, if it may still call."],
  deleted: [401, "The project of the key was deleted.", "Issue a key of another project."],
  expired: [401, "The key has expired.", "Issue a new key, or rotate keys before they expire."],
  disabled: [
    403,
    "The key is paused.",
    "Set `enabled` to true with `PATCH /v1/keys/{id}`, if the caller may call again.",
  ],
  ip_not_allowed: [
    403,
    "The key is not allowed from this address.",
    "Add the address to `allowed_ips` of the key. Behind a proxy, check `trust_proxy` first.",
  ],
  insufficient_scope: [
    403,
    "The key does not have a required scope or permission.",
    "Add it to the key with `PATCH /v1/keys/{id}`, or to one of its roles.",
  ],
  insufficient_permission: [
    403,
    "The key does not have the required combination of scopes and permissions.",
    "Add what `require` names to the key with `PATCH /v1/keys/{id}`, or to one of its roles.",
  ],
  no_meter: [
    403,
    "Neither the request nor the key names a meter to deduct from.",
    "Name `meter_id` in the request, or set it for the key.",
  ],
  rate_limited: [
    429,
    "A rate limit of the key is exceeded. Retry after the time in `Retry-After`.",
    "The caller waits the number of seconds in `Retry-After`. The limits are those of the key (`ratelimits`).",
  ],
  usage_exceeded: [
    429,
    "The key has no uses left.",
    "Raise or refill the uses of the key, or wait for its refill.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Reasons for denying a request, in the order of the checks. */
export const DENIALS = [
  "invalid_key",
  "revoked",
  "deleted",
  "expired",
  "disabled",
  "ip_not_allowed",
  "insufficient_scope",
  "insufficient_permission",
  "rate_limited",
  "usage_exceeded",
  "no_meter",
  "insufficient_balance",
] as const;
export type Denial = (typeof DENIALS)[number];

/** Outcomes of a check. */
export const CHECK_CODES = ["ok", ...DENIALS] as const;
export type CheckCode = (typeof CHECK_CODES)[number];

/** Returns the HTTP status for the response to the customer. */
export function statusOf(code: CheckCode): number {
  return code === "ok" ? 200 : errorMeaning(code)[0];
}
