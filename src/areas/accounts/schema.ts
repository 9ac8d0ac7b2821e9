import { type Static, Type } from "@sinclair/typebox";
import { BalanceValue } from "../../kernel/data/ledger.ts";
import {
  dateTime,
  duration,
  flag,
  fractionalDuration,
  NextCursor,
  named,
  oneOf,
} from "../../kernel/data/schema.ts";
import { TIER_NAMES } from "../../kernel/limits/tiers.ts";
import { EMAIL_LENGTH_MAX, EMAIL_PATTERN } from "../../kernel/mail/address.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { GRACE_HOURS_MAX } from "./domain.ts";

const Email = Type.String({
  pattern: EMAIL_PATTERN,
  maxLength: EMAIL_LENGTH_MAX,
  errorMessage: "must be an e-mail address",
});

const Tier = oneOf(TIER_NAMES, { $id: "Tier" });

const UserId = Type.String({ examples: ["usr_3vQ8Zk2mX7cB4nL9pS1t"] });

/** A key for examples. */
const KEY = "sm_4fJ9…_1c2d3e4f";
const NewKey = Type.String({ description: "The new key. Only this response contains it.", examples: [KEY] });

export const SignupBody = named("SignupBody", {
  email: Email,
  tier: oneOf(["free", "pro"], { errorMessage: 'must be "free" or "pro"' }),
});
export type SignupBody = Static<typeof SignupBody>;

export const SignedUp = named("SignedUp", {
  user_id: UserId,
  api_key: Type.Optional(
    Type.String({
      description: "The account's key (tier free). With the tier pro it is sent by e-mail.",
      examples: [KEY],
    }),
  ),
});
export type SignedUp = Static<typeof SignedUp>;

export const AccountCreateBody = named("AccountCreateBody", {
  email: Email,
  tier: Tier,
  balance: Type.Optional({
    ...BalanceValue,
    description: "Initial credits. Default: the tier's monthly credits.",
  }),
});
export type AccountCreateBody = Static<typeof AccountCreateBody>;

export const AccountUpdateBody = named("AccountUpdateBody", {
  email: Type.Optional(Email),
  tier: Type.Optional(Tier),
  balance: Type.Optional(BalanceValue),
  suspended: Type.Optional(flag()),
});
export type AccountUpdateBody = Static<typeof AccountUpdateBody>;

export const AccountParams = Type.Object({ user_id: Type.String({ ...UserId, maxLength: 64 }) });

const TERMS = { email: Type.String({ examples: ["jane@example.com"] }), tier: Tier, balance: BalanceValue };

export const Account = named("Account", {
  user_id: UserId,
  ...TERMS,
  suspended: Type.Boolean({ examples: [false] }),
  created_at: dateTime(),
});
export type Account = Static<typeof Account>;

export const AccountCreated = named("AccountCreated", {
  user_id: UserId,
  api_key: Type.String({
    description: "The account's key. Only this response contains it.",
    examples: [KEY],
  }),
  ...TERMS,
});

export const AccountDeleted = named("AccountDeleted", {
  user_id: UserId,
  deleted_at: dateTime({ description: "Time of the deletion." }),
});
export type AccountDeleted = Static<typeof AccountDeleted>;

export const AccountPage = named("AccountPage", { accounts: Type.Array(Account), cursor: NextCursor });
export type AccountPage = Static<typeof AccountPage>;

export const AccountBalance = named("OwnBalance", {
  balance: Type.Integer({ examples: [999] }),
  user_id: UserId,
});
export type AccountBalance = Static<typeof AccountBalance>;

export const ResetPlatformKey = named("ResetPlatformKey", {
  user_id: UserId,
  api_key: NewKey,
  reset_at: dateTime({
    description: "Time at which all older platform keys were revoked.",
  }),
});
export type ResetPlatformKey = Static<typeof ResetPlatformKey>;

export const PlatformKeyRotateBody = named("PlatformKeyRotateBody", {
  grace_hours: Type.Optional(
    fractionalDuration({
      unit: "hours",
      min: 0,
      max: GRACE_HOURS_MAX,
      description:
        "Hours for which older keys continue to work; 0 revokes them immediately. Default: as configured on the server (7 days).",
    }),
  ),
});

export const RotatedPlatformKey = named("RotatedPlatformKey", {
  key: NewKey,
  rotated_at: dateTime(),
  expires_at: {
    ...dateTime(),
    description:
      "Time at which the old key expires. Keys that were rotated earlier expire then at the latest.",
  },
});
export type RotatedPlatformKey = Static<typeof RotatedPlatformKey>;

/** Longest advance of the test clock: a hundred years. */
const ADVANCE_MS_MAX = 100 * 365 * DAY_MS;

export const ClockBody = named("ClockBody", {
  advance_ms: duration({
    unit: "ms",
    min: 0,
    max: ADVANCE_MS_MAX,
    description: "Milliseconds by which to advance the clock.",
  }),
});

/** The time of the test clock. */
export const ClockAdvanced = named("ClockAdvanced", {
  now: Type.Integer({ description: "Time of the test clock, in epoch milliseconds." }),
});
