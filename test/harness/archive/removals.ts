import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { basesIn, newestCounting } from "../../../src/archive/bases.ts";
import { entryName } from "../../../src/archive/names.ts";
import { HEADER_BYTES_MAX, readHeader } from "../../../src/kernel/storage/replication/entry.ts";
import { endOf } from "../../support/ended.ts";
import { type Command, ROOT } from "../processes/server-process.ts";
import {
  ArchiveBench,
  integrityOf,
  type LedgerRow,
  ledgerOf,
  type RoundStore,
  type StepRequest,
} from "./bench.ts";
import { RETENTION } from "./retention.ts";

export interface RemovalOptions {
  /** Ninefold, for `archive verify`. The servers run from source: their retention is shorter than an option permits. */
  readonly command: Command;
  readonly rounds: number;
}

/** What the rounds came to. */
export interface RemovalOutcome {
  readonly kills: number;
  /** Failures of one request, each at a step; the server was killed later. */
  readonly failures: number;
  /** Times that were restored. */
  readonly restores: number;
  /** Expired objects that were in the archive after a kill. */
  readonly left: number;
  /** Of those, what later deletions have removed. */
  readonly removed: number;
  readonly acknowledged: number;
  /** What was found wrong; empty if nothing was. */
  readonly problems: readonly string[];
}

type IsStep = (request: StepRequest) => boolean;

const SERVER: Command = [
  process.execPath,
  "--no-env-file",
  "--no-install",
  `--config=${join(ROOT, "bunfig.toml")}`,
  join(import.meta.dir, "retention-server.ts"),
];
const isListOf = (kind: string): IsStep => {
  return ({ method, search }) => method === "GET" && search.includes(`rounds%2F${kind}%2F`);
};
const isDeletionOf = (kind: string): IsStep => {
  return ({ search, body }) => search.includes("delete") && body.includes(`<Key>rounds/${kind}/`);
};
const isBaseList = isListOf("b");
/** The requests of a deletion of expired objects. */
const STEPS: readonly (readonly [name: string, isStep: IsStep])[] = [
  ["deletion of entries", isDeletionOf("e")],
  ["deletion of bases", isDeletionOf("b")],
  ["list of bases", isBaseList],
  ["header of a base", ({ method, path }) => method === "GET" && path.includes("/rounds/b/")],
  ["list of entries", isListOf("e")],
];
/** Longest wait for the deletion of what a kill has left, and for a command: a machine may be busy. */
const WAIT_MS_MAX = 120_000;
/** How long a server lives on after a failed request. */
const LIFE_MS = 500;

/** Rounds in which each step is killed and fails, before and after it was carried out, in a start and later. */
export const ALL_REMOVAL_ROUNDS = STEPS.length * 8;

/**
 * Kills an archiving server at each request of a deletion of expired objects, or fails that request and kills the server later.
 * After each kill every retained time is restored and compared with the server's file. The next server has to delete what
 * the kill has left.
 */
export async function runRemovalRounds(s3: RoundStore, options: RemovalOptions): Promise<RemovalOutcome> {
  const rounds = new RemovalRounds(s3, options);
  try {
    return await rounds.run();
  } finally {
    rounds.remove();
  }
}

class RemovalRounds {
  private readonly bench: ArchiveBench;
  private readonly problems: string[] = [];
  private kills = 0;
  private failures = 0;
  private restores = 0;
  private left = 0;
  private removed = 0;
  /** The earliest time that was ever restorable. */
  private beginning = 0;

  constructor(
    private readonly s3: RoundStore,
    private readonly options: RemovalOptions,
  ) {
    this.bench = new ArchiveBench(s3, SERVER);
  }

  async run(): Promise<RemovalOutcome> {
    this.s3.disturb(0);
    await this.begin();
    for (let turn = 0; turn < this.options.rounds; turn += 1) {
      const expired = await this.interrupt(turn);
      await this.recover(turn, expired);
    }
    const { kills, failures, restores, left, removed, problems } = this;
    return { kills, failures, restores, left, removed, acknowledged: this.bench.acknowledged.size, problems };
  }

  remove(): void {
    this.bench.remove();
  }

  /** An archive with a base. */
  private async begin(): Promise<void> {
    const server = await this.bench.start();
    await this.bench.refill(server);
    await this.until(() => this.bench.isArchived(server));
    await server.stop();
    const [first] = await basesIn(this.bench.store);
    if (first === undefined) throw new Error("the archive has no base");
    this.beginning = first.position.at;
  }

  /** One kill, and what the archive has then. Returns the names of the objects that have expired. */
  private async interrupt(turn: number): Promise<readonly string[]> {
    const [name = "", isStep = () => false] = STEPS[turn % STEPS.length] ?? [];
    const when = Math.floor(turn / STEPS.length) % 2 === 0 ? "before" : "after";
    const isKill = Math.floor(turn / (2 * STEPS.length)) % 2 === 0;
    const isAtStart = (turn + Math.floor(turn / (4 * STEPS.length))) % 2 === 1;
    const what = `round ${turn + 1}, ${name}, ${when}`;
    const arm = (): (() => Promise<boolean>) => {
      // The list with which a start finds the archive, and what it reads of it, are no part of the deletion.
      let lists = isAtStart ? 0 : 1;
      const isNow = (request: StepRequest): boolean => {
        if (isBaseList(request)) lists += 1;
        return lists > 1 && isStep(request);
      };
      return this.bench.interruptAt(isNow, when, isKill);
    };
    // Then a start has something to delete.
    if (isAtStart) await Bun.sleep(RETENTION.keepMs);
    const reachedAtStart = isAtStart ? arm() : null;
    // A server that is killed in its start does not become ready.
    const server = await this.bench.start().catch(() => null);
    if (server === null && !(isAtStart && isKill)) throw new Error(`${what}: the server did not start`);
    const writing = server === null ? null : this.bench.write(server);
    if (!isAtStart) await Bun.sleep(RETENTION.keepMs);
    const reached = reachedAtStart ?? arm();
    if (!(await reached())) this.problems.push(`${what}: there was no such request`);
    if (!isKill) await Bun.sleep(LIFE_MS);
    await server?.stop("SIGKILL");
    const since = Date.now() - RETENTION.keepMs;
    await writing;
    if (isKill) this.kills += 1;
    else this.failures += 1;
    this.s3.disturb(0);
    await this.check(what, since, this.ledgerOfKilled());
    return this.expiredBefore(since);
  }

  /** What the kill has left is deleted by a server that is not disturbed; then the archive is the file. */
  private async recover(turn: number, expired: readonly string[]): Promise<void> {
    const what = `round ${turn + 1}, after it`;
    const server = await this.bench.start();
    const writing = this.bench.write(server);
    const isRemoved = async (): Promise<boolean> => {
      const names = new Set(await this.bench.names(""));
      return expired.every((name) => !names.has(name));
    };
    this.left += expired.length;
    if (await this.until(isRemoved)) this.removed += expired.length;
    else this.problems.push(`${what}: expired objects were not deleted: ${server.warnings}`);
    await server.stop();
    const since = Date.now() - RETENTION.keepMs;
    await writing;
    await this.check(what, since, ledgerOf(join(this.bench.data, "ninefold.db")));
    await this.bench.restore(null);
    for (const table of this.bench.differingTables())
      this.problems.push(`${what}: ${table} differs in the archive`);
  }

  /** Restores every retained time at which another state begins, the one before it, and the newest. */
  private async check(what: string, since: number, ledger: readonly LedgerRow[]): Promise<void> {
    const found = new Set(ledger.map(({ amount }) => amount));
    for (const amount of this.bench.acknowledged)
      if (!found.has(amount)) this.problems.push(`${what}: the acknowledged refill of ${amount} is lost`);
    const ends: number[] = [];
    for await (const { name } of this.bench.store.list("e/"))
      ends.push(readHeader(await this.bench.store.read(name, 0, HEADER_BYTES_MAX)).at);
    const first = Math.max(since, this.beginning);
    const times = new Set([first, ...ends.flatMap((at) => [at - 1, at]).filter((at) => at >= first)]);
    for (const at of [...times, null]) {
      const problem = await this.problemAt(at, ends, ledger);
      if (problem !== null) this.problems.push(`${what}: restored to ${at ?? "its end"}: ${problem}`);
    }
    const verified = await endOf(
      [...this.options.command, "archive", "verify", this.bench.url, "--data", this.bench.path("verify")],
      { environment: this.bench.environment, timeoutMs: WAIT_MS_MAX },
    );
    if (verified.code !== 0) this.problems.push(`${what}: archive verify: ${verified.out}${verified.error}`);
  }

  /** Compares the state of a time with the ledger. Null: it is that of the last object before it. */
  private async problemAt(
    at: number | null,
    ends: readonly number[],
    ledger: readonly LedgerRow[],
  ): Promise<string | null> {
    const end = await this.bench.restore(at).catch((error: unknown) => String(error));
    if (end === null) return "the archive does not have it";
    if (typeof end === "string") return end;
    this.restores += 1;
    const reached = end.position.at;
    const time = at ?? Number.POSITIVE_INFINITY;
    if (reached > time) return `it is of ${reached}`;
    if (ends.some((other) => other <= time && other > reached)) return `it is only of ${reached}`;
    const check = integrityOf(this.bench.restored);
    if (check !== "ok") return check;
    const rows = ledgerOf(this.bench.restored);
    if (!Bun.deepEquals(rows, ledger.slice(0, rows.length))) return "the ledger is another one";
    // Of batches in the same millisecond, an object may end with any.
    const isWhole = (ledger[rows.length]?.at ?? reached) >= reached && (rows.at(-1)?.at ?? 0) <= reached;
    return isWhole ? null : `the ledger has ${rows.length} entries`;
  }

  /** The ledger of a killed server, read from a copy: the next start needs its log as it is. */
  private ledgerOfKilled(): LedgerRow[] {
    const folder = this.bench.path("killed");
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    for (const name of ["ninefold.db", "ninefold.db-wal"]) {
      const path = join(this.bench.data, name);
      if (existsSync(path)) copyFileSync(path, join(folder, name));
    }
    return ledgerOf(join(folder, "ninefold.db"));
  }

  /** Names of the objects that no time from `since` on needs. */
  private async expiredBefore(since: number): Promise<string[]> {
    const bases = await basesIn(this.bench.store);
    const old = bases.filter(({ position }) => position.at <= since);
    const needed = await newestCounting(this.bench.store, old);
    if (needed === null) return [];
    const { epoch, seq } = needed.from;
    const end = entryName({ epoch, seq: seq + 1 });
    const entries = (await this.bench.names("e/")).filter((name) => name < end);
    return [...bases.filter(({ name }) => name < needed.name).map(({ name }) => name), ...entries];
  }

  /** Whether a condition holds in time. */
  private async until(condition: () => Promise<boolean>): Promise<boolean> {
    const end = performance.now() + WAIT_MS_MAX;
    while (performance.now() < end) {
      if (await condition()) return true;
      await Bun.sleep(50);
    }
    return false;
  }
}
