import { Connection } from "../processes/connection.ts";

const PING_EVERY_MS = 5;

/** Latency of pings that were sent while something else kept the server busy. */
export interface PingLatency {
  /** Number of pings. */
  readonly count: number;
  /** 99th percentile, in milliseconds. */
  readonly p99Ms: number;
}

/** A client that sends one ping after another on a connection of its own and measures how long each takes. */
export class Pings {
  private readonly times: number[] = [];
  private isStopped = false;
  private readonly ended: Promise<void>;

  private constructor(private readonly connection: Connection) {
    this.ended = this.run();
  }

  /** Starts to send pings to a server. @throws Error when the server does not accept the connection. */
  static async start(url: string): Promise<Pings> {
    return new Pings(await Connection.open(url));
  }

  /** Stops after the ping in flight. */
  async stop(): Promise<PingLatency> {
    this.isStopped = true;
    await this.ended;
    this.connection.close();
    const sorted = this.times.sort((a, b) => a - b);
    return { count: sorted.length, p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0 };
  }

  private async run(): Promise<void> {
    while (!this.isStopped) {
      const start = performance.now();
      await this.connection.request({ method: "GET", path: "/v1/ping", headers: {} });
      this.times.push(performance.now() - start);
      await Bun.sleep(PING_EVERY_MS);
    }
  }
}
