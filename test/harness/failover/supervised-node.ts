import { join } from "node:path";
import type { Cleanup } from "../processes/cleanup.ts";
import { type Command, spawnServer } from "../processes/server-process.ts";
import type { CellArchive } from "./cell-archive.ts";

/** Pause of the supervisor before it starts a server again. */
const RESTART_MS = 100;
/** Between two probes of all nodes: at 20 ms they were a third of what the nodes had to do. */
const READY_PAUSE_MS = 100;
const PROBE_MS_MAX = 1_000;
/** How a server ends that another one has replaced as the leader. */
const EXIT_FOLLOW = 75;

/** How the nodes of a cluster are started. */
export interface NodeLaunch {
  readonly command: Command;
  readonly folder: string;
  readonly commitLog: string;
  readonly leaseSeconds: number;
  readonly masterKey: string;
  readonly configPath: string;
  /** Where a node archives when it leads; null: nowhere. */
  readonly archive: Pick<CellArchive, "args" | "environment"> | null;
}

/** A node of a cluster with its supervisor, which starts it again whenever it ends. */
export class SupervisedNode {
  readonly url: string;
  readonly folder: string;
  /** The operator's key, if a start of this node made it. */
  key: string | null = null;
  /** Ends that nobody asked for. */
  readonly failures: string[] = [];
  private child: ReturnType<typeof spawnServer> | null = null;
  private isOver = false;
  private isKilled = false;
  private staysDown = false;

  constructor(
    readonly name: string,
    private readonly port: number,
    private readonly launch: NodeLaunch,
    cleanup: Cleanup,
  ) {
    this.url = `http://127.0.0.1:${port}`;
    this.folder = join(launch.folder, name);
    this.start();
    cleanup.add(async () => {
      this.isOver = true;
      await this.kill();
    });
  }

  /** Whether it leads and serves. */
  async isLeading(): Promise<boolean> {
    return (await this.probe())?.status === 200;
  }

  /** Whether it follows, and has a copy of the database that is at the end of the log. */
  async isFollowing(): Promise<boolean> {
    const response = await this.probe();
    if (response?.status !== 503) return false;
    const { role, lag, seq } = (await response.json().catch(() => ({}))) as {
      role?: string;
      lag?: number;
      seq?: number;
    };
    return role === "follower" && lag === 0 && seq !== undefined && seq > 0;
  }

  /** Ends the process like a crash. `staysDown`: it is started again by {@link startAgain}, and not by the supervisor. */
  async kill({ staysDown = false } = {}): Promise<void> {
    this.isKilled = true;
    this.staysDown = staysDown;
    const process = this.child?.process;
    process?.kill("SIGKILL");
    await process?.exited;
  }

  startAgain(): void {
    this.staysDown = false;
    this.start();
  }

  /** Stops it in order, for good. */
  async stop(): Promise<void> {
    this.isOver = true;
    const process = this.child?.process;
    process?.kill("SIGTERM");
    await process?.exited;
  }

  pause(): void {
    this.child?.process.kill("SIGSTOP");
  }

  resume(): void {
    this.child?.process.kill("SIGCONT");
  }

  private probe(): Promise<Response | null> {
    return fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(PROBE_MS_MAX) }).catch(() => null);
  }

  private start(): void {
    const { command, commitLog, leaseSeconds, masterKey, configPath, archive } = this.launch;
    const cluster = ["--commit-log", commitLog, "--cell", "main", "--advertise", this.url];
    const child = spawnServer({
      command,
      args: [
        ...[
          "--port",
          String(this.port),
          "--data",
          this.folder,
          "--config",
          configPath,
          "--log-level",
          "warn",
        ],
        ...[...cluster, "--lease-seconds", String(leaseSeconds), ...(archive?.args ?? [])],
      ],
      environment: { NINEFOLD_MASTER_KEY: masterKey, ...archive?.environment },
    });
    this.child = child;
    this.isKilled = false;
    this.readKey(child).catch(() => undefined);
    void child.process.exited.then(async (code) => {
      if (!this.isKilled && !this.isOver && code !== EXIT_FOLLOW)
        this.failures.push(`${this.name} ended with ${code}: ${child.log()}`);
      await Bun.sleep(RESTART_MS);
      if (!this.isOver && !this.staysDown) this.start();
    });
  }

  private async readKey(child: ReturnType<typeof spawnServer>): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.process.stdout) {
      text += decoder.decode(chunk, { stream: true });
      const { api_key } = text.endsWith("\n") ? (JSON.parse(text) as { api_key?: string }) : {};
      if (api_key !== undefined) this.key = api_key;
    }
  }
}

/**
 * The node that leads; `withFollower`: when another node could take over. @throws Error if there is none within this time.
 */
export async function leaderOf(
  nodes: readonly SupervisedNode[],
  withinMs: number,
  withFollower = false,
): Promise<SupervisedNode> {
  const until = performance.now() + withinMs;
  while (performance.now() < until) {
    const leading = await Promise.all(nodes.map((node) => node.isLeading()));
    const following = withFollower ? await Promise.all(nodes.map((node) => node.isFollowing())) : [true];
    const leader = nodes[leading.indexOf(true)];
    if (leader !== undefined && following.includes(true)) return leader;
    await Bun.sleep(READY_PAUSE_MS);
  }
  throw new Error(`no node leads: ${nodes.flatMap(({ failures }) => failures).join("\n")}`);
}
