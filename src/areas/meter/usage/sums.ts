import { BALANCE_MAX } from "../../../kernel/data/ledger.ts";
import { KINDS } from "../book.ts";
import type { HourRow, UsageEntry } from "../store.ts";

/** The sum for each kind of entry, by the number of the kind. */
const SUM_OF = KINDS.map((kind) => {
  if (kind === "reset") return "reset";
  return kind === "deduct" || kind === "capture" ? "deducted" : "refilled";
});

/** Returns empty sums of an hour. */
export function emptySums(hour: number): HourRow {
  return { hour, deducted: 0, refilled: 0, reset: 0, entries: 0, last_sequence: 0, balance: 0 };
}

/** Adds an entry that is newer than all entries in the sums. */
export function addEntry(sums: HourRow, { kind, amount, sequence, balance_after }: UsageEntry): void {
  const sum = SUM_OF[kind - 1] ?? "reset";
  sums[sum] = clamp(sums[sum] + (sum === "deducted" ? -amount : amount));
  sums.entries += 1;
  sums.last_sequence = sequence;
  sums.balance = balance_after;
}

export function addSums(sums: HourRow, other: Readonly<HourRow>): void {
  sums.deducted = clamp(sums.deducted + other.deducted);
  sums.refilled = clamp(sums.refilled + other.refilled);
  sums.reset = clamp(sums.reset + other.reset);
  sums.entries += other.entries;
  if (other.last_sequence < sums.last_sequence) return;
  sums.last_sequence = other.last_sequence;
  sums.balance = other.balance;
}

/** Limits a sum to the integers that JSON represents exactly. */
function clamp(sum: number): number {
  return Math.max(-BALANCE_MAX, Math.min(BALANCE_MAX, sum));
}
