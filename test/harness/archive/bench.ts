import { Database as SqliteDatabase } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findHistory, type HistoryEnd, writeHistory } from "../../../src/archive/history.ts";
import { archiveClient } from "../../../src/archive/place.ts";
import { ArchiveStore } from "../../../src/archive/store.ts";
import { createVault } from "../../../src/kernel/secrets/vault.ts";
import { ENTRY_KEY_PURPOSE } from "../../../src/kernel/storage/replication/entry.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";

/** The object store of the rounds. */
export interface RoundStore {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly archiveEnvironment: Readonly<Record<string, string>>;
  /** Called with a fraction before each round: the store may fail in it. */
  disturb(fraction: number): void;
  /** Calls back once, at the next request that is a step, before or after it was carried out, and fails that request. */
  atStep(isStep: (request: StepRequest) => boolean, when: "before" | "after", call: () => void): void;
}

/** What a request to the object store is recognized by. */
export interface StepRequest {
  readonly method: string;
  readonly path: string;
  readonly search: string;
  readonly body: Buffer;
}

/** What the status of a server says about its archive. */
interface ArchiveStatus {
  readonly lag_seconds: number;
  readonly base_at: string | null;
  readonly last_error: string | null;
}

/** An entry of the ledger that the rounds write. */
export interface LedgerRow {
  readonly amount: number;
  /** Of its batch, in epoch milliseconds. */
  readonly at: number;
}

/** Longest wait for a step: a base is a backup in a process of its own, which a busy machine starts late. */
const STEP_MS_MAX = 30_000;
/**
 * Pause of a client between two refills. Without it, a client takes a whole core and fills the ledger with thousands of entries
 * that every restore reads; the archive sees a batch of several in each interval all the same.
 */
const WRITE_PAUSE_MS = 5;
const MASTER_KEY = "7c".repeat(32);
const LEDGER = "SELECT sequence, amount, balance_after, at FROM meter_entries ORDER BY sequence";

const PREFIX = "rounds";

/** URL of the archive in an object store. */
export function archiveUrl({ bucket }: RoundStore): string {
  return `s3://${bucket}/${PREFIX}`;
}

/** The archive in an object store. */
export function archiveIn(
  s3: RoundStore,
  client: ConstructorParameters<typeof ArchiveStore>[0],
): ArchiveStore {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey } = s3;
  const place = { account: null, endpoint, bucket, region, accessKeyId, secretAccessKey, allowsHttp: true };
  return new ArchiveStore(client, { bucket: place, prefix: `${PREFIX}/` });
}

/** A data folder, the servers that archive it, and what they have acknowledged. */
export class ArchiveBench {
  readonly acknowledged = new Set<number>();
  readonly store: ArchiveStore;
  readonly url: string;
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-archive-"));
  readonly data = join(this.folder, "data");
  /** Where {@link restore} writes. */
  readonly restored = join(this.folder, "restored.db");
  private readonly client = archiveClient(null);
  private key = "";
  private next = 1;
  /** Process id of the newest server; null until it is spawned. */
  private pid: number | null = null;

  constructor(
    private readonly s3: RoundStore,
    private readonly command: Command,
  ) {
    this.store = archiveIn(s3, this.client);
    this.url = archiveUrl(s3);
  }

  /** What servers and commands need to read the archive. */
  get environment(): Record<string, string> {
    return { NINEFOLD_MASTER_KEY: MASTER_KEY, ...this.s3.archiveEnvironment };
  }

  /** A path for a file or folder of a check. */
  path(name: string): string {
    return join(this.folder, name);
  }

  /**
   * Kills the server that runs then, or fails the request, at the next request that is a step, before or after it was carried
   * out. Returns a function that waits for it, and says whether it came in time.
   */
  interruptAt(
    isStep: (request: StepRequest) => boolean,
    when: "before" | "after",
    isKill: boolean,
  ): () => Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<true>();
    this.s3.atStep(isStep, when, () => {
      if (isKill && this.pid !== null) process.kill(this.pid, "SIGKILL");
      resolve(true);
    });
    return () => Promise.race([promise, Bun.sleep(STEP_MS_MAX).then(() => false)]);
  }

  async start(): Promise<ServerProcess> {
    this.pid = null;
    const server = await ServerProcess.start({
      command: this.command,
      onSpawn: (pid) => {
        this.pid = pid;
      },
      args: ["--data", this.data, "--port", "0", "--archive", this.url, "--archive-interval", "0.2"],
      environment: this.environment,
    });
    this.key = server.key ?? this.key;
    return server;
  }

  /** Refills one meter until the server is gone. Each amount is used once, so that a ledger names its refills. */
  async write(server: ServerProcess): Promise<void> {
    while (!server.ended) {
      try {
        await this.refill(server);
        await Bun.sleep(WRITE_PAUSE_MS);
      } catch {
        return;
      }
    }
  }

  async refill(server: ServerProcess): Promise<void> {
    const amount = this.next++;
    const response = await this.call(server, "/v1/meter/rounds/refill", { amount });
    if (response.status === 200) this.acknowledged.add(amount);
  }

  async isArchived(server: ServerProcess): Promise<boolean> {
    const { lag_seconds, base_at, last_error } = await this.archiveOf(server);
    return lag_seconds === 0 && base_at !== null && last_error === null;
  }

  async archiveOf(server: ServerProcess): Promise<ArchiveStatus> {
    const response = await this.call(server, "/v1/admin/status");
    return ((await response.json()) as { archive: ArchiveStatus }).archive;
  }

  /** Names of all objects with a beginning. */
  async names(start: string): Promise<string[]> {
    const names: string[] = [];
    for await (const { name } of this.store.list(start)) names.push(name);
    return names;
  }

  /** Writes the state at a time, or without one the newest, to {@link restored}. Null: the archive has none. */
  async restore(at: number | null): Promise<HistoryEnd | null> {
    const key = createVault(Buffer.from(MASTER_KEY, "hex")).derive(ENTRY_KEY_PURPOSE);
    const history = await findHistory(this.store, at);
    return history === null ? null : writeHistory(this.store, history, { path: this.restored, key, at });
  }

  /** Tables of a stopped server's file that differ in the restored one. */
  differingTables(): string[] {
    return differingTables(join(this.data, "ninefold.db"), this.restored);
  }

  remove(): void {
    this.client.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private call(server: ServerProcess, path: string, body?: object): Promise<Response> {
    const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json" };
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return fetch(server.url + path, { ...init, headers });
  }
}

/** Tables of a file that differ in another one. */
export function differingTables(path: string, other: string): string[] {
  const theirs = tablesOf(other);
  return [...tablesOf(path)].filter(([table, rows]) => theirs.get(table) !== rows).map(([table]) => table);
}

/** The result of `PRAGMA integrity_check`: `ok`, or a problem. */
export function integrityOf(path: string): string {
  const sql = "PRAGMA integrity_check";
  return inFile(
    path,
    (db) => db.query<{ integrity_check: string }, []>(sql).get()?.integrity_check ?? "none",
  );
}

/** The ledger in a file, in order. */
export function ledgerOf(path: string): LedgerRow[] {
  return inFile(path, (db) => db.query<LedgerRow, []>(LEDGER).all());
}

/** Every table with a hash of its rows. */
function tablesOf(path: string): Map<string, bigint> {
  const sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
  return inFile(path, (db) => {
    const hashOf = (name: string) =>
      Bun.hash.xxHash3(JSON.stringify(db.query(`SELECT * FROM "${name}"`).values()));
    const names = db.query<{ name: string }, []>(sql).all();
    return new Map(names.map(({ name }) => [name, hashOf(name)]));
  });
}

function inFile<T>(path: string, read: (db: SqliteDatabase) => T): T {
  const db = new SqliteDatabase(path);
  try {
    return read(db);
  } finally {
    db.close();
  }
}
