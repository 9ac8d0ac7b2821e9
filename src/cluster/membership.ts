import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { StartupError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/log.ts";
import { clocksDiffer } from "./clock-difference.ts";
import type { ClusterNode, CommitLog, LogRange, NodeProcess, NodeReport } from "./commit-log.ts";
import type { NodeTime } from "./node-time.ts";

/** How often a node reports. */
export const REPORT_MS = 2_000;
/** A process that has not reported for so long does not run any more: three reports. */
const SILENCE_MS = 3 * REPORT_MS;
/** Between two looks whether another process reports. */
const LOOK_MS = 500;

/** How far a node is. */
export type NodeState = Pick<NodeReport, "applied" | "synced">;

/** What a membership needs. */
export interface MembershipDeps {
  readonly log: Pick<CommitLog, "nodes" | "report">;
  readonly node: ClusterNode;
  /** See {@link NodeProcess}. */
  readonly processId: string;
  readonly place: string;
  /** Migrations that this program knows. */
  readonly schema: number;
  readonly logger: Logger;
  readonly time: NodeTime;
  /** Wall clock, epoch milliseconds. */
  readonly now: () => number;
}

/** This process as one of the nodes of its cell. */
export class Membership {
  private process: NodeProcess;
  /** Whether the reports of the others were read before. */
  private hasLooked = false;
  /** What each of the other nodes said of its time, and when that was new (monotonic); null: it was known at first sight. */
  private readonly seen = new Map<string, { readonly at: number; readonly since: number | null }>();
  private readonly wrongClocks = new Set<string>();

  constructor(private readonly deps: MembershipDeps) {
    this.process = { id: deps.processId, place: deps.place, term: 0 };
  }

  /**
   * Takes the place of the earlier process of this node. If that one ran elsewhere, this waits until it is certain that it has
   * ended.
   *
   * @throws StartupError if it runs: then the folder was copied.
   */
  async register(state: NodeState): Promise<void> {
    const { node, place, time } = this.deps;
    const before = await this.findOwn();
    if (before !== undefined && before.process?.place !== place) {
      const until = time.monotonic() + SILENCE_MS;
      while (time.monotonic() < until) {
        await time.delay(LOOK_MS);
        const now = await this.findOwn();
        if (now !== undefined && (now.at !== before.at || now.process?.id !== before.process?.id))
          throw this.isCopied(now);
      }
    }
    this.process = { ...this.process, term: (before?.process?.term ?? 0) + 1 };
    this.deps.logger.debug("this node is registered", { node: node.id, term: this.process.term });
    await this.report(state);
  }

  /** Reports how far this node is. @throws StartupError if another process has taken its place. */
  async report(state: NodeState): Promise<void> {
    const { log, node, schema, now } = this.deps;
    const { process } = this;
    const replaced = await log.report({ ...node, ...state, schema, at: now(), process });
    const other = replaced?.process;
    if (replaced === null || other === undefined || other.id === process.id) return;
    if (other.term > process.term || (other.term === process.term && other.id > process.id))
      throw this.isCopied(replaced);
  }

  /** The other nodes, as they reported last. Warns of clocks that are wrong. */
  async others(): Promise<NodeReport[]> {
    const { log, node, now, logger, time } = this.deps;
    const others = (await log.nodes()).filter(({ id }) => id !== node.id);
    for (const { id, advertise, at } of others) {
      const before = this.seen.get(id);
      if (before?.at === at) continue;
      // A report that was there at the first look may be old; a node that appears later has made it just now.
      const isNew = before !== undefined || this.hasLooked;
      this.seen.set(id, { at, since: isNew ? time.monotonic() : null });
      // Only a report that was made just now says what its clock shows.
      if (before === undefined) continue;
      const problem = clocksDiffer(at - now());
      if (problem === null) this.wrongClocks.delete(id);
      else if (!this.wrongClocks.has(id)) {
        this.wrongClocks.add(id);
        logger.warn("the clocks of two nodes differ", { node: advertise ?? id, error: problem });
      }
    }
    this.hasLooked = true;
    return others;
  }

  /** Whether another node runs, has everything that the log does not have, and knows the schema: it could lead. */
  couldLead({ id, synced, schema }: NodeReport, range: LogRange | null): boolean {
    const since = this.seen.get(id)?.since ?? null;
    const isRunning = since !== null && this.deps.time.monotonic() - since < SILENCE_MS;
    return isRunning && synced > 0 && synced >= (range?.first ?? 1) - 1 && schema >= this.deps.schema;
  }

  private async findOwn(): Promise<NodeReport | undefined> {
    return (await this.deps.log.nodes()).find(({ id }) => id === this.deps.node.id);
  }

  private isCopied({ advertise, process }: NodeReport): StartupError {
    const where = advertise ?? process?.place ?? "elsewhere";
    return new StartupError(
      `Another process runs as this node (${this.deps.node.id}, at ${where}): its data folder was copied. ` +
        "Stop one of the two. To make a second node of the copy, delete follower.json and all files whose names begin with " +
        "ninefold.db from its folder, and start it: it copies the database from the leader.",
    );
  }
}

/** Where a process runs: the boot of its machine, and its data folder. */
export function placeOf(folder: string): string {
  const { dev, ino } = statSync(folder);
  return `${bootId()}:${dev}:${ino}`;
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    return hostname();
  }
}
