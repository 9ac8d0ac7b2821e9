import { type Static, Type } from "@sinclair/typebox";
import { BalanceValue } from "../../kernel/data/ledger.ts";
import { named, oneOf } from "../../kernel/data/schema.ts";
import { NextCursor } from "../../kernel/http/requests/pagination.ts";
import { TIER_NAMES } from "../../kernel/limits/tiers.ts";
import { EMAIL_LENGTH_MAX, EMAIL_PATTERN } from "../../kernel/mail/address.ts";
import { GRACE_HOURS_MAX } from "./domain.ts";

const Email = Type.String({
  pattern: EMAIL_PATTERN,
  maxLength: EMAIL_LENGTH_MAX,
  errorMessage: "must be an e-mail address",
});

const Tier = oneOf(TIER_NAMES, { $id: "Tier", errorMessage: `must be one of ${TIER_NAMES.join(", ")}` });

const UserId = Type.String({ examples: ["usr_3vQ8Zk2mX7cB4nL9pS1t"] });
const Time = Type.String({ format: "date-time" });

/** A key in an answer. */
const KEY = "sm_4fJ9…_1c2d3e4f";
const NewKey = Type.String({ description: "The new key. Shown here and never again.", examples: [KEY] });

/** Body of a signup. */
export const SignupBody = named("SignupBody", {
  email: Email,
  tier: oneOf(["free", "pro"], { errorMessage: 'must be "free" or "pro"' }),
});
export type SignupBody = Static<typeof SignupBody>;

/** Answer to a signup. */
export const SignedUp = named("SignedUp", {
  user_id: UserId,
  api_key: Type.Optional(
    Type.String({ description: "Tier free only; for pro it goes out by e-mail.", examples: [KEY] }),
  ),
});
export type SignedUp = Static<typeof SignedUp>;

/** Body of an account's creation by the operator. */
export const AccountCreateBody = named("AccountCreateBody", {
  email: Email,
  tier: Tier,
  balance: Type.Optional(BalanceValue),
});
export type AccountCreateBody = Static<typeof AccountCreateBody>;

/** Body of an account's change by the operator. */
export const AccountUpdateBody = named("AccountUpdateBody", {
  email: Type.Optional(Email),
  tier: Type.Optional(Tier),
  balance: Type.Optional(BalanceValue),
  suspended: Type.Optional(Type.Boolean({ errorMessage: "must be true or false" })),
});
export type AccountUpdateBody = Static<typeof AccountUpdateBody>;

/** Path of an account. */
export const AccountParams = Type.Object({ user_id: Type.String({ ...UserId, maxLength: 64 }) });

const TERMS = { email: Type.String({ examples: ["jane@example.com"] }), tier: Tier, balance: BalanceValue };

/** An account, as the operator sees it. */
export const Account = named("Account", {
  user_id: UserId,
  ...TERMS,
  suspended: Type.Boolean({ examples: [false] }),
  created_at: Time,
});
export type Account = Static<typeof Account>;

/** A new account with its key. */
export const AccountCreated = named("AccountCreated", {
  user_id: UserId,
  api_key: Type.String({ description: "Shown here and never again.", examples: [KEY] }),
  ...TERMS,
});

/** A page of accounts, newest first. */
export const AccountPage = named("AccountPage", { accounts: Type.Array(Account), cursor: NextCursor });
export type AccountPage = Static<typeof AccountPage>;

/** The balance of the calling account. */
export const OwnBalance = named("OwnBalance", {
  balance: Type.Integer({ examples: [999] }),
  user_id: UserId,
});
export type OwnBalance = Static<typeof OwnBalance>;

/** Answer to a reset of an account's platform keys. */
export const ResetPlatformKey = named("ResetPlatformKey", {
  user_id: UserId,
  api_key: NewKey,
  reset_at: Type.String({
    format: "date-time",
    description: "When all earlier platform keys stopped working.",
  }),
});
export type ResetPlatformKey = Static<typeof ResetPlatformKey>;

/** Body of a rotation of the platform key. */
export const PlatformKeyRotateBody = named("PlatformKeyRotateBody", {
  grace_hours: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: GRACE_HOURS_MAX,
      errorMessage: `must be a number from 0 to ${GRACE_HOURS_MAX}`,
      description:
        "How long older keys still work; 0 ends them at once. As the server is configured (7 days) unless given.",
    }),
  ),
});

/** Answer to a rotation of the platform key. */
export const RotatedPlatformKey = named("RotatedPlatformKey", {
  key: NewKey,
  rotated_at: Time,
  expires_at: Type.String({
    ...Time,
    description: "When the old key stops working, and every older one at the latest.",
  }),
});
export type RotatedPlatformKey = Static<typeof RotatedPlatformKey>;

/** Body of an advance of the test clock. */
export const ClockBody = named("ClockBody", {
  advance_ms: Type.Integer({
    minimum: 0,
    maximum: 100 * 365 * 24 * 60 * 60 * 1000,
    errorMessage: "must be an integer, 0 or more, in milliseconds",
  }),
});

/** Answer to an advance of the test clock. */
export const ClockAdvanced = named("ClockAdvanced", {
  now: Type.Integer({ description: "Epoch milliseconds." }),
});
