import { type Static, Type } from "@sinclair/typebox";
import { AmountBody, BALANCE_MAX, BalanceValue } from "../../../kernel/data/ledger.ts";
import {
  dateTime,
  duration,
  integer,
  NextCursor,
  named,
  oneOf,
  orNull,
} from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { HOLD_STATUSES } from "../domain.ts";
import { MeterBalance, MeterParams, MeterState } from "../schema.ts";

/** Default number of holds on a page. */
export const HOLDS_LIMIT = 50;

/** Maximum TTL of a hold, in seconds: one day. */
export const HOLD_SECONDS_MAX = 86_400;
/** Default TTL of a hold, in seconds. */
export const HOLD_SECONDS_DEFAULT = 300;
/** Members in a hold's metadata, which is for references and not for documents. */
export const HOLD_METADATA_MAX = 10;
/** Bytes of a hold's metadata as JSON. */
export const HOLD_METADATA_BYTES_MAX = 1_024;

const HOLD_ID = {
  pattern: "^[A-Za-z0-9_-]{1,64}$",
  errorMessage: "must be 1 to 64 letters, digits, dashes or underscores",
};
const EXAMPLE_HOLD_ID = "request-7f3a";

/** A positive number of credits. */
export const PositiveAmount = integer({
  min: 1,
  max: BALANCE_MAX,
  examples: [60],
});

const HoldSeconds = duration({
  unit: "seconds",
  min: 1,
  max: HOLD_SECONDS_MAX,
  description: "Time until the hold expires, in seconds.",
  examples: [HOLD_SECONDS_DEFAULT],
});

/** Path of a hold. */
export const HoldParams = Type.Object({
  ...MeterParams.properties,
  hold_id: Type.String({ ...HOLD_ID, examples: [EXAMPLE_HOLD_ID] }),
});

export const HoldQuery = Type.Object({
  status: Type.Optional(oneOf(HOLD_STATUSES)),
  ...pageQuery(HOLDS_LIMIT).properties,
});
export type HoldQuery = Static<typeof HoldQuery>;

/** A number of credits that the route, and not the schema, requires to be positive (`invalid_request`). */
export const RequestedAmount = { ...AmountBody.properties.amount, examples: PositiveAmount["examples"] };

export const HoldBody = named("HoldBody", {
  amount: RequestedAmount,
  ttl_seconds: Type.Optional({ ...HoldSeconds, default: HOLD_SECONDS_DEFAULT }),
  hold_id: Type.Optional(
    Type.String({ ...HOLD_ID, description: "Id of the hold, unique in the project. Default: a UUID." }),
  ),
  at_most: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Whether to hold the available credits, at least 1, if they are less than the amount.",
    }),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String({ errorMessage: "must be a string" }), {
      maxProperties: HOLD_METADATA_MAX,
      errorMessage: `must be an object of at most ${HOLD_METADATA_MAX} strings`,
      description: `Your own data: at most ${HOLD_METADATA_MAX} strings by name, 1 KiB as JSON.`,
    }),
  ),
});
export type HoldBody = Static<typeof HoldBody>;

export const CaptureBody = named("CaptureBody", {
  amount: Type.Optional(
    Type.Integer({
      ...BalanceValue,
      description: "Credits to deduct; 0 releases the hold. Default: all credits of the hold.",
      examples: [45],
    }),
  ),
  final: Type.Optional(
    Type.Boolean({
      default: true,
      description: "Whether to release the rest; false keeps it on hold, at most 1000 times.",
    }),
  ),
  over: Type.Optional(
    oneOf(["reject", "cap"], {
      errorMessage: "must be one of reject, cap",
      description:
        "If the amount exceeds the hold: `reject` (default, 400), or `cap`, which also takes available credits and returns the missing rest as `shortfall`.",
    }),
  ),
});
export type CaptureBody = Static<typeof CaptureBody>;

export const ExtendBody = named("ExtendBody", { ttl_seconds: HoldSeconds });

export const MeterHold = named("MeterHold", {
  hold_id: Type.String({ examples: [EXAMPLE_HOLD_ID] }),
  ...MeterBalance.properties,
  available: MeterState.properties.available,
  status: oneOf(HOLD_STATUSES, {}),
  requested: Type.Integer({ description: "Requested credits.", examples: [60] }),
  amount: Type.Integer({
    description: "Credits on hold, or those when the hold was closed.",
    examples: [60],
  }),
  captured: Type.Integer({ description: "Credits deducted so far.", examples: [0] }),
  shortfall: Type.Optional(Type.Integer({ description: "Credits that a capped capture could not deduct." })),
  created_at: dateTime(),
  expires_at: dateTime(),
  ended_at: orNull(dateTime(), {
    description: "Time when the hold was closed; null while it is open.",
    examples: [null],
  }),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
});
export type MeterHold = Static<typeof MeterHold>;

export const HoldsPage = named("HoldsPage", { holds: Type.Array(MeterHold), cursor: NextCursor });
export type HoldsPage = Static<typeof HoldsPage>;
