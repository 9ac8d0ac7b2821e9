import { hash } from "node:crypto";
import { MISSING, memberAt, pointerNames } from "../../../kernel/data/json-pointer.ts";
import { firstNotBefore } from "../../../kernel/data/sorted.ts";
import { invalidField } from "../../../kernel/errors.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { ChainActor } from "../chain.ts";
import { VALUE_LENGTH_MAX } from "../domain.ts";
import type { IndexBody, IndexSettings, Receipt } from "../schema.ts";
import type { SearchStore } from "./store.ts";

/** Bytes of a value's hash. A search compares the values themselves, too. */
const HASH_BYTES = 8;

/** What receipts are searched for. */
export interface ReceiptSearch {
  readonly field?: string;
  readonly value?: string;
  readonly since?: number;
  readonly until?: number;
}

/** A range of positions, and a value in it. */
export interface Matches {
  readonly lowest: number;
  readonly highest: number;
  /** Newest position at or before another one that may match; 0 without one. */
  newest(sequence: number): number;
  matches(receipt: Receipt): boolean;
}

/** The index over the values of logs. */
export class Search {
  constructor(private readonly store: SearchStore) {}

  /** Settings of a chain; the defaults without one. */
  settings(chain: ChainActor | undefined): IndexSettings {
    return { fields: [...(chain?.indexed ?? [])], retain_days: chain?.retainDays ?? 0 };
  }

  /** Changes settings of a chain; those that are omitted stay. */
  configure(tx: Tx, chain: ChainActor, body: IndexBody): IndexSettings {
    const before = this.settings(chain);
    const { indexed, retainDays } = chain;
    const fields = [...new Set(body.fields ?? indexed)];
    const retain_days = body.retain_days ?? retainDays;
    this.store.setSettings(tx, fields.length === 0 ? null : JSON.stringify(fields), retain_days, chain.ref);
    tx.onRollback(() => Object.assign(chain, { indexed, retainDays }));
    Object.assign(chain, { indexed: fields, retainDays: retain_days });
    tx.audit({
      summary: "Index and retention of receipts set",
      target: { type: "chain", id: chain.chainId },
      before,
      after: { fields, retain_days },
    });
    return { fields, retain_days };
  }

  /** Indexes the values of a log. */
  add(tx: Tx, { ref, indexed }: ChainActor, sequence: number, log: Readonly<Record<string, unknown>>): void {
    for (const field of indexed) {
      const value = scalarAt(log, field);
      if (value !== null) this.store.add(tx, ref, hashOf(field, value), sequence);
    }
  }

  /** Removes the values of a receipt. */
  remove(tx: Tx, chainRef: number, sequence: number): void {
    this.store.removeOfReceipt(tx, chainRef, sequence);
  }

  /** Removes at most `rowsMax` rows of a chain. Returns the number of rows removed. */
  removeAll(tx: Tx, chainRef: number, rowsMax: number): number {
    return this.store.remove(tx, chainRef, rowsMax);
  }

  /**
   * Resolves a search to positions. Times are found by bisection, since receipts are in the order of their times.
   * @throws ApiError `validation_error` for a field that is not indexed, or a field without a value.
   */
  find(chain: ChainActor | undefined, { field, value, since, until }: ReceiptSearch): Matches {
    if ((field === undefined) !== (value === undefined))
      throw invalidField(field === undefined ? "field" : "value", "is required: field and value go together");
    if (field !== undefined && !chain?.indexed.includes(field))
      throw invalidField("field", "is not indexed: add it with PUT /v1/witness/index");
    const ref = chain?.ref ?? 0;
    const end = chain?.sequence ?? 0;
    const range = {
      lowest: since === undefined ? 1 : this.firstFrom(ref, end, since),
      highest: until === undefined ? end : this.firstFrom(ref, end, until) - 1,
    };
    if (field === undefined || value === undefined)
      return { ...range, newest: (sequence) => sequence, matches: () => true };
    const hash = hashOf(field, value);
    return {
      ...range,
      newest: (sequence) => this.store.newest(ref, hash, sequence),
      matches: ({ log }) => log !== undefined && scalarAt(log, field) === value,
    };
  }

  /** First position with a time from `at` on; one past the end without one. */
  private firstFrom(chainRef: number, end: number, at: number): number {
    return firstNotBefore(1, end + 1, (position) => this.store.timeAt(chainRef, position) < at);
  }
}

/** The text form of the scalar at a JSON Pointer (RFC 6901); null for anything else, and for long texts. */
function scalarAt(log: Readonly<Record<string, unknown>>, pointer: string): string | null {
  const value = memberAt(log, pointerNames(pointer));
  if (value === MISSING || (typeof value === "object" && value !== null)) return null;
  const text = String(value);
  return text.length > VALUE_LENGTH_MAX ? null : text;
}

function hashOf(field: string, value: string): Uint8Array {
  return hash("sha256", `${field}\n${value}`, "buffer").subarray(0, HASH_BYTES);
}
