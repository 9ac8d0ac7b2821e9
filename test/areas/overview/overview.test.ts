import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { entriesOf, switchFlag } from "../audit/support.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

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
      body: {
        meter: { balance: 100, monthly_credits: 10_000_000, meters: 0 },
        projects: { total: 1 },
        keys: { total: 0, ending_soon: 0 },
        gate: { total: 0, on: 0 },
        latch: { held: 0, waiting: 0 },
        pulse: { total: 0, up: 0, down: 0 },
        relay: { scheduled: 0, failed: 0, retrying_since: null },
        catch: { pending: 0, failed: 0, failed_24h: 0, delivered: 0, pending_since: null },
        witness: { receipts: 0, buffered: 0, buffered_since: null },
        incidents_open: 0,
        recent: [],
      },
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
      pulse: { total: 1, up: 0, down: 1 },
      relay: { scheduled: 1, failed: 1 },
      catch: { pending: 1, failed: 0, delivered: 0 },
      witness: { receipts: 1, buffered: 0 },
      incidents_open: 1,
    });
    expect(body.recent).toEqual((await entriesOf(account, "?limit=10")) as never);
    await account.get("/v1/latch/job");
    const { locks } = (await account.get("/v1/latch")).body as { locks: { fencing_token: number }[] };
    const { fencing_token } = locks[0] ?? { fencing_token: 0 };
    await account.post("/v1/latch/job/force-release", { fencing_token });
    expect((await waiting).status).toBe(200);
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
    expect(Object.keys(body).sort()).toEqual(["gate", "incidents_open", "meter", "recent"]);
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
