import { type Static, Type } from "@sinclair/typebox";
import { BalanceValue } from "../../kernel/data/ledger.ts";
import { dateTime, NextCursor, named, oneOf } from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";

/** Default number of meters on a page. */
export const METERS_LIMIT = 50;

/** Path of a tenant meter. */
export const MeterParams = Type.Object({
  meterId: Type.String({
    pattern: "^[a-zA-Z0-9_-]{1,64}$",
    errorMessage: "must be 1 to 64 letters, digits, dashes or underscores",
    examples: ["customer-42"],
  }),
});

export const ResetBody = named("ResetBody", {
  balance: Type.Integer({ ...BalanceValue, examples: [1000] }),
});

export const MeterBalance = named("MeterBalance", {
  balance: Type.Integer({ examples: [999] }),
  meter_id: Type.String({ examples: ["customer-42"] }),
});
export type MeterBalance = Static<typeof MeterBalance>;

export const MeterState = named("MeterState", {
  ...MeterBalance.properties,
  available: Type.Integer({ description: "Balance minus open holds, in credits.", examples: [939] }),
  held: Type.Integer({ description: "Sum of the open holds, in credits.", examples: [60] }),
  has_plan: Type.Optional(
    Type.Boolean({
      description: "True for a meter with a refill plan; absent for one without.",
      examples: [true],
    }),
  ),
  alert: Type.Optional(
    oneOf(["meter", "project"], {
      description:
        "The low-balance alert that applies: the meter's own, or the project's. Absent without one.",
    }),
  ),
});
export type MeterState = Static<typeof MeterState>;

export const MeterQuery = Type.Object({
  prefix: Type.Optional(
    Type.String({
      pattern: "^[a-zA-Z0-9_-]{0,64}$",
      errorMessage: "must be at most 64 letters, digits, dashes or underscores",
      description: "Returns only meters with an id that starts with this text.",
    }),
  ),
  ...pageQuery(METERS_LIMIT).properties,
});

const MeterItem = named("MeterItem", {
  meter_id: Type.String({ examples: ["customer-42"] }),
  balance: Type.Integer({ examples: [999] }),
  available: MeterState.properties.available,
  updated_at: dateTime({ description: "Time of the last change of the balance." }),
});
export type MeterItem = Static<typeof MeterItem>;

export const MeterPage = named("MeterPage", {
  meters: Type.Array(MeterItem),
  has_alert: Type.Optional(
    Type.Boolean({
      description: "True for a project with a low-balance alert; absent for one without.",
      examples: [true],
    }),
  ),
  cursor: NextCursor,
});
export type MeterPage = Static<typeof MeterPage>;
