import { Type } from "@sinclair/typebox";
import { BALANCE_MAX } from "../../kernel/ledger-entry.ts";
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

const Tier = oneOf(TIER_NAMES);

const BalanceValue = Type.Integer({
  minimum: 0,
  maximum: BALANCE_MAX,
  errorMessage: "must be an integer from 0 to 9007199254740991",
});

/** Body of a signup. */
export const SignupBody = Type.Object({
  email: Email,
  tier: Type.Union([Type.Literal("free"), Type.Literal("pro")], { errorMessage: 'must be "free" or "pro"' }),
});

/** Answer to a signup. */
export const SignupAnswer = Type.Object({
  user_id: Type.String(),
  api_key: Type.Optional(Type.String({ description: "Tier free only; for pro it goes out by e-mail." })),
});

/** Body of an account's creation by the operator. */
export const AccountCreateBody = Type.Object({
  email: Email,
  tier: Tier,
  balance: Type.Optional(BalanceValue),
});

/** Body of an account's change by the operator. */
export const AccountUpdateBody = Type.Object({
  tier: Type.Optional(Tier),
  balance: Type.Optional(BalanceValue),
  suspended: Type.Optional(Type.Boolean({ errorMessage: "must be true or false" })),
});

/** Path of an account. */
export const AccountParams = Type.Object({ user_id: Type.String({ maxLength: 64 }) });

/** An account, as the operator sees it. */
export const Account = Type.Object({
  user_id: Type.String(),
  email: Type.String(),
  tier: Tier,
  balance: BalanceValue,
  suspended: Type.Boolean(),
  created_at: Type.String({ format: "date-time" }),
});

/** A new account with its key. */
export const AccountCreated = Type.Object({
  user_id: Type.String(),
  api_key: Type.String({ description: "Shown here and never again." }),
  email: Type.String(),
  tier: Tier,
  balance: BalanceValue,
});

/** A page of accounts, newest first. */
export const AccountPage = Type.Object({
  accounts: Type.Array(Account),
  cursor: Type.Optional(Type.String()),
});

/** Answer to a reset of an account's platform keys. */
export const ResetKey = Type.Object({
  user_id: Type.String(),
  api_key: Type.String({ description: "The new key. Shown here and never again." }),
  reset_at: Type.String({
    format: "date-time",
    description: "When all earlier platform keys stopped working.",
  }),
});

/** Body of a rotation of the platform key. */
export const KeyRotationBody = Type.Object({
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
export const RotatedKey = Type.Object({
  key: Type.String({ description: "The new key. Shown here and never again." }),
  rotated_at: Type.String({ format: "date-time" }),
  expires_at: Type.String({
    format: "date-time",
    description: "When the old key stops working, and every older one at the latest.",
  }),
});

/** Body of an advance of the test clock. */
export const ClockBody = Type.Object({
  advance_ms: Type.Integer({
    minimum: 0,
    maximum: 100 * 365 * 24 * 60 * 60 * 1000,
    errorMessage: "must be an integer, 0 or more, in milliseconds",
  }),
});

/** Answer to an advance of the test clock. */
export const ClockAnswer = Type.Object({ now: Type.Integer({ description: "Epoch milliseconds." }) });
