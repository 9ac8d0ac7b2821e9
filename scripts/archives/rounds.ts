import { Database as SqliteDatabase } from "bun:sqlite";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findHistory, writeHistory } from "../../src/archive/history.ts";
import { archiveClient } from "../../src/archive/place.ts";
import { ArchiveStore } from "../../src/archive/store.ts";
import { createVault } from "../../src/kernel/secrets/vault.ts";
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KEY_PURPOSE,
  readHeader,
} from "../../src/kernel/storage/replication/entry.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";

/** What the status of a server says about its archive. */
interface ArchiveStatus {
  readonly lag_seconds: number;
  readonly base_at: string | null;
  readonly last_error: string | null;
}

/** The object store of the rounds. */
export interface RoundStore {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
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
}

export interface RoundOptions {
  readonly command: Command;
  readonly rounds: number;
  readonly seed: number;
}

/** What the rounds came to. */
export interface RoundOutcome {
  readonly kills: number;
  /** Failures of one request, each at a step. */
  readonly failures: number;
  /** Objects at whose time the archive was restored. */
  readonly restores: number;
  /** Greatest lag that a server without disturbance reported, in seconds. */
  readonly lagSeconds: number;
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
/** The requests to the object store at which a server is killed, and which fail once. */
const STEPS: readonly (readonly [name: string, isStep: (request: StepRequest) => boolean])[] = [
  ["upload of entries", ({ method, path }) => method === "PUT" && path.includes("/rounds/e/")],
  ["upload of a base", ({ method, path }) => method === "PUT" && path.includes("/rounds/b/")],
  ["probe", ({ method, path }) => method === "PUT" && path.endsWith("/probe")],
  ["removal", ({ method, search }) => method === "POST" && search.includes("delete")],
  ["list of bases", ({ method, search }) => method === "GET" && search.includes("rounds%2Fb%2F")],
  ["header of a base", ({ method, path }) => method === "GET" && path.includes("/rounds/b/")],
];
/** Longest wait for a step that a round may not have: only some starts make a base. */
const STEP_MS_MAX = 1_500;
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
  private failures = 0;
  private restores = 0;
  private lagSeconds = 0;
  private steps = 0;

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
      if (round % 2 === 0) await this.atNextStep();
      else {
        this.s3.disturb(this.fraction());
        await this.kill();
      }
      if (round % ROUNDS_PER_CHECK === 0 || round === this.options.rounds) await this.compare(round);
    }
    const objects = await this.count("e/");
    const bases = await this.count("b/");
    return {
      kills: this.kills,
      failures: this.failures,
      restores: this.restores,
      lagSeconds: this.lagSeconds,
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

  private async start(onSpawn?: (pid: number) => void): Promise<ServerProcess> {
    const { bucket, endpoint, region, accessKeyId, secretAccessKey } = this.s3;
    const server = await ServerProcess.start({
      command: this.options.command,
      ...(onSpawn === undefined ? {} : { onSpawn }),
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

  /** Kills the server at a request of the next step, or fails that request; each before and after it was carried out. */
  private async atNextStep(): Promise<void> {
    const turn = this.steps++;
    const [name, isStep] = STEPS[turn % STEPS.length] ?? [];
    if (name === undefined || isStep === undefined) return;
    const when = Math.floor(turn / STEPS.length) % 2 === 0 ? "before" : "after";
    const isKill = Math.floor(turn / (2 * STEPS.length)) % 2 === 0;
    if (name.includes("base")) this.loseTail();
    const reached = Promise.withResolvers<void>();
    let pid: number | null = null;
    this.s3.atStep(isStep, when, () => {
      if (isKill && pid !== null) process.kill(pid, "SIGKILL");
      reached.resolve();
    });
    const starting = this.start((spawned) => {
      pid = spawned;
    });
    // A server that is killed at a request of its start does not become ready.
    const server = await starting.catch(() => null);
    const writing = server === null ? null : this.write(server);
    const isReached = await Promise.race([
      reached.promise.then(() => true),
      Bun.sleep(STEP_MS_MAX).then(() => false),
    ]);
    if (!isReached) this.problems.push(`step ${turn}: no request was "${name}"`);
    if (isKill) this.kills += 1;
    else {
      this.failures += 1;
      await Bun.sleep(this.fraction() * LIFE_MS_MAX);
    }
    await server?.stop("SIGKILL");
    await writing;
  }

  /** As after a power cut: the file is ahead of the archive, which needs a new base. */
  private loseTail(): void {
    for (const name of existsSync(this.data) ? readdirSync(this.data) : [])
      if (name.startsWith("ninefold.tail")) rmSync(join(this.data, name), { recursive: true });
  }

  /** Refills one meter until the server is gone. Each amount is used once, so that a ledger names its refills. */
  private async write(server: ServerProcess): Promise<void> {
    while (!server.ended) {
      try {
        await this.refill(server);
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
    await this.watchLag(server);
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
    if (round === this.options.rounds) await this.restoreEach(key, [...amounts]);
  }

  /** Restores the time of each object: the file is sound, and its ledger is a beginning of the whole one. */
  private async restoreEach(key: Uint8Array, ledger: readonly number[]): Promise<void> {
    const path = join(this.folder, "restored.db");
    for await (const { name } of this.store.list("e/")) {
      const { at } = readHeader(await this.store.read(name, 0, ENTRY_HEADER_BYTES));
      const history = await findHistory(this.store, at);
      if (history === null) continue;
      await writeHistory(this.store, history, { path, key, at });
      this.restores += 1;
      const found = [...ledgerOf(path)];
      if (found.some((amount, index) => amount !== ledger[index]))
        this.problems.push(`${name}: the ledger at its time is no beginning of the whole one`);
      const check = integrityOf(path);
      if (check !== "ok") this.problems.push(`${name}: ${check}`);
    }
  }

  /** Writes for a while without disturbance, and notes the greatest lag. */
  private async watchLag(server: ServerProcess): Promise<void> {
    const end = performance.now() + LIFE_MS_MAX;
    while (performance.now() < end) {
      await this.refill(server);
      this.lagSeconds = Math.max(this.lagSeconds, (await this.archiveOf(server)).lag_seconds);
    }
    while (!(await this.isArchived(server))) await Bun.sleep(50);
  }

  private async refill(server: ServerProcess): Promise<void> {
    const amount = this.next++;
    const response = await this.call(server, "/v1/meter/rounds/refill", { amount });
    if (response.status === 200) this.acknowledged.add(amount);
  }

  private async isArchived(server: ServerProcess): Promise<boolean> {
    const { lag_seconds, base_at, last_error } = await this.archiveOf(server);
    return lag_seconds === 0 && base_at !== null && last_error === null;
  }

  private async archiveOf(server: ServerProcess): Promise<ArchiveStatus> {
    const response = await this.call(server, "/v1/admin/status");
    return ((await response.json()) as { archive: ArchiveStatus }).archive;
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

function integrityOf(path: string): string {
  const db = new SqliteDatabase(path);
  try {
    return (
      db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get()?.integrity_check ??
      "no result"
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
