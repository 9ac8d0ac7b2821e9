import { afterEach, beforeEach, expect, test } from "bun:test";
import { type ChannelMessage, TEXT_MAX } from "../../../src/areas/alerts/channel-kinds.ts";
import { DIGEST_ALERTS_MAX } from "../../../src/areas/alerts/digest-message.ts";
import { HELD_ALERTS_MAX, HELD_OF_ACCOUNT_MAX, HeldAlerts } from "../../../src/areas/alerts/held-alerts.ts";
import { channelStore } from "../../../src/areas/alerts/store.ts";
import type { AlertEvent } from "../../../src/kernel/data/incident-words.ts";
import type { Client } from "../../support/client.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import type { TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const HOUR = 3_600_000;
/** The tests begin at 12:00 UTC. */
const QUIET = { from: "11:00", to: "13:00", time_zone: "UTC" };

let server: TestServer;
let sink: WebhookSink;
let mail: MailServer;
let owner: Client;
beforeEach(async () => {
  sink = new WebhookSink();
  ({ server, mail } = await startMailing());
  owner = await server.account({ tier: "pro", email: "owner@example.com" });
});
afterEach(async () => {
  await server.stop();
  await mail.stop();
  sink.stop();
});

interface Alert {
  readonly monitor: number | null;
  readonly event?: AlertEvent;
  readonly facts?: object;
}

/** Creates a channel in its quiet hours that holds some alerts. */
async function holding(alerts: readonly Alert[], more: object = {}): Promise<void> {
  const config = { url: sink.url("/hook") };
  const created = await owner.post("/v1/pulse/channels", {
    name: "Hook",
    kind: "webhook",
    config,
    quiet_hours: QUIET,
    ...more,
  });
  expect(created.status, created.text).toBe(201);
  const { db, scheduler, writer, clock } = server.server.kernel;
  const channels = channelStore(db);
  const row = channels.find(String(created.body["id"]));
  if (row === null) throw new Error("no channel");
  const held = new HeldAlerts({ scheduler, channels });
  const until = held.until(row, clock.now()) ?? 0;
  await writer.submit((tx) => {
    for (const { monitor, event = "monitor.down", facts } of alerts)
      held.hold(tx, row, until, {
        monitorRef: monitor,
        incidentRef: null,
        event,
        message: messageOf(monitor, event, facts),
      });
  });
}

function messageOf(monitor: number | null, event: AlertEvent, facts: object = {}): ChannelMessage {
  const links = { url: null, link: null, incidentLink: null, actionLink: null };
  const text = "the target responded with 503";
  const heading = `[${event}] m-${monitor}`;
  return { event, heading, text, detail: null, ...links, facts: { event, name: `m-${monitor}`, ...facts } };
}

interface Group {
  readonly text: string;
  readonly omitted: number;
  readonly alerts: readonly { readonly event: string; readonly name: string }[];
}

async function group(): Promise<Group & { readonly bytes: number }> {
  await server.clock.advance(HOUR);
  const [{ body = "" } = {}] = sink.take();
  return { ...(JSON.parse(body) as Group), bytes: body.length };
}

const numbered = (count: number, from = 0): Alert[] =>
  Array.from({ length: count }, (_, index) => ({ monitor: from + index }));
const namesOf = ({ alerts }: Group) => alerts.map(({ name }) => name);

test("a digest shows 100 alerts, and counts the others", async () => {
  await holding(numbered(DIGEST_ALERTS_MAX));
  expect(await group()).toMatchObject({ omitted: 0, text: "100 alerts in quiet hours, 11:00–13:00 UTC" });
  await server.clock.advance(23 * HOUR);
  // What is most recent of a monitor is shown before what it followed, however late that was.
  await holding([...numbered(DIGEST_ALERTS_MAX, 1_000), ...numbered(1, 1_050)]);
  const shown = await group();
  expect(shown).toMatchObject({ omitted: 1, text: "101 alerts in quiet hours, 11:00–13:00 UTC" });
  const expected = numbered(DIGEST_ALERTS_MAX, 1_000).map(({ monitor }) => `m-${monitor}`);
  expect(namesOf(shown).toSorted()).toEqual(expected.toSorted());
  expect(namesOf(shown).at(-1)).toBe("m-1050");
});

test("a channel holds what its message shows; of more it drops those that others followed first, and counts them", async () => {
  const followed = { monitor: 7, event: "monitor.up" as const };
  await holding([...numbered(HELD_ALERTS_MAX - 1), followed, ...numbered(1, 5_000), ...numbered(1, 5_001)]);
  expect(HELD_ALERTS_MAX).toBe(DIGEST_ALERTS_MAX);
  const { db } = server.server.kernel;
  const rows = db.all<{ monitor: number; event: string }>(
    "SELECT monitor_ref AS monitor, event FROM held_alerts ORDER BY ref",
  )();
  expect(rows.length).toBe(HELD_ALERTS_MAX);
  // First the outage of the monitor that is up again, then the oldest one.
  expect(rows.find(({ monitor }) => monitor === 0)).toBeUndefined();
  expect(rows.filter(({ monitor }) => monitor === 7)).toEqual([followed]);
  expect(await group()).toMatchObject({
    omitted: 2,
    text: `${HELD_ALERTS_MAX + 2} alerts in quiet hours, 11:00–13:00 UTC`,
  });
  expect(db.number("SELECT count(*) AS n FROM held_alerts")()).toBe(0);
  expect(db.number("SELECT count(*) AS n FROM held_totals")()).toBe(0);
  await server.clock.advance(23 * HOUR);
  await holding(numbered(1), { kind: "slack" });
  await server.clock.advance(HOUR);
  expect(sink.take()[0]?.body).toContain("[GROUP] 1 down");
});

test("alerts that are not stored are in the title and the numbers of the message", async () => {
  const ended = { monitor: 1, event: "monitor.up" as const };
  await holding([...numbered(1, 1), ended, ...numbered(2 * HELD_ALERTS_MAX, 10)], { kind: "slack" });
  await server.clock.advance(HOUR);
  const [{ body = "" } = {}] = sink.take();
  expect(body).toContain(`[GROUP] ${2 * HELD_ALERTS_MAX + 1} down, 1 up`);
  expect(body).toContain(`${2 * HELD_ALERTS_MAX + 2} alerts in quiet hours`);
});

test("channels of an account hold 10,000 alerts, and more are counted only", async () => {
  const { db, writer } = server.server.kernel;
  const total = db.change<[n: number]>("UPDATE held_totals SET n = ?");
  await holding(numbered(2));
  await writer.submit((tx) => void total(tx, HELD_OF_ACCOUNT_MAX));
  await holding(numbered(3, 100));
  expect(db.number("SELECT count(*) AS n FROM held_alerts")()).toBe(2);
  await server.clock.advance(HOUR);
  const groups = sink.take().map(({ body }) => JSON.parse(body) as Group);
  expect(groups.map(({ text }) => text).toSorted()).toEqual([
    "2 alerts in quiet hours, 11:00–13:00 UTC",
    "3 alerts",
  ]);
  expect(groups.map(({ alerts, omitted }) => [alerts.length, omitted]).toSorted()).toEqual([
    [0, 3],
    [2, 0],
  ]);
});

test("the body of a webhook has at most 256 KiB of alerts, each with the beginning of a ping", async () => {
  const last_ping_body = "x".repeat(10_000);
  await holding(
    numbered(DIGEST_ALERTS_MAX).map((each) => ({
      ...each,
      facts: { last_ping_body, more: "y".repeat(5_000) },
    })),
  );
  const { bytes, alerts, omitted } = await group();
  expect(bytes).toBeLessThan(260 * 1_024);
  expect(bytes).toBeGreaterThan(240 * 1_024);
  expect(alerts.length + omitted).toBe(DIGEST_ALERTS_MAX);
  expect((alerts[0] as { last_ping_body?: string }).last_ping_body?.length).toBe(TEXT_MAX);
});

test("the messages of many channels whose hours end together hold up nothing else", async () => {
  const facts = { last_ping_body: "x".repeat(1_000), url: "u".repeat(1_000), error: "e".repeat(1_000) };
  const alerts = numbered(HELD_ALERTS_MAX).map((each) => ({ ...each, facts }));
  const mailed = { kind: "email", config: { to: ["owner@example.com"] } };
  const longest = await leastMs(TURN_MS_MAX, async () => {
    for (const kind of [{}, { kind: "slack" }, mailed, {}, { kind: "ntfy" }, mailed, {}, {}])
      await holding(alerts, kind);
    const turn = await longestTurnMs(() => server.clock.advance(HOUR));
    const { body } = await owner.get("/v1/pulse/channels");
    for (const { id } of body["channels"] as { id: string }[]) await owner.delete(`/v1/pulse/channels/${id}`);
    await server.clock.advance(23 * HOUR);
    return turn;
  });
  expect(sink.take().length).toBeGreaterThanOrEqual(6);
  expect(longest).toBeLessThanOrEqual(TURN_MS_MAX);
});

test("a chat gets what fits into a message, and a mail a line for each alert", async () => {
  const up = { monitor: 1, event: "monitor.up" as const };
  await holding([...numbered(50), up, { monitor: null, event: "observer.offline" }], { kind: "slack" });
  const mailed = { kind: "email", config: { to: ["owner@example.com"] } };
  await holding([...numbered(50), up, { monitor: null, event: "observer.offline" }], mailed);
  await server.clock.advance(HOUR);
  const { text = "" } = JSON.parse(sink.take()[0]?.body ?? "") as { text?: string };
  const [heading, reason, ...lines] = text.split("\n");
  expect(heading).toBe("[GROUP] 50 down, 1 up, 1 was offline");
  expect(reason).toBe("52 alerts in quiet hours, 11:00–13:00 UTC");
  expect(lines.join("\n").length).toBeLessThanOrEqual(TEXT_MAX);
  expect(lines.at(-1)).toBe(`and ${52 - lines.length + 1} more`);
  expect(lines.at(-2)).toBe("12:00 UTC [observer.offline] m-null: the target responded with 503");
  expect(mail.received[0]?.raw.match(/12:00 UTC \[/g)?.length).toBe(52);
});

test("what is over by the time of the message is no failure", async () => {
  const ntfy = { kind: "ntfy" };
  await holding([{ monitor: 1 }, { monitor: 1, event: "monitor.up" }], ntfy);
  await holding([{ monitor: 1 }, { monitor: 1, event: "monitor.up" }, { monitor: 1 }], ntfy);
  await server.clock.advance(HOUR);
  const priorities = sink.take().map(({ headers }) => headers.get("priority"));
  expect(priorities.toSorted()).toEqual(["3", "5"]);
});
