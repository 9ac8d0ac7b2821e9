import { MIGRATIONS } from "../../../../migrations/index.ts";
import type { Caller, CallerAccount, Charger } from "../../../../src/kernel/callers/caller.ts";
import { ApiError } from "../../../../src/kernel/errors.ts";
import { type Operation, operationOf } from "../../../../src/kernel/http/operation.ts";
import { FreeResponses } from "../../../../src/kernel/http/operations/free-responses.ts";
import { fingerprintOf, IdempotencyStore } from "../../../../src/kernel/http/operations/idempotency.ts";
import { OpenClaims } from "../../../../src/kernel/http/operations/open-claims.ts";
import { type Performer, Performing } from "../../../../src/kernel/http/operations/perform.ts";
import { type RenderedResponse, ReplayedResponse } from "../../../../src/kernel/http/responses/response.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { createVault, type Vault } from "../../../../src/kernel/secrets/vault.ts";
import type { Change } from "../../../../src/kernel/storage/database.ts";
import { migrate } from "../../../../src/kernel/storage/migrate.ts";
import type { Tx } from "../../../../src/kernel/storage/tx.ts";
import { TestStorage } from "../../support.ts";

/** Costs 1 credit. */
export const CHARGED = operationOf({ name: "meter.deduct", access: "meter:write", cost: 1, summary: "" });
/** Free of charge. */
export const FREE = operationOf({
  name: "meter.own.deduct",
  access: "meter:write",
  changesProject: false,
  summary: "",
});
/** Its responses contain a secret. */
export const SECRET = operationOf({
  name: "keys.platform.rotate",
  access: "keys:write",
  cost: 1,
  secret: true,
  changesProject: false,
  summary: "",
});

/** Balances in memory, with changes that can be rolled back. */
class TestCharger implements Charger {
  readonly balances = new Map<number, number>();
  readonly booked: string[] = [];

  charge(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    if (this.balanceOf(account.ref) < cost) throw new ApiError("insufficient_balance", "Too few credits.");
    this.book(tx, account, -cost, `charge ${operation}`);
  }

  refund(tx: Tx, account: CallerAccount, operation: string, cost: number): void {
    this.book(tx, account, cost, `refund ${operation}`);
  }

  balanceOf(ref: number): number {
    return this.balances.get(ref) ?? 0;
  }

  private book(tx: Tx, { ref }: CallerAccount, amount: number, what: string): void {
    const before = this.balanceOf(ref);
    this.balances.set(ref, before + amount);
    this.booked.push(what);
    tx.onRollback(() => {
      this.balances.set(ref, before);
      this.booked.pop();
    });
  }
}

/** The minimum for performing: a writer, credits in memory, and a table for the work to write. */
export class PerformingBench {
  readonly storage = new TestStorage();
  readonly charger = new TestCharger();
  readonly vault: Vault = createVault(new Uint8Array(32).fill(7));
  readonly free: FreeResponses;
  readonly answers: IdempotencyStore;
  readonly performing: Performing;
  private readonly insert: Change<[string]>;
  private requests = 0;

  constructor() {
    migrate(this.storage.db, MIGRATIONS);
    this.storage.db.execute("CREATE TABLE notes (text TEXT NOT NULL)");
    this.insert = this.storage.db.change<[string]>("INSERT INTO notes (text) VALUES (?)");
    const tiers = { ...DEFAULT_TIERS, pro: { ...DEFAULT_TIERS.pro, requestsPerMinute: 1 } };
    this.free = new FreeResponses(this.storage.db, tiers);
    this.answers = new IdempotencyStore(this.storage.db, this.vault, this.free);
    this.performing = this.start();
    this.charger.balances.set(1, 100).set(2, 100);
  }

  /** The state after a start of the server on the same file. */
  start(): Performing {
    return new Performing(this.storage.writer, this.charger, this.answers, new OpenClaims(this.storage.db));
  }

  get balance(): number {
    return this.charger.balanceOf(1);
  }

  /** What work has written and committed. */
  get notes(): string[] {
    return this.storage
      .rows<{ text: string }>("SELECT text FROM notes ORDER BY rowid")
      .map(({ text }) => text);
  }

  /** Requests whose responses are stored. */
  get stored(): number {
    return this.storage.rows("SELECT 1 FROM idempotency").length;
  }

  note(tx: Tx, text: string): void {
    this.insert(tx, text);
  }

  /** A request; with a key it is the request of that key, and `body` distinguishes it from others. */
  request(operation: Operation, key?: string, options: RequestOptions = {}): Performer {
    this.requests += 1;
    const { body = "{}", caller = callerOf(1) } = options;
    const fingerprint = fingerprintOf(
      { method: "POST", target: "/v1/things" },
      new TextEncoder().encode(body),
    );
    return {
      operation,
      caller,
      requestId: `request-${this.requests}`,
      requestOrigin: { ip: null, userAgent: null, isOffline: false },
      idempotency: key === undefined ? null : { key, fingerprint, secret: operation === SECRET },
    };
  }

  close(): void {
    this.storage.close();
  }
}

interface RequestOptions {
  readonly body?: string;
  readonly caller?: Caller;
}

/** The caller of an account. */
export function callerOf(ref: number, credential = `platform:${ref}`): Caller {
  return {
    account: {
      ref,
      userId: `usr_${ref}`,
      tier: "pro",
      balance: 0,
      suspended: false,
      deleted: false,
      tierSince: 0,
      defaultProject: { ref, id: `proj_${ref}` },
    },
    project: { ref, id: `proj_${ref}` },
    credential,
    scopes: new Set(["*"]),
    projectBound: false,
    endsAt: null,
    superseded: false,
    projectDeleted: false,
    revoked: false,
  };
}

/** The outcome of a request: its result, the code of its error, or the replayed response. */
export async function outcomeOf(work: Promise<object>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ReplayedResponse) return { replayed: replayedView(error.response) };
    if (error instanceof ApiError) return error.code;
    return String(error);
  }
}

function replayedView({ status, text }: RenderedResponse): { status: number; body: unknown } {
  return { status, body: JSON.parse(text) };
}
