import { afterEach, beforeEach, expect, test } from "bun:test";
import { LEAD_MS } from "../../../src/areas/incidents/timeline.ts";
import type { Client } from "../../support/client.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const INCIDENTS = "/v1/pulse/incidents";
let server: TestServer;
let site: WebhookSink;
let owner: Client;
beforeEach(async () => {
  site = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  owner = await server.account({ tier: "unlimited" });
});
afterEach(async () => {
  await server.stop();
  site.stop();
});

type Shown = Record<"alerts" | "checks" | "monitors" | "status_pages", readonly Record<string, unknown>[]>;

async function read(id: unknown): Promise<Shown> {
  const { status, body } = await owner.get(`${INCIDENTS}/${id}`);
  expect(status).toBe(200);
  return body as unknown as Shown;
}

async function monitorOf(name: string | null, more: object = {}): Promise<string> {
  const terms = { url: site.url("/shop"), interval: MINUTE, ...(name === null ? {} : { name }), ...more };
  const { status, body, text } = await owner.post("/v1/pulse", terms);
  expect(status, text).toBe(201);
  return String(body["id"]);
}

async function channel(name: string, more: object = {}): Promise<void> {
  const config = { url: site.url("/hook") };
  const created = await owner.post("/v1/pulse/channels", { name, kind: "webhook", config, ...more });
  expect(created.status, created.text).toBe(201);
}

test("an automatic incident has the alerts that were sent, and the checks that changed the result", async () => {
  const events = ["monitor.down", "monitor.up", "monitor.acknowledged"];
  await channel("Team chat", { events });
  await channel("Ops", { events: ["monitor.down"] });
  await channel("Reports", { events: ["monitor.degraded"] });
  const id = await monitorOf("Shop", { consecutive_threshold: 2 });
  await server.clock.advance(5 * MINUTE);
  site.answers(503);
  await server.clock.advance(3 * MINUTE);
  const { body } = await owner.get(INCIDENTS);
  const [incident] = body["incidents"] as { id: string; started_at: string }[];
  await owner.post(`${INCIDENTS}/${incident?.id}/acknowledge`);
  site.answers(200);
  await server.clock.advance(2 * MINUTE);
  // Later outages are no part of it.
  site.answers(500);
  await server.clock.advance(40 * MINUTE);
  const { alerts, checks, monitors, status_pages } = await read(incident?.id);
  expect(alerts).toMatchObject([
    { event: "monitor.down", monitor_id: id, channels: ["Ops", "Team chat"], at: incident?.started_at },
    { event: "monitor.acknowledged", monitor_id: id, channels: ["Team chat"] },
    { event: "monitor.up", monitor_id: id, channels: ["Team chat"] },
  ]);
  const down = {
    monitor_id: id,
    status: "down",
    response_status: 503,
    error: "the target responded with 503",
  };
  expect(checks).toMatchObject([
    { monitor_id: id, status: "up", response_status: 200, error: null },
    down,
    { monitor_id: id, status: "up" },
  ]);
  // The first of two failures came before the incident.
  expect(Date.parse(String(checks[1]?.["at"]))).toBe(Date.parse(String(incident?.started_at)) - MINUTE);
  expect(monitors).toEqual([{ id, name: "Shop", state: "down" }]);
  expect(status_pages).toEqual([]);
  expect((await owner.patch(`${INCIDENTS}/${incident?.id}`, { title: "X" })).body).not.toContainKeys([
    "alerts",
    "checks",
    "monitors",
    "status_pages",
  ]);
});

test("a manual incident has the alerts and the checks of its monitors at that time", async () => {
  await channel("Team chat", { events: ["monitor.down", "monitor.up", "monitor.acknowledged"] });
  const [shop, slow, other] = [
    await monitorOf("Shop"),
    await monitorOf("Search", { degraded_ms: 1 }),
    await monitorOf("Other"),
  ];
  await server.clock.advance(MINUTE);
  await server.clock.advance(2 * LEAD_MS);
  site.answers(500);
  await server.clock.advance(MINUTE);
  const body = { title: "Payments fail", monitor_ids: [shop, slow] };
  const { body: made } = await owner.post(INCIDENTS, body);
  await owner.post(`${INCIDENTS}/${made["id"]}/acknowledge`);
  site.answers(200);
  await server.clock.advance(MINUTE);
  await owner.post(`${INCIDENTS}/${made["id"]}/updates`, { status: "resolved" });
  site.answers(500);
  await server.clock.advance(5 * MINUTE);
  const { alerts, checks } = await read(made["id"]);
  const sent = alerts.map(({ event, monitor_id }) => `${event} ${monitor_id}`);
  expect(sent.toSorted()).toEqual(
    [
      `monitor.acknowledged null`,
      ...[shop, slow].flatMap((id) => [`monitor.down ${id}`, `monitor.up ${id}`]),
    ].toSorted(),
  );
  expect(alerts.map(({ at }) => at)).toEqual(alerts.map(({ at }) => at).toSorted());
  const ofShop = checks.filter(({ monitor_id }) => monitor_id === shop);
  expect(ofShop.map(({ status }) => status)).toEqual(["down", "up"]);
  expect(checks.some(({ monitor_id }) => monitor_id === other)).toBe(false);
});

test("names the status pages that show it, or would, with what visitors read there", async () => {
  const [shop, nameless] = [await monitorOf("Shop"), await monitorOf(null)];
  const groups = [{ name: "", monitor_ids: [shop, nameless] }];
  const page = async (slug: string, more: object = {}) => {
    const created = await owner.post("/v1/pulse/pages", { slug, title: slug, groups, ...more });
    expect(created.status, created.text).toBe(201);
  };
  await page("main-page");
  await page("no-incidents", { publish_incidents: "none" });
  await page("hidden-page", { published: false });
  await page("other-page", { groups: [] });
  await page("all-page", { publish_incidents: "all" });
  const body = { title: "Payments fail", impact: "degraded", monitor_ids: [shop, nameless] };
  const { body: made } = await owner.post(INCIDENTS, body);
  const shown = { incident_title: "Payments fail", affected: "Shop, Monitor 2", subscribers: 0 };
  const hidden = await read(made["id"]);
  expect(hidden.status_pages).toEqual([
    { slug: "all-page", title: "all-page", shown: false, ...shown },
    { slug: "main-page", title: "main-page", shown: false, ...shown },
  ]);
  expect(hidden.monitors.map(({ state }) => state)).toEqual(["unknown", "unknown"]);
  await owner.patch(`${INCIDENTS}/${made["id"]}`, { public: true });
  const published = await read(made["id"]);
  expect(published.status_pages.map((one) => one["shown"])).toEqual([true, true]);
  expect(published.monitors.map(({ state }) => state)).toEqual(["degraded", "degraded"]);
  const { body: visible } = await owner.get(`/status/main-page/incidents/${made["id"]}.json`);
  expect(visible["title"]).toBe("Payments fail");
  // An automatic title can contain a host: pages compose it from the name that they show.
  site.answers(500);
  await owner.post(`/v1/pulse/${nameless}/check`);
  const { body: list } = await owner.get(`${INCIDENTS}?monitor_id=${nameless}&status=open`);
  const [, automatic] = (list["incidents"] as { id: string; kind: string }[]).toSorted((incident, next) =>
    next.kind.localeCompare(incident.kind),
  );
  expect((await read(automatic?.id)).status_pages).toEqual([
    {
      slug: "all-page",
      title: "all-page",
      shown: true,
      incident_title: "Monitor 2 is down",
      affected: "Monitor 2",
      subscribers: 0,
    },
  ]);

  // Maintenance comes before incidents, if it is public.
  for (const [monitor, isPublic] of [[shop, true] as const, [nameless, false] as const]) {
    const [starts_at, ends_at] = [TEST_START_MS, TEST_START_MS + 60 * MINUTE].map((at) =>
      new Date(at).toISOString(),
    );
    const window = { title: "Move", monitor_ids: [monitor], starts_at, ends_at, public: isPublic };
    expect((await owner.post("/v1/pulse/maintenance", window)).status).toBe(201);
  }
  expect((await read(made["id"])).monitors.map(({ state }) => state)).toEqual(["maintenance", "down"]);
});
