import { expect, test } from "bun:test";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { useTestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const INCIDENTS = "/v1/pulse/incidents";
const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });

type Shown = Readonly<Record<string, unknown>>;

async function created(owner: Client, path: string, body: object): Promise<Shown & { id: string }> {
  const made = await owner.post(path, body);
  expect(made.status, made.text).toBe(201);
  return made.body as Shown & { id: string };
}

const manual = async (owner: Client, more: object = {}) =>
  (await created(owner, "/v1/pulse", { type: "manual", name: "API", ...more })).id;

const stateOf = async (owner: Client, id: string) => {
  const { body } = await owner.get(`/v1/pulse/${id}`);
  const { status, degraded, degraded_reason } = body;
  return { status, degraded, degraded_reason };
};

const UP = { status: "up", degraded: false, degraded_reason: null };
const DOWN = { status: "down", degraded: false, degraded_reason: null };
const DEGRADED = { status: "up", degraded: true, degraded_reason: "incident" };

test("a manual monitor is up, and follows the worst open incident that names it", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const id = await manual(owner);
  const other = await manual(owner, { name: "Shop" });
  expect(await stateOf(owner, id)).toEqual(UP);
  const slow = await created(owner, INCIDENTS, { title: "Slow", impact: "degraded", monitor_ids: [id] });
  expect(await stateOf(owner, id)).toEqual(DEGRADED);
  const outage = await created(owner, INCIDENTS, { title: "Down", monitor_ids: [id] });
  expect(await stateOf(owner, id)).toEqual(DOWN);
  expect(await stateOf(owner, other)).toEqual(UP);
  await owner.patch(`${INCIDENTS}/${outage.id}`, { monitor_ids: [other] });
  expect([await stateOf(owner, id), await stateOf(owner, other)]).toEqual([DEGRADED, DOWN]);
  await owner.patch(`${INCIDENTS}/${slow.id}`, { impact: "outage" });
  expect(await stateOf(owner, id)).toEqual(DOWN);
  await owner.post(`${INCIDENTS}/${slow.id}/updates`, { status: "monitoring" });
  expect(await stateOf(owner, id)).toEqual(DOWN);
  for (const incident of [slow, outage])
    await owner.post(`${INCIDENTS}/${incident.id}/updates`, { status: "resolved" });
  expect([await stateOf(owner, id), await stateOf(owner, other)]).toEqual([UP, UP]);
});

test("its time counts: uptime is the share without an outage, and channels are not notified", async () => {
  const sink = new WebhookSink();
  try {
    const owner = await server.account({ tier: "unlimited" });
    await created(owner, "/v1/pulse/channels", {
      name: "Chat",
      kind: "webhook",
      config: { url: sink.url("/hook") },
      default: true,
    });
    const id = await manual(owner);
    await server.clock.advance(9 * HOUR);
    const incident = await created(owner, INCIDENTS, { title: "Down", monitor_ids: [id] });
    await server.clock.advance(HOUR);
    await owner.post(`${INCIDENTS}/${incident.id}/updates`, { status: "resolved" });
    const { body } = await owner.get(`/v1/pulse/${id}/history`);
    expect(body["uptime"]).toMatchObject({ "24h": 90, "90d": 90 });
    expect(body["outages"]).toMatchObject({ "24h": { count: 1, duration_ms: HOUR } });
    const checks = body["checks"] as Shown[];
    expect(checks.map(({ status, error }) => ({ status, error }))).toEqual([
      { status: "up", error: null },
      { status: "down", error: "an incident is open" },
      { status: "up", error: null },
    ]);
    const { incidents } = (await owner.get(INCIDENTS)).body as { incidents: Shown[] };
    expect(incidents.map(({ kind }) => kind)).toEqual(["manual"]);
    expect(sink.received).toEqual([]);
  } finally {
    sink.stop();
  }
});

test("its outages are the incidents with that impact, those that overlap as one", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const id = await manual(owner);
  const open = async (impact: string) =>
    String((await created(owner, INCIDENTS, { title: "Down", impact, monitor_ids: [id] })).id);
  const resolve = (incident: string) =>
    owner.post(`${INCIDENTS}/${incident}/updates`, { status: "resolved" });
  const first = await open("outage");
  await server.clock.advance(HOUR);
  const second = await open("outage");
  await open("degraded");
  await server.clock.advance(HOUR);
  await resolve(first);
  await server.clock.advance(HOUR);
  await resolve(second);
  await server.clock.advance(HOUR);
  await open("outage");
  await server.clock.advance(HOUR);
  const { outages } = (await owner.get(`/v1/pulse/${id}/history`)).body;
  expect(outages).toMatchObject({ "24h": { count: 2, duration_ms: 4 * HOUR } });
});

test("it counts no time while it is paused, or in maintenance, and has its state after that", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const id = await manual(owner);
  await server.clock.advance(HOUR);
  await owner.put(`/v1/pulse/${id}`, { active: false });
  const first = await created(owner, INCIDENTS, { title: "Down", monitor_ids: [id] });
  await server.clock.advance(HOUR);
  await owner.put(`/v1/pulse/${id}`, { active: true });
  expect(await stateOf(owner, id)).toEqual(DOWN);
  await owner.post(`${INCIDENTS}/${first.id}/updates`, { status: "resolved" });
  const now = (await server.clock.now()) as number;
  const at = (ms: number) => new Date(now + ms).toISOString();
  const window = { title: "Upgrade", starts_at: at(MINUTE), ends_at: at(HOUR), monitor_ids: [id] };
  await created(owner, "/v1/pulse/maintenance", window);
  await server.clock.advance(30 * MINUTE);
  const second = await created(owner, INCIDENTS, { title: "Down", monitor_ids: [id] });
  await server.clock.advance(10 * MINUTE);
  expect(await stateOf(owner, id)).toEqual(DOWN);
  await owner.post(`${INCIDENTS}/${second.id}/updates`, { status: "resolved" });
  await server.clock.advance(HOUR);
  expect(await stateOf(owner, id)).toEqual(UP);
  expect((await owner.get(`/v1/pulse/${id}/history`)).body["uptime"]).toMatchObject({ "24h": 100 });
});

test("it has no target, no interval and no probes, and cannot be checked or pinged", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const { id, ...shown } = await created(owner, "/v1/pulse", { type: "manual", name: "API" });
  expect(shown).toMatchObject({ type: "manual", interval: null, last_checked_at: null, latency_ms: null });
  for (const field of [
    { url: "https://example.com/" },
    { interval: MINUTE },
    { probes: ["local"] },
    { slug: "api" },
  ])
    expectError(
      await owner.post("/v1/pulse", { type: "manual", name: "Other", ...field }),
      "validation_error",
    );
  const checked = await owner.post(`/v1/pulse/${id}/check`);
  expectError(checked, "invalid_request");
  expect(checked.text).toContain("A manual monitor has no target to check: it waits for incidents.");
  expectError(await owner.put(`/v1/pulse/${id}`, { type: "http" }), "validation_error");
  expect((await owner.delete(`/v1/pulse/${id}`)).status).toBe(200);
});

test("it stands on a status page with its state and its bars", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const id = await manual(owner);
  const slug = `manual-${crypto.randomUUID().slice(0, 8)}`;
  await created(owner, "/v1/pulse/pages", {
    slug,
    title: "Acme",
    show_urls: true,
    groups: [{ name: "All", monitor_ids: [id] }],
  });
  const page = async () => {
    await server.clock.advance(MINUTE);
    const { groups, sentence } = (await owner.get(`/status/${slug}.json`)).body as {
      groups: { monitors: Shown[] }[];
      sentence: string;
    };
    const [monitor] = groups.flatMap(({ monitors }) => monitors);
    return { status: monitor?.["status"], url: monitor?.["url"], sentence };
  };
  expect(await page()).toEqual({ status: "up", url: undefined, sentence: "All systems operational" });
  await created(owner, INCIDENTS, { title: "Down", monitor_ids: [id] });
  expect(await page()).toEqual({ status: "down", url: undefined, sentence: "Major outage" });
  await server.clock.advance(DAY);
  const days = ((await owner.get(`/status/${slug}.json`)).body["groups"] as { monitors: Shown[] }[])[0]
    ?.monitors[0]?.["uptime_by_day"] as number[];
  expect(days.at(-1)).toBe(0);
});
