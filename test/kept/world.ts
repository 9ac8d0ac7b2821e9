import type { Server as HttpServer } from "bun";
import { ManualClock } from "../../src/kernel/time/clock.ts";
import { type Answer, Client } from "../support/client.ts";
import { TestServer } from "../support/server.ts";

/** Credentials of requests to a kept folder: one of the folder, or none. */
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

/** A request and its response. */
export interface Answered extends Asked {
  readonly status: number;
  readonly answer: unknown;
}

/** The file next to a kept folder. */
export interface Recorded {
  /** The version of the code that made the folder. */
  readonly version: string;
  /** The time of the clock at the end, epoch milliseconds. */
  readonly at: number;
  readonly keys: Keys;
  /** Ids of what is in the folder, by name. */
  readonly things: Readonly<Record<string, string>>;
  /** Requests that change nothing except for the charge of a read, in order. */
  readonly reads: readonly Answered[];
  /** Requests under an `Idempotency-Key` whose responses are stored in the folder. */
  readonly stored: readonly Answered[];
}

/** How the server of a kept folder ended: stopped regularly, or killed with its log. */
export const FORMS = ["stopped", "killed"] as const;
export type Form = (typeof FORMS)[number];

/** Host of all targets in a kept folder: a name, so that each run can resolve it to its own loopback address. */
const RECEIVER_NAME = "receiver.test";
/** The port is stored in the folder, too. It is below the range that systems give to clients. */
const RECEIVER_PORT = 18_309;

/** A URL in the folder that resolves to the {@link Receiver} of the run. */
export function receiverUrl(path: string): string {
  return `http://${RECEIVER_NAME}:${RECEIVER_PORT}${path}`;
}

/** A request that the server has sent. */
export interface Hit {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

/** Target, webhook endpoint and storage in one. It responds with 200, and with 503 below `/broken`. */
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

/**
 * A server on a separate folder, at a given time, whose targets are the receiver. It is not started: the folder may be
 * filled first.
 */
export function serverAt(at: number, receiver: Receiver): TestServer & { readonly time: ManualClock } {
  const time = new ManualClock(at);
  const server = new TestServer({
    // Plain HTTP to a name is accepted only where all targets are.
    args: ["--allow-private-targets", "all"],
    deps: { clock: time, outbound: { resolver: { resolve: async () => [receiver.address] } } },
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
