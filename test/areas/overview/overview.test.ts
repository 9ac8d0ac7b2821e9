import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { INCIDENTS_SHOWN_MAX, WORST_SHOWN_MAX } from "../../../src/areas/monitors/overview-card.ts";
import type { Overview } from "../../../src/client/generated/api.ts";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { entriesOf, switchFlag } from "../audit/support.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Cards of an account that has nothing yet. */
const EMPTY = {
  meter: { balance: 100, monthly_credits: 10_000_000, meters: 0 },
  projects: { total: 1 },
  keys: { total: 0, ending_soon: 0 },
  gate: { total: 0, on: 0 },
  latch: { held: 0, waiting: 0 },
  pulse: { total: 0, up: 0, down: 0, overdue: 0 },
  relay: { scheduled: 0, failed: 0, retrying_since: null },
  catch: { pending: 0, failed: 0, failed_24h: 0, delivered: 0, pending_since: null },
  witness: { receipts: 0, buffered: 0, buffered_since: null },
  at: TEST_START_MS,
  incidents_open: 0,
  recent: [],
};

let server: TestServer;
beforeAll(async () => {
  const args = ["--allow-private-targets", "127.0.0.0/8"];
  server = await startTestServer({ manualClock: true, args });
});
afterAll(() => server.stop());

describe("GET /v1/overview", () => {
  endpoint(() => server, "GET /v1/overview", [
    {
      name: "of an account that has nothing yet",
      status: 200,
      request: ["GET", "/v1/overview"],
      holds: EMPTY,
    },
    {
      name: "with details",
      status: 200,
      request: ["GET", "/v1/overview?details=true"],
      holds: {
        ...EMPTY,
        pulse: { ...EMPTY.pulse, incidents: [], worst: [], channels_failing: [] },
        relay: { ...EMPTY.relay, failing: [] },
        catch: { ...EMPTY.catch, failing: [] },
      },
    },
    {
      name: "details that are no boolean",
      status: 400,
      code: "validation_error",
      request: ["GET", "/v1/overview?details=some"],
    },
    { name: "no key", status: 401, code: "unauthorized", request: ["GET", "/v1/overview"], as: "nobody" },
  ]);

  test("counts the objects of each area", async () => {
    const account = await server.account({ balance: 1_000 });
    const nobody = "http://127.0.0.1:9/";
    await account.post("/v1/meter/one/refill", { amount: 1 });
    await account.post("/v1/projects", { name: "Shop" });
    const soon = new Date(server.clock.now() + 7 * DAY_MS).toISOString();
    const late = new Date(server.clock.now() + 8 * DAY_MS).toISOString();
    for (const expires_at of [null, soon, late]) {
      await account.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"], expires_at });
    }
    await switchFlag(account, "one", true);
    await switchFlag(account, "two", false);
    await account.post("/v1/latch/job/acquire", { ttl: 900_000 });
    const waiting = account.post("/v1/latch/job/acquire", { timeout: 900_000 });
    const monitor = await account.post("/v1/pulse", { url: nobody, interval: 300_000 });
    await account.post(`/v1/pulse/${monitor.body.id}/check`);
    const delivery = { target_url: nobody, method: "POST", payload: {}, headers: {} };
    await account.post("/v1/relay", { ...delivery, delay: "1d" });
    await account.post("/v1/relay", { ...delivery, delay: "1s" });
    const bucket = await account.post("/v1/catch/buckets", { target_url: nobody });
    await account.post(`/v1/catch/${bucket.body.id}`, { hello: "there" });
    await account.post("/v1/witness/sys/init");
    await account.post("/v1/witness/log", { log: { event: "x" } });
    await server.clock.advance(120_000);
    const { body } = await account.get("/v1/overview");
    expect(body).toMatchObject({
      meter: { meters: 1 },
      projects: { total: 2 },
      keys: { total: 3, ending_soon: 1 },
      gate: { total: 2, on: 1 },
      latch: { held: 1, waiting: 1 },
      pulse: { total: 1, up: 0, down: 1, overdue: 0 },
      relay: { scheduled: 1, failed: 1 },
      catch: { pending: 1, failed: 0, delivered: 0 },
      witness: { receipts: 1, buffered: 0 },
      at: server.clock.now(),
      incidents_open: 1,
    });
    expect(body.recent).toEqual((await entriesOf(account, "?limit=10")) as never);
    await account.get("/v1/latch/job");
    const { locks } = (await account.get("/v1/latch")).body as { locks: { fencing_token: number }[] };
    const { fencing_token } = locks[0] ?? { fencing_token: 0 };
    await account.post("/v1/latch/job/force-release", { fencing_token });
    expect((await waiting).status).toBe(200);
  });

  test("details name what needs attention, the worst first, of the caller's project only", async () => {
    const account = await server.account({ tier: "pro" });
    const ids: string[] = [];
    for (const [name, port] of [
      ["Shop", new URL(server.url).port],
      ["Backend", 9],
    ]) {
      const url = `http://127.0.0.1:${port}/healthz`;
      ids.push(String((await account.post("/v1/pulse", { name, url, interval: 60_000 })).body["id"]));
    }
    const channel = { name: "Team", kind: "slack", config: { url: "http://127.0.0.1:9/hook" } };
    const created = await account.post("/v1/pulse/channels", channel);
    await account.post(`/v1/pulse/channels/${created.body["id"]}/test`);
    const endpoint = await account.post("/v1/relay/endpoints", {
      name: "ERP",
      url: "http://127.0.0.1:9/erp",
      retry_schedule: [],
    });
    const endpoint_id = String(endpoint.body["endpoint_id"]);
    for (let sent = 0; sent < 2; sent += 1) await account.post(`/v1/relay/endpoints/${endpoint_id}/test`);
    const plain = { method: "POST", payload: {}, delay: "0s", retry_schedule: [] };
    await account.post("/v1/relay", { ...plain, target_url: "http://127.0.0.1:9/plain" });
    const buckets: string[] = [];
    for (const name of ["Stripe", "GitHub"]) {
      const bucket = await account.post("/v1/catch/buckets", {
        name,
        target_url: server.url,
        provider: "github",
        signing_secret: "a secret of some length",
      });
      buckets.push(String(bucket.body["id"]));
    }
    for (const id of [buckets[0], buckets[1], buckets[1]])
      await account.post(`/v1/catch/${id}`, { no: "signature" });
    await server.clock.advance(2 * 60 * 60 * 1000);
    const opened = {
      title: "Card payments fail",
      impact: "degraded",
      message: "Looking into it.",
      public: true,
    };
    const incident = await account.post("/v1/pulse/incidents", { ...opened, monitor_ids: [ids[0]] });
    const since = new Date(server.clock.now()).toISOString();
    const {
      pulse,
      relay,
      catch: inbox,
    } = (await account.get("/v1/overview?details=true")).body as unknown as Overview;
    expect(pulse?.incidents).toMatchObject([
      { id: incident.body["id"], title: opened.title, monitor_type: null, public: true, updated_at: since },
      {
        title: "Backend is down",
        monitor_type: "http",
        cause: expect.any(String),
        public: false,
        updated_at: null,
      },
    ]);
    expect(pulse?.worst?.map(({ name, status, uptime }) => [name, status, uptime])).toEqual([
      ["Backend", "down", 0],
      ["Shop", "up", 100],
    ]);
    const hours = pulse?.worst?.[0]?.hours ?? [];
    expect(hours).toHaveLength(24);
    // Of the hour before the current one, in which there may be no check yet.
    expect(hours.at(-2)).toBe(0);
    expect(hours[0]).toBeNull();
    const { monitors } = (await account.get("/v1/pulse?details=true")).body as {
      monitors: { name: string; uptime: number; hours: unknown[] }[];
    };
    const listed = monitors.map(({ name, uptime, hours: bars }) => [name, uptime, bars]);
    expect<unknown>(listed.sort()).toEqual(
      pulse?.worst?.map((one) => [one.name, one.uptime, one.hours]) ?? [],
    );
    const [bare] = (await account.get("/v1/pulse")).body["monitors"] as object[];
    expect(bare).not.toHaveProperty("hours");
    expect(pulse?.channels_failing).toMatchObject([{ id: created.body["id"], name: "Team" }]);
    expect(relay?.failing).toContainEqual({
      endpoint_id: null,
      name: null,
      target_url: "http://127.0.0.1:9/plain",
      failed: 1,
      since: expect.any(String),
      response_status: null,
      error: expect.any(String),
    });
    expect(relay?.failing?.[0]).toMatchObject({ endpoint_id, name: "ERP", failed: 2 });
    expect(inbox?.failing).toEqual([
      { bucket_id: String(buckets[1]), name: "GitHub", failed: 2 },
      { bucket_id: String(buckets[0]), name: "Stripe", failed: 1 },
    ]);
    expect((await account.get("/v1/overview")).body["pulse"]).toEqual({
      total: 2,
      up: 1,
      down: 1,
      overdue: 0,
    });
    const project = await account.post("/v1/projects", { name: "Empty" });
    const terms = { prefix: "sm", name: "k", scopes: ["pulse:read"] };
    const key = await account.post(`/v1/projects/${project.body["id"]}/keys`, terms);
    const other = await server.client(String(key.body["secret"])).get("/v1/overview?details=true");
    expect(other.body).toMatchObject({ pulse: { incidents: [], worst: [], channels_failing: [] } });
    expect(other.body).not.toHaveProperty("relay");
  });

  test("details end after the newest incidents and the worst monitors", async () => {
    const account = await server.account({ tier: "pro", balance: 1_000 });
    for (let at = 0; at <= WORST_SHOWN_MAX; at += 1)
      await account.post("/v1/pulse", { url: "http://127.0.0.1:9/", interval: 300_000, name: `m${at}` });
    const shown = async () => {
      const { body } = await account.get("/v1/overview?details=true");
      const { pulse, incidents_open } = body as unknown as Overview;
      return [pulse?.incidents?.length, incidents_open, pulse?.worst?.length];
    };
    for (let at = 0; at < INCIDENTS_SHOWN_MAX; at += 1)
      await account.post("/v1/pulse/incidents", { title: `Incident ${at}` });
    expect(await shown()).toEqual([INCIDENTS_SHOWN_MAX, INCIDENTS_SHOWN_MAX, WORST_SHOWN_MAX]);
    await account.post("/v1/pulse/incidents", { title: "One more" });
    expect(await shown()).toEqual([INCIDENTS_SHOWN_MAX, INCIDENTS_SHOWN_MAX + 1, WORST_SHOWN_MAX]);
  });

  test("contains only the areas that the key can read, for a key of one project only that project", async () => {
    const account = await server.account();
    await switchFlag(account, "one", true);
    const some = await account.post("/v1/keys", {
      prefix: "sm",
      name: "k",
      scopes: ["gate:read", "meter:*"],
    });
    const { body } = await server.client(String(some.body.secret)).get("/v1/overview");
    expect(Object.keys(body).sort()).toEqual(["at", "gate", "incidents_open", "meter", "recent"]);
    expect(body.recent).toEqual([]);
    const project = await account.post("/v1/projects", { name: "Shop" });
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const key = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
    const bound = await server.client(String(key.body.secret)).get("/v1/overview");
    expect(bound.body).toMatchObject({
      projects: { total: 1 },
      keys: { total: 1, ending_soon: 0 },
      gate: { total: 0, on: 0 },
    });
  });
});
