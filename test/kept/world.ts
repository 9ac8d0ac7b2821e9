import type { Server as HttpServer } from "bun";
import { ManualClock } from "../../src/kernel/time/clock.ts";
import { type Answer, Client } from "../support/client.ts";
import { TestServer } from "../support/server.ts";

/** What the requests of a kept folder go by: a credential of the folder, or none. */
export type Keys = Readonly<Record<string, string>>;

/** A request by one of the kept credentials. */
export interface Asked {
  /** A name in {@link Recorded.keys}; `nobody` sends none. */
  readonly as: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
}

/** A request and what it was answered. */
export interface Answered extends Asked {
  readonly status: number;
  readonly answer: unknown;
}

/** What is written down beside a kept folder. */
export interface Recorded {
  /** The version of the code that made the folder. */
  readonly version: string;
  /** Where the clock stood at the end, epoch milliseconds. */
  readonly at: number;
  readonly keys: Keys;
  /** Ids of what is in the folder, by name. */
  readonly things: Readonly<Record<string, string>>;
  /** Requests that change nothing but the price of reading, in the order in which they were made. */
  readonly reads: readonly Answered[];
  /** Requests under an `Idempotency-Key` whose answers are stored in the folder. */
  readonly stored: readonly Answered[];
}

/** How a kept folder was left: stopped in order, or killed with its log. */
export const FORMS = ["stopped", "killed"] as const;
export type Form = (typeof FORMS)[number];

/** Where everything in a kept folder points to: a name, so that each run can say which loopback address it stands for. */
const RECEIVER_NAME = "receiver.test";
/** The port is in the folder, too. It lies below those that systems give to clients. */
const RECEIVER_PORT = 18_309;

/** A URL in the folder that leads to the {@link Receiver} of the run. */
export function receiverUrl(path: string): string {
  return `http://${RECEIVER_NAME}:${RECEIVER_PORT}${path}`;
}

/** A request that has come out of the server. */
export interface Hit {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

/** Target, webhook endpoint and storage in one. It answers 200, and 503 below `/broken`. */
export class Receiver {
  readonly hits: Hit[] = [];
  readonly address: string;
  private readonly server: HttpServer<unknown>;

  constructor() {
    // On Linux all of 127.0.0.0/8 is this machine: an address for each run, so that two at a time share no port.
    const byte = (): number => 1 + Math.floor(Math.random() * 254);
    this.address = process.platform === "linux" ? `127.${byte()}.${byte()}.${byte()}` : "127.0.0.1";
    this.server = Bun.serve({
      hostname: this.address,
      port: RECEIVER_PORT,
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        const { method, headers } = request;
        this.hits.push({ method, path: pathname, headers, body: await request.text() });
        return new Response(null, { status: pathname.startsWith("/broken") ? 503 : 200 });
      },
    });
  }

  /** The requests to a path so far. */
  at(path: string): Hit[] {
    return this.hits.filter((hit) => hit.path === path);
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }
}

/** A server on a folder of its own, at a moment, whose targets are the receiver. Not started: the folder may be filled first. */
export function serverAt(at: number, receiver: Receiver): TestServer & { readonly time: ManualClock } {
  const time = new ManualClock(at);
  const server = new TestServer({
    // Plain HTTP to a name is accepted only where all targets are.
    args: ["--allow-private-targets", "all"],
    parts: { clock: time, outbound: { resolver: { resolve: async () => [receiver.address] } } },
  });
  return Object.assign(server, { time });
}

/** Sends a request by a kept credential. */
export function ask(url: string, keys: Keys, asked: Asked): Promise<Answer> {
  const key = asked.as === "nobody" ? null : keys[asked.as];
  if (key === undefined) throw new Error(`there is no key ${asked.as}`);
  const headers = asked.idempotencyKey === undefined ? {} : { "idempotency-key": asked.idempotencyKey };
  return new Client(url, key).send(asked.method, asked.path, asked.body, {
    headers,
    storedByEarlierVersion: asked.idempotencyKey !== undefined,
  });
}
