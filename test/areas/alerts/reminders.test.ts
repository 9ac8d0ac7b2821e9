import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { REMIND } from "../../../src/areas/alerts/schema.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import type { TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
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

async function channel(remind: string | undefined, more: object = {}): Promise<string> {
  const config = { url: sink.url(`/${remind}`) };
  const answer = await owner.post(CHANNELS, { name: "Chat", kind: "webhook", config, remind, ...more });
  expect(answer.status, answer.text).toBe(201);
  return String(answer.body["id"]);
}

/** Creates a monitor that is down. */
async function outage(more: object = {}): Promise<string> {
  site.answers(503);
  const monitor = { url: site.url("/health"), interval: HOUR, name: "Shop", ...more };
  const answer = await owner.post("/v1/pulse", monitor);
  expect(answer.status, answer.text).toBe(201);
  await server.clock.advance(5 * SECOND);
  return String(answer.body["id"]);
}

/** The events since the last call, by the path of the channel. */
function received(): string[] {
  return sink.take().map(({ path, body }) => {
    const { event, reminder = false } = JSON.parse(body) as { event: string; reminder?: boolean };
    return `${path} ${event}${reminder ? " reminder" : ""}`;
  });
}

const count = (list: readonly string[], wanted: string) => list.filter((item) => item === wanted).length;

describe("reminders", () => {
  test("repeat an alert at the interval of each channel until the target is up", async () => {
    await channel(undefined, { config: { url: sink.url("/never") } });
    await channel("1h");
    await channel("6h");
    await channel("1d");
    await outage({ interval: 5 * MINUTE });
    const first = received();
    expect(first.toSorted()).toEqual(REMIND.map((remind) => `/${remind} monitor.down`).toSorted());
    await server.clock.advance(24 * HOUR + MINUTE);
    const day = received();
    expect(["never", "1h", "6h", "1d"].map((path) => count(day, `/${path} monitor.down reminder`))).toEqual([
      0, 24, 4, 1,
    ]);
    expect(day.length).toBe(29);
    site.answers(200);
    await server.clock.advance(5 * MINUTE);
    expect(received().toSorted()).toEqual(REMIND.map((remind) => `/${remind} monitor.up`).toSorted());
    await server.clock.advance(48 * HOUR);
    expect(received()).toEqual([]);
    site.answers(503);
    await server.clock.advance(5 * MINUTE);
    await server.clock.advance(HOUR);
    const again = received();
    expect(count(again, "/1h monitor.down")).toBe(1);
    expect(count(again, "/1h monitor.down reminder")).toBe(1);
  });

  test("have the facts of the last check and the start of the outage", async () => {
    await channel("1h");
    const id = await outage();
    sink.take();
    await server.clock.advance(HOUR);
    const [reminder] = sink.take();
    const { body: list } = await owner.get("/v1/pulse/incidents");
    expect(JSON.parse(reminder?.body ?? "")).toMatchObject({
      event: "monitor.down",
      monitor_id: id,
      status: "down",
      previous_status: "down",
      error: "the target responded with 503",
      response_status: 503,
      incident_id: (list["incidents"] as { id: string }[])[0]?.id,
      text: "the target responded with 503 · since 12:00 UTC",
      reminder: true,
    });
  });

  test("continue after a restart, once", async () => {
    await channel("1h");
    await outage();
    await server.clock.advance(30 * MINUTE);
    received();
    await server.restart();
    owner = server.client(owner.key);
    await server.clock.advance(29 * MINUTE);
    expect(received()).toEqual([]);
    await server.clock.advance(2 * MINUTE);
    expect(received()).toEqual(["/1h monitor.down reminder"]);
    await server.server.stop();
    await server.clock.advance(5 * HOUR);
    await server.start();
    owner = server.client(owner.key);
    await server.clock.advance(MINUTE);
    expect(received()).toEqual(["/1h monitor.down reminder"]);
    await server.clock.advance(HOUR);
    expect(received()).toEqual(["/1h monitor.down reminder"]);
  });

  test("are not sent of an acknowledged outage, or of a paused monitor", async () => {
    await channel("1h");
    const id = await outage();
    const { body } = await owner.get("/v1/pulse/incidents?status=open");
    const [incident] = body["incidents"] as { id: string }[];
    await owner.post(`/v1/pulse/incidents/${incident?.id}/acknowledge`);
    await server.clock.advance(3 * HOUR);
    expect(received()).toEqual(["/1h monitor.down"]);
    await owner.delete(`/v1/pulse/${id}`);
    const paused = await outage();
    await owner.put(`/v1/pulse/${paused}`, { active: false });
    await server.clock.advance(3 * HOUR);
    expect(received()).toEqual(["/1h monitor.down"]);
  });

  test("end when the channel is deleted, is no longer one of the monitor, or has `remind` never", async () => {
    const ids = [await channel("1h"), await channel("6h"), await channel("1d")];
    const id = await outage({ channels: ids });
    await owner.delete(`${CHANNELS}/${ids[0]}`);
    await owner.put(`/v1/pulse/${id}`, { channels: [ids[2]] });
    expect((await owner.patch(`${CHANNELS}/${ids[2]}`, { remind: "never" })).body).toMatchObject({
      remind: "never",
    });
    received();
    await server.clock.advance(50 * HOUR);
    expect(received()).toEqual([]);
  });

  test("wait for the end of a maintenance window", async () => {
    await channel("1h", { events: ["monitor.down"] });
    const id = await outage();
    const now = server.clock.now();
    const window = {
      title: "Work",
      monitor_ids: [id],
      starts_at: new Date(now).toISOString(),
      ends_at: new Date(now + 90 * MINUTE).toISOString(),
    };
    const created = await owner.post("/v1/pulse/maintenance", window);
    expect(created.status, created.text).toBe(201);
    received();
    await server.clock.advance(89 * MINUTE);
    expect(received()).toEqual([]);
    await server.clock.advance(2 * MINUTE);
    expect(count(received(), "/1h monitor.down reminder")).toBe(1);
  });

  test("go to e-mail channels, and are of heartbeats, too", async () => {
    const to = ["owner@example.com"];
    await channel("6h", { kind: "email", config: { to } });
    const terms = { type: "heartbeat", name: "Backup", period_ms: HOUR, grace_ms: MINUTE };
    const { body: beat } = await owner.post("/v1/pulse", terms);
    await fetch(String(beat["ping_url"]), { method: "POST" });
    await server.clock.advance(HOUR + MINUTE);
    expect(mail.received.length).toBe(1);
    await server.clock.advance(12 * HOUR);
    expect(mail.received.length).toBe(3);
    expect(mail.received[2]?.raw).toContain("Expected 13:00 UTC, grace 1 min.");
  });
});

describe("remind", () => {
  test("is shown, changed, audited, and `never` by default", async () => {
    const id = await channel(undefined);
    expect((await owner.get(`${CHANNELS}/${id}`)).body).toMatchObject({ remind: "never" });
    for (const remind of REMIND)
      expect((await owner.patch(`${CHANNELS}/${id}`, { remind })).body).toMatchObject({ remind });
    expect((await owner.patch(`${CHANNELS}/${id}`, { name: "Other" })).body).toMatchObject({ remind: "1d" });
    expect((await owner.get(CHANNELS)).body["channels"]).toMatchObject([{ remind: "1d" }]);
    const { entries } = (await owner.get("/v1/audit?limit=2")).body as { entries: { after: object }[] };
    expect(entries[1]).toMatchObject({ after: { remind: "1d" } });
  });

  for (const remind of ["2h", "", null, 1, "NEVER"])
    test(`rejects ${JSON.stringify(remind)}`, async () => {
      const answer = await owner.post(CHANNELS, {
        name: "Chat",
        kind: "webhook",
        config: { url: sink.url("/x") },
        remind,
      });
      expectError(answer, "validation_error");
      expect(Object.keys(Object(answer.body["fields"]))).toEqual(["remind"]);
    });
});
