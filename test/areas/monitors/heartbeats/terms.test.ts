import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { WAIT_MS_MAX, WAIT_MS_MIN } from "../../../../src/areas/monitors/heartbeat-fields.ts";
import { makeHeartbeat, makePingKey } from "../../../support/heartbeats.ts";
import { play, type Scenario } from "../../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
});
afterAll(() => server.stop());

const UNKNOWN = "0190a0a0-0000-7000-8000-000000000000";
const HEARTBEAT = { type: "heartbeat" };

function created(name: string, terms: object, holds: object): Scenario {
  return { name, request: ["POST", "/v1/pulse", { ...HEARTBEAT, ...terms }], status: 201, holds, spent: 1 };
}

function refused(name: string, terms: object, field: string): Scenario {
  return {
    name,
    request: ["POST", "/v1/pulse", { ...HEARTBEAT, ...terms }],
    status: 400,
    code: "validation_error",
    after: (_, answer) => expect(Object.keys(answer.body["fields"] as object)).toEqual([field]),
  };
}

describe("POST /v1/pulse of a heartbeat", () => {
  test.each<Scenario>([
    {
      name: "nothing but its type: the rest has its defaults",
      request: ["POST", "/v1/pulse", HEARTBEAT],
      status: 201,
      spent: 1,
      after: (_, { body: { id, ping_url, ...rest } }) => {
        expect(ping_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/ping\/[0-9a-f]{8}-[0-9a-f]{4}-4/);
        expect(rest).toMatchObject({
          type: "heartbeat",
          url: `heartbeat:${id}`,
          name: "Heartbeat",
          interval: null,
          slug: null,
          period_ms: 86_400_000,
          schedule: null,
          tz: null,
          grace_ms: 3_600_000,
          status: "unknown",
          ping_slug_url: null,
          last_ping_at: null,
          started_at: null,
          overdue: false,
          last_duration_ms: null,
          headers: null,
          body: null,
        });
      },
    },
    created("a name", { name: "Backup" }, { name: "Backup" }),
    created("the least", { period_ms: WAIT_MS_MIN, grace_ms: WAIT_MS_MIN }, { period_ms: 60_000 }),
    created("the most", { period_ms: WAIT_MS_MAX, grace_ms: WAIT_MS_MAX }, { grace_ms: 31_536_000_000 }),
    created("a slug of 64", { slug: "a_-9".repeat(16) }, { slug: "a_-9".repeat(16) }),
    created("a schedule", { schedule: "30 2 * * *" }, { schedule: "30 2 * * *", tz: "UTC", period_ms: null }),
    created("a zone", { schedule: "0 9 * * MON#1", tz: "Europe/Berlin" }, { tz: "Europe/Berlin" }),
    ...["period_ms", "grace_ms"].flatMap((field) => [
      refused(`${field} too short`, { [field]: WAIT_MS_MIN - 1 }, field),
      refused(`${field} too long`, { [field]: WAIT_MS_MAX + 1 }, field),
      refused(`${field} that cannot be read`, { [field]: "1x" }, field),
    ]),
    refused("another type", { type: "udp" }, "type"),
    refused("a slug of 65", { slug: "a".repeat(65) }, "slug"),
    refused("an empty slug", { slug: "" }, "slug"),
    refused("a slug in capitals", { slug: "Nightly" }, "slug"),
    refused("a name of two lines", { name: "a\nb" }, "name"),
    refused("a period and a schedule", { period_ms: 60_000, schedule: "* * * * *" }, "schedule"),
    refused("a schedule of six fields", { schedule: "0 30 2 * * *" }, "schedule"),
    refused("an invalid schedule", { schedule: "61 * * * *" }, "schedule"),
    refused("a schedule that never comes", { schedule: "0 0 30 2 *" }, "schedule"),
    refused("an unknown zone", { schedule: "* * * * *", tz: "Mars/Olympus" }, "tz"),
    refused("a zone without a schedule", { tz: "UTC" }, "tz"),
    refused("a url", { url: "https://example.com" }, "url"),
    refused("an interval", { interval: 60_000 }, "interval"),
    refused("a time-out", { timeout: 5_000 }, "timeout"),
    refused("headers", { headers: {} }, "headers"),
    refused("a body", { body: "a" }, "body"),
    refused("a method", { method: "GET" }, "method"),
    ...["slug", "schedule", "tz"].map((field) => ({
      ...refused(`${field} of an http monitor`, { [field]: "UTC" }, field),
      request: ["POST", "/v1/pulse", { url: "https://x.example", interval: 60_000, [field]: "utc" }] as const,
    })),
    {
      name: "an http monitor that lacks both says so",
      request: ["POST", "/v1/pulse", { type: "http" }],
      status: 400,
      code: "validation_error",
      after: (_, { body }) => expect(Object.keys(body["fields"] as object)).toEqual(["url", "interval"]),
    },
  ])("$status $name", (scenario) => play(server, scenario));

  test("counts towards the monitor limit of its account", async () => {
    const owner = await server.account({ tier: "free" });
    let status = 201;
    for (let number = 0; status === 201 && number < 100; number += 1)
      ({ status } = await owner.post("/v1/pulse", HEARTBEAT));
    expect((await owner.post("/v1/pulse", HEARTBEAT)).body["code"]).toBe("monitor_limit_exceeded");
  });

  test("a slug is unique within its project: the 409 names the monitor that has it", async () => {
    const beat = await makeHeartbeat(server, account, { slug: "taken" });
    const again = await account.post("/v1/pulse", { ...HEARTBEAT, slug: "taken" });
    expect([again.status, again.body["code"], again.body["monitor_id"]]).toEqual([
      409,
      "monitor_slug_taken",
      beat.id,
    ]);
    const other = await makeHeartbeat(server, account, { slug: "free" });
    expect((await account.put(`/v1/pulse/${other.id}`, { slug: "taken" })).status).toBe(409);
    expect((await account.put(`/v1/pulse/${beat.id}`, { slug: "taken" })).status).toBe(200);
    expect((await makeHeartbeat(server, await server.account(), { slug: "taken" })).id).not.toBe(beat.id);
    await account.put(`/v1/pulse/${beat.id}`, { slug: null });
    expect((await account.put(`/v1/pulse/${other.id}`, { slug: "taken" })).body["slug"]).toBe("taken");
  });
});

describe("PUT /v1/pulse/{id} of a heartbeat", () => {
  test("a period replaces a schedule, and a schedule a period", async () => {
    const { id } = await makeHeartbeat(server, account, { schedule: "30 2 * * *", tz: "Europe/Berlin" });
    const put = (change: object) => account.put(`/v1/pulse/${id}`, change);
    expect((await put({ schedule: "0 3 * * *" })).body).toMatchObject({ tz: "Europe/Berlin" });
    expect((await put({ tz: "UTC" })).body).toMatchObject({ schedule: "0 3 * * *", tz: "UTC" });
    const periodic = { period_ms: 60_000, schedule: null, tz: null };
    expect((await put({ period_ms: 60_000 })).body).toMatchObject(periodic);
    expect((await put({ tz: "UTC" })).body["fields"]).toHaveProperty("tz");
    expect((await put({ name: "Nightly" })).body).toMatchObject({ ...periodic, name: "Nightly" });
    expect((await put({ schedule: "0 4 * * *" })).body).toMatchObject({ period_ms: null, tz: "UTC" });
  });

  test("its type cannot be changed, and fields of other types are rejected", async () => {
    const { id } = await makeHeartbeat(server, account);
    const http = await account.post("/v1/pulse", { url: "https://x.example.com/", interval: 300_000 });
    const fields = async (of: unknown, change: object) =>
      Object.keys((await account.put(`/v1/pulse/${of}`, change)).body["fields"] ?? {});
    expect(await fields(id, { type: "http" })).toEqual(["type"]);
    expect(await fields(id, { type: "heartbeat" })).toEqual([]);
    expect(await fields(id, { url: "https://x.example.com/" })).toEqual(["url"]);
    expect(await fields(id, { body: null })).toEqual(["body"]);
    expect(await fields(http.body["id"], { type: "heartbeat" })).toEqual(["type"]);
    expect(await fields(http.body["id"], { slug: null })).toEqual(["slug"]);
    expect(http.body).toMatchObject({ type: "http", interval: 300_000 });
    expect(http.body).not.toHaveProperty("ping_url");
  });
});

describe("ping URLs and keys", () => {
  test("are shown to keys with pulse:write only, and are in no audit entry", async () => {
    const beat = await makeHeartbeat(server, account, { slug: "shown" });
    const base = await makePingKey(account);
    const created = await account.post("/v1/keys", { prefix: "sm", name: "reader", scopes: ["pulse:read"] });
    const reader = server.client(String(created.body["secret"]));
    for (const path of [`/v1/pulse/${beat.id}`, "/v1/pulse?name=none", "/v1/pulse"]) {
      const { text } = await reader.get(path);
      expect(text).not.toContain(beat.path);
      expect(text).not.toContain(base);
    }
    expect((await reader.get(`/v1/pulse/${beat.id}`)).body).toMatchObject({
      slug: "shown",
      ping_url: null,
      ping_slug_url: null,
    });
    expect((await reader.post("/v1/pulse/ping-key")).status).toBe(403);
    expect((await reader.get(`/v1/pulse/${beat.id}/pings`)).status).toBe(200);
    const { body, text } = await account.get("/v1/audit?limit=100");
    expect((body["entries"] as { summary: string }[]).map(({ summary }) => summary)).toContain(
      "Ping key created",
    );
    expect(text).not.toContain(beat.path.slice(6));
    expect(text).not.toContain(base.slice(6));
  });

  test("a ping key is stored sealed, and its response may not be cached", async () => {
    const answer = await account.post("/v1/pulse/ping-key");
    const key = String(answer.body["ping_key"]);
    expect(key).toMatch(/^[0-9A-Za-z]{22}$/);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const rows = server.server.kernel.db.all<{ sealed: Uint8Array }>(
      "SELECT sealed FROM heartbeat_ping_keys",
    )();
    for (const { sealed } of rows) expect(Buffer.from(sealed).toString("latin1")).not.toContain(key);
  });
});

test("a heartbeat cannot be checked manually", async () => {
  const { id } = await makeHeartbeat(server, account);
  const { status, body } = await account.post(`/v1/pulse/${id}/check`);
  expect([status, body["code"]]).toEqual([400, "invalid_request"]);
});

test("the list of pings is empty for an http monitor and 404 for an unknown one", async () => {
  const http = await account.post("/v1/pulse", { url: "https://x.example.com/", interval: 300_000 });
  expect((await account.get(`/v1/pulse/${http.body["id"]}/pings`)).body).toEqual({ pings: [] });
  expect((await account.get(`/v1/pulse/${UNKNOWN}/pings`)).status).toBe(404);
});
