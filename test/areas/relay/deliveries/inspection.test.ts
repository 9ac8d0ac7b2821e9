import { describe, expect, test } from "bun:test";
import { SEARCH_LENGTH_MAX } from "../../../../src/areas/relay/deliveries/schema.ts";
import { STATS_POINTS, STATS_ROWS_MAX } from "../../../../src/areas/relay/deliveries/stats.ts";
import { BULK_IDS_MAX } from "../../../../src/kernel/bulk/bulk.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();

const NOBODYS = "01a1fc2c-30c0-71d9-bf08-0e3cb4a7b202";
const body = async (id: string) => (await stage.account.get(`/v1/relay/${id}/body`)).body;

/** A failed alert, and nothing else that is delivered. */
async function failedAlert(): Promise<void> {
  stage.sink.answersBy(() => 500);
  const monitor = await stage.monitor();
  await stage.server.clock.advance(60_000);
  await stage.account.delete(`/v1/pulse/${monitor}`);
}

describe("GET /v1/relay/{relay_id}/body", () => {
  const request: Scenario["request"] = ["GET", `/v1/relay/${NOBODYS}/body`];
  let id = NOBODYS;
  endpoint(() => stage.server, "GET /v1/relay/{relay_id}/body", [
    {
      name: "a scheduled delivery",
      before: async ({ account }) => {
        stage.account = account;
        id = String((await stage.ask({ delay: "1h" })).body["relay_id"]);
      },
      get request(): Scenario["request"] {
        return ["GET", `/v1/relay/${id}/body`];
      },
      status: 200,
      body: { body: '{"n":1}', size_bytes: 7 },
    },
    { name: "an unknown one", request, status: 404, code: "not_found" },
    {
      name: "no key",
      as: "nobody",
      request,
      status: 401,
      code: "unauthorized",
    },
    {
      name: "a too long id",
      request: ["GET", `/v1/relay/${"x".repeat(65)}/body`],
      status: 400,
      code: "validation_error",
    },
  ]);

  test("is stored while the delivery is failed, and deleted when it is delivered", async () => {
    const [id = ""] = await stage.failed(1, {
      payload: { long: 12345678901234567890n.toString() },
    });
    expect(await body(id)).toMatchObject({
      body: '{"long":"12345678901234567890"}',
    });
    await stage.account.post(`/v1/relay/${id}/resend`);
    await stage.server.clock.advance(0);
    expect(await body(id)).toEqual({ body: null, size_bytes: null });
  });

  test("is base64 unless it is UTF-8, and empty with GET", async () => {
    const bytes = Buffer.from([0xff, 0, 1]).toString("base64");
    const [binary = ""] = await stage.failed(1, {
      payload: undefined,
      body_base64: bytes,
    });
    expect(await body(binary)).toEqual({
      body: null,
      body_base64: bytes,
      size_bytes: 3,
    });
    const [get = ""] = await stage.failed(1, { method: "GET" });
    expect(await body(get)).toEqual({ body: "", size_bytes: 0 });
  });

  test("of a message's delivery is what the endpoint receives, as long as the message is stored", async () => {
    const { body: made } = await stage.account.post("/v1/relay/endpoints", {
      url: stage.sink.url("/hook"),
    });
    await stage.account.post("/v1/relay/messages", {
      event_type: "order.paid",
      payload: { order: 7 },
    });
    await stage.server.clock.advance(0);
    const [received] = stage.sink.take();
    const [id = ""] = await stage.listed(`endpoint_id=${made["endpoint_id"]}`);
    expect(received?.body).toContain('"order":7');
    expect(await body(id)).toMatchObject({ body: received?.body });
    expect(await stage.listed("q=ORDER%22:7")).toEqual([id]);
  });

  test("of a notification to another service is not returned, since it may contain a secret", async () => {
    const channel = {
      name: "on call",
      kind: "slack",
      config: { url: stage.sink.url("/slack") },
    };
    const scheduled = await stage.account.post("/v1/pulse/channels", channel);
    expect(scheduled.status, scheduled.text).toBe(201);
    stage.sink.answersBy(() => 500);
    const watched = {
      url: stage.sink.url("/health"),
      interval: 60_000,
      channels: [scheduled.body["id"]],
    };
    const created = await stage.account.post("/v1/pulse", watched);
    expect(created.status, created.text).toBe(201);
    await stage.server.clock.advance(60_000);
    const [id = ""] = await stage.listed("filter=pulse");
    expect(await body(id)).toEqual({ body: null, size_bytes: null });
    expect(await stage.listed("q=blocks&filter=pulse")).toEqual([]);
    await stage.account.delete(`/v1/pulse/${created.body["id"]}`);
  });
});

describe("GET /v1/relay", () => {
  const refused = (query: string): Scenario => ({
    name: query.slice(0, 40),
    request: ["GET", `/v1/relay?${query}`],
    status: 400,
    code: "validation_error",
  });
  endpoint(() => stage.server, "GET /v1/relay", [
    {
      name: "all filters",
      request: ["GET", "/v1/relay?filter=deliveries&q=x&response_status=4xx&target_url=x"],
      status: 200,
      body: { deliveries: [] },
    },
    {
      name: "the longest search",
      request: ["GET", `/v1/relay?q=${"x".repeat(SEARCH_LENGTH_MAX)}`],
      status: 200,
    },
    refused("q="),
    refused(`q=${"x".repeat(SEARCH_LENGTH_MAX + 1)}`),
    refused("response_status=6xx"),
    refused("response_status=5x"),
    refused(`target_url=${"x".repeat(2049)}`),
    refused("filter=others"),
    refused("q=x&cursor=foreign"),
    {
      name: "no key",
      as: "nobody",
      request: ["GET", "/v1/relay"],
      status: 401,
      code: "unauthorized",
    },
  ]);

  test("finds a text in URL, id and body, in upper or lower case, in pages", async () => {
    const [a = ""] = await stage.failed(1, { payload: { customer: "Globex" } });
    const [b = ""] = await stage.failed(1, {
      target_url: stage.sink.url("/globex"),
    });
    const [c = ""] = await stage.failed(1, {
      payload: { customer: "initech" },
    });
    expect(await stage.listed("q=gLOBEX")).toEqual([b, a]);
    expect(await stage.listed(`q=${c.slice(9)}`)).toEqual([c]);
    expect(await stage.listed("q=globex&status=delivered")).toEqual([]);
    const first = await stage.account.get("/v1/relay?q=globex&limit=1");
    expect(first.body["deliveries"]).toMatchObject([{ relay_id: b }]);
    expect(await stage.listed(`q=globex&limit=1&cursor=${first.body["cursor"]}`)).toEqual([a]);
    expect((await stage.account.get("/v1/relay?q=nothing")).body).toEqual({
      deliveries: [],
    });
  });

  test("is filtered by the status of the response, by URL, and without alerts", async () => {
    await failedAlert();
    const [alert = ""] = await stage.listed("filter=pulse");
    const [bad = ""] = await stage.failed(1);
    const other = stage.sink.url("/other");
    const [otherBad = ""] = await stage.failed(1, { target_url: other });
    const sent = await stage.sent();
    expect(await stage.listed("response_status=4xx")).toEqual([otherBad, bad]);
    expect(await stage.listed("response_status=400&status=failed")).toEqual([otherBad, bad]);
    expect(await stage.listed("response_status=401")).toEqual([]);
    expect(await stage.listed("response_status=2xx")).toEqual([sent]);
    expect(await stage.listed(`target_url=${encodeURIComponent(other)}`)).toEqual([otherBad]);
    expect(await stage.listed("filter=deliveries")).toEqual([sent, otherBad, bad]);
    expect(alert).not.toBe("");
  });
});

describe("GET /v1/relay/stats", () => {
  endpoint(() => stage.server, "GET /v1/relay/stats", [
    {
      name: "nothing",
      request: ["GET", "/v1/relay/stats"],
      status: 200,
      holds: { alerts: 0, oldest_at: null },
    },
    {
      name: "a wrong filter",
      request: ["GET", "/v1/relay/stats?error=x"],
      status: 400,
      code: "validation_error",
    },
    {
      name: "no key",
      as: "nobody",
      request: ["GET", "/v1/relay/stats"],
      status: 401,
      code: "unauthorized",
    },
  ]);

  test("counts by status and over time, with filters", async () => {
    await failedAlert();
    const { clock } = stage.server;
    const since = clock.now();
    await stage.failed(2);
    await clock.advance(60_000);
    await stage.sent();
    await stage.ask({ delay: "1h" });
    const until = clock.now() + 1;
    const { body } = await stage.account.get(
      `/v1/relay/stats?filter=deliveries&since=${since}&until=${until}`,
    );
    expect(body).toMatchObject({
      counts: {
        scheduled: 1,
        delivering: 0,
        delivered: 1,
        failed: 2,
        cancelled: 0,
      },
      oldest_at: since,
    });
    const points = body["points"] as {
      at: number;
      delivered: number;
      failed: number;
    }[];
    expect(points).toHaveLength(STATS_POINTS);
    expect([points[0], points.at(-1)]).toMatchObject([
      { at: since, delivered: 0, failed: 2 },
      { delivered: 1, failed: 0 },
    ]);
    expect(points.slice(1, -1).every(({ delivered, failed }) => delivered + failed === 0)).toBe(true);
    const all = (await stage.account.get("/v1/relay/stats?filter=deliveries")).body;
    expect(all["alerts"]).toBeGreaterThan(0);
    expect(all).toMatchObject({ counts: { failed: 2 } });
    const bad = (await stage.account.get("/v1/relay/stats?response_status=4xx")).body;
    expect(bad).toMatchObject({
      counts: { failed: 2, delivered: 0, scheduled: 0 },
    });
  });

  test("counts the newest 10,000 of a status", async () => {
    const [id = ""] = await stage.failed(1);
    await stage.copy(id, STATS_ROWS_MAX - 1);
    expect((await stage.account.get("/v1/relay/stats")).body).toMatchObject({
      counts: { failed: STATS_ROWS_MAX },
    });
    await stage.copy(id, 1);
    const { body } = await stage.account.get("/v1/relay/stats");
    expect(body).toMatchObject({
      counts: { failed: STATS_ROWS_MAX },
      more: true,
    });
  });
});

describe("POST /v1/relay/resend", () => {
  test("resends the deliveries with the given ids", async () => {
    const [a = "", b = "", c = ""] = await stage.failed(3);
    const sent = await stage.sent();
    stage.sink.take();
    const relay_ids = [c, a.toUpperCase(), a, sent, NOBODYS, "x"];
    const dry = await stage.account.post("/v1/relay/resend", {
      relay_ids,
      dry_run: true,
    });
    expect([dry.status, dry.body]).toEqual([200, { matched: 2 }]);
    const { body } = await stage.account.post("/v1/relay/resend", {
      relay_ids,
    });
    await stage.server.clock.advance(1_000);
    expect(stage.sink.take().map(({ headers }) => headers.get("webhook-id"))).toEqual([a, c]);
    const done = (await stage.account.get(`/v1/relay/resends/${body["resend_id"]}`)).body;
    expect(done).toMatchObject({ status: "done", matched: 2, resent: 2 });
    expect(await stage.listed("status=failed")).toEqual([b]);
  });

  test("of another project's deliveries resends nothing", async () => {
    const [id = ""] = await stage.failed(1);
    const other = await stage.server.account();
    const { body } = await other.post("/v1/relay/resend", { relay_ids: [id] });
    expect(body).toMatchObject({ matched: 0 });
  });

  test("accepts up to 200 ids, without other filters", async () => {
    const of = (count: number): string[] => Array<string>(count).fill(NOBODYS);
    const statusOf = async (body: object) => (await stage.account.post("/v1/relay/resend", body)).status;
    expect(await statusOf({ relay_ids: of(BULK_IDS_MAX) })).toBe(202);
    for (const body of [
      { relay_ids: of(BULK_IDS_MAX + 1) },
      { relay_ids: [] },
      { relay_ids: of(1), since: 0 },
      { relay_ids: of(1), error: "http" },
    ])
      expect(await statusOf(body)).toBe(400);
  });

  test("resends what matches the filters of a list", async () => {
    const other = stage.sink.url("/other");
    const [a = ""] = await stage.failed(1, { target_url: other });
    await stage.failed(1);
    const filters = {
      since: 0,
      target_url: other,
      response_status: "4xx",
      error: "http",
      filter: "deliveries",
    };
    const { body } = await stage.account.post("/v1/relay/resend", filters);
    expect(body).toMatchObject({ matched: 1 });
    await stage.server.clock.advance(0);
    expect(await stage.listed("status=delivered")).toEqual([a]);
    const none = { since: 0, response_status: "5xx", dry_run: true };
    expect((await stage.account.post("/v1/relay/resend", none)).body).toEqual({
      matched: 0,
    });
  });
});
