import { createHash } from "node:crypto";
import type { Caller } from "../../callers/caller.ts";
import { ApiError } from "../../errors.ts";
import type { RemoveAccountRows } from "../../projects/resources.ts";
import type { Housekeeping } from "../../scheduler/housekeeping.ts";
import type { Vault } from "../../secrets/vault.ts";
import type { Database } from "../../storage/database.ts";
import type { Tx } from "../../storage/tx.ts";
import { DAY_MS } from "../../time/units.ts";
import { type RenderedResponse, ReplayedResponse } from "../responses/response.ts";
import type { FreeResponses } from "./free-responses.ts";

/** Retention of a response. */
export const IDEMPOTENCY_RETENTION_MS = DAY_MS;
/** Rows removed in one step of the hourly housekeeping: a few milliseconds of the writer's time. */
const PURGE_SLICE = 500;
/** Longest response that is stored without a change: rejections are far shorter. */
export const REJECTION_BYTES_MAX = 4 * 1024;
/** `Retry-After` of a repeat while the first request is still running; other conflicts have none. */
const STILL_RUNNING_RETRY_SECONDS = 1;
/** 1 to 255 printable ASCII characters. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/** A request under an `Idempotency-Key`. */
export interface IdempotentRequest {
  readonly key: string;
  /** SHA-256 over method, path with query, and the exact body; of people also over who sends it. */
  readonly fingerprint: Uint8Array;
  /** Whether the response holds a secret. */
  readonly secret: boolean;
}

interface Row {
  fingerprint: Uint8Array;
  credential: string;
  secret: number;
  answer: Uint8Array;
  created_at: number;
}

/** A response as it is stored. Version 0.1.0 did not store its project. */
interface StoredResponse extends RenderedResponse {
  readonly project?: number;
}

/** Where the keys of an account's own credentials stand: they are the account's, whichever project is its default one. */
const OF_ACCOUNT = 0;

/** The responses stored under `Idempotency-Key`s, per project, sealed like secrets. */
export class IdempotencyStore {
  private readonly running = new Set<string>();
  private readonly select;
  private readonly insert;
  private readonly deleteOld;
  private readonly deleteOfAccount;

  constructor(
    db: Database,
    private readonly vault: Vault,
    private readonly free: FreeResponses,
  ) {
    this.select = db.one<Row, [number, string, number]>(
      "SELECT fingerprint, credential, secret, answer, created_at FROM idempotency WHERE account_ref = ? AND key = ? AND project_ref = ?",
    );
    this.insert = db.change<[number, string, number, Uint8Array, string, number, Uint8Array, number]>(
      "INSERT OR REPLACE INTO idempotency (account_ref, key, project_ref, fingerprint, credential, secret, answer, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.deleteOfAccount = db.change<[accountRef: number, rowsMax: number]>(
      "DELETE FROM idempotency WHERE (account_ref, key, project_ref) IN (SELECT account_ref, key, project_ref FROM idempotency WHERE account_ref = ? LIMIT ?)",
    );
    this.deleteOld = db.change<[number]>(
      `DELETE FROM idempotency WHERE (account_ref, key, project_ref) IN (SELECT account_ref, key, project_ref FROM idempotency WHERE created_at < ? ORDER BY created_at LIMIT ${PURGE_SLICE})`,
    );
  }

  /**
   * Lets a first request pass.
   * @throws ReplayedResponse for a repeat.
   * @throws ApiError `conflict` when the key was used for another request, by another credential where the
   *   response holds a secret, or by one that is still running.
   */
  check(tx: Tx, caller: Caller, request: IdempotentRequest): void {
    if (placesOf(caller).some((place) => this.running.has(runningKey(caller, request.key, place)))) {
      const message = "The first request with this Idempotency-Key is still running. Retry in a second.";
      throw new ApiError("conflict", message, { retryAfterSeconds: STILL_RUNNING_RETRY_SECONDS });
    }
    const row = this.find(tx, caller, request.key);
    if (row === null) return;
    if (Buffer.compare(row.fingerprint, request.fingerprint) !== 0) {
      throw new ApiError("conflict", "This Idempotency-Key was used for another request. Use a new key.");
    }
    if (row.secret !== 0 && row.credential !== caller.credential) {
      const message =
        "The response stored under this Idempotency-Key holds a secret of another key. Use the key that sent the first request.";
      throw new ApiError("conflict", message);
    }
    throw new ReplayedResponse(this.answerIn(row, caller, request.key));
  }

  private find(tx: Tx, caller: Caller, key: string): Row | null {
    for (const place of placesOf(caller)) {
      const row = this.select(caller.account.ref, key, place);
      if (row === null || row.created_at <= tx.now - IDEMPOTENCY_RETENTION_MS) continue;
      // Responses of the account's credentials in an earlier default project do not belong to the keys of this project.
      const project = caller.projectBound ? this.answerIn(row, caller, key).project : undefined;
      if ((project ?? caller.project.ref) === caller.project.ref) return row;
    }
    return null;
  }

  private answerIn({ answer }: Row, caller: Caller, key: string): StoredResponse {
    return JSON.parse(this.vault.open(answer, sealContext(caller, key)));
  }

  /**
   * For requests that are free of charge, or that may be refunded.
   * @throws ApiError `rate_limit_exceeded` when the account has reached its limit of responses stored free of charge.
   */
  assertFreeSpace(tx: Tx, caller: Caller): void {
    this.free.assertCapacity(tx, caller.account);
  }

  /**
   * Stores a response that was free of charge and changed nothing, such as a rejection, if it is short and within the limit.
   * If it is not stored, a repeat is evaluated again, which changes nothing either.
   */
  storeIfSpace(tx: Tx, caller: Caller, request: IdempotentRequest, answer: RenderedResponse): void {
    if (Buffer.byteLength(answer.text) > REJECTION_BYTES_MAX || !this.free.hasCapacity(tx, caller.account))
      return;
    this.store(tx, caller, request, answer, false);
  }

  /** Stores a response within its unit of work. `paid`: whether it was charged. */
  store(tx: Tx, caller: Caller, request: IdempotentRequest, answer: RenderedResponse, paid: boolean): void {
    const kept: StoredResponse = { ...answer, project: caller.project.ref };
    const sealed = this.vault.seal(JSON.stringify(kept), sealContext(caller, request.key));
    const secret = request.secret ? 1 : 0;
    this.insert(
      tx,
      caller.account.ref,
      request.key,
      ownPlaceOf(caller),
      request.fingerprint,
      caller.credential,
      secret,
      sealed,
      tx.now,
    );
    if (!paid) this.free.add(tx, caller.account, sealed.length + request.key.length);
  }

  /** Marks a request as running between its two units of work. Returns how to unmark it. */
  hold(caller: Caller, request: IdempotentRequest): () => void {
    const key = runningKey(caller, request.key, ownPlaceOf(caller));
    this.running.add(key);
    return () => this.running.delete(key);
  }

  /** Registers the removal of expired responses. */
  registerPurge(housekeeping: Housekeeping): void {
    housekeeping.addPurge({
      name: "idempotency",
      rowsMax: PURGE_SLICE,
      remove: (tx) => this.purge(tx),
    });
    housekeeping.addPurge({
      name: "free responses",
      rowsMax: Number.POSITIVE_INFINITY,
      remove: (tx) => {
        this.free.purge(tx);
        return 0;
      },
    });
  }

  /** Removes the responses of a deleted account. */
  readonly removeRows: RemoveAccountRows = (tx, accountRef, rowsMax) => {
    this.free.removeOfAccount(tx, accountRef);
    return this.deleteOfAccount(tx, accountRef, rowsMax);
  };

  /** Removes a slice of the responses that have expired. Returns how many. */
  purge(tx: Tx): number {
    return this.deleteOld(tx, tx.now - IDEMPOTENCY_RETENTION_MS);
  }
}

/** @throws ApiError `validation_error` when the header is empty, too long or not printable. */
export function assertIdempotencyKey(key: string): void {
  if (KEY.test(key)) return;
  throw new ApiError("validation_error", "Idempotency-Key must have 1 to 255 printable ASCII characters.", {
    fields: { "Idempotency-Key": ["must have 1 to 255 printable ASCII characters"] },
  });
}

/**
 * The fingerprint of a request. `person`: the id of the person who sends it. People see different things of the same account,
 * so that the same request of another person is another one.
 */
export function fingerprintOf(
  {
    method,
    target,
    person,
  }: { readonly method: string; readonly target: string; readonly person?: string | undefined },
  body: Uint8Array,
): Uint8Array {
  const head = `${person === undefined ? "" : `${person} `}${method}\n${target}\n`;
  return new Uint8Array(createHash("sha256").update(head).update(body).digest());
}

/** Whether a response with this status is stored: any except 401, 429 and 5xx. */
export function isStorable(status: number): boolean {
  return status < 500 && status !== 401 && status !== 429;
}

/** The project that a caller's responses are stored in: the key's own, or the one that a session's request names. */
function ownPlaceOf({ projectBound, project, account }: Caller): number {
  return projectBound || project.ref !== account.defaultProject.ref ? project.ref : OF_ACCOUNT;
}

/** Where a caller's key may have been used: in its default project, the account's credentials share their keys with those of the project. */
function placesOf(caller: Caller): readonly number[] {
  const { project, account } = caller;
  const place = ownPlaceOf(caller);
  if (project.ref !== account.defaultProject.ref) return [place];
  return [place, place === OF_ACCOUNT ? project.ref : OF_ACCOUNT];
}

function runningKey(caller: Caller, key: string, place: number): string {
  return `${caller.account.ref}:${place}:${key}`;
}

function sealContext(caller: Caller, key: string): string {
  return `idempotency:${caller.account.userId}:${key}`;
}
