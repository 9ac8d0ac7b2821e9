import { type Static, Type } from "@sinclair/typebox";
import { AmountBody, BALANCE_MAX, BalanceValue } from "../../../kernel/data/ledger.ts";
import { named, oneOf, orNull } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { MeterBalance, MeterParams, MeterState } from "../schema.ts";

/** Holds on a page unless asked otherwise. */
export const HOLDS_LIMIT = 50;

/** What became of a hold, in the order of the numbers that files have for it. */
export const HOLD_STATUSES = ["open", "captured", "released", "expired"] as const;
export type HoldStatus = (typeof HOLD_STATUSES)[number];

/** Longest time that a hold is open unless it is extended, in seconds: a day's work. */
export const HOLD_SECONDS_MAX = 86_400;
/** The same where nothing is said: a call that takes longer than five minutes says so. */
export const HOLD_SECONDS_DEFAULT = 300;
/** Members of a hold's metadata: the names of a request and of whom it is for, no document. */
export const HOLD_METADATA_MAX = 10;
/** Bytes of its JSON. */
export const HOLD_METADATA_BYTES_MAX = 1_024;

const HOLD_ID = {
  pattern: "^[A-Za-z0-9_-]{1,64}$",
  errorMessage: "must be 1 to 64 letters, digits, dashes or underscores",
};
const EXAMPLE_HOLD_ID = "request-7f3a";

/** An amount of credits that is not nothing. */
export const PositiveAmount = Type.Integer({
  minimum: 1,
  maximum: BALANCE_MAX,
  errorMessage: `must be an integer from 1 to ${BALANCE_MAX}`,
  examples: [60],
});

const HoldSeconds = Type.Integer({
  minimum: 1,
  maximum: HOLD_SECONDS_MAX,
  errorMessage: `must be an integer from 1 to ${HOLD_SECONDS_MAX} (seconds)`,
  examples: [HOLD_SECONDS_DEFAULT],
});

/** Path of a hold. */
export const HoldParams = Type.Object({
  ...MeterParams.properties,
  hold_id: Type.String({ ...HOLD_ID, examples: [EXAMPLE_HOLD_ID] }),
});

/** Which holds of a meter. */
export const HoldQuery = Type.Object({
  status: Type.Optional(oneOf(HOLD_STATUSES)),
  ...pageQuery(HOLDS_LIMIT).properties,
});
export type HoldQuery = Static<typeof HoldQuery>;

/** The same in a body whose route rejects 0 and less with `invalid_request`, as those of deducts and refills do. */
export const GivenAmount = { ...AmountBody.properties.amount, examples: PositiveAmount["examples"] };

/** Body that makes a hold. */
export const HoldBody = named("HoldBody", {
  amount: GivenAmount,
  ttl_seconds: Type.Optional({ ...HoldSeconds, default: HOLD_SECONDS_DEFAULT }),
  hold_id: Type.Optional(
    Type.String({ ...HOLD_ID, description: "Yours, unique in the project; a UUID unless given." }),
  ),
  at_most: Type.Optional(
    Type.Boolean({ default: false, description: "Holds what there is when that is less than the amount." }),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String({ errorMessage: "must be a text" }), {
      maxProperties: HOLD_METADATA_MAX,
      errorMessage: `must be an object of at most ${HOLD_METADATA_MAX} texts`,
    }),
  ),
});
export type HoldBody = Static<typeof HoldBody>;

/** Body of a capture. All of it is optional. */
export const CaptureBody = named("CaptureBody", {
  amount: Type.Optional(
    Type.Integer({ ...BalanceValue, description: "What is held, unless given.", examples: [45] }),
  ),
  final: Type.Optional(
    Type.Boolean({ default: true, description: "Frees what is left; false keeps that held." }),
  ),
  over: Type.Optional(
    oneOf(["reject", "cap"], {
      errorMessage: "must be one of reject, cap",
      description: "More than is held is refused, or taken from what is available as far as that goes.",
    }),
  ),
});
export type CaptureBody = Static<typeof CaptureBody>;

/** Body that extends a hold. */
export const ExtendBody = named("ExtendBody", { ttl_seconds: HoldSeconds });

/** A hold. */
export const MeterHold = named("MeterHold", {
  hold_id: Type.String({ examples: [EXAMPLE_HOLD_ID] }),
  ...MeterBalance.properties,
  available: MeterState.properties.available,
  status: oneOf(HOLD_STATUSES, {}),
  requested: Type.Integer({ description: "What was asked for.", examples: [60] }),
  amount: Type.Integer({ description: "What is held, or was at the end.", examples: [60] }),
  captured: Type.Integer({ description: "What was deducted so far.", examples: [0] }),
  shortfall: Type.Optional(Type.Integer({ description: "What a capped capture did not get." })),
  created_at: Type.String({ format: "date-time" }),
  expires_at: Type.String({ format: "date-time" }),
  ended_at: orNull(Type.String({ format: "date-time" }), {
    description: "Null while it is open.",
    examples: [null],
  }),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
});
export type MeterHold = Static<typeof MeterHold>;

/** A page of holds, newest first. */
export const HoldsPage = named("HoldsPage", { holds: Type.Array(MeterHold), cursor: NextCursor });
export type HoldsPage = Static<typeof HoldsPage>;
