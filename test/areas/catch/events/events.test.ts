import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Answer } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type World } from "../../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventsOf,
  LOOPBACK_ALLOWED,
  type Made,
  makeEvent,
  newBucket,
  Receiver,
  scenario,
} from "../support.ts";

let server: TestServer;
let receiver: Receiver;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
  receiver = new Receiver();
});
afterAll(async () => {
  await receiver.stop();
  await server.stop();
});

const START = new Date(TEST_START_MS).toISOString();
const NOBODYS = "brave-otter-314159";
const created: Made = { bucketId: "", eventId: "" };
const before = (world: World) => makeEvent(created, world);
const list = ({ bucketId }: Made, query = "") => `/v1/catch/${bucketId}/events${query}`;
const one = ({ bucketId, eventId }: Made) => `/v1/catch/${bucketId}/events/${eventId}`;

describe("GET /v1/catch/{bucket_id}/events", () => {
  const refused = (name: string, query: string, code: string, field?: string) =>
    scenario(created, {
      name,
      before,
      request: (of) => ["GET", list(of, query)],
      status: 400,
      code,
      after: (_, { body }: Answer) =>
        expect(Object.keys(body["fields"] ?? {})).toEqual(field === undefined ? [] : [field]),
    });
  endpoint(() => server, "GET /v1/catch/{bucket_id}/events", [
    scenario(created, {
      name: "a page, without payloads; 1 credit",
      before,
      request: (of) => ["GET", list(of)],
      status: 200,
      spent: 1,
      body: ({ bucketId, eventId }) => ({
        events: [
          {
            id: eventId,
            bucket_id: bucketId,
            provider: null,
            event_type: null,
            status: "pending",
            verification: "none",
            received_at: START,
            attempts: 0,
            response_status: null,
            error: null,
            delivered_at: null,
            next_attempt_at: null,
          },
        ],
        cursor: null,
      }),
    }),
    scenario(created, {
      name: "an empty page",
      before: async ({ account }) => {
        created.bucketId = (await newBucket(account)).id;
      },
      request: (of) => ["GET", list(of)],
      status: 200,
      spent: 1,
      body: () => ({ events: [], cursor: null }),
    }),
    refused("limit 0", "?limit=0", "validation_error", "limit"),
    refused("limit 101", "?limit=101", "validation_error", "limit"),
    refused("a limit that is no number", "?limit=ten", "validation_error", "limit"),
    refused("a cursor of our own making", "?cursor=abc", "validation_error", "cursor"),
    refused("a status that there is not", "?status=lost", "validation_error", "status"),
    refused("a provider that there is not", "?provider=nobody", "catch.provider_unsupported"),
    refused("a parameter twice", "?status=failed&status=failed", "validation_error", "status"),
    {
      name: "no key",
      as: "nobody",
      request: ["GET", `/v1/catch/${NOBODYS}/events`],
      status: 401,
      code: "unauthorized",
    },
    scenario(created, {
      name: "no credits",
      account: { balance: 1 },
      before,
      request: (of) => ["GET", list(of)],
      status: 402,
      code: "insufficient_balance",
    }),
    {
      name: "a bucket that does not exist: the search is charged",
      request: ["GET", `/v1/catch/${NOBODYS}/events`],
      status: 404,
      code: "catch.bucket_not_found",
      spent: 1,
    },
  ]);
});

describe("GET /v1/catch/{bucket_id}/events/{event_id}", () => {
  endpoint(() => server, "GET /v1/catch/{bucket_id}/events/{event_id}", [
    scenario(created, {
      name: "a complete event; 1 credit",
      before,
      request: (of) => ["GET", one(of)],
      status: 200,
      spent: 1,
      holds: ({ eventId }) => ({
        id: eventId,
        status: "pending",
        payload: { a: 1 },
        payload_base64: Buffer.from('{"a":1}').toString("base64"),
        headers: { "content-type": "application/json" },
      }),
    }),
    scenario(created, {
      name: "an event that does not exist",
      before,
      request: ({ bucketId }) => ["GET", `/v1/catch/${bucketId}/events/evt_00000000001`],
      status: 404,
      code: "catch.event_not_found",
      spent: 1,
    }),
    scenario(created, {
      name: "an invalid id",
      before,
      request: ({ bucketId }) => ["GET", `/v1/catch/${bucketId}/events/1`],
      status: 404,
      code: "catch.event_not_found",
      spent: 1,
    }),
    scenario(created, {
      name: "a too long id",
      before,
      request: ({ bucketId }) => ["GET", `/v1/catch/${bucketId}/events/${"x".repeat(65)}`],
      status: 400,
      code: "validation_error",
    }),
    {
      name: "no key",
      as: "nobody",
      request: ["GET", `/v1/catch/${NOBODYS}/events/evt_00000000001`],
      status: 401,
      code: "unauthorized",
    },
    scenario(created, {
      name: "no credits",
      account: { balance: 1 },
      before,
      request: (of) => ["GET", one(of)],
      status: 402,
      code: "insufficient_balance",
    }),
  ]);

  const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  test.each<[string, string | Uint8Array, unknown]>([
    ["a JSON object", '{"b": [1, 2.50, null]}', { b: [1, 2.5, null] }],
    ["a JSON text", '"text"', "text"],
    ["a JSON number", " 12 ", 12],
    ["null", "null", null],
    [
      "names from JavaScript",
      '{"__proto__":{"a":1},"constructor":2}',
      JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
    ],
    ["a form", "a=1&b=%20", "a=1&b=%20"],
    ["broken JSON", '{"a":', '{"a":'],
    ["nothing", "", ""],
    ["other characters", "Grüße 世界 😀", "Grüße 世界 😀"],
    ["bytes that are no text", new Uint8Array([0xff, 0xfe, 0]), "\ufffd\ufffd\0"],
    ["a deep nest", deep(500), JSON.parse(deep(500))],
    ["one level deeper: kept as it came, and given as text", deep(501), deep(501)],
  ])("the payload: %s", async (_, body, payload) => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const event = await accepted(server, id, body);
    const answer = await account.get(`/v1/catch/${id}/events/${event}`);
    expect(answer.body["payload"]).toEqual(payload as never);
    expect(Buffer.from(String(answer.body["payload_base64"]), "base64")).toEqual(Buffer.from(body));
  });

  test("a body with too many levels is returned as text", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const body = deep(500_000);
    const event = await accepted(server, id, body);
    const answer = await account.get(`/v1/catch/${id}/events/${event}`);
    expect(answer.status).toBe(200);
    expect(Buffer.from(String(answer.body["payload_base64"]), "base64").toString()).toBe(body);
  });
});

describe("DELETE /v1/catch/{bucket_id}/events", () => {
  const path = (of: Made, before: string) => list(of, `?before=${encodeURIComponent(before)}`);
  const AFTER = new Date(TEST_START_MS + 1).toISOString();
  const deleting = (name: string, time: string, count: number) =>
    scenario(created, {
      name,
      before,
      request: (of) => ["DELETE", path(of, time)],
      status: 200,
      body: () => ({ deleted_count: count }),
    });
  const refused = (name: string, time: string) =>
    scenario(created, {
      name,
      before,
      request: (of) => ["DELETE", path(of, time)],
      status: 400,
      code: "validation_error",
      after: (_, { body }) => expect(Object.keys(body["fields"] as object)).toEqual(["before"]),
    });
  endpoint(() => server, "DELETE /v1/catch/{bucket_id}/events", [
    deleting("one received before that", AFTER, 1),
    deleting("one received at that very time stays", START, 0),
    deleting(
      "another offset",
      new Date(TEST_START_MS + 2 * 3_600_000 + 1).toISOString().replace("Z", "+02:00"),
      1,
    ),
    deleting("without milliseconds", AFTER.replace(/\.\d+Z/, "Z"), 0),
    deleting("long ago", "1970-01-01T00:00:00Z", 0),
    scenario(created, {
      name: "an unencoded plus sign",
      before,
      request: (of) => ["DELETE", list(of, "?before=2026-03-11T00:00:00+00:00")],
      status: 200,
      body: () => ({ deleted_count: 1 }),
    }),
    refused("a day alone", "2026-03-11"),
    refused("no offset", "2026-03-11T00:00:00"),
    refused("a day that there is not", "2026-02-30T00:00:00Z"),
    refused("no time", "yesterday"),
    refused("empty", ""),
    refused("too long", `2026-03-11T00:00:00.${"0".repeat(64)}Z`),
    scenario(created, {
      name: "no time",
      before,
      request: (of) => ["DELETE", list(of)],
      status: 400,
      code: "validation_error",
    }),
    {
      name: "no key",
      as: "nobody",
      request: ["DELETE", `/v1/catch/${NOBODYS}/events?before=${START}`],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "a bucket that does not exist",
      request: ["DELETE", `/v1/catch/${NOBODYS}/events?before=${START}`],
      status: 404,
      code: "catch.bucket_not_found",
    },
    scenario(created, {
      name: "an Idempotency-Key of a request with another time",
      before: async (world) => {
        await before(world);
        await world.account.delete(path(created, START), { headers: { "idempotency-key": "k" } });
      },
      headers: { "idempotency-key": "k" },
      request: (of) => ["DELETE", path(of, AFTER)],
      status: 409,
      code: "conflict",
    }),
  ]);

  test("deletes older events of any status, and keeps the others and correct counts", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    for (let count = 0; count < 230; count += 1) await accepted(server, id, `old ${count}`);
    await server.clock.advance(1_000);
    const kept = [await accepted(server, id, "new 1"), await accepted(server, id, "new 2")];
    const balance = await balanceOf(account);
    const options = { headers: { "idempotency-key": "k" } };
    const answer = await account.delete(path({ bucketId: id, eventId: "" }, AFTER), options);
    expect(answer.body).toEqual({ deleted_count: 230 });
    expect((await account.delete(path({ bucketId: id, eventId: "" }, AFTER), options)).body).toEqual({
      deleted_count: 230,
    });
    expect(await balanceOf(account)).toBe(balance);
    expect((await eventsOf(account, id)).map((event) => event.id)).toEqual(kept);
    expect((await bucketOf(account, id)).events).toEqual({ pending: 2, delivered: 0, failed: 0 });
    expectError(await account.get(`/v1/catch/${id}/events/evt_00000000001`), "catch.event_not_found");
  });
});

test("a list with details shows the method and the start of each body in one line", async () => {
  const account = await server.account();
  const { body } = await account.post("/v1/catch/buckets", { target_url: receiver.url });
  const url = `${server.url}/v1/in/${body["id"]}`;
  const send = (method: string, text: string | Uint8Array) => fetch(url, { method, body: text });
  await send("POST", `{\n  "type": "invoice.paid",\n  "note": "${"ü".repeat(200)}"\n}`);
  await send("PUT", "short");
  await send("POST", new Uint8Array([0xff, 0xfe, 0x00]));
  await send("POST", "x".repeat(65_536));
  await send("POST", "x".repeat(65_537));
  const read = async (query: string) =>
    (await account.get(`/v1/catch/${body["id"]}/events${query}`)).body["events"] as Record<string, unknown>[];
  const detailed = await read("?details=true");
  const previews = detailed.map(({ method, preview }) => [method, preview]).toReversed();
  expect(previews[0]).toEqual(["POST", `{ "type": "invoice.paid", "note": "${"ü".repeat(85)}`]);
  expect(previews.slice(1)).toEqual([
    ["PUT", "short"],
    ["POST", null],
    ["POST", "x".repeat(120)],
    ["POST", null],
  ]);
  expect((await read("?details=true&q=short")).map(({ preview }) => preview)).toEqual(["short"]);
  for (const event of await read("")) expect(event).not.toHaveProperty("preview");
});
