import { channelStore } from "../../src/areas/alerts/store.ts";
import { incidentStore } from "../../src/areas/incidents/store.ts";
import { Incidents } from "../../src/areas/incidents/lifecycle.ts";
import { factsOf } from "../../src/areas/monitors/facts.ts";
import { type ChannelNotification, Notifications } from "../../src/areas/alerts/notifications.ts";
import { Outages } from "../../src/areas/incidents/outages.ts";
import type { Notification, Notifier } from "../../src/kernel/outbound/notification.ts";
import { type CompletedCheck, type MonitorRow, monitorStore } from "../../src/areas/monitors/store.ts";
import type { MailMessage } from "../../src/kernel/mail/smtp.ts";
import type { Tx } from "../../src/kernel/storage/tx.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../support/server.ts";

const MINUTE = 60_000;
const EVENTS = [
  ...["monitor.down", "monitor.up", "monitor.degraded", "monitor.recovered", "monitor.certificate"],
  ...["monitor.flapping", "monitor.acknowledged", "observer.offline"],
  ...["maintenance.started", "maintenance.ended", "catch.failed"],
];
const CHANNELS = [
  { kind: "webhook", config: { url: "https://example.com/hook" } },
  { kind: "slack", config: { url: "https://slack.example/services/T0/B0/SECRET" } },
  { kind: "discord", config: { url: "https://discord.example/api/webhooks/1/SECRET" } },
  { kind: "telegram", config: { token: "1:SECRET", chat_id: "-100" } },
  { kind: "ntfy", config: { url: "https://ntfy.example/SECRET", token: "tk_SECRET" } },
  { kind: "gotify", config: { url: "https://gotify.example/", token: "SECRET" } },
  { kind: "apprise", config: { url: "https://apprise.example/notify/SECRET" } },
  { kind: "email", config: { to: ["ada@example.com"] } },
];

/** The message of every kind of channel for every event, as the server sends it. */
export async function renderChannelMessages(): Promise<string> {
  const server = await startTestServer({
    manualClock: true,
    environment: { NINEFOLD_SMTP_URL: "smtp://127.0.0.1:9", NINEFOLD_MAIL_FROM: "alerts@ninefold.example" },
  });
  try {
    const sent = await sentBy(server);
    return `${sent.join("\n\n")}\n`;
  } finally {
    await server.stop();
  }
}

async function sentBy(server: TestServer): Promise<string[]> {
  const owner = await server.account({ tier: "unlimited" });
  for (const { kind, config } of [...CHANNELS].reverse()) {
    const created = await owner.post("/v1/pulse/channels", { name: kind, kind, config, events: EVENTS });
    if (created.status !== 201) throw new Error(created.text);
  }
  const monitor = { url: "https://shop.example/health", interval: 300_000, name: "Shop & <Co>" };
  await owner.post("/v1/pulse", { ...monitor, channels: null });
  await owner.post("/v1/pulse", { ...monitor, name: "Café ☕" });
  const { kernel } = server.server;
  const { db, writer, vault, clock, ids, changes, scheduler } = kernel;
  const [monitors, incidents, channels] = [monitorStore(db), incidentStore(db), channelStore(db)];
  const sent: string[] = [];
  const notifier: Notifier = {
    notify(_, one) {
      sent.push(requestText(one));
      return "";
    },
    withdraw: () => false,
    onAttempt: () => {},
    trial: () => Promise.reject(new Error("none")),
  };
  const notifications = new Notifications({
    vault, clock, scheduler, channels, incidents: { ...incidents, linkToken: () => "TOKEN" }, publicUrl: () => "https://ninefold.example",
    projectIdOf: () => "proj_1",
    timeZoneOf: () => "UTC",
    notifier,
    owners: { account: () => ({ email: "ada@example.com", tier: "unlimited", suspended: false }) },
    people: { mayRead: () => null },
    outbox: { available: true,
      settingsChanged: () => undefined, enqueue: (_tx, _account, mail) => `${sent.push(mailText(mail))}`, withdraw: () => false, onAttempt: () => {}, chooseRecipients: () => {}, trial: () => Promise.reject(new Error("none")), health: { sent: 0, failures: 0, givenUp: { recipient: 0, message: 0, server: 0 }, failingSince: null, lastError: null } },
  });
  const pages = { monitors: () => [], statusPages: () => [], announce: () => {} };
  const facts = (row: MonitorRow | null) => row && factsOf(row);
  const told = new Incidents({
    ids, incidents, pages, changes, followIncidents: () => {},
    monitors: { find: (id) => facts(monitors.find(id)), monitor: (ref) => facts(monitors.monitor(ref)), probeStates: () => [] },
    checkChanges: () => [],
    timeZoneOf: () => "UTC",
    alerts: notifications,
    keyName: () => "Ada's key",
  });
  const outages = new Outages(told, notifications, () => "UTC");
  const [shop, cafe] = [monitors.monitor(1), monitors.monitor(2)];
  if (shop === null || cafe === null) throw new Error("no monitors");
  const noticed = (notice: Omit<ChannelNotification, "projectRef">) => (tx: Tx) =>
    notifications.notifyChannels(tx, { projectRef: shop.projectRef, ...notice });
  const steps: ((tx: Tx) => void)[] = [
    (tx) => follow(tx, outages, shop, false),
    (tx) => {
      const incident = told.openOf(shop.ref);
      const { account, project } = callerOf(server);
      told.acknowledge(tx, { account, project, credential: "" } as never, incident?.id ?? "");
    },
    (tx) => follow(tx, outages, { ...shop, status: "down" }, true),
    (tx) => follow(tx, outages, cafe, false),
    ...OTHERS.map((other) => noticed({ monitor: null, ...other })),
    ...OF_MONITORS.map((other) => noticed({ monitor: factsOf(shop), ...other })),
  ];
  for (const step of steps) await writer.submit(step);
  return sent.map((one) =>
    one
      .replaceAll(/inc_[0-9a-f]{32}/g, "inc_…")
      .replaceAll(shop.monitorId, "{monitor}")
      .replaceAll(cafe.monitorId, "{monitor}"),
  );

  function callerOf(from: TestServer) {
    const account = { userId: "usr_0" };
    return { account, project: { ref: shop?.projectRef, id: from.folder } };
  }
}

const OF_MONITORS: readonly Pick<ChannelNotification, "event" | "text" | "facts">[] = [
  { event: "monitor.degraded", text: "answers in 2400 ms, more than 2000 ms" },
  { event: "monitor.recovered", text: "answers in 120 ms again" },
  { event: "monitor.certificate", text: "the certificate ends in 7 days, on 2026-03-17" },
  { event: "monitor.flapping", text: "5 changes in 30 minutes · silent until 15 minutes pass without one" },
];
const OTHERS: readonly Pick<ChannelNotification, "event" | "title" | "text" | "facts">[] = [
  { event: "observer.offline", title: "This server's line", text: "from 12:01 to 12:20 UTC · nothing was checked" },
  { event: "maintenance.started", title: "New database", text: "until 14:00 UTC" },
  { event: "maintenance.ended", title: "New database", text: "began at 12:00 UTC" },
  { event: "catch.failed", title: "shop", text: "The event evt_1jjbpshg000 failed after 4 attempts: the target responded with 503" },
];

function follow(tx: Tx, outages: Outages, before: MonitorRow, up: boolean): void {
  const at = TEST_START_MS + (up ? 12 * MINUTE : -MINUTE);
  const made: CompletedCheck = up
    ? { up, at, manual: false, latencyMs: 84, responseStatus: 200, error: null }
    : { up, at, manual: false, latencyMs: 10_000, responseStatus: null, error: "timeout: no complete answer within 10000 ms" };
  const seen = { latencyMs: made.latencyMs, lastCheckedAt: at, consecutiveFailures: up ? 0 : 1, alertedAt: null };
  const after = { ...seen, degraded: false, streak: 0, status: up ? ("up" as const) : ("down" as const) };
  const outcome = { before: factsOf(before), after, check: made, event: up ? null : ("monitor.down" as const) };
  outages.carryOut(tx, { monitor: factsOf(before), outcome, health: [] });
}

function requestText({ event, target_url, body, destination }: Notification): string {
  const { url, headers } = destination ?? { url: target_url, headers: { "X-Svc-Signature": "sha256=…" } };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const shown = destination === undefined ? [] : [`  (shown as ${target_url})`];
  return [`${event}`, ...shown, `POST ${url}`, ...lines, "", body].join("\n");
}

function mailText({ to, subject, text }: MailMessage): string {
  return [`e-mail to ${to}`, `Subject: ${subject}`, "", text].join("\n");
}
