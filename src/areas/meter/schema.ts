import { Type } from "@sinclair/typebox";
import { BALANCE_MAX } from "../../kernel/ledger-entry.ts";

/** Path of a tenant meter. */
export const MeterParams = Type.Object({
  meterId: Type.String({
    pattern: "^[a-zA-Z0-9_-]{1,64}$",
    errorMessage: "must be 1 to 64 letters, digits, dashes or underscores",
    examples: ["customer-42"],
  }),
});

/**
 * Body of a deduct or refill. Zero and negative integers pass the schema: they are refused by the rule, with
 * `invalid_request`.
 */
export const AmountBody = Type.Object({
  amount: Type.Integer({
    maximum: BALANCE_MAX,
    errorMessage: "must be an integer from 1 to 9007199254740991",
    description: "Credits; 1 or more.",
    examples: [1],
  }),
});

/** Body of a reset. */
export const ResetBody = Type.Object({
  balance: Type.Integer({
    minimum: 0,
    maximum: BALANCE_MAX,
    errorMessage: "must be an integer from 0 to 9007199254740991",
    examples: [1000],
  }),
});

/** The own balance. */
export const OwnBalance = Type.Object({ balance: Type.Integer(), user_id: Type.String() });

/** A tenant meter's balance. */
export const MeterBalance = Type.Object({ balance: Type.Integer(), meter_id: Type.String() });
