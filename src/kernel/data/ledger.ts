import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "../errors.ts";
import { dateTime, integer, NextCursor, oneOf, orNull, uuid } from "./schema.ts";

/** Largest balance and amount: what JSON carries exactly everywhere. */
export const BALANCE_MAX = Number.MAX_SAFE_INTEGER;
/** Default number of entries on a page of a ledger. */
export const HISTORY_LIMIT = 50;

/** What moved a balance. `charge` occurs on an account's balance only, `capture` on a meter's. */
const ENTRY_KINDS = ["deduct", "refill", "reset", "grant", "charge", "capture"] as const;

/** One of {@link ENTRY_KINDS}. */
export type EntryKind = (typeof ENTRY_KINDS)[number];

/** A balance that is set. */
export const BalanceValue = integer({
  min: 0,
  max: BALANCE_MAX,
  examples: [999],
});

/** Body of a deduct or refill. Zero and less pass the schema: {@link deducted} and {@link refilled} reject them. */
export const AmountBody = Type.Object(
  {
    amount: Type.Integer({
      maximum: BALANCE_MAX,
      errorMessage: `must be an integer from 1 to ${BALANCE_MAX}`,
      description: "Credits; 1 or more.",
      examples: [1],
    }),
  },
  { $id: "AmountBody" },
);

/** A ledger entry as the API shows it. */
export const LedgerEntry = Type.Object(
  {
    sequence: Type.Integer({
      description: "Position of the entry; increases with every entry.",
      examples: [42],
    }),
    kind: oneOf(ENTRY_KINDS, {}),
    amount: Type.Integer({ description: "Change of the balance, signed.", examples: [-1] }),
    balance_after: Type.Integer({ description: "The balance after this change.", examples: [999] }),
    at: dateTime({
      description: "Time of the entry (RFC 3339, UTC); of a charge, the start of its hour.",
    }),
    request_id: orNull(uuid(), { description: "The request that caused it." }),
    operation: Type.Optional(
      Type.String({ description: "Operation of a charge.", examples: ["meter.deduct"] }),
    ),
    count: Type.Optional(Type.Integer({ description: "Number of requests in a charge." })),
    hold_id: Type.Optional(
      Type.String({ description: "The hold that was captured.", examples: ["request-7f3a"] }),
    ),
  },
  { $id: "LedgerEntry" },
);
export type LedgerEntry = Static<typeof LedgerEntry>;

/** A page of a ledger, newest first. */
export const LedgerPage = Type.Object(
  {
    entries: Type.Array(LedgerEntry),
    cursor: NextCursor,
  },
  { $id: "LedgerPage" },
);
export type LedgerPage = Static<typeof LedgerPage>;

/** Additional fields of `insufficient_balance` errors. */
export const BALANCE_EXTRAS = {
  balance: Type.Optional(Type.Integer({ description: "With `insufficient_balance`: the balance." })),
  available: Type.Optional(
    Type.Integer({
      description: "With `insufficient_balance` of a meter: the balance without held credits.",
    }),
  ),
  user_id: ownerOfBalance("the account, for an account balance."),
  meter_id: ownerOfBalance("the meter, for a meter balance."),
};

function ownerOfBalance(meaning: string) {
  return Type.Optional(Type.String({ description: `With \`insufficient_balance\`: ${meaning}` }));
}

/** The field of the error that names the balance. */
export type BalanceOwner =
  | { readonly user_id: string }
  | { readonly meter_id: string; readonly available: number };

/**
 * A balance without `amount`. `advice` is added to the message of an insufficient balance.
 * @throws ApiError `invalid_request` for an amount that is not positive; `insufficient_balance`.
 */
export function deducted(
  balance: number,
  amount: number,
  owner: BalanceOwner,
  advice: () => string = () => "",
): number {
  assertPositive(amount);
  const available = "available" in owner ? owner.available : balance;
  if (available < amount) {
    const what = available === balance ? "the balance" : "what is available";
    const message = `The deduction is ${amount}, but ${what} is ${available}.${advice()}`;
    throw insufficientBalance(message, balance, owner);
  }
  return balance - amount;
}

/** A balance with `amount` more. @throws ApiError `invalid_request` when the amount or the sum is out of range. */
export function refilled(balance: number, amount: number): number {
  assertPositive(amount);
  if (amount > BALANCE_MAX - balance) {
    throw new ApiError("invalid_request", `The balance would pass ${BALANCE_MAX}. Nothing was changed.`);
  }
  return balance + amount;
}

/** The error if a balance is not sufficient. */
export function insufficientBalance(message: string, balance: number, owner: BalanceOwner): ApiError {
  return new ApiError("insufficient_balance", message, { extras: { balance, ...owner } });
}

/** Comes before any charge: who has nothing left must read what is wrong, too. @throws ApiError `invalid_request` */
export function assertPositive(amount: number): void {
  if (amount > 0) return;
  throw new ApiError("invalid_request", `amount must be a positive integer; ${amount} is not.`);
}
