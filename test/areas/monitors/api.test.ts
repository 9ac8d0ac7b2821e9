import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BODY_LENGTH_MAX, INTERVAL_MS_MAX, INTERVAL_MS_MIN } from "../../../src/areas/monitors/schema.ts";
import { WALKED_MONITORS_MAX } from "../../../src/areas/monitors/store.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint, type Scenario } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const BODY = { url: "https://site.example.com/health", interval: INTERVAL_MS_MAX };
const WEBHOOK = "https://hooks.example.com/in";
const UNKNOWN = "0190a0a0-0000-7000-8000-000000000000";

function created(name: string, change: object, holds: object, tier = "scale"): Scenario {
  return {
    name,
    account: { tier },
    request: ["POST", "/v1/pulse", { ...BODY, ...change }],
    status: 201,
    holds,
    spent: 1,
  };
}

function refused(name: string, change: object, field: string): Scenario {
  return {
    name,
    request: ["POST", "/v1/pulse", { ...BODY, ...change }],
    status: 400,
    code: "validation_error",
    after: (_, answer) => expect(Object.keys(answer.body["fields"] as object)).toEqual([field]),
  };
}

function notInTier(name: string, tier: string, change: object, names: string): Scenario {
  return {
    name: `${name} in the tier ${tier}`,
    account: { tier },
    request: ["POST", "/v1/pulse", { ...BODY, ...change }],
    status: 403,
    code: "forbidden",
    after: (_, answer) => expect((answer.body["error"] as { message: string }).message).toContain(names),
  };
}

describe("POST /v1/pulse", () => {
  endpoint(() => server, "POST /v1/pulse", [
    {
      name: "only what is required: the rest has its defaults",
      account: { tier: "free" },
      request: ["POST", "/v1/pulse", BODY],
      status: 201,
      spent: 1,
      after: (_, { body: { id, ...rest } }) => {
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
        expect(rest).toMatchObject({
          ...BODY,
          type: "http",
          name: "site.example.com",
          method: "GET",
          headers: null,
          body: null,
          timeout: 10_000,
          consecutive_threshold: 1,
          cooldown_ms: 300_000,
          webhook_url: null,
          email_alert: false,
          notify_recovery: false,
          channels: null,
          depends_on: null,
          flapping: false,
          maintenance: false,
          active: true,
          incident_id: null,
          status: "unknown",
          latency_ms: null,
          last_checked_at: null,
          created_at: TEST_START_MS / 1_000,
          updated_at: TEST_START_MS / 1_000,
        });
      },
    },
    created(
      "everything",
      {
        method: "POST",
        headers: { "X-Probe": "1" },
        body: "x".repeat(BODY_LENGTH_MAX),
        timeout: 30_000,
        interval: 15_000,
        consecutive_threshold: 10,
        cooldown_ms: 3_600_000,
        webhook_url: WEBHOOK,
        notify_recovery: true,
      },
      {
        method: "POST",
        headers: { "X-Probe": "1" },
        timeout: 30_000,
        interval: 15_000,
        consecutive_threshold: 10,
        cooldown_ms: 3_600_000,
        webhook_url: WEBHOOK,
        notify_recovery: true,
      },
    ),
    created(
      "the lowest values",
      { timeout: 1_000, consecutive_threshold: 1, cooldown_ms: 60_000 },
      { timeout: 1_000, consecutive_threshold: 1, cooldown_ms: 60_000 },
    ),
    ...(
      [
        ["free", 300_000],
        ["starter", 60_000],
        ["pro", 30_000],
        ["scale", 15_000],
        ["unlimited", 15_000],
      ] as const
    ).map(
      ([tier, minimum]): Scenario => ({
        name: `the interval of the tier ${tier} is ${minimum} ms at least`,
        account: { tier },
        request: ["POST", "/v1/pulse", { ...BODY, interval: 15_000 }],
        status: 201,
        holds: { interval: minimum },
        spent: tier === "unlimited" ? 0 : 1,
        after: (_, { body }) => {
          const warning = `interval was raised from 15000 to ${minimum} ms, the minimum of the tier ${tier}.`;
          expect(body["warning"]).toBe(minimum === 15_000 ? undefined : warning);
        },
      }),
    ),
    created("webhook_url in the tier starter", { webhook_url: WEBHOOK }, { webhook_url: WEBHOOK }, "starter"),
    created("headers in the tier pro", { headers: { A: "b" } }, { headers: { A: "b" } }, "pro"),
    created("no headers at all in the tier free", { headers: {} }, { headers: null }, "free"),
    created(
      "email_alert that is off in the tier free",
      { email_alert: false },
      { email_alert: false },
      "free",
    ),
    notInTier("webhook_url", "free", { webhook_url: WEBHOOK }, "webhook_url requires the tier starter"),
    notInTier("headers", "free", { headers: { A: "b" } }, "headers requires the tier pro"),
    notInTier("headers", "starter", { headers: { A: "b" } }, "headers requires the tier pro"),
    notInTier("email_alert", "starter", { email_alert: true }, "email_alert requires the tier pro"),
    refused("email_alert without a mail server", { email_alert: true }, "email_alert"),
    refused("no url", { url: undefined }, "url"),
    refused("an invalid url", { url: "site.example.com" }, "url"),
    refused("a private url", { url: "http://192.168.1.1/" }, "url"),
    refused("a private webhook_url", { webhook_url: "http://127.0.0.1/" }, "webhook_url"),
    refused("no interval", { interval: undefined }, "interval"),
    refused("an interval below 15 s", { interval: INTERVAL_MS_MIN - 1 }, "interval"),
    refused("an interval above 300 s", { interval: INTERVAL_MS_MAX + 1 }, "interval"),
    refused("an interval that is no integer", { interval: 15_000.5 }, "interval"),
    refused("an interval that is a text", { interval: "60000" }, "interval"),
    refused("a time-out below 1 s", { timeout: 999 }, "timeout"),
    refused("a time-out above 30 s", { timeout: 30_001 }, "timeout"),
    refused("a threshold of 0", { consecutive_threshold: 0 }, "consecutive_threshold"),
    refused("a threshold of 11", { consecutive_threshold: 11 }, "consecutive_threshold"),
    refused("a cooldown below a minute", { cooldown_ms: 59_999 }, "cooldown_ms"),
    refused("a cooldown above an hour", { cooldown_ms: 3_600_001 }, "cooldown_ms"),
    refused("a method that opens a tunnel", { method: "CONNECT" }, "method"),
    refused("a method in small letters", { method: "put" }, "method"),
    refused("a body that is too long", { body: "x".repeat(BODY_LENGTH_MAX + 1) }, "body"),
    refused("a body that is null", { body: null }, "body"),
    refused("a header with a line break", { headers: { A: "b\r\nC: d" } }, "headers.A"),
    ...["Content-Length", "connection", "Transfer-Encoding", "TE", "Upgrade", "Expect"].map((name) =>
      refused(
        `the header ${name}, which the server sets itself`,
        { headers: { [name]: "1" } },
        `headers.${name}`,
      ),
    ),
    refused("an invalid Host header", { headers: { Host: "https://shop.example.com/" } }, "headers.Host"),
    refused("notify_recovery that is a text", { notify_recovery: "yes" }, "notify_recovery"),
    { name: "no key", as: "nobody", request: ["POST", "/v1/pulse", BODY], status: 401, code: "unauthorized" },
    {
      name: "no credits",
      account: { balance: 0 },
      request: ["POST", "/v1/pulse", BODY],
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "an Idempotency-Key used for another monitor",
      request: ["POST", "/v1/pulse", BODY],
      headers: { "idempotency-key": "once" },
      before: ({ account }) =>
        account.post("/v1/pulse", { ...BODY, timeout: 2_000 }, { headers: { "idempotency-key": "once" } }),
      status: 409,
      code: "conflict",
    },
  ]);
});

describe("PUT /v1/pulse/{monitorId}", () => {
  const put = async (tier: string, change: object, given: object = {}) => {
    const account = await server.account({ tier });
    const { body } = await account.post("/v1/pulse", { ...BODY, ...given });
    return account.put(`/v1/pulse/${body["id"]}`, change);
  };

  test("changes the given fields and keeps the others", async () => {
    const body = { webhook_url: WEBHOOK, headers: { A: "b" }, body: "text", method: "POST", timeout: 2_000 };
    expect((await put("scale", { timeout: 3_000 }, body)).body).toMatchObject({ ...body, timeout: 3_000 });
    expect((await put("scale", {}, body)).body).toMatchObject(body);
    const cleared = { webhook_url: null, headers: null, body: null };
    expect((await put("scale", cleared, body)).body).toMatchObject({ ...cleared, timeout: 2_000 });
  });

  test("raises an interval below the tier's minimum with a warning, and keeps an omitted one", async () => {
    const raised = await put("starter", { interval: 15_000 });
    expect(raised.body).toMatchObject({ interval: 60_000 });
    expect(raised.body["warning"]).toContain("15000 to 60000");
    expect((await put("starter", { timeout: 2_000 })).body["warning"]).toBe(undefined);
  });

  test("rejects features that the tier lacks with 403 and invalid fields with 400, free of charge", async () => {
    const account = await server.account({ tier: "free", balance: 1 });
    const { body } = await account.post("/v1/pulse", BODY);
    const path = `/v1/pulse/${body["id"]}`;
    expectError(await account.put(path, { webhook_url: WEBHOOK }), "forbidden");
    expectError(await account.put(path, { headers: { A: "b" } }), "forbidden");
    expectError(await account.put(path, { email_alert: true }), "forbidden");
    expectError(await account.put(path, { interval: 1 }), "validation_error");
    expectError(await account.put(path, { url: "http://10.0.0.1/" }), "validation_error");
    expectError(await account.put(path, { active: "no" }), "validation_error");
    expectError(await account.put(path, { active: false }), "insufficient_balance");
  });
});

describe("a monitor of another account, an unknown one, and an invalid id", () => {
  for (const [method, suffix] of [
    ["GET", ""],
    ["GET", "/history"],
    ["PUT", ""],
    ["DELETE", ""],
    ["POST", "/check"],
  ] as const) {
    test(`${method} /v1/pulse/{monitorId}${suffix}: 404, which is charged`, async () => {
      const [owner, other] = [await server.account(), await server.account({ balance: 10 })];
      const { body } = await owner.post("/v1/pulse", BODY);
      const ids = [body["id"], UNKNOWN, "x"];
      for (const id of ids) {
        const answer = await other.send(
          method,
          `/v1/pulse/${id}${suffix}`,
          method === "PUT" ? {} : undefined,
        );
        expectError(answer, "not_found");
      }
      expect((await other.get("/v1/meter/balance")).body["balance"]).toBe(10 - ids.length);
    });
  }
});

test("the list has the project's monitors, newest first, in pages, by status", async () => {
  const account = await server.account();
  await (await server.account()).post("/v1/pulse", BODY);
  const ids: string[] = [];
  for (let number = 0; number < 5; number += 1) {
    ids.unshift(String((await account.post("/v1/pulse", BODY)).body["id"]));
  }
  const list = async (query: string) => {
    const { body } = await account.get(`/v1/pulse${query}`);
    const monitors = body["monitors"] as { monitor_id: string }[];
    return {
      ids: monitors.map(({ monitor_id }) => monitor_id),
      cursor: body["cursor"] as string | undefined,
    };
  };
  expect(await list("")).toEqual({ ids, cursor: undefined });
  expect((await list("?status=unknown")).ids).toEqual(ids);
  expect((await list("?status=up")).ids).toEqual([]);
  const first = await list("?limit=3");
  expect(first.ids).toEqual(ids.slice(0, 3));
  expect(await list(`?limit=3&cursor=${first.cursor}`)).toEqual({ ids: ids.slice(3), cursor: undefined });
  const unknown = await list("?limit=3&status=unknown");
  expect((await list(`?limit=3&status=unknown&cursor=${unknown.cursor}`)).ids).toEqual(ids.slice(3));
  for (const query of ["status=lost", "active=no", "active=", "limit=0", "limit=101", "cursor=x"]) {
    expectError(await account.get(`/v1/pulse?${query}`), "validation_error");
  }
});

test("the list filters by active and status; a page scans a limited number of monitors", async () => {
  const account = await server.account({ tier: "unlimited" });
  const ids: string[] = [];
  const make = async () => ids.unshift(String((await account.post("/v1/pulse", BODY)).body["id"]));
  const list = async (query: string) => {
    const { body } = await account.get(`/v1/pulse?${query}`);
    const monitors = body["monitors"] as { monitor_id: string; active: boolean }[];
    return { ids: monitors.map(({ monitor_id }) => monitor_id), cursor: body["cursor"] };
  };
  for (let number = 0; number < 4; number += 1) await make();
  const [newest, second, third, oldest] = ids;
  for (const id of [second, oldest]) await account.put(`/v1/pulse/${id}`, { active: false });
  expect(await list("active=false")).toEqual({ ids: [second, oldest] as string[], cursor: undefined });
  expect(await list("active=true")).toEqual({ ids: [newest, third] as string[], cursor: undefined });
  expect((await list("active=false&status=unknown")).ids).toEqual([second, oldest] as string[]);
  expect((await list("active=false&status=down")).ids).toEqual([]);
  const first = await list("active=false&limit=1");
  expect(first.ids).toEqual([second] as string[]);
  expect(await list(`active=false&limit=1&cursor=${first.cursor}`)).toEqual({
    ids: [oldest] as string[],
    cursor: undefined,
  });
  // The oldest one is the last that a page scans, and then lies beyond it.
  while (ids.length < WALKED_MONITORS_MAX) await Promise.all(Array.from({ length: 4 }, make));
  expect((await list("active=false")).ids).toEqual([second, oldest] as string[]);
  await make();
  const short = await list("active=false");
  expect(short.ids).toEqual([second] as string[]);
  expect((await list(`active=false&cursor=${short.cursor}`)).ids).toEqual([oldest] as string[]);
});

test("requests take tokens from the bucket of monitors, which every response shows", async () => {
  const account = await server.account({ tier: "free" });
  const created = await account.post("/v1/pulse", BODY);
  const shown = (name: string) => created.headers.get(`x-ratelimit-${name}`);
  expect([shown("limit"), shown("remaining")]).toEqual(["15", "14"]);
  expect(Number(shown("reset"))).toBe(TEST_START_MS / 1_000 + 6);
  for (let left = 13; left >= 0; left -= 1) {
    const answer = await account.get("/v1/pulse");
    expect(answer.headers.get("x-ratelimit-remaining")).toBe(String(left));
  }
  const refused = await account.get("/v1/pulse");
  expectError(refused, "rate_limit_exceeded");
  expect(refused.headers.get("retry-after")).toBe("6");
  // The general bucket is a different one.
  expect((await account.get("/v1/meter/balance")).status).toBe(200);
});

test("custom headers are encrypted in the database file", async () => {
  const account = await server.account();
  await account.post("/v1/pulse", { ...BODY, headers: { Authorization: "Bearer not-for-everyone" } });
  for (const name of ["ninefold.db", "ninefold.db-wal"]) {
    const bytes = Buffer.from(await Bun.file(`${server.folder}/${name}`).arrayBuffer());
    expect(bytes.includes("not-for-everyone")).toBe(false);
  }
});
