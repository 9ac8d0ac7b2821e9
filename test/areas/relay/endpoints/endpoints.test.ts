import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { ENDPOINTS_MAX } from "../../../../src/areas/relay/endpoints/endpoints.ts";
import {
  CHANNELS_MAX,
  CONCURRENCY_MAX,
  DESCRIPTION_LENGTH_MAX,
  DISABLE_HOURS_MAX,
  EVENT_TYPES_MAX,
  PER_SECOND_TO_ENDPOINT_MAX,
} from "../../../../src/areas/relay/endpoints/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const PATH = "/v1/relay/endpoints";
const URL_GIVEN = "https://example.com/hooks";
const NOBODYS = "ep_01a1fc2c30c071d9bf080e3cb4a7b202";
const create = (change: object = {}) => stage.account.post(PATH, { url: URL_GIVEN, ...change });

const SCENARIOS = {
  noKey: { name: "no key", as: "nobody", status: 401, code: "unauthorized" },
  unknown: { name: "an unknown endpoint", status: 404, code: "not_found" },
  noCredits: { name: "no credits", account: { balance: 0 }, status: 402, code: "insufficient_balance" },
} as const satisfies Record<string, Omit<Scenario, "request">>;

describe("POST /v1/relay/endpoints", () => {
  const request: Scenario["request"] = ["POST", PATH, { url: URL_GIVEN }];
  const refused = (name: string, change: object): Scenario => ({
    name,
    status: 400,
    code: "validation_error",
    request: ["POST", PATH, { url: URL_GIVEN, ...change }],
    after: (_, { body }) =>
      expect(Object.keys(body["fields"] as object)[0]?.split(".")[0]).toBe(Object.keys(change)[0] ?? ""),
  });
  endpoint(() => stage.server, "POST /v1/relay/endpoints", [
    {
      name: "only a URL",
      request,
      status: 201,
      holds: {
        url: URL_GIVEN,
        name: null,
        event_types: [],
        channels: [],
        filter: null,
        headers: {},
        description: null,
        format: "envelope",
        timeout_ms: 15_000,
        max_per_second: null,
        retry_schedule: ["5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "24h"],
        max_concurrency: 16,
        disable_after_hours: 120,
        notify_email: true,
        keep_responses: true,
        state: "live",
        health: { breaker: "closed", consecutive_failures: 0, next_probe_at: null },
      },
      after: (_, { body, headers }) => {
        expect(body["endpoint_id"]).toMatch(/^ep_[0-9a-f]{32}$/);
        expect(body["secret"]).toMatch(/^whsec_/);
        expect(headers.get("cache-control")).toBe("no-store");
      },
    },
    { ...SCENARIOS.noKey, request },
    { ...SCENARIOS.noCredits, name: "free", request, status: 201, code: "" },
    {
      name: "a taken name",
      status: 409,
      code: "endpoint_name_taken",
      request: ["POST", PATH, { url: URL_GIVEN, name: "books" }],
      before: ({ account }) => account.post(PATH, { url: URL_GIVEN, name: "books" }),
      after: (_, { body }) => expect(body["endpoint_id"]).toMatch(/^ep_/),
    },
    {
      name: "more than the tier allows",
      status: 403,
      code: "endpoint_limit_exceeded",
      request,
      account: { tier: "free" },
      before: async ({ account }) => {
        for (let n = 0; n < 2; n += 1) await account.post(PATH, { url: URL_GIVEN });
      },
    },
    refused("no http", { url: "ftp://example.com" }),
    refused("an address that is not public", { url: "http://10.0.0.1/" }),
    refused("a URL too long", { url: `https://example.com/${"a".repeat(2_048)}` }),
    refused("an empty name", { name: "" }),
    refused("a name too long", { name: "a".repeat(101) }),
    refused("a type with a star inside", { event_types: ["a.*.b"] }),
    refused("too many types", { event_types: Array(EVENT_TYPES_MAX + 1).fill("a") }),
    refused("too many channels", { channels: Array(CHANNELS_MAX + 1).fill("a") }),
    refused("a filter with an unknown operator", { filter: { a: { $regex: "x" } } }),
    refused("a filter too long", { filter: { a: "x".repeat(4_096) } }),
    refused("a header with a line break", { headers: { a: "b\r\nc: d" } }),
    refused("a description too long", { description: "a".repeat(DESCRIPTION_LENGTH_MAX + 1) }),
    refused("another format", { format: "xml" }),
    refused("too many retries", { retry_schedule: Array(21).fill("1s") }),
    refused("a wait too long", { retry_schedule: ["25h"] }),
    refused("no time", { timeout_ms: 999 }),
    refused("too much time", { timeout_ms: 30_001 }),
    refused("no rate", { max_per_second: 0 }),
    refused("a rate too high", { max_per_second: PER_SECOND_TO_ENDPOINT_MAX + 1 }),
    refused("no places", { max_concurrency: 0 }),
    refused("too many places", { max_concurrency: CONCURRENCY_MAX + 1 }),
    refused("hours below none", { disable_after_hours: -1 }),
    refused("too many hours", { disable_after_hours: DISABLE_HOURS_MAX + 1 }),
    refused("no boolean", { notify_email: 1 }),
    refused("another state", { state: "disabled" }),
    refused("a secret too short", { secret: `whsec_${Buffer.alloc(23).toString("base64")}` }),
  ]);

  test("accepts every limit", async () => {
    const most = {
      name: "a".repeat(100),
      event_types: Array.from({ length: EVENT_TYPES_MAX }, (_, n) => `t${n}.*`),
      channels: Array.from({ length: CHANNELS_MAX }, (_, n) => `c${n}`),
      description: "d".repeat(DESCRIPTION_LENGTH_MAX),
      retry_schedule: Array(20).fill("1h"),
      timeout_ms: 30_000,
      max_per_second: PER_SECOND_TO_ENDPOINT_MAX,
      max_concurrency: CONCURRENCY_MAX,
      disable_after_hours: DISABLE_HOURS_MAX,
      format: "raw",
      filter: { a: { $gt: 1 } },
    };
    const { status, body } = await create(most);
    expect([status, body]).toMatchObject([201, most]);
    const least = { timeout_ms: 1_000, max_per_second: 1, max_concurrency: 1, disable_after_hours: 0 };
    expect((await create({ ...least, retry_schedule: [] })).body).toMatchObject(least);
  });
});

describe("GET /v1/relay/endpoints", () => {
  endpoint(() => stage.server, "GET /v1/relay/endpoints", [
    { name: "none", request: ["GET", PATH], status: 200, body: { endpoints: [] } },
    { ...SCENARIOS.noKey, request: ["GET", PATH] },
    {
      name: "an invalid state",
      request: ["GET", `${PATH}?state=x`],
      status: 400,
      code: "validation_error",
    },
  ]);

  test("is newest first, in pages, by name and state, without header values and secrets", async () => {
    await create({ name: "a", headers: { "X-Token": "hidden" } });
    await create({ name: "b", state: "paused" });
    await create({ name: "c" });
    const names = async (query: string) => {
      const { body, text } = await stage.account.get(`${PATH}?${query}`);
      expect(text).not.toMatch(/hidden|whsec_/);
      return [(body.endpoints as { name: string }[]).map(({ name }) => name), body["cursor"]] as const;
    };
    expect(await names("")).toEqual([["c", "b", "a"], undefined]);
    const [first, cursor] = await names("limit=2");
    expect([first, await names(`limit=2&cursor=${cursor}`)]).toEqual([
      ["c", "b"],
      [["a"], undefined],
    ]);
    expect((await names("name=a"))[0]).toEqual(["a"]);
    expect((await names("state=paused"))[0]).toEqual(["b"]);
    const [{ endpoint_id }] = (await stage.account.get(`${PATH}?name=a`)).body.endpoints as never as [
      { endpoint_id: string },
    ];
    expect(await messaging.read(endpoint_id)).toMatchObject({
      headers: { "X-Token": "[secret]" },
      counts: { waiting: 0, delivered_24h: 0, failed_24h: 0 },
    });
    const { kernel } = stage.server.server;
    expect(
      kernel.db.number("SELECT count(*) AS n FROM relay_endpoints WHERE headers LIKE '%hidden%'")(),
    ).toBe(0);
  });
});

/** An Idempotency-Key that was used for another request. */
const usedKey = (method: string, path: string): Scenario => ({
  name: "an Idempotency-Key of another request",
  status: 409,
  code: "conflict",
  request: [method, path, {}],
  headers: { "idempotency-key": "used" },
  before: ({ account }) => account.post(PATH, { url: URL_GIVEN }, { headers: { "idempotency-key": "used" } }),
});

/** An endpoint of a scenario's account, and a request to it. */
function ofOne(method: string, suffix: string, body: object | undefined, make: object = {}) {
  let id = NOBODYS;
  return (rest: Omit<Scenario, "request" | "before">): Scenario => ({
    ...rest,
    before: async ({ account }) => {
      id = String((await account.post(PATH, { url: URL_GIVEN, name: "books", ...make })).body["endpoint_id"]);
    },
    get request(): Scenario["request"] {
      return [method, `${PATH}/${id}${suffix}`, body];
    },
  });
}
const TOO_LONG = { name: "a too long id", status: 400, code: "validation_error" } as const;

describe("one endpoint", () => {
  endpoint(() => stage.server, "GET /v1/relay/endpoints/{endpoint_id}", [
    ofOne("GET", "", undefined)({ name: "one's own", status: 200, holds: { name: "books" } }),
    { ...SCENARIOS.unknown, request: ["GET", `${PATH}/${NOBODYS}`] },
    { ...SCENARIOS.noKey, request: ["GET", `${PATH}/${NOBODYS}`] },
    { ...TOO_LONG, request: ["GET", `${PATH}/${"x".repeat(65)}`] },
  ]);
  endpoint(() => stage.server, "PATCH /v1/relay/endpoints/{endpoint_id}", [
    ofOne("PATCH", "", { description: "d", name: null, headers: { a: "b" } })({
      name: "some fields",
      status: 200,
      holds: { description: "d", name: null, url: URL_GIVEN, headers: { a: "[secret]" } },
    }),
    ofOne("PATCH", "", {})({ name: "nothing", status: 200, holds: { name: "books" } }),
    ofOne("PATCH", "", { filter: [] })({ name: "a wrong field", status: 400, code: "validation_error" }),
    { ...SCENARIOS.unknown, request: ["PATCH", `${PATH}/${NOBODYS}`, { name: "x" }] },
    { ...SCENARIOS.noKey, request: ["PATCH", `${PATH}/${NOBODYS}`, {}] },
    usedKey("PATCH", `${PATH}/${NOBODYS}`),
  ]);
  endpoint(() => stage.server, "DELETE /v1/relay/endpoints/{endpoint_id}", [
    ofOne("DELETE", "", undefined)({ name: "one's own", status: 204 }),
    { ...SCENARIOS.unknown, request: ["DELETE", `${PATH}/${NOBODYS}`] },
    usedKey("DELETE", `${PATH}/${NOBODYS}`),
    { ...SCENARIOS.noKey, request: ["DELETE", `${PATH}/${NOBODYS}`] },
    { ...TOO_LONG, request: ["DELETE", `${PATH}/${"x".repeat(65)}`] },
  ]);
  endpoint(() => stage.server, "POST /v1/relay/endpoints/{endpoint_id}/secret/rotate", [
    ofOne("POST", "/secret/rotate", { grace_hours: 1 })({ name: "one's own", status: 200, spent: 1 }),
    ofOne("POST", "/secret/rotate", { grace_hours: 169 })({
      name: "a too long grace period",
      status: 400,
      code: "validation_error",
    }),
    { ...SCENARIOS.unknown, spent: 1, request: ["POST", `${PATH}/${NOBODYS}/secret/rotate`, {}] },
    usedKey("POST", `${PATH}/${NOBODYS}/secret/rotate`),
    { ...SCENARIOS.noKey, request: ["POST", `${PATH}/${NOBODYS}/secret/rotate`, {}] },
    { ...SCENARIOS.noCredits, request: ["POST", `${PATH}/${NOBODYS}/secret/rotate`, {}] },
  ]);
  endpoint(() => stage.server, "POST /v1/relay/endpoints/{endpoint_id}/test", [
    ofOne(
      "POST",
      "/test",
      {},
      { event_types: ["other"] },
    )({
      name: "regardless of its types",
      status: 201,
      spent: 1,
      after: (_, { body }) => expect(body["message_id"]).toMatch(/^msg_[0-9a-f]{32}$/),
    }),
    ofOne("POST", "/test", { payload: 1 })({ name: "no payload", status: 400, code: "validation_error" }),
    { ...SCENARIOS.unknown, spent: 1, request: ["POST", `${PATH}/${NOBODYS}/test`, {}] },
    { ...SCENARIOS.noKey, request: ["POST", `${PATH}/${NOBODYS}/test`, {}] },
    { ...SCENARIOS.noCredits, request: ["POST", `${PATH}/${NOBODYS}/test`, {}] },
    (() => {
      let id = NOBODYS;
      return {
        name: "a disabled one",
        status: 409,
        code: "conflict",
        spent: 1,
        before: async ({ account }) => {
          const url = stage.sink.url("/gone");
          stage.sink.answersBy(() => 410);
          id = String((await account.post(PATH, { url })).body["endpoint_id"]);
          await account.post(`${PATH}/${id}/test`, {});
          await messaging.settle();
        },
        get request(): Scenario["request"] {
          return ["POST", `${PATH}/${id}/test`, {}];
        },
      } satisfies Scenario;
    })(),
  ]);
});

test("a name is unique until it is released", async () => {
  await create({ name: "books" });
  const { body } = await create({ name: "other" });
  const rename = (name: string | null) => stage.account.patch(`${PATH}/${body["endpoint_id"]}`, { name });
  expectError(await rename("books"), "endpoint_name_taken");
  expect((await rename("other")).status).toBe(200);
  expect((await rename(null)).status).toBe(200);
  expect((await create({ name: "other" })).status).toBe(201);
});

test("a change of URL, headers or format applies to pending deliveries", async () => {
  const id = await messaging.endpoint("/old", { headers: { "X-A": "1" } });
  const sent = await messaging.send({ n: 1 }, { delay: "1m" });
  await messaging.patch(id, { url: stage.sink.url("/new"), headers: { "X-A": "2" }, format: "raw" });
  await stage.server.clock.advance(60_000);
  const [received] = stage.sink.take();
  expect([received?.path, received?.headers.get("x-a"), received?.body]).toEqual(["/new", "2", '{"n":1}']);
  expect((await stage.read(sent[id] ?? ""))["target_url"]).toBe(stage.sink.url("/new"));
});

test("a rotation signs with both secrets, newest first", async () => {
  const secret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
  const id = await messaging.endpoint("/a", { secret });
  const rotated = await stage.account.post(`${PATH}/${id}/secret/rotate`, { grace_hours: 1 });
  const signed = async (): Promise<string[]> => {
    await messaging.send({ n: 1 }, { message_id: `m-${stage.server.clock.now()}` });
    await messaging.settle();
    const [received] = stage.sink.take();
    if (received === undefined) throw new Error("nothing came");
    const { headers, body } = received;
    const text = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
    const by = (key: Buffer) => `v1,${createHmac("sha256", key).update(text).digest("base64")}`;
    const newest = Buffer.from(String(rotated.body["secret"]).slice(6), "base64");
    const names = new Map([
      [by(newest), "new"],
      [by(Buffer.alloc(24, 1)), "old"],
    ]);
    return (headers.get("webhook-signature") ?? "").split(" ").map((one) => names.get(one) ?? "?");
  };
  expect(await signed()).toEqual(["new", "old"]);
  await stage.server.clock.advance(3_600_000);
  expect(await signed()).toEqual(["new"]);
});

test("deliveries of a paused endpoint wait, also over a restart, and are sent in order", async () => {
  const id = await messaging.endpoint("/a", { max_concurrency: 1 });
  await messaging.patch(id, { state: "paused" });
  for (let n = 0; n < 5; n += 1) await messaging.send({ n });
  const sent = await messaging.send({ n: 5 }, { delay: "10s" });
  await stage.server.clock.advance(60_000);
  expect(messaging.takenNumbers()).toEqual([]);
  expect(await stage.read(sent[id] ?? "")).toMatchObject({ status: "scheduled", attempts: 0 });
  expect((await messaging.read(id)).counts).toMatchObject({ waiting: 6 });
  await stage.restart();
  await messaging.patch(id, { state: "live" });
  await messaging.settle();
  expect(messaging.takenNumbers()).toEqual([0, 1, 2, 3, 4, 5]);
  expect((await messaging.read(id)).counts).toEqual({ waiting: 0, delivered_24h: 6, failed_24h: 0 });
});

test("deliveries of a deleted endpoint are cancelled, whether scheduled or parked", async () => {
  const id = await messaging.endpoint("/a", { state: "paused", name: "books" });
  const due = await messaging.send({ n: 1 });
  const later = await messaging.send({ n: 2 }, { delay: "1h" });
  await messaging.settle();
  expect((await stage.account.delete(`${PATH}/${id}`)).status).toBe(204);
  await messaging.settle();
  for (const sent of [due, later])
    expect(await stage.read(sent[id] ?? "")).toMatchObject({ status: "cancelled", endpoint_id: id });
  await stage.server.clock.advance(3_700_000);
  expect(stage.sink.take()).toEqual([]);
  expectError(await stage.account.get(`${PATH}/${id}`), "not_found");
  expect((await create({ name: "books" })).status).toBe(201);
  const rows = stage.server.server.kernel.db.number(
    "SELECT (SELECT count(*) FROM relay_endpoints WHERE state = 4) + (SELECT count(*) FROM relay_parked) AS n",
  );
  await stage.server.clock.advance(16 * 86_400_000);
  expect(rows()).toBe(0);
});

test("everything is deleted with its project", async () => {
  const project = await stage.account.post("/v1/projects", { name: "Shop" });
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  const key = await stage.account.post(`/v1/projects/${project.body.id}/keys`, terms);
  const client = stage.server.client(String(key.body.secret));
  await client.post(PATH, { url: stage.sink.url("/a"), state: "paused" });
  for (let n = 0; n < 3; n += 1) await client.post("/v1/relay/messages", { event_type: "a", payload: {} });
  const { db } = stage.server.server.kernel;
  const { n: ref } = db.one<{ n: number }>("SELECT max(project_ref) AS n FROM relay_endpoints")() ?? { n: 0 };
  const rows = db.number(
    `SELECT (SELECT count(*) FROM relay_endpoints WHERE project_ref = ${ref}) + (SELECT count(*) FROM relay_messages WHERE project_ref = ${ref})
     + (SELECT count(*) FROM relays WHERE project_ref = ${ref}) AS n`,
  );
  const parked = db.number("SELECT count(*) AS n FROM relay_parked");
  expect([rows(), parked()]).toEqual([7, 3]);
  await stage.account.delete(`/v1/projects/${project.body.id}`);
  await stage.server.clock.advance(1_000);
  expect([rows(), parked()]).toEqual([0, 0]);
});

test("a project has at most a thousand endpoints, and a message can be sent to all of them", async () => {
  for (let count = 0; count < ENDPOINTS_MAX; count += 100)
    await Promise.all(Array.from({ length: 100 }, () => create({ state: "paused" })));
  expectError(await create(), "endpoint_limit_exceeded");
  expect(Object.keys(await messaging.send())).toHaveLength(ENDPOINTS_MAX);
}, 60_000);
