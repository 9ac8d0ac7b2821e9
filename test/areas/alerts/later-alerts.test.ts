import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import type { TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const CHANNELS = "/v1/pulse/channels";

let server: TestServer;
let site: WebhookSink;
let sink: WebhookSink;
let mail: MailServer;
let owner: Client;
beforeEach(async () => {
  [site, sink] = [new WebhookSink(), new WebhookSink()];
  ({ server, mail } = await startMailing());
  owner = await server.account({ tier: "pro", email: "owner@example.com" });
});
afterEach(async () => {
  await server.stop();
  await mail.stop();
  site.stop();
  sink.stop();
});

async function channel(name: string, more: object = {}): Promise<string> {
  const config = { url: sink.url(`/${name}`) };
  const answer = await owner.post(CHANNELS, { name, kind: "webhook", config, ...more });
  expect(answer.status, answer.text).toBe(201);
  return String(answer.body["id"]);
}

async function monitor(more: object = {}): Promise<string> {
  const body = { url: site.url("/health"), interval: MINUTE, name: "Shop", ...more };
  const answer = await owner.post("/v1/pulse", body);
  expect(answer.status, answer.text).toBe(201);
  await server.clock.advance(5 * SECOND);
  return String(answer.body["id"]);
}

async function acknowledge(): Promise<void> {
  const { incidents } = (await owner.get("/v1/pulse/incidents?status=open")).body as {
    incidents: { id: string }[];
  };
  expect((await owner.post(`/v1/pulse/incidents/${incidents[0]?.id}/acknowledge`)).status).toBe(200);
}

type Body = Record<string, unknown>;

/** The alerts since the last call. */
function received(): string[] {
  return sink
    .take()
    .map(({ path, body }) => ({ path, ...(JSON.parse(body) as Body) }) as Body)
    .map(
      ({ path, event, escalation_step: step }) => `${path} ${event}${step === undefined ? "" : ` ${step}`}`,
    );
}

describe("notify_after_ms", () => {
  test("holds the alert, and nobody is notified of an outage that is shorter", async () => {
    await channel("chat");
    const hook = sink.url("/own").replace("http:", "https:");
    await monitor({
      notify_after_ms: 5 * MINUTE,
      email_alert: true,
      notify_recovery: true,
      webhook_url: hook,
    });
    site.answers(503);
    await server.clock.advance(3 * MINUTE);
    const open = (await owner.get("/v1/pulse/incidents?status=open")).body["incidents"] as object[];
    expect(open).toHaveLength(1);
    site.answers(200);
    await server.clock.advance(10 * MINUTE);
    expect([received(), mail.received.length]).toEqual([[], 0]);

    site.answers(503);
    await server.clock.advance(MINUTE);
    expect(received()).toEqual([]);
    await server.clock.advance(5 * MINUTE);
    const [alert] = sink.take();
    expect(JSON.parse(alert?.body ?? "")).toMatchObject({
      event: "monitor.down",
      status: "down",
      previous_status: "up",
      response_status: 503,
    });
    expect(mail.received.length).toBe(1);
    site.answers(200);
    await server.clock.advance(MINUTE);
    expect(received()).toEqual(["/chat monitor.up"]);
    expect(mail.received.length).toBe(2);
  });

  test("survives a restart, and ends with an acknowledgement", async () => {
    await channel("chat", { events: ["monitor.down", "monitor.up"] });
    await monitor({ notify_after_ms: 10 * MINUTE });
    site.answers(503);
    await server.clock.advance(2 * MINUTE);
    await server.restart();
    owner = server.client(owner.key);
    await server.clock.advance(10 * MINUTE);
    expect(received()).toEqual(["/chat monitor.down"]);
    site.answers(200);
    await server.clock.advance(2 * MINUTE);
    site.answers(503);
    await server.clock.advance(2 * MINUTE);
    received();
    await acknowledge();
    await server.clock.advance(HOUR);
    expect(received()).toEqual([]);
  });

  test("is 0 to a day, and 0 by default", async () => {
    const id = await monitor();
    expect((await owner.get(`/v1/pulse/${id}`)).body).toMatchObject({
      notify_after_ms: 0,
      down_interval: null,
    });
    const set = await owner.put(`/v1/pulse/${id}`, { notify_after_ms: DAY });
    expect(set.body).toMatchObject({ notify_after_ms: DAY });
    for (const notify_after_ms of [-1, DAY + 1, null])
      expectError(await owner.put(`/v1/pulse/${id}`, { notify_after_ms }), "validation_error");
    const beat = { type: "heartbeat", name: "Beat", period_ms: HOUR, notify_after_ms: "10m" };
    expect((await owner.post("/v1/pulse", beat)).body).toMatchObject({ notify_after_ms: 10 * MINUTE });
  });
});

describe("down_interval", () => {
  test("is the interval while the target is down", async () => {
    await monitor({ interval: HOUR, down_interval: MINUTE });
    await server.clock.advance(HOUR);
    site.take();
    site.answers(503);
    await server.clock.advance(HOUR);
    const down = site.take().length;
    await server.clock.advance(HOUR);
    const checks = site.take().length;
    expect(down).toBeGreaterThanOrEqual(1);
    expect(checks).toBeGreaterThanOrEqual(59);
    expect(checks).toBeLessThanOrEqual(61);
    site.answers(200);
    await server.clock.advance(2 * MINUTE);
    site.take();
    await server.clock.advance(3 * HOUR);
    expect(site.take().length).toBeLessThanOrEqual(4);
  });

  test("is 5 s to the interval, and not a field of heartbeats", async () => {
    const id = await monitor();
    for (const down_interval of [4_999, MINUTE + 1, 0])
      expectError(await owner.put(`/v1/pulse/${id}`, { down_interval }), "validation_error");
    for (const down_interval of [5_000, MINUTE, null])
      expect((await owner.put(`/v1/pulse/${id}`, { down_interval })).body).toMatchObject({ down_interval });
    const beat = { type: "heartbeat", name: "Beat", period_ms: HOUR, down_interval: MINUTE };
    expectError(await owner.post("/v1/pulse", beat), "validation_error");
  });
});

describe("escalate", () => {
  test("notifies other channels step by step until the outage is over, and they get the recovery", async () => {
    const boss = await channel("boss", { default: false, events: ["maintenance.started"] });
    const phone = await channel("phone", { default: false });
    const escalate = [
      { after_ms: 5 * MINUTE, channel_ids: [phone] },
      { after_ms: 15 * MINUTE, channel_ids: [boss, phone] },
    ];
    await channel("chat", { escalate });
    await monitor();
    site.answers(503);
    await server.clock.advance(MINUTE);
    expect(received()).toEqual(["/chat monitor.down"]);
    await server.clock.advance(5 * MINUTE);
    expect(received()).toEqual(["/phone monitor.down 1"]);
    await server.restart();
    owner = server.client(owner.key);
    await server.clock.advance(10 * MINUTE);
    expect(received().toSorted()).toEqual(["/boss monitor.down 2", "/phone monitor.down 2"]);
    await server.clock.advance(HOUR);
    expect(received()).toEqual([]);
    site.answers(200);
    await server.clock.advance(MINUTE);
    expect(received().toSorted()).toEqual(["/boss monitor.up", "/chat monitor.up", "/phone monitor.up"]);
    site.answers(503);
    await server.clock.advance(MINUTE);
    site.answers(200);
    await server.clock.advance(MINUTE);
    expect(received()).toEqual(["/chat monitor.down", "/chat monitor.up"]);
  });

  test("ends with an acknowledgement, and for a deleted monitor or channel", async () => {
    const phone = await channel("phone", { default: false });
    const chat = await channel("chat", { escalate: [{ after_ms: MINUTE, channel_ids: [phone] }] });
    const id = await monitor({ interval: HOUR });
    site.answers(503);
    await server.clock.advance(HOUR);
    await server.clock.advance(HOUR);
    received();
    site.answers(200);
    await server.clock.advance(2 * HOUR);
    received();
    site.answers(503);
    await owner.put(`/v1/pulse/${id}`, { down_interval: 15 * MINUTE });
    await owner.patch(`${CHANNELS}/${chat}`, { escalate: [{ after_ms: 3 * HOUR, channel_ids: [phone] }] });
    await server.clock.advance(2 * HOUR);
    expect(received()).toEqual(["/chat monitor.down"]);
    await acknowledge();
    received();
    await server.clock.advance(5 * HOUR);
    expect(received()).toEqual([]);
    await owner.delete(`${CHANNELS}/${phone}`);
    expect((await owner.get(`${CHANNELS}/${chat}`)).body).toMatchObject({ escalate: [] });
  });

  test("has at most 5 ascending steps of channels of the project, which do not lead back", async () => {
    const [a, b, c] = [await channel("a"), await channel("b"), await channel("c")];
    const step = (after_ms: number, ...channel_ids: string[]) => ({ after_ms, channel_ids });
    const patch = (id: string, escalate: unknown) => owner.patch(`${CHANNELS}/${id}`, { escalate });
    const five = [1, 2, 3, 4, 5].map((at) => step(at * MINUTE, b));
    expect((await patch(a, five)).body).toMatchObject({ escalate: five });
    const other = await server.account({ tier: "pro", email: "other@example.com" });
    const config = { url: sink.url("/x") };
    const foreign = await other.post(CHANNELS, { name: "x", kind: "webhook", config });
    for (const escalate of [
      [...five, step(6 * MINUTE, b)],
      [step(MINUTE - 1, b)],
      [step(2 * MINUTE, b), step(2 * MINUTE, c)],
      [step(MINUTE)],
      [step(MINUTE, b, b)],
      [step(MINUTE, "chn_unknown")],
      [step(MINUTE, String(foreign.body["id"]))],
      [step(MINUTE, a)],
      null,
    ])
      expectError(await patch(a, escalate), "validation_error");
    expect((await patch(b, [step(MINUTE, c)])).status).toBe(200);
    expectError(await patch(c, [step(MINUTE, a)]), "validation_error");
    expect((await patch(a, [])).body).toMatchObject({ escalate: [] });
    expect((await patch(c, [step(MINUTE, a)])).status).toBe(200);
  });
});

test("the steps and reminders of many outages hold up nothing else", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 10; count += 1) {
    const kind = count % 2 === 0 ? "discord" : "webhook";
    ids.push(await channel(`step-${count}`, { kind, default: false }));
  }
  await channel("chat", { remind: "1h", escalate: [{ after_ms: 30 * MINUTE, channel_ids: ids }] });
  const pings: string[] = [];
  for (let count = 0; count < 100; count += 1) {
    const beat = { type: "heartbeat", name: `job ${count}`, period_ms: DAY };
    const { body } = await owner.post("/v1/pulse", beat);
    pings.push(`${server.url}${new URL(String(body["ping_url"])).pathname}`);
  }
  const longest = await leastMs(TURN_MS_MAX, async () => {
    for (const ping of pings) await fetch(`${ping}/fail`, { method: "POST" });
    await server.clock.advance(29 * MINUTE);
    sink.take();
    const turn = await longestTurnMs(() => server.clock.advance(35 * MINUTE));
    // The steps of all outages, and their reminders.
    expect(sink.take().length).toBe(pings.length * (ids.length + 1));
    for (const ping of pings) await fetch(ping, { method: "POST" });
    await server.clock.advance(HOUR);
    return turn;
  });
  expect(longest).toBeLessThanOrEqual(TURN_MS_MAX);
});

describe("POST /v1/pulse/incidents/{id}/snooze", () => {
  const open = async () => {
    const { body } = await owner.get("/v1/pulse/incidents?status=open");
    return (body["incidents"] as { id: string }[])[0]?.id ?? "";
  };
  const snooze = (id: string, body: object = {}) => owner.post(`/v1/pulse/incidents/${id}/snooze`, body);

  test("stops reminders and steps for an hour, or as long as it says, and then they go on", async () => {
    const phone = await channel("phone", { default: false });
    const escalate = [{ after_ms: 10 * MINUTE, channel_ids: [phone] }];
    await channel("chat", { escalate });
    await monitor();
    site.answers(503);
    await server.clock.advance(2 * MINUTE);
    expect(received()).toEqual(["/chat monitor.down"]);
    const id = await open();
    const answer = await snooze(id);
    expect(answer.status, answer.text).toBe(200);
    expect(Date.parse(String(answer.body["snoozed_until"])) - server.clock.now()).toBe(HOUR);
    // Again replaces the time.
    const until = Date.parse(String((await snooze(id, { for_ms: "2h" })).body["snoozed_until"]));
    expect(until - server.clock.now()).toBe(2 * HOUR);
    await server.clock.advance(2 * HOUR - MINUTE);
    expect(received()).toEqual([]);
    await server.clock.advance(2 * MINUTE);
    expect(received().toSorted()).toEqual(["/chat monitor.down", "/phone monitor.down 1"]);
    const { body } = await owner.get("/v1/audit?limit=1");
    expect(body["entries"]).toMatchObject([{ action: "monitors.incidents.snooze", target: { id } }]);
  });

  test("is 409 for an incident that is resolved, acknowledged or manual, and 400 for a time that is none", async () => {
    await monitor();
    site.answers(503);
    await server.clock.advance(2 * MINUTE);
    const id = await open();
    for (const for_ms of [MINUTE - 1, 7 * DAY + 1, null, "soon"])
      expectError(await snooze(id, { for_ms }), "validation_error");
    for (const for_ms of [MINUTE, 7 * DAY]) expect((await snooze(id, { for_ms })).status).toBe(200);
    await acknowledge();
    expectError(await snooze(id), "conflict");
    site.answers(200);
    await server.clock.advance(2 * MINUTE);
    expectError(await snooze(id), "conflict");
    const manual = await owner.post("/v1/pulse/incidents", { title: "Payments fail" });
    expectError(await snooze(String(manual.body["id"])), "conflict");
    const other = await server.account({ tier: "pro", email: "other@example.com" });
    expectError(await other.post(`/v1/pulse/incidents/${id}/snooze`, {}), "not_found");
    expectError(await snooze("inc_00000000000000000000000000000000"), "not_found");
  });
});
