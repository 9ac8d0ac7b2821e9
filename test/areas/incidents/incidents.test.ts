import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { OPEN_INCIDENTS_MAX } from "../../../src/areas/incidents/incidents.ts";
import { INCIDENT_UPDATES_MAX } from "../../../src/areas/incidents/schema.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
const INCIDENTS = "/v1/pulse/incidents";

let server: TestServer;
let site: WebhookSink;
let owner: Client;
beforeEach(async () => {
  site = new WebhookSink();
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "127.0.0.0/8"],
  });
  owner = await server.account({ tier: "unlimited" });
});
afterEach(async () => {
  await server.stop();
  site.stop();
});

type Shown = Readonly<Record<string, unknown>>;

async function incidents(query = "", client = owner): Promise<Shown[]> {
  const { status, body } = await client.get(INCIDENTS + query);
  expect(status).toBe(200);
  return body["incidents"] as Shown[];
}

/** Creates a monitor with an interval of 15 s whose first check fails. */
async function downMonitor(more: object = {}): Promise<string> {
  site.answers(500);
  const { body } = await owner.post("/v1/pulse", { url: site.url("/shop"), interval: 15_000, ...more });
  await server.clock.advance(5 * SECOND);
  return String(body["id"]);
}

describe("automatic incidents", () => {
  test("open with the check that finds the target down, and are resolved by the one that finds it up", async () => {
    const id = await downMonitor({ name: "Shop" });
    const [open, ...others] = await incidents();
    expect(others).toEqual([]);
    expect(open).toMatchObject({
      kind: "auto",
      title: "Shop is down",
      impact: "outage",
      status: "investigating",
      cause: "the target responded with 500",
      monitor_ids: [id],
      public: false,
      suppressed_by: null,
      acknowledged_at: null,
      acknowledged_by: null,
      resolved_at: null,
      updates_count: 0,
    });
    expect(open?.["id"]).toMatch(/^inc_[0-9a-f]{32}$/);
    const startedAt = Date.parse(String(open?.["started_at"]));
    expect(startedAt).toBeWithin(TEST_START_MS, TEST_START_MS + 5 * SECOND);
    const { body: shown } = await owner.get(`/v1/pulse/${id}`);
    expect(shown).toMatchObject({ status: "down", incident_id: open?.["id"] });
    // Further failures do not open another incident.
    await server.clock.advance(600 * SECOND);
    expect(await incidents()).toEqual([open ?? {}]);
    site.answers(200);
    await server.clock.advance(15 * SECOND);
    const [resolved] = await incidents();
    expect(resolved).toMatchObject({ id: open?.["id"], status: "resolved" });
    const durationMs = Date.parse(String(resolved?.["resolved_at"])) - startedAt;
    expect(durationMs).toBeWithin(595 * SECOND, 620 * SECOND);
    expect((await owner.get(`/v1/pulse/${id}`)).body["incident_id"]).toBeNull();
    // The next outage is another incident.
    site.answers(503);
    await server.clock.advance(15 * SECOND);
    expect((await incidents()).map(({ status }) => status)).toEqual(["investigating", "resolved"]);
    expect((await incidents("?status=open")).map(({ cause }) => cause)).toEqual([
      "the target responded with 503",
    ]);
    expect(await incidents("?status=resolved")).toEqual([resolved ?? {}]);
    expect((await incidents(`?monitor_id=${id.toUpperCase()}`)).length).toBe(2);
    expect((await incidents(`?monitor_id=${id}&status=resolved`)).length).toBe(1);
    expect((await incidents(`?monitor_id=${id}&status=open`)).length).toBe(1);
    expect(await incidents(`?monitor_id=${crypto.randomUUID()}`)).toEqual([]);
  });

  test("failures below the threshold open no incident; a manual check opens and resolves one", async () => {
    site.answers(500);
    const body = { url: site.url(), interval: 300_000, consecutive_threshold: 2 };
    const { body: made } = await owner.post("/v1/pulse", body);
    await server.clock.advance(5 * SECOND);
    expect(await incidents()).toEqual([]);
    const check = `/v1/pulse/${made["id"]}/check`;
    expect((await owner.post(check)).body["incident_id"]).toStartWith("inc_");
    expect((await incidents("?status=open")).length).toBe(1);
    site.answers(200);
    expect((await owner.post(check)).body["incident_id"]).toBeNull();
    expect(await incidents("?status=open")).toEqual([]);
  });

  test("deleting a monitor resolves its incident, which stays in the list", async () => {
    const id = await downMonitor();
    await owner.delete(`/v1/pulse/${id}`);
    expect(await incidents("?status=open")).toEqual([]);
    expect(await incidents(`?monitor_id=${id}`)).toMatchObject([{ status: "resolved", monitor_ids: [id] }]);
  });

  test("stay open across a restart and are resolved after it", async () => {
    await downMonitor();
    await server.restart();
    owner = server.client(owner.key);
    expect((await incidents("?status=open")).length).toBe(1);
    site.answers(200);
    await server.clock.advance(30 * SECOND);
    expect(await incidents("?status=open")).toEqual([]);
  });

  test("are not repeated after an acknowledgement and cannot be resolved manually", async () => {
    const alerts = new WebhookSink();
    await downMonitor({ webhook_url: alerts.url("/hook"), cooldown_ms: 60_000 });
    await server.clock.advance(130 * SECOND);
    expect(alerts.take().length).toBe(3);
    const [open] = await incidents();
    const path = `${INCIDENTS}/${open?.["id"]}`;
    const first = await owner.post(`${path}/acknowledge`);
    expect(first.status).toBe(200);
    expect(first.body["acknowledged_at"]).toBe(new Date(server.clock.now()).toISOString());
    expect(first.body["acknowledged_by"]).toMatch(/^usr_/);
    await server.clock.advance(300 * SECOND);
    expect(alerts.take()).toEqual([]);
    expect((await owner.post(`${path}/acknowledge`)).body).toEqual(first.body);
    expectError(await owner.post(`${path}/updates`, { status: "resolved" }), "conflict");
    expectError(await owner.patch(path, { monitor_ids: [] }), "conflict");
    const posted = await owner.post(`${path}/updates`, { status: "identified", message: "A disk is full." });
    expect(posted.status).toBe(201);
    expect(posted.body).toMatchObject({
      status: "identified",
      updates: [{ status: "identified", message: "A disk is full." }],
    });
    site.answers(200);
    await server.clock.advance(15 * SECOND);
    expectError(await owner.post(`${path}/acknowledge`), "conflict");
    expectError(await owner.post(`${path}/updates`, { status: "monitoring" }), "conflict");
    // The next outage is alerted again.
    site.answers(500);
    await server.clock.advance(15 * SECOND);
    expect(alerts.take().length).toBe(1);
    alerts.stop();
  });
});

describe("manual incidents", () => {
  test("are created, updated, acknowledged and resolved", async () => {
    const created = await owner.post(INCIDENTS, { title: "Payments fail" });
    expect(created.status).toBe(201);
    const at = new Date(TEST_START_MS).toISOString();
    expect(created.body).toEqual({
      id: created.body["id"],
      kind: "manual",
      title: "Payments fail",
      impact: "outage",
      status: "investigating",
      cause: null,
      monitor_ids: [],
      started_at: at,
      acknowledged_at: null,
      acknowledged_by: null,
      snoozed_until: null,
      resolved_at: null,
      public: false,
      suppressed_by: null,
      updates: [],
    });
    const path = `${INCIDENTS}/${created.body["id"]}`;
    const changed = await owner.patch(path, { title: "Payments are slow", public: true });
    expect(changed.body).toEqual({ ...created.body, title: "Payments are slow", public: true });
    const by = await owner.post(`${path}/acknowledge`);
    expect(by.body["acknowledged_at"]).toBe(at);
    await server.clock.advance(60 * SECOND);
    const resolved = await owner.post(`${path}/updates`, {
      status: "resolved",
      message: "Payments work again.",
    });
    expect(resolved.body).toMatchObject({ status: "resolved", resolved_at: "2026-03-10T12:01:00.000Z" });
    expect((await owner.get(path)).body).toMatchObject(resolved.body);
    // A resolved incident can still be corrected.
    expect((await owner.patch(path, { public: false })).body["public"]).toBe(false);
  });

  test("name monitors of their project only", async () => {
    const { body: monitor } = await owner.post("/v1/pulse", { url: site.url(), interval: 300_000 });
    const about = {
      title: "Slow",
      impact: "degraded",
      message: "We are investigating.",
      monitor_ids: [monitor["id"]],
    };
    const { body } = await owner.post(INCIDENTS, about);
    expect(body).toMatchObject({ impact: "degraded", monitor_ids: [monitor["id"]] });
    expect(body["updates"]).toMatchObject([{ status: "investigating", message: "We are investigating." }]);
    const { updates: _, ...summary } = body;
    expect(await incidents(`?monitor_id=${monitor["id"]}`)).toEqual([{ ...summary, updates_count: 1 }]);
    const other = await server.account();
    const { body: foreign } = await other.post("/v1/pulse", { url: site.url(), interval: 300_000 });
    for (const id of [foreign["id"], crypto.randomUUID(), "shop"])
      expectError(await owner.post(INCIDENTS, { title: "x", monitor_ids: [id] }), "validation_error");
  });

  test("change their impact and their monitors; an automatic one keeps its monitor", async () => {
    const ids: unknown[] = [];
    for (const path of ["/first", "/second"])
      ids.push((await owner.post("/v1/pulse", { url: site.url(path), interval: 300_000 })).body["id"]);
    const [first, second] = ids;
    const { body } = await owner.post(INCIDENTS, { title: "Login is slow", monitor_ids: [first] });
    const path = `${INCIDENTS}/${body["id"]}`;
    const changed = await owner.patch(path, { impact: "degraded", monitor_ids: [second] });
    expect(changed.body).toMatchObject({ impact: "degraded", monitor_ids: [second], title: "Login is slow" });
    expect((await owner.get(path)).body).toMatchObject(changed.body);
    expect(await incidents(`?monitor_id=${first}`)).toEqual([]);
    expect(await incidents(`?monitor_id=${second}`)).toMatchObject([{ id: body["id"] }]);
    const foreign = await (await server.account()).post("/v1/pulse", { url: site.url(), interval: 300_000 });
    expectError(await owner.patch(path, { monitor_ids: [foreign.body["id"]] }), "validation_error");
    expectError(await owner.patch(path, { impact: "bad" }), "validation_error");
    // What was read can be written back, also after a monitor was deleted.
    await owner.delete(`/v1/pulse/${second}`);
    expect((await owner.patch(path, { monitor_ids: [first, second] })).body["monitor_ids"]).toEqual([
      first,
      second,
    ]);
  });

  test("values out of range are rejected", async () => {
    const long = (length: number) => "ß".repeat(length);
    expect((await owner.post(INCIDENTS, { title: long(200), message: long(5_000) })).status).toBe(201);
    const ids = Array.from({ length: 101 }, () => crypto.randomUUID());
    for (const body of [
      {},
      { title: "x", message: long(5_001) },
      { title: "x", impact: "bad" },
      { title: "x", public: 1 },
      { title: "x", monitor_ids: ids },
    ])
      expectError(await owner.post(INCIDENTS, body), "validation_error");
    const { body } = await owner.post(INCIDENTS, { title: "x" });
    const path = `${INCIDENTS}/${body["id"]}`;
    for (const update of [{ status: "open" }, {}, { status: "monitoring", message: long(5_001) }])
      expectError(await owner.post(`${path}/updates`, update), "validation_error");
    expectError(await owner.get(`${INCIDENTS}?status=ended`), "validation_error");
  });

  test("have a limit of updates; a resolved one does not count as open", async () => {
    const { body } = await owner.post(INCIDENTS, { title: "Slow" });
    const updates = `${INCIDENTS}/${body["id"]}/updates`;
    const update = { status: "monitoring", message: "No change." };
    for (let number = 0; number < INCIDENT_UPDATES_MAX; number += 1)
      expect((await owner.post(updates, update)).status).toBe(201);
    expectError(await owner.post(updates, update), "incident_update_limit_exceeded");
    const created: unknown[] = [];
    while (created.length < OPEN_INCIDENTS_MAX - 1)
      created.push((await owner.post(INCIDENTS, { title: "x" })).body["id"]);
    expectError(await owner.post(INCIDENTS, { title: "x" }), "incident_limit_exceeded");
    await owner.post(`${INCIDENTS}/${created[0]}/updates`, { status: "resolved" });
    expect((await owner.post(INCIDENTS, { title: "x" })).status).toBe(201);
  });
});

test("incidents are deleted 400 days after their resolution or with their project; open ones stay", async () => {
  const { body: lasting } = await owner.post(INCIDENTS, { title: "Lasts" });
  const { body: over } = await owner.post(INCIDENTS, { title: "Ends" });
  await owner.post(`${INCIDENTS}/${over["id"]}/updates`, { status: "resolved", message: "Done." });
  const { db, writer } = server.server.kernel;
  const older = db.change<[ms: number]>("UPDATE incidents SET resolved_at = resolved_at - ?");
  await writer.submit((tx) => older(tx, 400 * DAY - 3_600 * SECOND));
  await server.clock.advance(3_599 * SECOND);
  expect((await incidents()).length).toBe(2);
  await server.clock.advance(2 * 3_600 * SECOND);
  expect((await incidents()).map(({ id }) => id)).toEqual([lasting["id"]]);
  const { body: project } = await owner.post("/v1/projects", { name: "Short-lived" });
  const body = { prefix: "sm", name: "Ada's key", scopes: ["*"] };
  const { body: key } = await owner.post(`/v1/projects/${project["id"]}/keys`, body);
  const inside = server.client(String(key["secret"]));
  const { body: made } = await inside.post(INCIDENTS, { title: "x", message: "y" });
  const by = await inside.post(`${INCIDENTS}/${made["id"]}/acknowledge`);
  expect(by.body["acknowledged_by"]).toBe("Ada's key");
  await owner.delete(`/v1/projects/${project["id"]}`);
  await server.clock.advance(3_600 * SECOND);
  expect(db.one("SELECT count(*) AS n FROM incidents")()).toEqual({ n: 1 });
  expect(db.one("SELECT count(*) AS n FROM incident_updates")()).toEqual({ n: 0 });
});

test("the audit entry of an update has that update, and not the earlier ones", async () => {
  const { body } = await owner.post(INCIDENTS, { title: "Disk full" });
  const path = `${INCIDENTS}/${body["id"]}`;
  for (const message of ["the first", "the second"])
    await owner.post(`${path}/updates`, { status: "identified", message });
  await owner.patch(path, { title: "Disks full" });
  const { body: audit } = await owner.get("/v1/audit?limit=2");
  const entries = JSON.stringify(audit["entries"]);
  expect(entries).toContain("the second");
  expect(entries).toContain("Disks full");
  expect(entries).not.toContain("the first");
});
