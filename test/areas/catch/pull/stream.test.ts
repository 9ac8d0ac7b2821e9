import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { WAIT_MS_MAX } from "../../../../src/areas/catch/pull/schema.ts";
import {
  PAGE_LENGTH_MAX,
  WAITING_MAX,
  WAITING_PER_BUCKET_MAX,
} from "../../../../src/areas/catch/pull/stream.ts";
import {
  ACK_DURATION_MS_MAX,
  ACK_ERROR_LENGTH_MAX,
  type CaughtEvent,
} from "../../../../src/areas/catch/schema.ts";
import { ACCOUNT_PART } from "../../../../src/kernel/http/access/connection-slots.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { eventually } from "../../../support/eventually.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  type Made,
  makeEvent,
  newBucket,
  scenario,
} from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());

const created: Made = { bucketId: "", eventId: "" };
const PULL = { target_url: null, delivery: "pull" };

interface Page {
  readonly events: CaughtEvent[];
  readonly cursor: string;
}

async function poll(account: Client, bucketId: string, query: string): Promise<Page> {
  const answer = await account.get(`/v1/catch/${bucketId}/stream?${query}`);
  if (answer.status !== 200) throw new Error(`no page: ${answer.text}`);
  return answer.body as unknown as Page;
}

const idsOf = ({ events }: Page) => events.map(({ id }) => id);

describe("GET /v1/catch/{bucket_id}/stream", () => {
  const NOBODYS = "/v1/catch/brave-otter-314159/stream?after=now&wait_ms=0";
  const before: Scenario["before"] = (world) => makeEvent(created, world);
  const asked = (query: string) => ({
    before,
    request: ({ bucketId }: Made): Scenario["request"] => ["GET", `/v1/catch/${bucketId}/stream?${query}`],
  });
  const refused = (name: string, query: string) =>
    scenario(created, { name, ...asked(query), status: 400, code: "validation_error" });
  endpoint(() => server, "GET /v1/catch/{bucket_id}/stream", [
    scenario(created, {
      name: "stored events, complete: 1 credit",
      ...asked(`after=beginning&wait_ms=${WAIT_MS_MAX}&limit=100`),
      status: 200,
      holds: ({ eventId, bucketId }) => ({
        events: [{ id: eventId, bucket_id: bucketId, payload_base64: "eyJhIjoxfQ==", attempt_log: [] }],
        cursor: eventId,
      }),
      spent: 1,
    }),
    scenario(created, {
      name: "nothing after now: free of charge, and the cursor is a position",
      ...asked("after=now&wait_ms=0"),
      status: 200,
      body: ({ eventId }) => ({ events: [], cursor: eventId }),
    }),
    refused("without a position", "wait_ms=0"),
    refused("an invalid position", "after=evt_1"),
    refused("a position too long", `after=${"x".repeat(65)}`),
    refused("a wait too long", `after=now&wait_ms=${WAIT_MS_MAX + 1}`),
    refused("a wait below 0", "after=now&wait_ms=-1"),
    refused("a page of none", "after=now&limit=0"),
    refused("a page too large", "after=now&limit=101"),
    refused("a verification that there is not", "after=now&verification=perhaps"),
    scenario(created, {
      name: "an unknown provider",
      ...asked("after=now&provider=nobody"),
      status: 400,
      code: "catch.provider_unsupported",
    }),
    { name: "no key", as: "nobody", request: ["GET", NOBODYS], status: 401, code: "unauthorized" },
    scenario(created, {
      name: "events without credits",
      account: { balance: 1 },
      ...asked("after=beginning"),
      status: 402,
      code: "insufficient_balance",
    }),
    {
      name: "a bucket that does not exist",
      request: ["GET", NOBODYS],
      status: 404,
      code: "catch.bucket_not_found",
    },
  ]);

  test("has the cursor beginning for an empty bucket", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    expect(await poll(account, id, "after=now&wait_ms=0")).toEqual({ events: [], cursor: "beginning" });
    expect(await poll(account, id, "after=beginning&wait_ms=1")).toEqual({ events: [], cursor: "beginning" });
  });

  test("returns events in order, page by page, each once", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    const sent: string[] = [];
    for (let number = 0; number < 5; number += 1) sent.push(await accepted(server, id, `${number}`));
    const first = await poll(account, id, "after=beginning&limit=3");
    const second = await poll(account, id, `after=${first.cursor}&limit=3`);
    expect([...idsOf(first), ...idsOf(second)]).toEqual(sent);
    expect(await poll(account, id, `after=${second.cursor}&wait_ms=0`)).toEqual({
      events: [],
      cursor: sent.at(-1) ?? "",
    });
  });

  test("waits for the first event, and includes those that follow immediately", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    const waiting = poll(account, id, "after=now");
    await Bun.sleep(30);
    const sent = await Promise.all([accepted(server, id, "1"), accepted(server, id, "2")]);
    expect(idsOf(await waiting)).toEqual(sent.sort());
  });

  test("waits no longer than wait_ms, in real time", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    const begun = performance.now();
    expect(await poll(account, id, "after=now&wait_ms=150")).toEqual({ events: [], cursor: "beginning" });
    expect(performance.now() - begun).toBeGreaterThanOrEqual(149);
  });

  test("does not return for events of other buckets", async () => {
    const account = await server.account();
    const [first, second] = [await newBucket(account, PULL), await newBucket(account, PULL)];
    const waiting = poll(account, first.id, "after=now&wait_ms=200");
    await accepted(server, second.id, "elsewhere");
    expect((await waiting).events).toEqual([]);
  });

  test("skips events that do not match the filter, and returns a cursor after them", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, { ...PULL, provider: "github", signing_secret: "s" });
    const invalid = await accepted(server, id, "1", { "x-github-event": "push" });
    expect(await poll(account, id, "after=beginning&verification=valid&wait_ms=0")).toEqual({
      events: [],
      cursor: invalid,
    });
    expect(idsOf(await poll(account, id, "after=beginning&verification=invalid"))).toEqual([invalid]);
    expect(idsOf(await poll(account, id, "after=beginning&provider=github"))).toEqual([invalid]);
    expect(idsOf(await poll(account, id, "after=beginning&provider=stripe&wait_ms=0"))).toEqual([]);
    expect(idsOf(await poll(account, id, "after=beginning&event_type=push"))).toEqual([invalid]);
    expect(idsOf(await poll(account, id, "after=beginning&event_type=pull&wait_ms=0"))).toEqual([]);
  });

  test("ends a page at 4 MiB; a longer event is the only one of its page", async () => {
    const account = await server.account({ balance: 1_000 });
    const { id } = await newBucket(account, PULL);
    const sent: string[] = [];
    // Each character is six characters of JSON: the text of one body is longer than a page.
    for (const body of ["\u0001".repeat(1_000_000), "x".repeat(900_000), "y".repeat(900_000), "z"])
      sent.push(await accepted(server, id, body));
    const first = await poll(account, id, "after=beginning");
    expect(idsOf(first)).toEqual(sent.slice(0, 1));
    expect(JSON.stringify(first).length).toBeGreaterThan(PAGE_LENGTH_MAX);
    const second = await poll(account, id, `after=${first.cursor}`);
    expect(idsOf(second)).toEqual(sent.slice(1, 2));
    expect(idsOf(await poll(account, id, `after=${second.cursor}`))).toEqual(sent.slice(2));
  });

  test("limits waiting requests at a bucket; a client that disconnects frees a slot", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    const leaving = new AbortController();
    const path = `/v1/catch/${id}/stream?after=now`;
    const waiting = Array.from({ length: WAITING_PER_BUCKET_MAX - 1 }, () => account.get(path));
    const gone = fetch(server.url + path, {
      headers: { authorization: `Bearer ${account.key}` },
      signal: leaving.signal,
    }).catch(() => "left");
    // Until all of them wait, one more waits for a millisecond.
    await eventually(async () => {
      const refused = await account.get(`${path}&wait_ms=1`);
      expectError(refused, "rate_limit_exceeded");
      expect(refused.headers.get("retry-after")).toBe("1");
    });
    expect((await account.get(`${path}&wait_ms=0`)).status).toBe(200);
    leaving.abort();
    expect(await gone).toBe("left");
    await eventually(async () => expect((await account.get(`${path}&wait_ms=1`)).status).toBe(200));
    const before = await balanceOf(account);
    await accepted(server, id, "1");
    for (const one of waiting) expect((await one).status).toBe(200);
    // The event itself, and each response with it; a client that disconnected is not charged.
    expect(before - (await balanceOf(account))).toBe(1 + waiting.length);
  });

  test("limits waiting requests at all buckets, and to a quarter for one account", async () => {
    const { hostname, port } = new URL(server.url);
    // Raw sockets: Bun's fetch limits concurrent requests.
    const sockets: { end(): unknown }[] = [];
    const places = WAITING_MAX * ACCOUNT_PART;
    async function fill(account: Client): Promise<void> {
      for (let at = 0; at < places / WAITING_PER_BUCKET_MAX; at += 1) {
        const { id } = await newBucket(account, PULL);
        const head = `GET /v1/catch/${id}/stream?after=now HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${account.key}\r\n\r\n`;
        for (let one = 0; one < WAITING_PER_BUCKET_MAX; one += 1) {
          const socket = await Bun.connect({
            hostname,
            port: Number(port),
            socket: { data: () => undefined },
          });
          socket.write(head);
          sockets.push(socket);
        }
      }
    }
    async function expectFull(account: Client, whose: string): Promise<void> {
      const { id } = await newBucket(account, PULL);
      await eventually(async () => {
        const rejected = await account.get(`/v1/catch/${id}/stream?after=now&wait_ms=1`);
        expectError(rejected, "rate_limit_exceeded");
        expect(rejected.text).toContain(whose);
      });
    }
    const first = await server.account();
    await fill(first);
    await expectFull(first, "of this account");
    for (let count = 1; count < 1 / ACCOUNT_PART; count += 1) await fill(await server.account());
    await expectFull(await server.account(), "of this server");
    for (const socket of sockets) socket.end();
  });

  test("returns nothing to a revoked key", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    const { body: key } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["catch:read"] });
    const waiting = server.client(String(key["secret"])).get(`/v1/catch/${id}/stream?after=now`);
    await Bun.sleep(30);
    await account.delete(`/v1/keys/${key["key_id"]}`);
    await accepted(server, id, "secret");
    expectError(await waiting, "unauthorized");
  });

  test("returns 404 after the bucket is deleted", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    const waiting = account.get(`/v1/catch/${id}/stream?after=now`);
    await Bun.sleep(30);
    await account.delete(`/v1/catch/buckets/${id}`);
    expectError(await waiting, "catch.bucket_not_found");
  });

  test("returns 503 immediately when the server stops; events are stored after its start", async () => {
    const separateServer = await startTestServer({});
    try {
      const account = await separateServer.account();
      const { id } = await newBucket(account, PULL);
      const event = await accepted(separateServer, id, "1");
      const waiting = account.get(`/v1/catch/${id}/stream?after=now`);
      await Bun.sleep(50);
      const restarted = separateServer.restart();
      expectError(await waiting, "service_unavailable");
      await restarted;
      expect(idsOf(await poll(separateServer.client(account.key), id, "after=beginning"))).toEqual([event]);
    } finally {
      await separateServer.stop();
    }
  });
});

describe("POST /v1/catch/{bucket_id}/events/{event_id}/ack", () => {
  const NOBODYS = "/v1/catch/brave-otter-314159/events/evt_00000000001/ack";
  const body = { result: "delivered" };
  const acked = (given: object, terms: object = PULL) => ({
    before: (world: Parameters<NonNullable<Scenario["before"]>>[0]) => makeEvent(created, world, terms),
    request: ({ bucketId, eventId }: Made): Scenario["request"] => [
      "POST",
      `/v1/catch/${bucketId}/events/${eventId}/ack`,
      given,
    ],
  });
  const refused = (name: string, given: object) =>
    scenario(created, { name, ...acked({ ...body, ...given }), status: 400, code: "validation_error" });
  endpoint(() => server, "POST /v1/catch/{bucket_id}/events/{event_id}/ack", [
    scenario(created, {
      name: "delivered: free",
      ...acked({ ...body, response_status: 204, duration_ms: 31 }),
      status: 200,
      holds: ({ eventId, bucketId }) => ({
        id: eventId,
        bucket_id: bucketId,
        status: "delivered",
        attempts: 1,
        response_status: 204,
        error: null,
      }),
      spent: 1,
      after: async ({ account }) => {
        expect((await eventOf(account, created.bucketId, created.eventId)).attempt_log).toEqual([
          {
            kind: "pull",
            at: new Date(server.clock.now() - 31).toISOString(),
            duration_ms: 31,
            response_status: 204,
            error: null,
            response_body: null,
          },
        ]);
        expect((await bucketOf(account, created.bucketId)).events).toEqual({
          pending: 0,
          delivered: 1,
          failed: 0,
        });
      },
    }),
    scenario(created, {
      name: "failed, at its limits",
      ...acked({
        result: "failed",
        response_status: 599,
        error: "e".repeat(ACK_ERROR_LENGTH_MAX),
        duration_ms: ACK_DURATION_MS_MAX,
      }),
      status: 200,
      holds: () => ({ status: "failed", response_status: 599, error: "e".repeat(ACK_ERROR_LENGTH_MAX) }),
    }),
    refused("a result that there is not", { result: "perhaps" }),
    refused("an invalid status", { response_status: 600 }),
    refused("an error too long", { error: "e".repeat(ACK_ERROR_LENGTH_MAX + 1) }),
    refused("an empty error", { error: "" }),
    refused("a duration too long", { duration_ms: ACK_DURATION_MS_MAX + 1 }),
    { name: "no key", as: "nobody", request: ["POST", NOBODYS, body], status: 401, code: "unauthorized" },
    {
      name: "a bucket that does not exist",
      request: ["POST", NOBODYS, body],
      status: 404,
      code: "catch.bucket_not_found",
    },
    scenario(created, {
      name: "an event that does not exist",
      before: (world) => makeEvent(created, world, PULL),
      request: ({ bucketId }) => ["POST", `/v1/catch/${bucketId}/events/evt_00000000001/ack`, body],
      status: 404,
      code: "catch.event_not_found",
    }),
    scenario(created, {
      name: "a bucket with delivery push",
      ...acked(body, {}),
      status: 409,
      code: "conflict",
    }),
  ]);

  test("a repeat changes nothing; a failed event can become delivered, and stays delivered", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, PULL);
    const event = await accepted(server, id, "1");
    const ack = async (result: string, more: object = {}) =>
      (await account.post(`/v1/catch/${id}/events/${event}/ack`, { result, ...more })).body;
    const failed = await ack("failed");
    expect(failed).toMatchObject({ status: "failed", attempts: 1, error: "no response" });
    expect(await ack("failed", { response_status: 500 })).toEqual(failed);
    const delivered = await ack("delivered", { response_status: 200 });
    expect(delivered).toMatchObject({ status: "delivered", attempts: 2, error: null });
    expect(await ack("failed")).toEqual(delivered);
    expect((await bucketOf(account, id)).events).toEqual({ pending: 0, delivered: 1, failed: 0 });
  });

  test("an event with an invalid signature stays failed", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, { ...PULL, provider: "github", signing_secret: "s" });
    const event = await accepted(server, id, "1");
    const { body } = await account.post(`/v1/catch/${id}/events/${event}/ack`, { result: "delivered" });
    expect(body).toMatchObject({ status: "failed", verification: "invalid", attempts: 0 });
  });
});
