import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import {
  EVENT_STATUSES,
  type EventStatus,
  PROVIDERS,
  type Provider,
  VERIFICATIONS,
  type Verification,
} from "./domain.ts";

/** A row of `catch_events`, where status, provider and verification are numbers. */
export interface EventRow {
  sequence: number;
  status: EventStatus;
  provider: Provider | null;
  verification: Verification;
  received_at: number;
  attempts: number;
  response_status: number | null;
  error: string | null;
  delivered_at: number | null;
  retry_at: number | null;
}

type Coded<Row> = {
  [Column in keyof Row]: Column extends "status" | "provider" | "verification" ? number : Row[Column];
};

/** What is kept of a request besides its event. */
export interface PayloadRow {
  /** As `storedHeaders` made them. */
  headers: string;
  body: Uint8Array;
}

/** A new event, with its payload. */
export type NewEvent = PayloadRow &
  Pick<EventRow, "sequence" | "status" | "provider" | "verification" | "error">;

/** What a try to forward leaves on the row. */
export type Tried = Omit<EventRow, "sequence" | "provider" | "verification" | "received_at">;

/** An event that may be removed. */
export type RemovableRow = Pick<EventRow, "sequence" | "status" | "received_at"> & { payload_bytes: number };

/** Which events a list shows; null: any. */
export type EventFilter = Readonly<
  Record<"provider", Provider | null> & Record<"status", EventStatus | null>
>;

const EVENT =
  "sequence, status, provider, verification, received_at, attempts, response_status, error, delivered_at, retry_at";

/** 0 stands for no provider. */
const PROVIDER_CODES = [0, 1, 2, 3, 4] as const;
const STATUS_CODES = [0, 1, 2] as const;

/** All SQL of events and their payloads. */
export class EventStore {
  private readonly byKey;
  private readonly payloadByKey;
  private readonly before;
  private readonly beforeOfKind;
  private readonly afterOfKind;
  private readonly oldest;
  private readonly insertEvent;
  private readonly insertPayload;
  private readonly update;
  private readonly deleteEvent;
  private readonly deletePayload;
  private readonly highest;

  constructor(db: Database) {
    this.byKey = db.query<Coded<EventRow>, [number, number]>(
      `SELECT ${EVENT} FROM catch_events WHERE bucket_ref = ? AND sequence = ?`,
    );
    this.payloadByKey = db.query<PayloadRow, [number]>(
      "SELECT headers, body FROM catch_payloads WHERE sequence = ?",
    );
    this.before = db.query<Coded<EventRow>, [number, number, number]>(
      `SELECT ${EVENT} FROM catch_events WHERE bucket_ref = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?`,
    );
    this.beforeOfKind = db.query<{ sequence: number }, [number, number, number, number, number]>(
      "SELECT sequence FROM catch_events WHERE bucket_ref = ? AND status = ? AND provider = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?",
    );
    this.afterOfKind = db.query<{ sequence: number }, [number, number, number, number, number]>(
      "SELECT sequence FROM catch_events WHERE bucket_ref = ? AND status = ? AND provider = ? AND sequence > ? ORDER BY sequence LIMIT ?",
    );
    this.oldest = db.query<Coded<RemovableRow>, [number, number]>(
      "SELECT sequence, status, received_at, payload_bytes FROM catch_events WHERE bucket_ref = ? ORDER BY sequence LIMIT ?",
    );
    this.insertEvent = db.command<[number, number, number, number, number, number, string | null, number]>(
      `INSERT INTO catch_events (bucket_ref, sequence, status, provider, verification, received_at, attempts, error, payload_bytes)
       VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)`,
    );
    this.insertPayload = db.command<[number, string, Uint8Array]>(
      "INSERT INTO catch_payloads (sequence, headers, body) VALUES (?, ?, ?)",
    );
    this.update = db.command<
      [number, number, number | null, string | null, number | null, number | null, number, number]
    >(
      `UPDATE catch_events SET status = ?, attempts = ?, response_status = ?, error = ?, delivered_at = ?, retry_at = ?
       WHERE bucket_ref = ? AND sequence = ?`,
    );
    this.deleteEvent = db.command<[number, number]>(
      "DELETE FROM catch_events WHERE bucket_ref = ? AND sequence = ?",
    );
    this.deletePayload = db.command<[number]>("DELETE FROM catch_payloads WHERE sequence = ?");
    this.highest = db.query<{ sequence: number | null }>(
      "SELECT max(sequence) AS sequence FROM catch_payloads",
    );
  }

  /** The largest number of a stored event; 0 when there are no events. */
  highestSequence(): number {
    return this.highest.get()?.sequence ?? 0;
  }

  find(bucketRef: number, sequence: number): EventRow | null {
    const row = this.byKey.get(bucketRef, sequence);
    return row === null ? null : decoded(row);
  }

  payload(sequence: number): PayloadRow | null {
    return this.payloadByKey.get(sequence);
  }

  /** A bucket's events before a number, newest first. Reads about as many rows as it returns, whatever the filter. */
  page(bucketRef: number, filter: EventFilter, before: number, limit: number): EventRow[] {
    if (filter.provider === null && filter.status === null) {
      return this.before.all(bucketRef, before, limit).map(decoded);
    }
    const statuses = filter.status === null ? STATUS_CODES : [encodeStatus(filter.status)];
    const providers = filter.provider === null ? PROVIDER_CODES : [encodeProvider(filter.provider)];
    const sequences = statuses.flatMap((status) =>
      providers.flatMap((provider) => this.beforeOfKind.all(bucketRef, status, provider, before, limit)),
    );
    return sequences
      .sort((a, b) => b.sequence - a.sequence)
      .slice(0, limit)
      .flatMap(({ sequence }) => this.find(bucketRef, sequence) ?? []);
  }

  /** Numbers of a bucket's pending events after a number, oldest first. */
  pendingAfter(bucketRef: number, after: number, limit: number): number[] {
    const pending = encodeStatus("pending");
    return PROVIDER_CODES.flatMap((provider) =>
      this.afterOfKind.all(bucketRef, pending, provider, after, limit),
    )
      .map(({ sequence }) => sequence)
      .sort((a, b) => a - b)
      .slice(0, limit);
  }

  /** A bucket's oldest events. */
  oldestOf(bucketRef: number, limit: number): RemovableRow[] {
    return this.oldest.all(bucketRef, limit).map((row) => ({ ...row, status: decodeStatus(row.status) }));
  }

  insert(tx: Tx, bucketRef: number, event: NewEvent): void {
    this.insertPayload.run(tx, event.sequence, event.headers, event.body);
    this.insertEvent.run(
      tx,
      bucketRef,
      event.sequence,
      encodeStatus(event.status),
      encodeProvider(event.provider),
      VERIFICATIONS.indexOf(event.verification),
      tx.now,
      event.error,
      event.body.length,
    );
  }

  /** Records a try, if the event is still there. */
  setTried(tx: Tx, bucketRef: number, sequence: number, tried: Tried): void {
    const { attempts, response_status, error, delivered_at, retry_at } = tried;
    this.update.run(
      tx,
      ...[encodeStatus(tried.status), attempts, response_status, error, delivered_at, retry_at],
      ...[bucketRef, sequence],
    );
  }

  delete(tx: Tx, bucketRef: number, sequence: number): void {
    this.deleteEvent.run(tx, bucketRef, sequence);
    this.deletePayload.run(tx, sequence);
  }
}

/** The number that stands for a provider in the tables. */
export function encodeProvider(provider: Provider | null): number {
  return provider === null ? 0 : PROVIDERS.indexOf(provider) + 1;
}

/** The provider behind its number. */
export function decodeProvider(code: number): Provider | null {
  return PROVIDERS[code - 1] ?? null;
}

function decoded(row: Coded<EventRow>): EventRow {
  return {
    ...row,
    status: decodeStatus(row.status),
    provider: decodeProvider(row.provider),
    verification: VERIFICATIONS[row.verification] ?? "none",
  };
}

function decodeStatus(code: number): EventStatus {
  return EVENT_STATUSES[code] ?? "failed";
}

function encodeStatus(status: EventStatus): number {
  return EVENT_STATUSES.indexOf(status);
}
