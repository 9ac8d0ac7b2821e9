import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Client } from "../../../support/client.ts";
import { makeHeartbeat, type TestHeartbeat } from "../../../support/heartbeats.ts";
import type { MailServer } from "../../../support/mail-server.ts";
import { startMailing } from "../../../support/mailing-server.ts";
import type { TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const TERMS = { period_ms: HOUR, grace_ms: 5 * MINUTE };

let server: TestServer;
let sink: WebhookSink;
let mail: MailServer;
let account: Client;
beforeAll(async () => {
  sink = new WebhookSink();
  ({ server, mail } = await startMailing());
});
afterAll(async () => {
  await server.stop();
  await mail.stop();
  sink.stop();
});
beforeEach(async () => {
  account = await server.account({ tier: "pro", email: `a-${crypto.randomUUID()}@example.com` });
  sink.take();
});

const alerts = () => sink.take().map(({ body }) => JSON.parse(body) as Record<string, unknown>);

async function channel(events?: readonly string[]): Promise<void> {
  const config = { url: sink.url("/hook") };
  const { status } = await account.post("/v1/pulse/channels", {
    name: "Hook",
    kind: "webhook",
    config,
    ...(events && { events }),
  });
  expect(status).toBe(201);
}

async function isOverdue(beat: TestHeartbeat): Promise<unknown> {
  const { status, overdue } = await beat.view();
  expect(overdue === true ? status : "unknown").toBe("unknown");
  return overdue;
}

async function counts(): Promise<unknown> {
  return ((await account.get("/v1/overview")).body["pulse"] as Record<string, unknown>) ?? {};
}

describe("a heartbeat that was never pinged", () => {
  test("is overdue after period and grace, counted, listed and alerted once, without an incident", async () => {
    await channel();
    const beat = await makeHeartbeat(server, account, { ...TERMS, name: "Nightly" });
    const expected_at = new Date(server.clock.now() + HOUR).toISOString();
    await server.clock.advance(HOUR + 5 * MINUTE - 1_000);
    expect([await isOverdue(beat), alerts()]).toEqual([false, []]);
    await server.clock.advance(2_000);
    expect(await beat.view()).toMatchObject({ status: "unknown", overdue: true, expected_at });
    const [alert, ...more] = alerts();
    expect(more).toEqual([]);
    expect(alert).toMatchObject({
      event: "monitor.overdue",
      name: "Nightly",
      status: "unknown",
      overdue: true,
    });
    expect(alert?.["text"]).toMatch(
      /^Never pinged since it was created\. Expected \d\d:\d\d UTC, grace 5 min\.$/,
    );
    expect(await counts()).toMatchObject({ total: 1, up: 0, down: 0, overdue: 1 });
    for (const [filter, found] of [
      ["overdue", 1],
      ["unknown", 1],
      ["down", 0],
      ["overdue&active=true", 1],
      ["overdue&active=false", 0],
      ["overdue&name=Nightly", 1],
    ] as const)
      expect((await account.get(`/v1/pulse?status=${filter}`)).body["monitors"]).toHaveLength(found);
    expect((await account.get("/v1/pulse/incidents")).body["incidents"]).toEqual([]);
    await server.clock.advance(48 * HOUR);
    expect(alerts()).toEqual([]);
    const metrics = (await server.operator.get("/metrics")).text;
    expect(metrics).toMatch(/^ninefold_monitor_overdue\{.*name="Nightly".*\} 1$/m);
  });

  test("is no longer overdue after a success, and then watched like the others", async () => {
    await channel();
    const beat = await makeHeartbeat(server, account, TERMS);
    await server.clock.advance(2 * HOUR);
    expect(await isOverdue(beat)).toBe(true);
    await beat.ping();
    expect(await beat.view()).toMatchObject({ status: "up", overdue: false });
    await server.clock.advance(2 * HOUR);
    expect(alerts().map(({ event }) => event)).toEqual(["monitor.overdue", "monitor.down"]);
    expect(await counts()).toMatchObject({ down: 1, overdue: 0 });
  });

  test("stays overdue with a message alone, and is down after a failure", async () => {
    const beat = await makeHeartbeat(server, account, TERMS);
    await beat.ping("/log");
    await server.clock.advance(2 * HOUR);
    expect(await isOverdue(beat)).toBe(true);
    await beat.ping("/fail");
    expect(await beat.view()).toMatchObject({ status: "down", overdue: false });
  });

  test("waits anew when it is resumed", async () => {
    await channel();
    const beat = await makeHeartbeat(server, account, TERMS);
    await server.clock.advance(2 * HOUR);
    await account.put(`/v1/pulse/${beat.id}`, { active: false });
    expect(await isOverdue(beat)).toBe(false);
    await server.clock.advance(2 * HOUR);
    await account.put(`/v1/pulse/${beat.id}`, { active: true });
    expect(await beat.view()).toMatchObject({
      overdue: false,
      expected_at: new Date(server.clock.now() + HOUR).toISOString(),
    });
    await server.clock.advance(HOUR + 6 * MINUTE);
    expect(await isOverdue(beat)).toBe(true);
    expect(alerts()).toHaveLength(2);
  });

  test("with a longer period is overdue later, and with the same one is not alerted again", async () => {
    await channel();
    const beat = await makeHeartbeat(server, account, TERMS);
    await server.clock.advance(2 * HOUR);
    await account.put(`/v1/pulse/${beat.id}`, { grace_ms: 6 * MINUTE });
    await server.clock.advance(HOUR);
    expect([await isOverdue(beat), alerts().length]).toEqual([true, 1]);
    await account.put(`/v1/pulse/${beat.id}`, { period_ms: 4 * HOUR });
    expect(await isOverdue(beat)).toBe(false);
    await server.clock.advance(2 * HOUR);
    expect([await isOverdue(beat), alerts().length]).toEqual([true, 1]);
  });

  test("alerts its own webhook and the e-mail address of its account, and no channel that does not want it", async () => {
    await channel(["monitor.down"]);
    const webhook_url = sink.url("/own");
    const beat = await makeHeartbeat(server, account, {
      ...TERMS,
      webhook_url,
      email_alert: true,
      name: "Job",
    });
    await server.clock.advance(2 * HOUR);
    const [own, ...more] = sink.take();
    expect([own?.path, more]).toEqual(["/own", []]);
    expect(JSON.parse(own?.body ?? "")).toMatchObject({
      event: "monitor.overdue",
      monitor_id: beat.id,
      status: "unknown",
      overdue: true,
    });
    await server.clock.advance(MINUTE);
    expect(mail.received.map(({ raw }) => /^Subject: (.*)$/m.exec(raw)?.[1]?.trim())).toEqual([
      "[OVERDUE] Job",
    ]);
  });

  test("that has a schedule is expected at its first time, and badges and pages show it", async () => {
    const beat = await makeHeartbeat(server, account, {
      schedule: "0 * * * *",
      grace_ms: MINUTE,
      name: "Job",
    });
    const slug = `overdue-${crypto.randomUUID()}`;
    const groups = [{ name: "", monitor_ids: [beat.id] }];
    await account.post("/v1/pulse/pages", { slug, title: "Acme", groups });
    await server.clock.advance(HOUR + 2 * MINUTE);
    const { body } = await account.get(`/status/${slug}.json`);
    expect(body).toMatchObject({ status: "overdue", sentence: "1 of 1 system is overdue" });
    expect((await account.get(`/status/${slug}`)).text).toContain(
      '<span class="state overdue">Overdue</span>',
    );
    const badge = (await account.get(`/status/${slug}/badge/1.json`)).body;
    expect(badge).toMatchObject({ message: "overdue", color: "yellow" });
    expect((await account.get(`/v1/pulse/${beat.id}`)).body["overdue"]).toBe(true);
  });
});

test("heartbeats of a version in which they waited for nothing wait from the upgrade on", async () => {
  const beat = await makeHeartbeat(server, account, TERMS);
  const { db, writer } = server.server.kernel;
  const forget = db.change(
    "UPDATE heartbeat_states SET waits_since = NULL, expected_at = NULL, missed_at = NULL, looked_at = NULL",
  );
  const begin = db.change(
    "INSERT INTO jobs (kind, key, due_at, lane, payload, attempt) VALUES ('monitors.heartbeats-begin', '0', 0, '', '{\"after\":0}', 0)",
  );
  await writer.submit((tx) => {
    forget(tx);
    begin(tx);
  });
  await server.clock.advance(3 * HOUR);
  expect(await isOverdue(beat)).toBe(false);
  await server.restart();
  await server.clock.advance(MINUTE);
  expect((await beat.view())["expected_at"]).not.toBeNull();
  await server.clock.advance(2 * HOUR);
  expect(await isOverdue(beat)).toBe(true);
});
