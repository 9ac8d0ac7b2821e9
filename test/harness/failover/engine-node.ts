import { readFileSync } from "node:fs";
import { endsWithUs } from "../processes/children.ts";

const READY_PAUSE_MS = 50;
/** Generous, since machines can be busy. */
const READY_MS_MAX = 60_000;

/** One process of an engine, with what it has started itself. */
export class EngineNode {
  private child: Bun.Subprocess | null = null;

  constructor(
    readonly name: string,
    private readonly launch: {
      readonly command: readonly string[];
      readonly folder: string;
      readonly logPath: string;
    },
    private readonly isReady: () => Promise<boolean>,
  ) {}

  /** Starts the process, and waits for nothing. */
  start(): void {
    const { command, folder, logPath } = this.launch;
    this.child = Bun.spawn([...command], {
      cwd: folder,
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(logPath),
    });
    endsWithUs(this.child);
  }

  /** Waits until it serves. @throws Error with its log when it ends before. */
  async ready(): Promise<void> {
    const until = performance.now() + READY_MS_MAX;
    while (performance.now() < until && this.child?.exitCode === null) {
      if (await this.isReady().catch(() => false)) return;
      await Bun.sleep(READY_PAUSE_MS);
    }
    throw new Error(`${this.name} did not become ready:\n${readFileSync(this.launch.logPath, "utf8")}`);
  }

  /** Ends it like a power cut. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child === null) return;
    const pids = this.pids();
    for (const pid of pids) signal(pid, "SIGKILL");
    await child.exited;
    // A new PostgreSQL does not start while a process of the old one is there.
    while (pids.some(isAlive)) await Bun.sleep(1);
    this.child = null;
  }

  /** Stops it where it is: its connections stay open. */
  pause(): void {
    for (const pid of this.pids()) signal(pid, "SIGSTOP");
  }

  resume(): void {
    for (const pid of this.pids()) signal(pid, "SIGCONT");
  }

  private pids(): number[] {
    return this.child === null ? [] : familyOf(this.child.pid);
  }
}

/** A process and all that it has started. */
function familyOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => familyOf(Number(child))))];
  } catch {
    return [pid];
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}

/** Whether a process runs; one that only waits to be reaped does not. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
