import { Connection } from "../test/harness/processes/connection.ts";
import { median } from "./results.ts";

/** Connections for the requests: more than a healthy server ever has in flight. */
const CONNECTIONS = 64;
/** Interval in which due requests are sent. */
const TICK_MS = 2;

/** Result of a period of steady load. Latencies start at the time at which a request was to be sent. */
export interface SteadyResult {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Requests with another status than 200. */
  readonly failed: number;
}

/** Sends deducts at a steady rate, each at its scheduled time, regardless of pending responses. */
export class SteadyLoad {
  private readonly connections: Connection[] = [];
  private readonly key: string;
  private readonly waiting: ((connection: Connection) => void)[] = [];
  private latencies: number[] = [];
  private failed = 0;
  private sent = 0;

  private constructor(key: string) {
    this.key = key;
  }

  /** Connects. @throws Error when nobody listens. */
  static async open(url: string, key: string): Promise<SteadyLoad> {
    const load = new SteadyLoad(key);
    for (let count = 0; count < CONNECTIONS; count += 1) load.connections.push(await Connection.open(url));
    return load;
  }

  /** Sends `perSecond` requests a second until `isOver` returns true, which is called every few milliseconds. */
  async run(
    perSecond: number,
    meters: number,
    isOver: (elapsedMs: number) => boolean,
  ): Promise<SteadyResult> {
    this.latencies = [];
    this.failed = 0;
    const begun = performance.now();
    const under: Promise<void>[] = [];
    let count = 0;
    for (let elapsed = 0; !isOver(elapsed); elapsed = performance.now() - begun) {
      for (; (count * 1_000) / perSecond <= elapsed; count += 1) {
        under.push(this.send(begun + (count * 1_000) / perSecond, meters));
      }
      await Bun.sleep(TICK_MS);
    }
    await Promise.all(under);
    const sorted = this.latencies.sort((a, b) => a - b);
    return {
      requests: sorted.length,
      p50Ms: median(sorted),
      p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
      maxMs: sorted.at(-1) ?? Number.NaN,
      failed: this.failed,
    };
  }

  close(): void {
    for (const connection of this.connections) connection.close();
  }

  private async send(dueAt: number, meters: number): Promise<void> {
    const connection =
      this.connections.shift() ?? (await new Promise<Connection>((resolve) => this.waiting.push(resolve)));
    this.sent += 1;
    const meter = `meter-${String((this.sent * 7919) % meters).padStart(6, "0")}`;
    const { status } = await connection.request({
      method: "POST",
      path: `/v1/meter/${meter}/deduct`,
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json" },
      body: '{"amount":1}',
    });
    if (status !== 200) this.failed += 1;
    this.latencies.push(performance.now() - dueAt);
    const next = this.waiting.shift();
    if (next === undefined) this.connections.push(connection);
    else next(connection);
  }
}
