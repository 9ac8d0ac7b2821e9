import { expect } from "bun:test";
import type { LedgerEntry } from "../../src/kernel/data/ledger.ts";
import type { Client } from "./client.ts";

/** Reads a whole ledger, newest first, page by page. `path` is a history without its query. */
export async function readLedger(client: Client, path: string, limit = 100): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  let cursor: unknown;
  do {
    const query = cursor === undefined ? "" : `&cursor=${encodeURIComponent(String(cursor))}`;
    const { status, body, text } = await client.get(`${path}?limit=${limit}${query}`);
    expect(status, text).toBe(200);
    const page = body.entries as LedgerEntry[];
    expect(page.length).toBeLessThanOrEqual(limit);
    if (body.cursor !== undefined) expect(page).toHaveLength(limit);
    entries.push(...page);
    cursor = body.cursor;
  } while (cursor !== undefined);
  return entries;
}

/**
 * Asserts what holds for every ledger read newest first: sequences fall, and each balance is the one before it
 * plus the amount, from 0 up to `balance`.
 */
export function expectConsistent(entries: readonly LedgerEntry[], balance: number): void {
  let running = 0n;
  let last = 0;
  for (const entry of entries.toReversed()) {
    expect(entry.sequence).toBeGreaterThan(last);
    last = entry.sequence;
    running += BigInt(entry.amount);
    expect(BigInt(entry.balance_after)).toBe(running);
  }
  expect(running).toBe(BigInt(balance));
}
