import { createHash } from "node:crypto";
import { ApiError } from "../errors.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { Vault } from "../secrets/vault.ts";
import type { Database } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import { type RenderedAnswer, ReplayedAnswer } from "./answer.ts";
import type { Caller } from "./caller.ts";

/** How long an answer is kept. */
export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60 * 1000;
/** Rows removed in one unit of work by the hourly clean-up: a few milliseconds of the writer's time. */
const PURGE_SLICE = 500;
/** Hourly, off the full hour, where everyone else's work begins. */
const PURGE_SCHEDULE = "17 * * * *";
/** What a repeat of a request that is still running is told to wait: its `Retry-After` tells it from other conflicts. */
const STILL_RUNNING_RETRY_SECONDS = 1;
/** 1 to 255 printable ASCII characters. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/** A request under an `Idempotency-Key`. */
export interface IdempotentRequest {
  readonly key: string;
  /** SHA-256 over method, path with query, and the exact body. */
  readonly fingerprint: Uint8Array;
  /** Whether the answer holds a secret. */
  readonly secret: boolean;
}

interface Row {
  fingerprint: Uint8Array;
  credential: string;
  secret: number;
  answer: Uint8Array;
  created_at: number;
}

/** The answers kept under `Idempotency-Key`s, per account, sealed like secrets. */
export class IdempotencyStore {
  private readonly running = new Set<string>();
  private readonly vault: Vault;
  private readonly select;
  private readonly insert;
  private readonly deleteOld;

  constructor(db: Database, vault: Vault) {
    this.vault = vault;
    this.select = db.query<Row, [number, string]>(
      "SELECT fingerprint, credential, secret, answer, created_at FROM idempotency WHERE account_ref = ? AND key = ?",
    );
    this.insert = db.command<[number, string, Uint8Array, string, number, Uint8Array, number]>(
      "INSERT OR REPLACE INTO idempotency (account_ref, key, fingerprint, credential, secret, answer, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    );
    this.deleteOld = db.command<[number]>(
      `DELETE FROM idempotency WHERE (account_ref, key) IN (SELECT account_ref, key FROM idempotency WHERE created_at < ? ORDER BY created_at LIMIT ${PURGE_SLICE})`,
    );
  }

  /**
   * Lets a first request pass.
   * @throws ReplayedAnswer for a repeat.
   * @throws ApiError `conflict` when the key was used for another request, by another credential where the
   *   answer holds a secret, or by one that is still running.
   */
  check(tx: Tx, caller: Caller, request: IdempotentRequest): void {
    if (this.running.has(runningKey(caller, request.key))) {
      throw new ApiError(
        "conflict",
        "The first request with this Idempotency-Key is still running. Try again shortly.",
        { retryAfterSeconds: STILL_RUNNING_RETRY_SECONDS },
      );
    }
    const row = this.select.get(caller.account.ref, request.key);
    if (row === null || row.created_at <= tx.now - IDEMPOTENCY_KEPT_MS) return;
    if (Buffer.compare(row.fingerprint, request.fingerprint) !== 0) {
      throw new ApiError("conflict", "This Idempotency-Key was used for another request. Use a new key.");
    }
    if (row.secret !== 0 && row.credential !== caller.credential) {
      throw new ApiError(
        "conflict",
        "The answer under this Idempotency-Key holds a secret given to another key.",
      );
    }
    throw new ReplayedAnswer(JSON.parse(this.vault.open(row.answer, sealContext(caller, request.key))));
  }

  /** Stores an answer within the unit of work that it belongs to. */
  store(tx: Tx, caller: Caller, request: IdempotentRequest, answer: RenderedAnswer): void {
    const sealed = this.vault.seal(JSON.stringify(answer), sealContext(caller, request.key));
    const secret = request.secret ? 1 : 0;
    this.insert.run(
      tx,
      caller.account.ref,
      request.key,
      request.fingerprint,
      caller.credential,
      secret,
      sealed,
      tx.now,
    );
  }

  /** Marks a request as running between its two units of work. Returns how to unmark it. */
  hold(caller: Caller, request: IdempotentRequest): () => void {
    const key = runningKey(caller, request.key);
    this.running.add(key);
    return () => this.running.delete(key);
  }

  /** Registers the hourly clean-up. */
  registerPurge(scheduler: Scheduler, writer: Writer): void {
    scheduler.recurring("idempotency.purge", PURGE_SCHEDULE, async () => {
      while (await writer.submit((tx) => this.purge(tx)));
    });
  }

  /** Removes a slice of the answers that are past their time. Returns whether there may be more. */
  purge(tx: Tx): boolean {
    return this.deleteOld.run(tx, tx.now - IDEMPOTENCY_KEPT_MS) === PURGE_SLICE;
  }
}

/** Reads the header. @throws ApiError `validation_error` when it is empty, too long or not printable. */
export function readIdempotencyKey(request: Request): string | null {
  const key = request.headers.get("idempotency-key");
  if (key === null) return null;
  if (!KEY.test(key)) {
    throw new ApiError("validation_error", "Idempotency-Key must have 1 to 255 printable ASCII characters.", {
      fields: { "Idempotency-Key": ["must have 1 to 255 printable ASCII characters"] },
    });
  }
  return key;
}

/** The fingerprint of a request. */
export function fingerprintOf(method: string, target: string, body: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha256").update(`${method}\n${target}\n`).update(body).digest());
}

/** Whether an answer with this status is stored (decisions: any but 401, 429 and 5xx). */
export function isStorable(status: number): boolean {
  return status < 500 && status !== 401 && status !== 429;
}

function runningKey(caller: Caller, key: string): string {
  return `${caller.account.ref}:${key}`;
}

function sealContext(caller: Caller, key: string): string {
  return `idempotency:${caller.account.userId}:${key}`;
}
