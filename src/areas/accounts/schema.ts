import { type Static, Type } from "@sinclair/typebox";
import { BalanceValue } from "../../kernel/ledger.ts";
import { oneOf } from "../../kernel/schema.ts";
import { TIER_NAMES } from "../../kernel/tiers.ts";
import { GRACE_HOURS_MAX } from "./domain.ts";

/** RFC 5321's limit for an address. */
const EMAIL_LENGTH_MAX = 254;

const Email = Type.String({
  // What browsers accept in an e-mail field (HTML standard), with a dot in the domain not required.
  pattern:
    "^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$",
  maxLength: EMAIL_LENGTH_MAX,
  errorMessage: "must be an e-mail address",
});

const Tier = oneOf(TIER_NAMES, { $id: "Tier", errorMessage: `must be one of ${TIER_NAMES.join(", ")}` });

const Time = Type.String({ format: "date-time" });

/** A key in an answer. */
const NewKey = Type.String({ description: "The new key. Shown here and never again." });

/** Body of a signup. */
export const SignupBody = Type.Object(
  { email: Email, tier: oneOf(["free", "pro"], { errorMessage: 'must be "free" or "pro"' }) },
  { $id: "SignupBody" },
);
export type SignupBody = Static<typeof SignupBody>;

/** Answer to a signup. */
export const SignedUp = Type.Object(
  {
    user_id: Type.String(),
    api_key: Type.Optional(Type.String({ description: "Tier free only; for pro it goes out by e-mail." })),
  },
  { $id: "SignedUp" },
);
export type SignedUp = Static<typeof SignedUp>;

/** Body of an account's creation by the operator. */
export const AccountCreateBody = Type.Object(
  { email: Email, tier: Tier, balance: Type.Optional(BalanceValue) },
  { $id: "AccountCreateBody" },
);
export type AccountCreateBody = Static<typeof AccountCreateBody>;

/** Body of an account's change by the operator. */
export const AccountUpdateBody = Type.Object(
  {
    tier: Type.Optional(Tier),
    balance: Type.Optional(BalanceValue),
    suspended: Type.Optional(Type.Boolean({ errorMessage: "must be true or false" })),
  },
  { $id: "AccountUpdateBody" },
);
export type AccountUpdateBody = Static<typeof AccountUpdateBody>;

/** Path of an account. */
export const AccountParams = Type.Object({ user_id: Type.String({ maxLength: 64 }) });

/** An account, as the operator sees it. */
export const Account = Type.Object(
  {
    user_id: Type.String(),
    email: Type.String(),
    tier: Tier,
    balance: BalanceValue,
    suspended: Type.Boolean(),
    created_at: Time,
  },
  { $id: "Account" },
);
export type Account = Static<typeof Account>;

/** A new account with its key. */
export const AccountCreated = Type.Object(
  {
    user_id: Type.String(),
    api_key: Type.String({ description: "Shown here and never again." }),
    email: Type.String(),
    tier: Tier,
    balance: BalanceValue,
  },
  { $id: "AccountCreated" },
);

/** A page of accounts, newest first. */
export const AccountPage = Type.Object(
  { accounts: Type.Array(Account), cursor: Type.Optional(Type.String()) },
  { $id: "AccountPage" },
);
export type AccountPage = Static<typeof AccountPage>;

/** The balance of the calling account. */
export const OwnBalance = Type.Object(
  { balance: Type.Integer(), user_id: Type.String() },
  { $id: "OwnBalance" },
);
export type OwnBalance = Static<typeof OwnBalance>;

/** Answer to a reset of an account's platform keys. */
export const ResetPlatformKey = Type.Object(
  {
    user_id: Type.String(),
    api_key: NewKey,
    reset_at: Type.String({
      format: "date-time",
      description: "When all earlier platform keys stopped working.",
    }),
  },
  { $id: "ResetPlatformKey" },
);
export type ResetPlatformKey = Static<typeof ResetPlatformKey>;

/** Body of a rotation of the platform key. */
export const PlatformKeyRotateBody = Type.Object(
  {
    grace_hours: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: GRACE_HOURS_MAX,
        errorMessage: `must be a number from 0 to ${GRACE_HOURS_MAX}`,
        description:
          "How long older keys still work; 0 ends them at once. As the server is configured (7 days) unless given.",
      }),
    ),
  },
  { $id: "PlatformKeyRotateBody" },
);

/** Answer to a rotation of the platform key. */
export const RotatedPlatformKey = Type.Object(
  {
    key: NewKey,
    rotated_at: Time,
    expires_at: Type.String({
      format: "date-time",
      description: "When the old key stops working, and every older one at the latest.",
    }),
  },
  { $id: "RotatedPlatformKey" },
);
export type RotatedPlatformKey = Static<typeof RotatedPlatformKey>;

/** Body of an advance of the test clock. */
export const ClockBody = Type.Object(
  {
    advance_ms: Type.Integer({
      minimum: 0,
      maximum: 100 * 365 * 24 * 60 * 60 * 1000,
      errorMessage: "must be an integer, 0 or more, in milliseconds",
    }),
  },
  { $id: "ClockBody" },
);

/** Answer to an advance of the test clock. */
export const ClockAdvanced = Type.Object(
  { now: Type.Integer({ description: "Epoch milliseconds." }) },
  { $id: "ClockAdvanced" },
);
