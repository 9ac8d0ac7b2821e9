import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "./schema.ts";

/** What moved a balance (decisions: ledger entry). `charge` and `grant` occur on the own balance only. */
const ENTRY_KINDS = ["deduct", "refill", "reset", "grant", "charge"] as const;

/** One of {@link ENTRY_KINDS}. */
export type EntryKind = (typeof ENTRY_KINDS)[number];

/** A ledger entry as the API shows it. */
export const LedgerEntry = Type.Object({
  sequence: Type.Integer({ description: "Rises with every entry." }),
  kind: oneOf(ENTRY_KINDS, {}),
  amount: Type.Integer({ description: "What the balance changed by, signed." }),
  balance_after: Type.Integer({ description: "The balance after this change." }),
  at: Type.String({
    format: "date-time",
    description: "RFC 3339, UTC. Of a charge: the hour it belongs to.",
  }),
  request_id: Type.Union([Type.String(), Type.Null()], { description: "The request that caused it." }),
  operation: Type.Optional(Type.String({ description: "Of a charge: what was paid for." })),
  count: Type.Optional(Type.Integer({ description: "Of a charge: how many requests it sums up." })),
});
export type LedgerEntry = Static<typeof LedgerEntry>;

/** A page of a ledger, newest first. */
export const LedgerPage = Type.Object({
  entries: Type.Array(LedgerEntry),
  cursor: Type.Optional(
    Type.String({ description: "Hand it in to get the next page. Absent on the last one." }),
  ),
});
export type LedgerPage = Static<typeof LedgerPage>;

/** Largest balance and amount: what JSON carries exactly everywhere. */
export const BALANCE_MAX = Number.MAX_SAFE_INTEGER;
