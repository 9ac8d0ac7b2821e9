import { Database as SqliteDatabase } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findHistory, writeHistory } from "../../src/archive/history.ts";
import { archiveClient } from "../../src/archive/place.ts";
import { ArchiveStore } from "../../src/archive/store.ts";
import { createVault } from "../../src/kernel/secrets/vault.ts";
import { ENTRY_KEY_PURPOSE } from "../../src/kernel/storage/replication/entry.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";

/** The object store of the rounds. */
export interface RoundStore {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Called with a fraction before each round: the store may fail in it. */
  disturb(fraction: number): void;
}

export interface RoundOptions {
  readonly command: Command;
  readonly rounds: number;
  readonly seed: number;
}

/** What the rounds came to. */
export interface RoundOutcome {
  readonly kills: number;
  readonly acknowledged: number;
  readonly objects: number;
  readonly bases: number;
  /** What was found wrong; empty if nothing was. */
  readonly problems: readonly string[];
}

const MASTER_KEY = "7c".repeat(32);
/** Rounds between two comparisons of the archive with the file. */
const ROUNDS_PER_CHECK = 5;
const CLIENTS = 3;
/** Longest life of a server before it is killed. */
const LIFE_MS_MAX = 700;
const LEDGER = "SELECT entry.sequence, amount FROM meter_entries AS entry ORDER BY entry.sequence";

/**
 * Kills an archiving server again and again at random times, while clients write and the object store fails now and then.
 * From time to time everything is archived, and the state that the archive restores is compared with the file, table by table.
 */
export async function runArchiveRounds(s3: RoundStore, options: RoundOptions): Promise<RoundOutcome> {
  const rounds = new Rounds(s3, options);
  try {
    return await rounds.run();
  } finally {
    rounds.remove();
  }
}

class Rounds {
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-archive-"));
  private readonly data = join(this.folder, "data");
  private readonly problems: string[] = [];
  private readonly acknowledged = new Set<number>();
  private readonly client = archiveClient(null);
  private readonly store: ArchiveStore;
  private random: number;
  private key = "";
  private next = 1;
  private kills = 0;

  constructor(
    private readonly s3: RoundStore,
    private readonly options: RoundOptions,
  ) {
    const { endpoint, bucket, region, accessKeyId, secretAccessKey } = s3;
    const place = { account: null, endpoint, bucket, region, accessKeyId, secretAccessKey, allowsHttp: true };
    this.store = new ArchiveStore(this.client, { bucket: place, prefix: "rounds/" });
    this.random = options.seed;
  }

  async run(): Promise<RoundOutcome> {
    for (let round = 1; round <= this.options.rounds; round += 1) {
      this.s3.disturb(this.fraction());
      await this.kill();
      if (round % ROUNDS_PER_CHECK === 0 || round === this.options.rounds) await this.compare(round);
    }
    const objects = await this.count("e/");
    const bases = await this.count("b/");
    return {
      kills: this.kills,
      acknowledged: this.acknowledged.size,
      objects,
      bases,
      problems: this.problems,
    };
  }

  remove(): void {
    this.client.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private fraction(): number {
    // Park and Miller.
    this.random = (this.random * 48_271 + 1) % 2_147_483_647;
    return this.random / 2_147_483_647;
  }

  private async start(): Promise<ServerProcess> {
    const { bucket, endpoint, region, accessKeyId, secretAccessKey } = this.s3;
    const server = await ServerProcess.start({
      command: this.options.command,
      args: [
        ...["--data", this.data, "--port", "0", "--archive", `s3://${bucket}/rounds`],
        ...["--archive-interval", "0.2", "--archive-endpoint", endpoint, "--archive-region", region],
      ],
      environment: {
        NINEFOLD_MASTER_KEY: MASTER_KEY,
        NINEFOLD_ARCHIVE_ACCESS_KEY_ID: accessKeyId,
        NINEFOLD_ARCHIVE_SECRET_ACCESS_KEY: secretAccessKey,
      },
    });
    this.key = server.key ?? this.key;
    return server;
  }

  private async kill(): Promise<void> {
    const server = await this.start();
    const writing = Promise.all(Array.from({ length: CLIENTS }, () => this.write(server)));
    await Bun.sleep(this.fraction() * LIFE_MS_MAX);
    await server.stop("SIGKILL");
    this.kills += 1;
    await writing;
  }

  /** Refills one meter until the server is gone. Each amount is used once, so that a ledger names its refills. */
  private async write(server: ServerProcess): Promise<void> {
    while (!server.ended) {
      const amount = this.next++;
      try {
        const response = await this.call(server, "/v1/meter/rounds/refill", { amount });
        if (response.status === 200) this.acknowledged.add(amount);
      } catch {
        return;
      }
    }
  }

  private call(server: ServerProcess, path: string, body?: object): Promise<Response> {
    const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json" };
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return fetch(server.url + path, { ...init, headers });
  }

  /** Archives everything, and compares. */
  private async compare(round: number): Promise<void> {
    this.s3.disturb(0);
    const server = await this.start();
    while (!(await this.isArchived(server))) await Bun.sleep(50);
    await server.stop();
    const restored = join(this.folder, "restored.db");
    const key = createVault(Buffer.from(MASTER_KEY, "hex")).derive(ENTRY_KEY_PURPOSE);
    const history = await findHistory(this.store, null);
    if (history === null) throw new Error("the archive has no base");
    await writeHistory(this.store, history, { path: restored, key, at: null });
    const [own, theirs] = [tablesOf(join(this.data, "ninefold.db")), tablesOf(restored)];
    for (const [table, rows] of own)
      if (theirs.get(table) !== rows) this.problems.push(`round ${round}: ${table} differs in the archive`);
    const amounts = ledgerOf(restored);
    for (const amount of this.acknowledged)
      if (!amounts.has(amount))
        this.problems.push(`round ${round}: the acknowledged refill of ${amount} is lost`);
  }

  private async isArchived(server: ServerProcess): Promise<boolean> {
    const { archive } = (await (await this.call(server, "/v1/admin/status")).json()) as {
      archive: { lag_seconds: number; base_at: string | null; last_error: string | null };
    };
    return archive.lag_seconds === 0 && archive.base_at !== null && archive.last_error === null;
  }

  private async count(start: string): Promise<number> {
    let count = 0;
    for await (const _ of this.store.list(start)) count += 1;
    return count;
  }
}

/** Every table with a hash of its rows. */
function tablesOf(path: string): Map<string, bigint> {
  const db = new SqliteDatabase(path);
  try {
    const names = db
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
      )
      .all();
    return new Map(
      names.map(({ name }) => [
        name,
        Bun.hash.xxHash3(JSON.stringify(db.query(`SELECT * FROM "${name}"`).values())),
      ]),
    );
  } finally {
    db.close();
  }
}

function ledgerOf(path: string): Set<number> {
  const db = new SqliteDatabase(path);
  try {
    return new Set(
      db
        .query<{ amount: number }, []>(LEDGER)
        .all()
        .map(({ amount }) => amount),
    );
  } finally {
    db.close();
  }
}
