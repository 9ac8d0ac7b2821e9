import { createHmac } from "node:crypto";
import type {
  Bucket as BucketBody,
  CaughtEvent,
  EventItem as EventBody,
  Ingested as IngestBody,
} from "../../../src/areas/catch/schema.ts";
import type { Answer, Client } from "../../support/client.ts";
import type { Scenario, World } from "../../support/scenario.ts";
import type { TestServer } from "../../support/server.ts";

/** Options that permit targets on this machine, also without TLS. */
export const LOOPBACK_ALLOWED = ["--allow-private-targets", "127.0.0.0/8"];

export type { BucketBody, EventBody };

/** Creates a bucket with default settings, except `terms`. */
export async function newBucket(client: Client, terms: object = {}): Promise<BucketBody> {
  const answer = await client.post("/v1/catch/buckets", {
    target_url: "https://hooks.example.com/in",
    ...terms,
  });
  if (answer.status !== 201) throw new Error(`no bucket: ${answer.text}`);
  return answer.body as unknown as BucketBody;
}

/** Sets a bucket live or pauses it. */
export async function setState(client: Client, bucketId: string, state: "live" | "paused"): Promise<void> {
  const answer = await client.patch(`/v1/catch/buckets/${bucketId}`, { state });
  if (answer.status !== 200) throw new Error(`not ${state}: ${answer.text}`);
}

/** Sends a request to a bucket's public path, as a provider would. */
export async function ingest(
  server: TestServer,
  bucketId: string,
  body: string | Uint8Array | object = "{}",
  headers: Readonly<Record<string, string>> = {},
): Promise<IngestBody> {
  const answer = await server.client(null).post(`/v1/catch/${bucketId}`, body, { headers });
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
  return answer.body as unknown as IngestBody;
}

/** Sends a request that must be accepted. Returns the event's id. */
export async function accepted(
  server: TestServer,
  bucketId: string,
  body: string | Uint8Array | object = "{}",
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const answer = await ingest(server, bucketId, body, headers);
  if (answer.event_id === undefined) throw new Error(`not accepted: ${JSON.stringify(answer)}`);
  return answer.event_id;
}

/** All events of a bucket, oldest first. */
export async function eventsOf(client: Client, bucketId: string): Promise<EventBody[]> {
  const events: EventBody[] = [];
  for (let cursor: unknown = null; ; ) {
    const query = cursor === null ? "" : `&cursor=${String(cursor)}`;
    const { body } = await client.get(`/v1/catch/${bucketId}/events?limit=100${query}`);
    events.push(...(body["events"] as EventBody[]));
    cursor = body["cursor"];
    if (cursor === null) return events.reverse();
  }
}

/** One event of a bucket. */
export async function eventOf(client: Client, bucketId: string, eventId: string): Promise<CaughtEvent> {
  const { body } = await client.get(`/v1/catch/${bucketId}/events/${eventId}`);
  return body as unknown as CaughtEvent;
}

/** The current state of a bucket. */
export async function bucketOf(client: Client, bucketId: string): Promise<BucketBody> {
  const { body } = await client.get(`/v1/catch/buckets/${bucketId}`);
  return body as unknown as BucketBody;
}

/** `stripe-signature` over a body, with the server's time. */
export function stripeSignature(server: TestServer, secret: string, body: string | Uint8Array): string {
  const seconds = Math.floor(server.clock.now() / 1000);
  return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex")}`;
}

/** Resources that a scenario's `before` has created, for its paths and bodies. */
export interface Made {
  bucketId: string;
  eventId: string;
}

/** A scenario with path, body and expectations that use the resources of its `before`. */
export function scenario(
  created: Made,
  plain: Omit<Scenario, "request" | "body" | "holds"> & {
    readonly request: (created: Made) => Scenario["request"];
    readonly body?: (created: Made) => unknown;
    readonly holds?: (created: Made) => object;
  },
): Scenario {
  const { request, body, holds, ...rest } = plain;
  // Getters: the resources are created when the scenario runs.
  return Object.defineProperties(rest as Scenario, {
    request: { get: () => request(created) },
    body: { get: () => body?.(created) },
    holds: { get: () => holds?.(created) },
  });
}

/** Creates a bucket with one event, for {@link scenario}. */
export async function makeEvent(
  created: Made,
  { server, account }: World,
  terms: object = {},
): Promise<void> {
  created.bucketId = (await newBucket(account, terms)).id;
  created.eventId = await accepted(server, created.bucketId, '{"a":1}');
}

/** A request that a target has received. */
export interface Hit {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** A webhook receiver on a real socket. */
export class Receiver {
  readonly hits: Hit[] = [];
  /** The response to a request: a status, or a function. */
  respond: (hit: Hit, number: number) => number | Response | Promise<number | Response> = () => 200;
  private readonly server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => this.receive(request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.server.port}/hooks?from=ninefold`;
  }

  /** Bodies received so far, in the order of their arrival. */
  get texts(): string[] {
    return this.hits.map(({ body }) => body.toString("utf8"));
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  private async receive(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const hit: Hit = {
      method: request.method,
      path: pathname + search,
      headers: request.headers,
      body: Buffer.from(await request.arrayBuffer()),
    };
    this.hits.push(hit);
    const answer = await this.respond(hit, this.hits.length);
    return typeof answer === "number" ? new Response("answer", { status: answer }) : answer;
  }
}

/** The credits that an account has left. */
export async function balanceOf(client: Client): Promise<number> {
  const { body }: Answer = await client.get("/v1/meter/balance");
  return Number(body["balance"]);
}
