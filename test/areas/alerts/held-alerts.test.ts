import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { HELD_ALERTS_MAX } from "../../../src/areas/alerts/held-alerts.ts";
import { incidentStore } from "../../../src/areas/incidents/store.ts";
import { expectError } from "../../support/errors.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import { processorMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { AccountClient, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const CHANNELS = "/v1/pulse/channels";
/** The tests begin at 12:00 UTC, on a day of winter time. */
const QUIET = { from: "13:00", to: "15:00", time_zone: "UTC" };

let server: TestServer;
let sink: WebhookSink;
let mail: MailServer;
let owner: AccountClient;
let sites: WebhookSink[];
beforeEach(async () => {
  sink = new WebhookSink();
  sites = [];
  ({ server, mail } = await startMailing(["--public-url", "https://ninefold.example"]));
  owner = await server.account({ tier: "pro", email: "owner@example.com" });
});
afterEach(async () => {
  await server.stop();
  await mail.stop();
  for (const each of [sink, ...sites]) each.stop();
});

async function channel(name: string, more: object = {}): Promise<string> {
  const config = { url: sink.url(`/${name}`) };
  const answer = await owner.post(CHANNELS, { name, kind: "webhook", config, ...more });
  expect(answer.status, answer.text).toBe(201);
  return String(answer.body["id"]);
}

interface Watched {
  readonly id: string;
  /** The status with which the target responds from now on. */
  answers(status: number): void;
}

/** A monitor with a target of its own, checked every minute. */
async function monitor(name: string, more: object = {}): Promise<Watched> {
  const site = new WebhookSink();
  sites.push(site);
  const body = { url: site.url("/health"), interval: MINUTE, name, ...more };
  const answer = await owner.post("/v1/pulse", body);
  expect(answer.status, answer.text).toBe(201);
  await server.clock.advance(5 * SECOND);
  return { id: String(answer.body["id"]), answers: (status) => site.answers(status) };
}

type Body = Record<string, unknown>;
interface Group extends Body {
  readonly alerts: readonly Body[];
}

/** Lets the clock show a time of the first day. */
async function until(hours: number, minutes = 0): Promise<void> {
  const shown = new Date(server.clock.now());
  const passed = (shown.getUTCHours() * 60 + shown.getUTCMinutes()) * MINUTE + shown.getUTCSeconds() * SECOND;
  await server.clock.advance(hours * HOUR + minutes * MINUTE - passed);
}

/** The bodies of webhooks since the last call, by channel. */
function received(): [path: string, body: Body][] {
  return sink.take().map(({ path, body }) => [path.slice(1), JSON.parse(body) as Body]);
}

/** What a body says: its event, or those of its alerts with the names of their monitors. */
function summaryOf({ event, alerts, ...body }: Body): string {
  if (alerts === undefined) return `${event} ${body["name"]}`;
  return (alerts as Body[]).map((alert) => `${alert["event"]} ${alert["name"]}`).join(", ");
}

const summaries = () => received().map(([path, body]) => `${path}: ${summaryOf(body)}`);

describe("quiet hours", () => {
  test("hold everything, and one message at their end says what happened", async () => {
    await channel("hook", { quiet_hours: QUIET });
    await channel("chat", { kind: "slack", quiet_hours: QUIET });
    await channel("loud");
    await channel("mail", { kind: "email", config: { to: ["owner@example.com"] }, quiet_hours: QUIET });
    const [shop, api] = [await monitor("Shop"), await monitor("API")];
    await until(13, 30);
    shop.answers(503);
    await until(13, 40);
    api.answers(500);
    shop.answers(200);
    await until(13, 50);
    expect(received().map(([path, body]) => `${path}: ${summaryOf(body)}`)).toEqual([
      "loud: monitor.down Shop",
      ...["loud: monitor.down API", "loud: monitor.up Shop"],
    ]);
    await server.restart();
    owner = new AccountClient(server.url, owner.key ?? "", owner.userId, "owner@example.com");
    await until(14, 59);
    expect([received(), mail.received.length]).toEqual([[], 0]);
    await until(15, 1);
    const all = new Map(received());
    const group = all.get("hook") as Group;
    expect(group).toMatchObject({
      event: "monitor.group",
      omitted: 0,
      text: "3 alerts in quiet hours, 13:00–15:00 UTC",
    });
    expect(group["timestamp"]).toBe(Date.UTC(2026, 2, 10, 15) / 1_000);
    expect(summaryOf(group).split(", ").toSorted()).toEqual([
      ...["monitor.down API", "monitor.down Shop", "monitor.up Shop"],
    ]);
    expect(group.alerts[0]).toMatchObject({ monitor_id: shop.id, response_status: 503, status: "down" });
    const chat = String(all.get("chat")?.["text"]);
    expect(chat).toStartWith("[GROUP] 2 down, 1 up\n3 alerts in quiet hours, 13:00–15:00 UTC · https://");
    expect(chat).toContain("\n13:30 UTC [DOWN] Shop: the target responded with 503 · since 13:30 UTC\n");
    expect(chat).toContain(" [UP] Shop: responded with 200 in ");
    const [letter] = mail.received;
    expect(mail.received.length).toBe(1);
    expect(letter?.raw).toContain("Subject: [GROUP] 2 down, 1 up");
    // Only the outage that continues can be acknowledged.
    expect(letter?.raw.match(/Acknowledge or snooze: https/g)?.length).toBe(1);
    const { incidents } = (await owner.get("/v1/pulse/incidents?status=open")).body as {
      incidents: { id: string }[];
    };
    const { body: incident } = await owner.get(`/v1/pulse/incidents/${incidents[0]?.id}`);
    const alerts = (incident["alerts"] as Body[]).filter(({ event }) => event === "monitor.down");
    expect(alerts.flatMap((alert) => alert["channels"] as string[]).toSorted()).toEqual([
      ...["chat", "hook", "loud", "mail"],
    ]);
    api.answers(200);
    await until(15, 5);
    expect(summaries().toSorted().slice(1)).toEqual(["hook: monitor.up API", "loud: monitor.up API"]);
  });

  test("are on the timeline of an outage that was over before their end", async () => {
    await channel("night", { quiet_hours: QUIET });
    const shop = await monitor("Shop");
    await until(13, 30);
    shop.answers(500);
    await server.clock.advance(10 * MINUTE);
    shop.answers(200);
    await server.clock.advance(10 * MINUTE);
    await until(15, 1);
    const list = await owner.get(`/v1/pulse/incidents?monitor_id=${shop.id}`);
    const [{ id }] = list.body["incidents"] as [Body];
    const { resolved_at, alerts } = (await owner.get(`/v1/pulse/incidents/${id}`)).body;
    expect(resolved_at).not.toBeNull();
    const ofNight = (alerts as Body[]).filter(({ channels }) => (channels as string[]).includes("night"));
    expect(ofNight.map(({ event }) => event)).toEqual(["monitor.down", "monitor.up"]);
  });

  test("are on the timelines of all outages of a message, also of those that it only counts", async () => {
    await channel("night", { quiet_hours: QUIET });
    await until(13, 30);
    const { db, writer } = server.server.kernel;
    const beats = await Promise.all(
      Array.from({ length: HELD_ALERTS_MAX + 5 }, async (_, number) => {
        const body = { type: "heartbeat", name: `job ${number}`, period_ms: 24 * HOUR };
        return (await owner.post("/v1/pulse", body)).body;
      }),
    );
    for (const { ping_url } of beats)
      await fetch(`${server.url}${new URL(String(ping_url)).pathname}/fail`, { method: "POST" });
    const log = incidentStore(db);
    const incidents = db.all<{ ref: number }>("SELECT ref FROM incidents");
    const timelines = () => incidents().map(({ ref }) => JSON.stringify(log.alerts(ref, 10)));
    expect(new Set(timelines())).toEqual(new Set(["[]"]));
    // Of a monitor that is gone, the message says nothing, and neither does the timeline.
    const last = beats.at(-1);
    expect((await owner.delete(`/v1/pulse/${last?.["id"]}`)).status).toBe(200);
    await until(15, 1);
    const [[, group] = []] = received();
    expect(group).toMatchObject({ omitted: 5, text: "104 alerts in quiet hours, 13:00–15:00 UTC" });
    const shown = timelines();
    expect(shown.filter((alerts) => alerts === "[]")).toHaveLength(1);
    expect(shown.filter((alerts) => alerts.includes('"channels":["night"]'))).toHaveLength(
      HELD_ALERTS_MAX + 4,
    );
    const sentAt = `"at":${Date.UTC(2026, 2, 10, 15)},`;
    expect(shown.filter((alerts) => alerts.includes(sentAt))).toHaveLength(HELD_ALERTS_MAX + 4);
    // They are purged.
    const digests = db.number("SELECT count(*) AS n FROM alert_digests");
    expect(digests()).toBe(1);
    await writer.submit((tx) => log.removeDigestsBefore(tx, tx.now, 10));
    expect(digests()).toBe(0);
  });

  test("are taken from 50 full timelines of a deleted monitor in a short turn of the event loop", async () => {
    await monitor("Shop");
    const { db, writer } = server.server.kernel;
    const log = incidentStore(db);
    const turns: number[] = [];
    for (let run = 0; run < 3; run += 1) {
      db.execute(
        `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 50)
         INSERT INTO incidents (incident_id, project_ref, title, impact, status, monitor_ids, started_at, public)
         SELECT 'inc_' || lower(hex(randomblob(16))), project_ref, 'Shop is down', 'outage', 'resolved', '[]', 1, 0 FROM monitors, n`,
      );
      const refs = db.all<{ ref: number }>("SELECT ref FROM incidents ORDER BY ref DESC LIMIT 50")();
      db.execute(
        `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100)
         INSERT INTO incident_alerts (incident_ref, number, at, event, channels, channel_ref, digest)
         SELECT ref, n, 1, 'monitor.down', '["night"]', n, 0 FROM incidents, n WHERE ref >= ${refs.at(-1)?.ref}`,
      );
      turns.push(
        await processorMs(() =>
          writer.submit((tx) => {
            for (const { ref } of refs) log.removeUnsent(tx, ref);
          }),
        ),
      );
    }
    expect(db.number("SELECT count(*) AS n FROM incident_alerts")()).toBe(0);
    expect(Math.min(...turns)).toBeLessThan(TURN_MS_MAX);
  });

  test("hold steps to the channel, and those of its own escalation wait", async () => {
    const phone = await channel("phone", { default: false, quiet_hours: QUIET });
    const boss = await channel("boss", { default: false });
    const escalate = [
      { after_ms: 10 * MINUTE, channel_ids: [phone] },
      { after_ms: 20 * MINUTE, channel_ids: [boss] },
    ];
    await channel("loud", { escalate });
    await channel("night", { quiet_hours: QUIET, escalate: [{ after_ms: 5 * MINUTE, channel_ids: [boss] }] });
    const shop = await monitor("Shop");
    await until(13, 30);
    shop.answers(503);
    await until(13, 45);
    expect(summaries()).toEqual(["loud: monitor.down Shop"]);
    await until(14);
    const [[path, step] = []] = received();
    expect([path, step?.["escalation_step"]]).toEqual(["boss", 2]);
    await until(15, 1);
    const held = received();
    expect(held.map(([path, body]) => `${path}: ${summaryOf(body)}`).toSorted()).toEqual([
      ...["night: monitor.down Shop", "phone: monitor.down Shop"],
    ]);
    const group = new Map(held).get("phone") as Group;
    expect(group.alerts[0]).toMatchObject({ escalation_step: 1 });
    await until(15, 6);
    expect(summaries()).toEqual(["boss: monitor.down Shop"]);
    shop.answers(200);
    await until(15, 8);
    expect(summaries().toSorted()).toEqual(
      ["boss", "loud", "night", "phone"].map((name) => `${name}: monitor.up Shop`),
    );
  });

  test("that begin after an outage hold its next steps, which keep their distances", async () => {
    const phone = await channel("phone", { default: false });
    const escalate = [1, 2, 3].map((at) => ({ after_ms: at * 15 * MINUTE, channel_ids: [phone] }));
    await channel("night", { quiet_hours: QUIET, escalate });
    const shop = await monitor("Shop");
    await until(12, 40);
    shop.answers(503);
    await until(12, 59);
    expect(summaries()).toEqual(["night: monitor.down Shop", "phone: monitor.down Shop"]);
    await until(14, 59);
    expect(summaries()).toEqual([]);
    await until(15, 1);
    expect(summaries()).toEqual(["phone: monitor.down Shop"]);
    await until(15, 14);
    expect(summaries()).toEqual([]);
    await until(15, 16);
    expect(summaries()).toEqual(["phone: monitor.down Shop"]);
  });

  test("hold one reminder of an outage, and none of one that they hold already", async () => {
    await channel("hook", { remind: "1h", quiet_hours: { ...QUIET, to: "22:00" } });
    const [shop, api] = [await monitor("Shop"), await monitor("API")];
    await until(12, 30);
    shop.answers(503);
    await until(14, 10);
    api.answers(503);
    await until(21, 59);
    expect(summaries()).toEqual(["hook: monitor.down Shop"]);
    await until(22, 1);
    const [[, group] = []] = received();
    expect(summaryOf(group ?? {})).toBe("monitor.down Shop, monitor.down API");
    expect((group as Group).alerts.map(({ reminder }) => reminder)).toEqual([true, undefined]);
  });

  test("do not hold tests, and a change of them sends what is held", async () => {
    const id = await channel("hook", { quiet_hours: QUIET });
    const [shop] = [await monitor("Shop"), await monitor("API")];
    await until(13, 30);
    shop.answers(503);
    await until(13, 40);
    await owner.post(`${CHANNELS}/${id}/test`);
    expect(summaries()).toEqual(["hook: channel.test hook"]);
    await owner.patch(`${CHANNELS}/${id}`, { name: "Hook" });
    await owner.patch(`${CHANNELS}/${id}`, { quiet_hours: { ...QUIET, to: "14:00" } });
    await until(13, 59);
    expect(summaries()).toEqual([]);
    await owner.patch(`${CHANNELS}/${id}`, { quiet_hours: null });
    await server.clock.advance(SECOND);
    expect(summaries()).toEqual(["hook: monitor.down Shop"]);
    shop.answers(200);
    await server.clock.advance(MINUTE);
    expect(summaries()).toEqual(["hook: monitor.up Shop"]);
  });

  test("hold for a channel that is out of use meanwhile what it was meant to get, and nothing more until it is in use again", async () => {
    const id = await channel("hook", { quiet_hours: QUIET });
    const own = await channel("own", { quiet_hours: QUIET, default: false });
    const [shop, api] = [await monitor("Shop"), await monitor("API", { channels: [own] })];
    await until(13, 30);
    for (const each of [shop, api]) each.answers(503);
    await until(13, 40);
    // Out of use: a channel without events, one that the monitor does not name any more, and a monitor that is paused.
    await owner.patch(`${CHANNELS}/${id}`, { default: false, events: [] });
    await owner.put(`/v1/pulse/${api.id}`, { channels: [] });
    await owner.put(`/v1/pulse/${shop.id}`, { active: false });
    api.answers(200);
    await until(14, 59);
    expect(summaries()).toEqual([]);
    await until(15, 1);
    expect(summaries().toSorted()).toEqual(["hook: monitor.down Shop", "own: monitor.down API"]);
    await owner.patch(`${CHANNELS}/${id}`, { default: true, events: ["monitor.down", "monitor.up"] });
    await owner.put(`/v1/pulse/${api.id}`, { channels: [own] });
    await owner.put(`/v1/pulse/${shop.id}`, { active: true });
    await until(15, 5);
    // It is the same outage.
    expect(summaries()).toEqual([]);
    shop.answers(200);
    api.answers(500);
    await until(15, 10);
    expect(summaries().toSorted()).toEqual(["hook: monitor.up Shop", "own: monitor.down API"]);
  });

  test("nothing is left of deleted monitors and channels, and a suspended account gets it later", async () => {
    const id = await channel("hook", { quiet_hours: QUIET });
    const gone = await channel("gone", { quiet_hours: QUIET });
    const [shop, api] = [await monitor("Shop"), await monitor("API")];
    await until(13, 30);
    for (const each of [shop, api]) each.answers(503);
    await until(13, 40);
    expect((await owner.delete(`${CHANNELS}/${gone}`)).status).toBe(200);
    expect((await owner.delete(`/v1/pulse/${shop.id}`)).status).toBeLessThan(300);
    await server.operator.patch(`/v1/admin/accounts/${owner.userId}`, { suspended: true });
    await until(15, 10);
    expect(summaries()).toEqual([]);
    await server.operator.patch(`/v1/admin/accounts/${owner.userId}`, { suspended: false });
    await until(15, 15);
    expect(summaries()).toEqual(["hook: monitor.down API"]);
    expect((await owner.get(`${CHANNELS}/${id}`)).body).toMatchObject({ quiet_hours: QUIET, group_ms: 0 });
  });

  test("that end while no server runs, or its clock is set, are over then", async () => {
    await channel("hook", { quiet_hours: QUIET });
    const [shop, api] = [await monitor("Shop"), await monitor("API")];
    await until(13, 30);
    shop.answers(503);
    await until(13, 40);
    server.clock.freeze(2 * HOUR);
    await server.clock.advance(SECOND);
    expect(summaries()).toContain("hook: monitor.down Shop");
    // The next day, half of the hours pass on a clock that is set forward.
    await server.clock.advance(Date.UTC(2026, 2, 11, 13, 30) - server.clock.now());
    received();
    api.answers(503);
    await server.clock.advance(5 * MINUTE);
    expect(received()).toEqual([]);
    server.clock.setWall(HOUR + 30 * MINUTE);
    await server.clock.advance(MINUTE);
    expect(summaries()).toContain("hook: monitor.down API");
    // Set back into the hours, they begin again.
    await server.clock.advance(10 * MINUTE);
    received();
    server.clock.setWall(-HOUR);
    api.answers(200);
    await server.clock.advance(5 * MINUTE);
    expect(received()).toEqual([]);
    await server.clock.advance(2 * HOUR);
    expect(summaries()).toContain("hook: monitor.up API");
  });

  test("nothing is sent for a project that was deleted meanwhile", async () => {
    const mine = owner;
    const { id: project } = (await mine.post("/v1/projects", { name: "Other" })).body;
    const key = { prefix: "sm", name: "other", scopes: ["pulse:*"] };
    const { secret } = (await mine.post(`/v1/projects/${project}/keys`, key)).body;
    owner = new AccountClient(server.url, String(secret), mine.userId, mine.email);
    const phone = await channel("phone", { default: false });
    await channel("hook", { quiet_hours: QUIET });
    await channel("loud", { escalate: [{ after_ms: 30 * MINUTE, channel_ids: [phone] }] });
    const shop = await monitor("Shop");
    await until(13, 30);
    shop.answers(503);
    await until(13, 40);
    expect(summaries()).toEqual(["loud: monitor.down Shop"]);
    expect((await mine.delete(`/v1/projects/${project}`)).status).toBe(200);
    await until(15, 30);
    expect(received()).toEqual([]);
    const { db } = server.server.kernel;
    for (const table of ["held_alerts", "held_totals", "alert_digests", "escalated_channels", "channels"])
      expect(db.number(`SELECT count(*) AS n FROM ${table}`)(), table).toBe(0);
  });

  test("are two different times of day in a known zone", async () => {
    const id = await channel("hook");
    expect((await owner.get(`${CHANNELS}/${id}`)).body).toMatchObject({ quiet_hours: null });
    const patch = (quiet_hours: unknown) => owner.patch(`${CHANNELS}/${id}`, { quiet_hours });
    for (const wrong of [
      { ...QUIET, to: "13:00" },
      { ...QUIET, from: "24:00" },
      { ...QUIET, from: "9:00" },
      { ...QUIET, to: "15:60" },
      { ...QUIET, time_zone: "Mars/Olympus" },
      { ...QUIET, time_zone: "+02:00" },
      { ...QUIET, time_zone: "" },
      { ...QUIET, time_zone: "__proto__" },
      { ...QUIET, time_zone: "Europe/Berlin\u0000" },
      { ...QUIET, time_zone: "E".repeat(60_000) },
      { ...QUIET, from: "0".repeat(60_000) },
      { from: "13:00", to: "15:00" },
      { from: "13:00", time_zone: "UTC" },
      [],
      "22:00-07:00",
    ])
      expectError(await patch(wrong), "validation_error");
    expectError(
      await owner.post(CHANNELS, {
        name: "x",
        kind: "webhook",
        config: { url: sink.url("/x") },
        quiet_hours: { ...QUIET, to: "13:00" },
      }),
      "validation_error",
    );
    const large = await patch({ ...QUIET, time_zone: "E".repeat(1_048_576) });
    expect([large.status, large.text.length < 1_000]).toEqual([413, true]);
    const night = { from: "22:00", to: "07:00", time_zone: "Europe/Berlin" };
    expect((await patch(night)).body).toMatchObject({ quiet_hours: night });
    expect((await owner.patch(`${CHANNELS}/${id}`, { name: "x" })).body).toMatchObject({
      quiet_hours: night,
    });
    expect((await patch(null)).body).toMatchObject({ quiet_hours: null });
  });

  test("follow the clocks of their zone over a change to summer time", async () => {
    const night = { from: "22:00", to: "07:00", time_zone: "Europe/Berlin" };
    await channel("hook", { quiet_hours: night });
    const shop = await monitor("Shop", { interval: HOUR });
    // 2026-03-28 21:30 UTC is 22:30; the clocks are set forward at 01:00 UTC.
    await server.clock.advance(Date.UTC(2026, 2, 28, 21, 30) - server.clock.now());
    received();
    shop.answers(503);
    await server.clock.advance(Date.UTC(2026, 2, 29, 4, 59) - server.clock.now());
    expect(summaries()).toEqual([]);
    await server.clock.advance(2 * MINUTE);
    expect(summaries()).toEqual(["hook: monitor.down Shop"]);
  });
});

describe("group_ms", () => {
  test("one message for several monitors, and the usual one for a single one", async () => {
    await channel("hook", { group_ms: 2 * MINUTE });
    const [shop, api, mailer] = [await monitor("Shop"), await monitor("API"), await monitor("Mail")];
    await until(12, 30);
    for (const each of [shop, api]) each.answers(503);
    await server.clock.advance(MINUTE);
    mailer.answers(503);
    expect(received()).toEqual([]);
    await server.clock.advance(3 * MINUTE);
    const [[, group] = [], ...others] = received();
    expect(others).toEqual([]);
    expect(
      summaryOf(group ?? {})
        .split(", ")
        .toSorted(),
    ).toEqual(["API", "Mail", "Shop"].map((name) => `monitor.down ${name}`));
    expect(group).toMatchObject({ event: "monitor.group", text: "3 alerts within 2 min" });
    shop.answers(200);
    await server.clock.advance(MINUTE);
    expect(received()).toEqual([]);
    await server.clock.advance(3 * MINUTE);
    const [[, single] = []] = received();
    expect(single).toMatchObject({ event: "monitor.up", name: "Shop", monitor_id: shop.id, status: "up" });
    api.answers(200);
    await server.clock.advance(MINUTE);
    api.answers(500);
    await server.clock.advance(3 * MINUTE);
    expect(summaries()).toEqual(["hook: monitor.up API, monitor.down API"]);
  });

  test("steps count from the message, also those of alerts that others were collected with", async () => {
    const phone = await channel("phone", { default: false });
    const escalate = [{ after_ms: MINUTE, channel_ids: [phone] }];
    await channel("hook", { group_ms: 5 * MINUTE, escalate });
    const [shop, api] = [await monitor("Shop"), await monitor("API")];
    await until(12, 30);
    shop.answers(503);
    await server.clock.advance(2 * MINUTE);
    api.answers(503);
    await server.clock.advance(2 * MINUTE + 30 * SECOND);
    expect(received()).toEqual([]);
    await server.clock.advance(MINUTE + 10 * SECOND);
    expect(summaries()).toEqual(["hook: monitor.down Shop, monitor.down API"]);
    await server.clock.advance(MINUTE);
    expect(summaries().toSorted()).toEqual(["phone: monitor.down API", "phone: monitor.down Shop"]);
  });

  test("continues until the end of quiet hours that begin meanwhile", async () => {
    await channel("hook", { group_ms: 5 * MINUTE, quiet_hours: QUIET });
    const shop = await monitor("Shop");
    await until(12, 56);
    shop.answers(503);
    await until(14, 59);
    expect(received()).toEqual([]);
    await until(15, 1);
    expect(summaries()).toEqual(["hook: monitor.down Shop"]);
  });

  test("is 0 to 5 minutes, and 0 by default", async () => {
    const id = await channel("hook");
    expect((await owner.get(`${CHANNELS}/${id}`)).body).toMatchObject({ group_ms: 0 });
    const patch = (group_ms: unknown) => owner.patch(`${CHANNELS}/${id}`, { group_ms });
    for (const wrong of [-1, 300_001, 1.5, null, "6m"]) expectError(await patch(wrong), "validation_error");
    expect((await patch(300_000)).body).toMatchObject({ group_ms: 300_000 });
    expect((await patch("30s")).body).toMatchObject({ group_ms: 30_000 });
    expect((await patch(0)).body).toMatchObject({ group_ms: 0 });
  });
});
