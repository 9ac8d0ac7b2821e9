import { join } from "node:path";
import { endsWithUs } from "./children.ts";
import type { ServerProcess } from "./server-process.ts";
import { processorMs as processorMsOf, residentMiB } from "./usage.ts";

/** Measurements of a part of a run. */
export interface Measured {
  /** The most memory that the server has used; null where the system does not report it. */
  readonly mib: number | null;
  /** 99th percentile of the latency of another account's reads, and how many there were. */
  readonly p99Ms: number;
  readonly reads: number;
  /** The same of a server that does nothing else, read at the same times by the same client: what the machine and the client take. */
  readonly bareP99Ms: number;
  /** Processor time that the server has taken in all its threads, in milliseconds; null where the system does not report it. */
  readonly processorMs: number | null;
}

/** How often memory is measured. */
const MEMORY_MS = 50;
/** Time between two reads of the other account. */
const READ_MS = 10;

/** Reads as another account, and measures the server's memory and processor time, also across its restarts. */
export class Watch {
  private latencies: number[] = [];
  private bareLatencies: number[] = [];
  private mib = 0;
  /** Processor time of servers that have ended, and of the current one when it was taken last. */
  private ended = 0;
  private begun = 0;
  private server: ServerProcess | null = null;
  private isOver = false;
  private readonly done: Promise<unknown>;

  private constructor(
    server: ServerProcess,
    private readonly key: string,
    private readonly bare: Bun.Subprocess,
    private readonly bareUrl: string,
  ) {
    this.follow(server);
    this.done = Promise.all([this.read(), this.measure()]);
  }

  /** `key`: of the account that reads. */
  static async start(server: ServerProcess, key: string): Promise<Watch> {
    const command = [process.execPath, join(import.meta.dir, "bare-server.ts")];
    const bare = endsWithUs(Bun.spawn(command, { stdout: "pipe", stderr: "inherit" }));
    const { value } = await bare.stdout.getReader().read();
    return new Watch(server, key, bare, new TextDecoder().decode(value).trim());
  }

  /** Pauses until the server is started again. Called immediately before it is killed. */
  pause(): void {
    this.ended += this.used();
    this.server = null;
  }

  /** Continues with a server that was started again. */
  follow(server: ServerProcess): void {
    this.server = server;
    this.begun = residentMiB(server.pid) === null ? 0 : processorMsOf(server.pid);
  }

  /** What was measured since the last call. */
  take(): Measured {
    const { mib, latencies, bareLatencies } = this;
    const used = this.ended + this.used();
    this.latencies = [];
    this.bareLatencies = [];
    this.mib = 0;
    this.ended = -this.used();
    const isReported = mib > 0;
    return {
      mib: isReported ? mib : null,
      p99Ms: p99Of(latencies),
      reads: latencies.length,
      bareP99Ms: p99Of(bareLatencies),
      processorMs: isReported ? used : null,
    };
  }

  async stop(): Promise<void> {
    this.isOver = true;
    try {
      await this.done;
    } finally {
      this.bare.kill();
      await this.bare.exited;
    }
  }

  private used(): number {
    const { server } = this;
    if (server === null || residentMiB(server.pid) === null) return 0;
    return processorMsOf(server.pid) - this.begun;
  }

  private async read(): Promise<void> {
    const headers = { authorization: `Bearer ${this.key}`, "x-forwarded-for": "203.0.113.9" };
    while (!this.isOver) {
      const { server } = this;
      if (server !== null) {
        try {
          this.latencies.push(await latencyOf(`${server.url}/v1/meter/balance`, headers));
          this.bareLatencies.push(await latencyOf(this.bareUrl, headers));
        } catch (error) {
          // Otherwise the server was killed meanwhile.
          if (this.server === server) throw error;
        }
      }
      await Bun.sleep(READ_MS);
    }
  }

  private async measure(): Promise<void> {
    while (!this.isOver) {
      if (this.server !== null) this.mib = Math.max(this.mib, residentMiB(this.server.pid) ?? 0);
      await Bun.sleep(MEMORY_MS);
    }
  }
}

/** Milliseconds that a read takes. */
async function latencyOf(url: string, headers: Record<string, string>): Promise<number> {
  const startedAt = performance.now();
  await (await fetch(url, { headers })).text();
  return performance.now() - startedAt;
}

function p99Of(latencies: readonly number[]): number {
  const sorted = latencies.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}

/** Measurements as text. */
export function describeMeasured({ mib, p99Ms, reads, bareP99Ms, processorMs }: Measured): string {
  const measured = [
    `p99 of ${reads} reads ${p99Ms.toFixed(1)} ms (of a server that does nothing else ${bareP99Ms.toFixed(1)} ms)`,
  ];
  if (mib !== null) measured.push(`memory ${mib.toFixed(0)} MiB`);
  if (processorMs !== null) measured.push(`processor ${secondsText(processorMs)}`);
  return measured.join(", ");
}

/** Milliseconds as a text in seconds. */
export function secondsText(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
