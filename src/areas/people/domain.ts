import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";
import { DAY_MS, MINUTE_MS } from "../../kernel/time/units.ts";

/** Characters of a person's id after `psn_`. */
export const PERSON_ID_LENGTH = 20;
/** People in memory, some hundred bytes each. Any other costs two indexed reads. */
export const PEOPLE_IN_MEMORY_MAX = 20_000;
/** Projects in which one person can have a role. */
export const PROJECTS_MAX = 100;
/** Passkeys of one person: a few devices, and some spares. */
export const PASSKEYS_MAX = 20;
/** How long an invitation is valid. */
export const INVITATION_MS = 7 * DAY_MS;
/** How long a login link is valid that is made for a person on the folder of a stopped server. */
export const LOGIN_LINK_MS = 30 * MINUTE_MS;
/** Invitations of one account in a day: they are mails to strangers. */
export const INVITATIONS_PER_DAY = 20;
/** Invitations to one address in a day, of all accounts together. */
export const INVITATIONS_PER_ADDRESS = 3;
/** Addresses and accounts whose invitations are counted. The least recent are dropped first. */
export const INVITATION_KEYS_MAX = 50_000;
/** People of different accounts whom one login links to an identity: each is a row and an audit entry. */
export const IDENTITIES_LINKED_MAX = 20;
/** People of different accounts whom one login by an address considers. */
export const ADDRESS_ACCOUNTS_MAX = 20;
/** How long the challenge of a passkey is valid. */
export const CHALLENGE_MS = 5 * MINUTE_MS;
/** Minimum time between two writes of when a person was seen. */
export const SEEN_WRITE_MS = 5 * MINUTE_MS;
/** Random bytes of the token in a link. */
export const TOKEN_BYTES = 32;
/** Characters of a token: base64url of {@link TOKEN_BYTES}. */
export const TOKEN_LENGTH = 43;

const CODES = registerErrors({
  people_limit_exceeded: [
    403,
    "The account has as many people as its tier allows.",
    "Delete people who no longer need access, or ask the operator for a larger tier. Disabled people count, deleted ones do not.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof CODES, ErrorMeaning> {}
}

/** States of a person. */
export const STATUSES = ["invited", "active", "disabled"] as const;
/** One of {@link STATUSES}. */
export type Status = (typeof STATUSES)[number];

/** E-mail addresses are compared case-insensitively. */
export function foldEmail(email: string): string {
  return email.toLowerCase();
}
