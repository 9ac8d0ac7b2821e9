import { type Static, Type } from "@sinclair/typebox";
import { BalanceValue } from "../../kernel/ledger.ts";
import { named } from "../../kernel/schema.ts";

/** Path of a tenant meter. */
export const MeterParams = Type.Object({
  meterId: Type.String({
    pattern: "^[a-zA-Z0-9_-]{1,64}$",
    errorMessage: "must be 1 to 64 letters, digits, dashes or underscores",
    examples: ["customer-42"],
  }),
});

/** Body of a reset. */
export const ResetBody = named("ResetBody", {
  balance: Type.Integer({ ...BalanceValue, examples: [1000] }),
});

/** A tenant meter's balance. */
export const MeterBalance = named("MeterBalance", {
  balance: Type.Integer({ examples: [999] }),
  meter_id: Type.String({ examples: ["customer-42"] }),
});
export type MeterBalance = Static<typeof MeterBalance>;
