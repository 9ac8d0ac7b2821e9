import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AllEvents } from "../../../support/all-events.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

let server: TestServer;
let account: AccountClient;
let site: WebhookSink;
let hooks: WebhookSink;
let channel: AllEvents;
/** Paths with the response 500. */
let broken: Set<string>;
beforeEach(async () => {
  [site, hooks, channel, broken] = [new WebhookSink(), new WebhookSink(), new AllEvents(), new Set()];
  site.answersBy(({ path }) => (broken.has(path) ? 500 : 200));
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
  await channel.open(account);
});
afterEach(async () => {
  await server.stop();
  site.stop();
  hooks.stop();
  channel.stop();
});

async function watch(path: string, change: object = {}): Promise<string> {
  const alerts = { webhook_url: hooks.url(path), notify_recovery: true };
  const settings = { url: site.url(path), interval: 15_000, name: path, ...alerts, ...change };
  const answer = await account.post("/v1/pulse", settings);
  expect(answer.status, answer.text).toBe(201);
  return String(answer.body["id"]);
}

const told = (): string[] => hooks.take().map(({ path, body }) => `${path} ${JSON.parse(body).event}`);
const monitor = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body;

/** The open incident of a monitor. */
async function incidentOf(id: string) {
  const { body } = await account.get(`/v1/pulse/incidents?status=open&monitor_id=${id}`);
  return (body["incidents"] as { id: string; suppressed_by: string | null }[])[0];
}

describe("a monitor whose parent has failed", () => {
  test("goes down and recovers without alerts, and its uptime counts", async () => {
    const parent = await watch("/router");
    const child = await watch("/shop", { depends_on: parent });
    await server.clock.advance(MINUTE);
    broken.add("/router").add("/shop");
    await server.clock.advance(3 * MINUTE);
    expect(told()).toEqual(["/router monitor.down"]);
    expect(await monitor(child)).toMatchObject({ status: "down", depends_on: parent });
    expect(channel.take()).toEqual(["/router monitor.down"]);
    const [of, by] = [await incidentOf(child), await incidentOf(parent)];
    expect([of?.suppressed_by, by?.suppressed_by]).toEqual([by?.id ?? "", null]);
    const { body } = await account.get(`/v1/pulse/${child}/history`);
    expect((body["uptime"] as Record<string, number>)["24h"]).toBeLessThan(100);
    broken.clear();
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/router monitor.up"]);
    expect(channel.take()).toEqual(["/router monitor.up"]);
    expect(await monitor(child)).toMatchObject({ status: "up" });
    // An outage of its own is alerted again.
    broken.add("/shop");
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/shop monitor.down"]);
    expect(channel.take()).toEqual(["/shop monitor.down"]);
  });

  test("triggers an immediate check of the parent", async () => {
    const parent = await watch("/router", { interval: 300_000 });
    await watch("/shop", { depends_on: parent });
    await server.clock.advance(MINUTE);
    site.take();
    broken.add("/router").add("/shop");
    await server.clock.advance(15 * SECOND);
    expect(site.take().filter(({ path }) => path === "/router").length).toBe(1);
    expect(told()).toEqual(["/router monitor.down"]);
  });

  test("sends no alert during the parent's check, and alerts if only the child stays down", async () => {
    const parent = await watch("/router", { interval: 60_000, consecutive_threshold: 3 });
    const child = await watch("/shop", { depends_on: parent });
    await server.clock.advance(2 * MINUTE);
    broken.add("/router").add("/shop");
    await server.clock.advance(15 * SECOND);
    expect(await monitor(child)).toMatchObject({ status: "down" });
    expect((await incidentOf(child))?.suppressed_by).toBe(parent);
    expect([...told(), ...channel.take()]).toEqual([]);
    broken.delete("/router");
    await server.clock.advance(15 * SECOND);
    expect([...told(), ...channel.take()]).toEqual(["/shop monitor.down", "/shop monitor.down"]);
    expect((await incidentOf(child))?.suppressed_by).toBeNull();
    broken.clear();
    await server.clock.advance(15 * SECOND);
    expect([...told(), ...channel.take()]).toEqual(["/shop monitor.up", "/shop monitor.up"]);
  });

  test("completes a check although its dependencies change meanwhile", async () => {
    const other = await watch("/other", { interval: 300_000 });
    const one = await watch("/one", { depends_on: other });
    await server.clock.advance(MINUTE);
    site.take();
    const depends = async (id: string, depends_on: string | null) =>
      expect((await account.put(`/v1/pulse/${id}`, { depends_on })).status).toBe(200);
    const turns = [
      async () => {},
      // The other monitor is being checked for the first one, and now depends on it.
      () => depends(one, null).then(() => depends(other, one)),
      // The first monitor is being checked for the other one, and depends on it again.
      () => depends(other, null).then(() => depends(one, other)),
    ];
    site.answersBy(async () => {
      await turns.shift()?.();
      return new Response(null, { status: 500 });
    });
    await server.clock.advance(15 * SECOND);
    expect(site.take().map(({ path }) => path)).toEqual(["/one", "/other", "/one"]);
    // A monitor that was changed during a check is checked again.
    await server.clock.advance(15 * SECOND);
    expect([await monitor(one), await monitor(other)]).toMatchObject([
      { status: "down" },
      { status: "down" },
    ]);
  });

  test("reports recovery if its outage was reported", async () => {
    const parent = await watch("/router");
    await watch("/shop", { depends_on: parent, cooldown_ms: 60_000 });
    await server.clock.advance(MINUTE);
    broken.add("/shop");
    await server.clock.advance(20 * SECOND);
    expect(told()).toEqual(["/shop monitor.down"]);
    broken.add("/router");
    await server.clock.advance(3 * MINUTE);
    expect(told()).toEqual(["/router monitor.down"]);
    broken.clear();
    await server.clock.advance(MINUTE);
    expect(told().sort()).toEqual(["/router monitor.up", "/shop monitor.up"]);
  });

  test("alerts if the parent is paused; a recovered chain of three sends no alert", async () => {
    const top = await watch("/line");
    const middle = await watch("/router", { depends_on: top });
    await watch("/shop", { depends_on: middle });
    await server.clock.advance(MINUTE);
    broken.add("/line").add("/router").add("/shop");
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/line monitor.down"]);
    broken.clear();
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/line monitor.up"]);
    broken.add("/router");
    await server.clock.advance(MINUTE);
    await account.put(`/v1/pulse/${middle}`, { active: false });
    broken.add("/shop");
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/router monitor.down", "/shop monitor.down"]);
  });

  test("sends no alert after a restart", async () => {
    const parent = await watch("/router");
    await watch("/shop", { depends_on: parent });
    await server.clock.advance(MINUTE);
    broken.add("/router").add("/shop");
    await server.clock.advance(MINUTE);
    await server.restart();
    await server.clock.advance(MINUTE);
    broken.clear();
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/router monitor.down", "/router monitor.up"]);
  });
});

describe("depends_on", () => {
  const change = (id: string, depends_on: unknown) => account.put(`/v1/pulse/${id}`, { depends_on });

  test("is set, updated, removed, and cleared when the parent is deleted", async () => {
    const [one, two, three] = [await watch("/1"), await watch("/2"), await watch("/3")];
    expect((await change(two, one)).body).toMatchObject({ depends_on: one });
    expect((await change(two, three.toUpperCase())).body).toMatchObject({ depends_on: three });
    expect((await account.put(`/v1/pulse/${two}`, { interval: 30_000 })).body).toMatchObject({
      depends_on: three,
    });
    expect((await change(two, null)).body).toMatchObject({ depends_on: null });
    await change(two, one);
    await account.delete(`/v1/pulse/${one}`);
    expect(await monitor(two)).toMatchObject({ depends_on: null });
    const { body } = await account.get("/v1/audit?limit=100");
    const entries = (body["entries"] as { action: string; after: Record<string, unknown> }[]).filter(
      ({ action, after }) => action === "monitors.update" && "depends_on" in after,
    );
    expect(entries.map(({ after }) => after["depends_on"])).toEqual([one, null, three, one]);
  });

  test("allows chains of at most three monitors and no cycles", async () => {
    const ids = [await watch("/0"), await watch("/1"), await watch("/2"), await watch("/3")] as const;
    for (const parent of ["shop", crypto.randomUUID(), 7, ids[0]])
      expectError(await change(ids[0], parent), "validation_error");
    expect((await change(ids[1], ids[0])).status).toBe(200);
    expectError(await change(ids[0], ids[1]), "validation_error");
    expect((await change(ids[2], ids[1])).status).toBe(200);
    expectError(await change(ids[0], ids[2]), "validation_error");
    // From above and from below.
    expectError(await change(ids[3], ids[2]), "validation_error");
    expectError(await change(ids[0], ids[3]), "validation_error");
    const settings = { url: site.url(), interval: 15_000, depends_on: ids[2] };
    expectError(await account.post("/v1/pulse", settings), "validation_error");
    expect((await change(ids[3], ids[1])).status).toBe(200);
    const stranger = await server.account();
    expectError(await stranger.post("/v1/pulse", { ...settings, depends_on: ids[0] }), "validation_error");
  });
});
