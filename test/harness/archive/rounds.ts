import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HEADER_BYTES_MAX, readHeader } from "../../../src/kernel/storage/replication/entry.ts";
import type { Command, ServerProcess } from "../processes/server-process.ts";
import { ArchiveBench, integrityOf, ledgerOf, type RoundStore, type StepRequest } from "./bench.ts";

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
  ["removal of the probe", ({ method, search }) => method === "POST" && search.includes("delete")],
  ["list of bases", ({ method, search }) => method === "GET" && search.includes("rounds%2Fb%2F")],
  ["header of a base", ({ method, path }) => method === "GET" && path.includes("/rounds/b/")],
];

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
  private readonly problems: string[] = [];
  private readonly bench: ArchiveBench;
  private random: number;
  private kills = 0;
  private failures = 0;
  private restores = 0;
  private lagSeconds = 0;
  private steps = 0;

  constructor(
    private readonly s3: RoundStore,
    private readonly options: RoundOptions,
  ) {
    this.bench = new ArchiveBench(s3, options.command);
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
    const objects = (await this.bench.names("e/")).length;
    const bases = (await this.bench.names("b/")).length;
    return {
      kills: this.kills,
      failures: this.failures,
      restores: this.restores,
      lagSeconds: this.lagSeconds,
      acknowledged: this.bench.acknowledged.size,
      objects,
      bases,
      problems: this.problems,
    };
  }

  remove(): void {
    this.bench.remove();
  }

  private fraction(): number {
    // Park and Miller.
    this.random = (this.random * 48_271 + 1) % 2_147_483_647;
    return this.random / 2_147_483_647;
  }

  private async kill(): Promise<void> {
    const server = await this.bench.start();
    const writing = Promise.all(Array.from({ length: CLIENTS }, () => this.bench.write(server)));
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
    const reached = this.bench.interruptAt(isStep, when, isKill);
    // A server that is killed at a request of its start does not become ready.
    const server = await this.bench.start().catch(() => null);
    const writing = server === null ? null : this.bench.write(server);
    if (!(await reached())) this.problems.push(`step ${turn}: no request was "${name}"`);
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
    for (const name of existsSync(this.bench.data) ? readdirSync(this.bench.data) : [])
      if (name.startsWith("ninefold.tail")) rmSync(join(this.bench.data, name), { recursive: true });
  }

  /** Archives everything, and compares. */
  private async compare(round: number): Promise<void> {
    this.s3.disturb(0);
    const server = await this.bench.start();
    while (!(await this.bench.isArchived(server))) await Bun.sleep(50);
    await this.watchLag(server);
    await server.stop();
    if ((await this.bench.restore(null)) === null) throw new Error("the archive has no base");
    for (const table of this.bench.differingTables())
      this.problems.push(`round ${round}: ${table} differs in the archive`);
    const amounts = ledgerOf(this.bench.restored).map(({ amount }) => amount);
    const found = new Set(amounts);
    for (const amount of this.bench.acknowledged)
      if (!found.has(amount))
        this.problems.push(`round ${round}: the acknowledged refill of ${amount} is lost`);
    if (round === this.options.rounds) await this.restoreEach(amounts);
  }

  /** Restores the time of each object: the file is sound, and its ledger is a beginning of the whole one. */
  private async restoreEach(ledger: readonly number[]): Promise<void> {
    const path = this.bench.restored;
    for await (const { name } of this.bench.store.list("e/")) {
      const { at } = readHeader(await this.bench.store.read(name, 0, HEADER_BYTES_MAX));
      if ((await this.bench.restore(at)) === null) continue;
      this.restores += 1;
      if (ledgerOf(path).some(({ amount }, index) => amount !== ledger[index]))
        this.problems.push(`${name}: the ledger at its time is no beginning of the whole one`);
      const check = integrityOf(path);
      if (check !== "ok") this.problems.push(`${name}: ${check}`);
    }
  }

  /** Writes for a while without disturbance, and notes the greatest lag. */
  private async watchLag(server: ServerProcess): Promise<void> {
    const end = performance.now() + LIFE_MS_MAX;
    while (performance.now() < end) {
      await this.bench.refill(server);
      this.lagSeconds = Math.max(this.lagSeconds, (await this.bench.archiveOf(server)).lag_seconds);
    }
    while (!(await this.bench.isArchived(server))) await Bun.sleep(50);
  }
}
