import { Connection, ConnectionLost, type HttpResponse } from "../processes/connection.ts";
import { type Target, type TargetRequest, toWire, UNAVAILABLE } from "./workload.ts";

/** The server under load: keeps connections, and follows it to another address after a restart. */
export class ServerTarget implements Target {
  readonly operatorKey: string;
  readonly folder: string;
  /** Requests without a response although the server was not killed. */
  unexplained = 0;
  /** Requests that got 503. */
  rejections = 0;
  private url: string;
  private idle: Connection[] = [];
  /** Set immediately before the kill: from then on a missing response is expected. */
  private dying = false;
  private lost = false;

  constructor(url: string, operatorKey: string, folder: string) {
    this.url = url;
    this.operatorKey = operatorKey;
    this.folder = folder;
  }

  /** Whether a request got no response since the server was attached: then the load ends. */
  get gone(): boolean {
    return this.lost;
  }

  /** Announces that the server will be killed. */
  expectDeath(): void {
    this.dying = true;
  }

  /** Continues with the server at another address. */
  attach(url: string): void {
    for (const connection of this.idle) connection.close();
    this.url = url;
    this.idle = [];
    this.dying = false;
    this.lost = false;
  }

  async send(request: TargetRequest): Promise<HttpResponse | null> {
    let connection: Connection | undefined;
    try {
      connection = this.takeIdle() ?? (await Connection.open(this.url));
      const response = await connection.request(toWire(request));
      this.idle.push(connection);
      if (response.status === UNAVAILABLE) this.rejections += 1;
      return response;
    } catch (error) {
      // A rejected connection counts as no response: the server is down.
      if (connection !== undefined && !(error instanceof ConnectionLost)) throw error;
      this.lost = true;
      if (!this.dying) this.unexplained += 1;
      return null;
    }
  }

  async ask(request: TargetRequest): Promise<HttpResponse> {
    const response = await this.send(request);
    if (response === null) throw new Error(`no response to ${request.method} ${request.path}`);
    return response;
  }

  private takeIdle(): Connection | undefined {
    for (let next = this.idle.pop(); next !== undefined; next = this.idle.pop()) {
      if (next.usable) return next;
    }
    return undefined;
  }
}

/** Runs `work` for every item, at most `width` concurrently, and returns all results. */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const queue = [...items.entries()];
  const run = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      results[next[0]] = await work(next[1]);
    }
  };
  await Promise.all(Array.from({ length: width }, run));
  return results;
}
