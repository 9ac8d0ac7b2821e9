import { DAY_MS } from "../../kernel/time/units.ts";
import type { Uses } from "./schema.ts";

/** The uses that a key has left, as a stored row. */
export type AllowanceRow = {
  readonly remaining: number;
  /** Null: no refill. */
  readonly every: string | null;
  readonly amount: number | null;
  /** Day of the month. */
  readonly day: number | null;
  /** `remaining` includes the refills until this time. Epoch milliseconds. */
  readonly refilled_at: number;
};

/** The row of the uses in a body, starting now. */
export function allowanceOf({ remaining, refill }: UsesTerms, now: number): AllowanceRow {
  const { every = null, amount = null, day = 1 } = refill ?? {};
  return { remaining, every, amount, day: every === "month" ? day : null, refilled_at: now };
}

/** Uses as given in a body. */
export type UsesTerms = Omit<Uses, "refill"> & { readonly refill?: Uses["refill"] | null };

/** The uses left at `now`. A refill raises them to its amount and never lowers them; several missed refills count once. */
export function remainingAt(row: AllowanceRow, now: number): number {
  const isDue = row.every !== null && refillAt(row, now, 0) > row.refilled_at;
  return isDue ? Math.max(row.remaining, row.amount ?? 0) : row.remaining;
}

/** The time of the next refill, if it provides at least `needed` uses; otherwise null. */
export function nextRefillAt(row: AllowanceRow, now: number, needed: number): number | null {
  return row.every === null || (row.amount ?? 0) < needed ? null : refillAt(row, now, 1);
}

/** The uses as shown in a response. */
export function usesView(row: AllowanceRow, now: number): Uses {
  const { every, amount, day } = row;
  const remaining = remainingAt(row, now);
  if (every === null || amount === null) return { remaining };
  const on = every === "month" && day !== null ? { day } : {};
  return { remaining, refill: { every: every === "month" ? "month" : "day", amount, ...on } };
}

/** The last refill up to `now` (`step` 0), or the first one after it (1). 00:00 UTC of its day. */
function refillAt({ every, day }: AllowanceRow, now: number, step: 0 | 1): number {
  if (every === "day") return (Math.floor(now / DAY_MS) + step) * DAY_MS;
  const date = new Date(now);
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth();
  const isPast = monthlyAt(year, month, day ?? 1) <= now;
  return monthlyAt(year, month + step - (isPast ? 0 : 1), day ?? 1);
}

/** 00:00 UTC on the day of a month, or on its last day if it is shorter. `month` may be below 0 or above 11. */
function monthlyAt(year: number, month: number, day: number): number {
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(day, last));
}
