import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveDeps } from "../../src/archive/archive.ts";
import { openCommitLog } from "../../src/cluster/cluster.ts";
import { type CommitLog, type EngineSpace, EngineUnavailable } from "../../src/cluster/commit-log.ts";
import { loadConfig } from "../../src/config.ts";
import { type Clock, createSystemClock } from "../../src/kernel/time/clock.ts";
import { type Server, startNode } from "../../src/server.ts";
import type { Cleanup } from "../harness/processes/cleanup.ts";
import { freePorts } from "../harness/processes/ports.ts";
import { KeptLog } from "../kernel/support.ts";
import { Client } from "../support/client.ts";

/** Seconds of the shortest lease. */
const LEASE_SECONDS = 3;
const POLL_MS = 20;
/** Of a change of {@link writeBytes}. */
const VALUE_BYTES = 64 * 1024;

/** A master key that every node of a test has unless it says otherwise. */
export const MASTER_KEY = "07".repeat(32);

/** How a node is started. */
export interface NodeOptions {
  readonly commitLog: string;
  readonly cell: string;
  readonly folder: string;
  readonly masterKey?: string;
  /** Milliseconds by which its wall clock is ahead. */
  readonly aheadMs?: number;
  /** Whether others reach it: it needs a port that is known before. */
  readonly advertises?: boolean;
  readonly args?: readonly string[];
  /** Variables beside the master key. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Replacements of the archive. */
  readonly archive?: ArchiveDeps;
}

/** A node of a cluster in this process, from the start of its program to its end. */
export class RunningNode {
  readonly log = new KeptLog();
  readonly folder: string;
  /** Where it is reached, if it advertises. */
  readonly url: string;
  /** Settles when it leads and serves; null: it was stopped before. Rejects when it does not start. */
  readonly leading: Promise<Server | null>;
  private readonly stopAsked = Promise.withResolvers<void>();
  private stopping: Promise<void> | null = null;
  private over = false;

  constructor(options: NodeOptions) {
    const { commitLog, cell, folder, masterKey = MASTER_KEY, aheadMs = 0, args = [], advertises } = options;
    const { environment = {}, archive } = options;
    const port = advertises === true ? (freePorts(1)[0] ?? 0) : 0;
    this.folder = folder;
    this.url = `http://127.0.0.1:${port}`;
    const config = loadConfig(
      [
        ...(advertises === true ? ["--advertise", this.url] : []),
        ...["--port", String(port), "--data", folder, "--commit-log", commitLog, "--cell", cell],
        ...["--lease-seconds", String(LEASE_SECONDS), "--allow-private-targets", "loopback", ...args],
      ],
      { NINEFOLD_MASTER_KEY: masterKey, ...environment },
    );
    const clock = aheadMs === 0 ? createSystemClock() : aheadClock(aheadMs);
    const parts = { log: this.log, clock, ...(archive && { archive }) };
    this.leading = startNode(folder, config, this.stopAsked.promise, parts);
    this.leading.then(
      () => this.end(),
      () => this.end(),
    );
  }

  /** Whether it leads, has failed to start, or was stopped. */
  isOver(): boolean {
    return this.over;
  }

  private end(): void {
    this.over = true;
  }

  /** The server, once it leads. */
  async server(): Promise<Server> {
    const server = await this.leading;
    if (server === null) throw new Error("the node was stopped before it led");
    return server;
  }

  /** Why it does not start. */
  async refusal(): Promise<string> {
    return this.leading.then(
      () => "it started",
      (error: unknown) => String(error),
    );
  }

  /** Waits until it has logged this. */
  async logged(message: string): Promise<void> {
    while (!this.log.lines.some((line) => `${line.message} ${JSON.stringify(line.fields)}`.includes(message)))
      await Bun.sleep(POLL_MS);
  }

  /** Ends it in order, whether it leads or follows. */
  stop(): Promise<void> {
    this.stopAsked.resolve();
    this.stopping ??= this.leading.catch(() => null).then((server) => server?.stop());
    return this.stopping;
  }
}

/** A clock that is ahead of that of this machine. */
function aheadClock(aheadMs: number): Clock {
  const clock = createSystemClock();
  return Object.assign(Object.create(clock) as Clock, {
    now: () => clock.now() + aheadMs,
    at: (epochMs: number, run: () => void) => clock.at(epochMs - aheadMs, run),
  });
}

/** Nodes that end with the test. */
export class Nodes {
  private readonly running: RunningNode[] = [];

  constructor(
    private readonly commitLog: string,
    private readonly cleanup: Cleanup,
  ) {}

  folder(): string {
    return this.cleanup.folder("node");
  }

  start(cell: string, folder: string, more: Partial<NodeOptions> = {}): RunningNode {
    const node = new RunningNode({ commitLog: this.commitLog, cell, folder, ...more });
    this.running.push(node);
    return node;
  }

  async stopAll(): Promise<void> {
    for (const node of this.running.splice(0)) await node.stop();
  }
}

/** The log of a cell. */
export function logOf(url: string, cell: string): CommitLog {
  return openCommitLog({
    url,
    cell,
    leaseMs: LEASE_SECONDS * 1_000,
    advertise: null,
    isTrusted: false,
    extraCaPath: null,
  });
}

/** Repeats a call that a busy machine delays. */
export async function confirmed<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof EngineUnavailable)) throw error;
    }
  }
}

/** A client with the operator's key of a leader, or with that of another client. */
export function operatorOf(server: Server, known: Client | null = null): Client {
  return new Client(server.url, known === null ? server.operator.key : known.key);
}

/** Waits until a node follows with a copy of the database that is at the end of the log. */
export async function isFollowing(node: RunningNode): Promise<void> {
  for (;;) {
    const response = await fetch(`${node.url}/readyz`).catch(() => null);
    const body = ((await response?.json().catch(() => null)) ?? {}) as { state?: string; lag?: number };
    const { state, lag } = body;
    if (state === "following" && lag === 0) return;
    await Bun.sleep(POLL_MS);
  }
}

/** What the files of a database are. */
export function filesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter((name) => name.startsWith("ninefold.db"));
  return Object.fromEntries(
    names.map((name) => [
      name,
      createHash("sha256")
        .update(readFileSync(join(folder, name)))
        .digest("hex"),
    ]),
  );
}

/** What a node's folder says of itself; null without it. */
export function stateOf(folder: string): Record<string, unknown> | null {
  const path = join(folder, "follower.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>) : null;
}

/** Commits changes of bytes that cannot be compressed, one after another. */
export async function writeBytes({ kernel }: Server, bytes: number): Promise<void> {
  const change = kernel.db.change<[Uint8Array]>(
    "INSERT OR REPLACE INTO settings (name, value) VALUES ('filler', ?)",
  );
  for (let written = 0; written < bytes; written += VALUE_BYTES)
    await kernel.writer.submit((tx) => {
      change(tx, crypto.getRandomValues(Buffer.alloc(VALUE_BYTES)));
    });
}

/** Space of the engine of a leader, as its last look has found it. */
export function spaceOf(server: Server): EngineSpace {
  const families = server.kernel.metrics.families;
  const numberOf = (name: string) =>
    [...(families.find((family) => family.name === name)?.samples() ?? [])][0]?.value as number | undefined;
  return {
    used: numberOf("ninefold_cluster_log_bytes") ?? 0,
    quota: numberOf("ninefold_cluster_log_quota_bytes") ?? null,
  };
}
