import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ALERT_EVENTS } from "../../../src/kernel/data/incident-words.ts";
import type { Client } from "../../support/client.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import { consoleOf, type TestServer } from "../../support/server.ts";
import { type Received, WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
const CHANNELS = "/v1/pulse/channels";
/** Part of every secret in these tests, so that they can be searched for it. */
const NEEDLE = "N33DLE";

let server: TestServer;
let site: WebhookSink;
let sink: WebhookSink;
let mail: MailServer;
let owner: Client;
beforeEach(async () => {
  [site, sink] = [new WebhookSink(), new WebhookSink()];
  ({ server, mail } = await startMailing(["--public-url", "https://ninefold.example"]));
  owner = await server.account({ tier: "pro", email: "owner@example.com" });
});
afterEach(async () => {
  await server.stop();
  await mail.stop();
  site.stop();
  sink.stop();
});

/** Every kind, each with the sink as its target. */
const KINDS = () => [
  { kind: "webhook", config: { url: sink.url("/webhook") } },
  { kind: "slack", config: { url: sink.url(`/slack/${NEEDLE}`) } },
  { kind: "discord", config: { url: sink.url(`/discord/${NEEDLE}`) } },
  { kind: "telegram", config: { url: sink.url("/tg/"), token: `12:${NEEDLE}`, chat_id: "-1009" } },
  { kind: "ntfy", config: { url: sink.url(`/${NEEDLE}`), token: `tk_${NEEDLE}` } },
  { kind: "gotify", config: { url: sink.url("/gotify/"), token: NEEDLE } },
  { kind: "apprise", config: { url: sink.url(`/notify/${NEEDLE}`) } },
  { kind: "email", config: { to: ["Owner@example.com"] } },
];

async function create(terms: object, client = owner): Promise<string> {
  const { status, body, text } = await client.post(CHANNELS, { name: "Chat", ...terms });
  expect(status, text).toBe(201);
  return String(body["id"]);
}

async function monitored(more: object = {}): Promise<string> {
  const monitor = { url: site.url("/health"), interval: 30_000, name: "Shop", ...more };
  const { status, body, text } = await owner.post("/v1/pulse", monitor);
  expect(status, text).toBe(201);
  return String(body["id"]);
}

/** The line with the link of an alert, which differs each time. Tests of incidents follow it. */
const ACTIONS = /(\\n|\n)Acknowledge or snooze: https:\/\/ninefold\.example\/alerts\/[\w-]+/;

/** The requests since the last call, without the links of alerts, by the first segment of their paths. */
function taken(): Record<string, Received> {
  return Object.fromEntries(
    sink.take().map((one) => [one.path.split("/")[1] ?? "", { ...one, body: one.body.replace(ACTIONS, "") }]),
  );
}

test("texts have the time zone of the project, stored errors have UTC", async () => {
  const client = await server.account();
  const { projects } = (await client.get("/v1/projects")).body as { projects: { id: string }[] };
  await client.patch(`/v1/projects/${projects[0]?.id}`, { time_zone: "Europe/Berlin" });
  await create({ kind: "webhook", config: { url: sink.url("/zoned") } }, client);
  const beat = { type: "heartbeat", period_ms: 60_000, grace_ms: 60_000, name: "Backup" };
  const { body } = await client.post("/v1/pulse", beat);
  await client.post(`/v1/pulse/${body["id"]}/ping`);
  await server.client(null).get(new URL(String(body["ping_url"])).pathname);
  sink.take();
  await server.clock.advance(180 * SECOND);
  const { zoned } = taken();
  const down = JSON.parse(zoned?.body ?? "{}");
  expect(down.text).toMatch(/Down since 13:\d\d Europe\/Berlin\.$/);
  expect(down.error).toMatch(/Expected 12:\d\d UTC/);
});

test("each kind gets its own request: down immediately, and up regardless of notify_recovery", async () => {
  for (const channel of KINDS()) await create(channel);
  const id = await monitored();
  await server.clock.advance(5 * SECOND);
  expect(sink.take()).toEqual([]);
  site.answers(503);
  await server.clock.advance(30 * SECOND);
  const link = `${await consoleOf(owner)}/monitors/${id}`;
  const since = "the target responded with 503 · since 12:00 UTC";
  const text = `${since} · ${link}`;
  const { webhook, slack, discord, tg, gotify, notify, ...others } = taken();
  const ntfy = others[NEEDLE];
  const down = JSON.parse(webhook?.body ?? "");
  const incident = (await owner.get("/v1/pulse/incidents")).body["incidents"] as { id: string }[];
  expect(down).toEqual({
    event: "monitor.down",
    monitor_id: id,
    name: "Shop",
    url: site.url("/health"),
    status: "down",
    previous_status: "up",
    error: "the target responded with 503",
    response_status: 503,
    latency_ms: down.latency_ms,
    consecutive_failures: 1,
    checked_at: down.checked_at,
    incident_id: incident[0]?.id,
    text: since,
    timestamp: down.timestamp,
  });
  expect(webhook?.headers.get("x-svc-signature")).toMatch(/^sha256=[0-9a-f]{64}$/);
  expect(webhook?.headers.get("webhook-signature")).toMatch(/^v1,/);
  expect(webhook?.headers.get("x-svc-event")).toBe("monitor.down");
  const said = `[DOWN] Shop\n${text}`;
  expect([slack?.path, slack?.body]).toEqual([`/slack/${NEEDLE}`, JSON.stringify({ text: said })]);
  expect(JSON.parse(discord?.body ?? "")).toEqual({ content: said, allowed_mentions: { parse: [] } });
  expect([tg?.path, tg?.body]).toEqual([
    `/tg/bot12:${NEEDLE}/sendMessage`,
    JSON.stringify({ chat_id: "-1009", text: said }),
  ]);
  expect([ntfy?.body, ntfy?.headers.get("title"), ntfy?.headers.get("priority")]).toEqual([
    text,
    "[DOWN] Shop",
    "5",
  ]);
  expect(ntfy?.headers.get("authorization")).toBe(`Bearer tk_${NEEDLE}`);
  expect(gotify?.path).toBe("/gotify/message");
  expect(gotify?.headers.get("x-gotify-key")).toBe(NEEDLE);
  expect(JSON.parse(gotify?.body ?? "")).toEqual({ title: "[DOWN] Shop", message: text, priority: 8 });
  expect(JSON.parse(notify?.body ?? "")).toEqual({ title: "[DOWN] Shop", body: text, type: "failure" });
  for (const item of [slack, discord, tg, ntfy, gotify, notify])
    expect([...(item?.headers.keys() ?? [])].filter((name) => /svc|signature/.test(name))).toEqual([]);
  expect(mail.received.map(({ to }) => to)).toEqual([["Owner@example.com"]]);
  expect(mail.received[0]?.raw).toContain("Subject: [DOWN] Shop\r\n");
  expect(mail.received[0]?.raw).toContain(
    `the target responded with 503\r\nsince 12:00 UTC\r\n\r\nURL: ${site.url("/health")}\r\nIncident: https://`,
  );
  site.answers(200);
  await server.clock.advance(30 * SECOND);
  const up = taken();
  expect(Object.keys(up).length).toBe(7);
  expect(JSON.parse(up["webhook"]?.body ?? "")).toMatchObject({
    event: "monitor.up",
    status: "up",
    previous_status: "down",
    incident_id: incident[0]?.id,
  });
  expect(up["slack"]?.body).toMatch(/\[UP\] Shop\\nresponded with 200 in \d+ ms · was down for 30 s · https/);
});

test("no secret appears in any view, log, audit entry or response", async () => {
  const ids: string[] = [];
  for (const channel of KINDS()) ids.push(await create(channel));
  // Some are delivered, some are rejected with a response that repeats the path, some are retried.
  sink.answersBy(({ path }) => {
    if (path.startsWith("/slack")) return 200;
    const status = path.startsWith("/tg") ? 404 : 500;
    return new Response(`no route ${path}`, { status, headers: { Location: path, "X-Path": path } });
  });
  site.answers(500);
  const id = await monitored();
  await server.clock.advance(120 * SECOND);
  for (const channel of ids) await owner.post(`${CHANNELS}/${channel}/test`);
  const { body } = await owner.get("/v1/relay?limit=100");
  const deliveries = body["deliveries"] as { relay_id: string }[];
  expect(deliveries.length).toBeGreaterThanOrEqual(7);
  const paths = [
    ...[CHANNELS, ...ids.map((channel) => `${CHANNELS}/${channel}`), "/v1/audit?limit=100"],
    ...["/v1/relay?limit=100&status=failed", ...deliveries.map(({ relay_id }) => `/v1/relay/${relay_id}`)],
    ...[`/v1/pulse/${id}`, "/v1/pulse/incidents", "/v1/overview"],
  ];
  for (const path of paths)
    expect([path, (await owner.get(path)).text.includes(NEEDLE)]).toEqual([path, false]);
  expect(JSON.stringify(server.logs)).not.toContain(NEEDLE);
  const { db } = server.server.kernel;
  const tables = db.all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")();
  expect(tables.length).toBeGreaterThan(30);
  for (const { name } of tables)
    for (const row of db.all<Record<string, string | number | Uint8Array | null>>(`SELECT * FROM ${name}`)())
      for (const value of Object.values(row)) {
        const bytes = value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value));
        expect([name, bytes.includes(NEEDLE)]).toEqual([name, false]);
      }
  const shown = (await owner.get(CHANNELS)).body["channels"] as { kind: string; config: object }[];
  expect(Object.fromEntries(shown.map(({ kind, config }) => [kind, config]))).toEqual({
    webhook: { url: sink.url("/webhook") },
    slack: { url: sink.url("/[secret]") },
    discord: { url: sink.url("/[secret]") },
    telegram: { url: sink.url("/tg/"), token: "[secret]", chat_id: "-1009" },
    ntfy: { url: sink.url("/[secret]"), token: "[secret]" },
    gotify: { url: sink.url("/gotify/"), token: "[secret]" },
    apprise: { url: sink.url("/[secret]") },
    email: { to: ["Owner@example.com"] },
  });
});

describe("recipients", () => {
  test("are the monitor's channels, none, or the project's default ones", async () => {
    await create({ kind: "slack", config: { url: sink.url("/default") } });
    const other = await create({ kind: "slack", config: { url: sink.url("/other") }, default: false });
    const own = await monitored({ channels: [other] });
    const silent = await monitored({ name: "Silent", channels: [] });
    const usual = await monitored({ name: "Usual" });
    expect((await owner.get(`/v1/pulse/${own}`)).body["channels"]).toEqual([other]);
    expect((await owner.get(`/v1/pulse/${silent}`)).body["channels"]).toEqual([]);
    expect((await owner.get(`/v1/pulse/${usual}`)).body["channels"]).toBeNull();
    site.answers(500);
    await server.clock.advance(5 * SECOND);
    const told = sink.take().map(({ path, body }) => [path, JSON.parse(body).text.split("\n")[0]]);
    expect(told.sort()).toEqual([
      ["/default", "[DOWN] Usual"],
      ["/other", "[DOWN] Shop"],
    ]);
    expect((await owner.put(`/v1/pulse/${own}`, { channels: null })).body["channels"]).toBeNull();
    await owner.put(`/v1/pulse/${usual}`, { channels: [other] });
    await owner.delete(`${CHANNELS}/${other}`);
    expect((await owner.get(`/v1/pulse/${usual}`)).body["channels"]).toBeNull();
    site.answers(200);
    await server.clock.advance(30 * SECOND);
    const up = sink.take().map(({ path, body }) => [path, JSON.parse(body).text.split("\n")[0]]);
    expect(up.sort()).toEqual([
      ["/default", "[UP] Shop"],
      ["/default", "[UP] Usual"],
    ]);
  });

  test("get a missed ping in plain words, with the body of the last ping", async () => {
    await create({ kind: "webhook", config: { url: sink.url("/webhook") } });
    await create({ kind: "slack", config: { url: sink.url("/slack") } });
    await create({ kind: "email", config: { to: ["owner@example.com"] } });
    const terms = { type: "heartbeat", name: "Backup", period_ms: 60 * SECOND, grace_ms: 60 * SECOND };
    const { body: beat } = await owner.post("/v1/pulse", terms);
    const ping = (body: string, path = "") =>
      fetch(String(beat["ping_url"]).replace("https://ninefold.example", server.url) + path, {
        method: "POST",
        body,
      });
    await ping("42 files\n\u0007ok\n");
    await server.clock.advance(120 * SECOND);
    const { webhook, slack } = taken();
    const text = "No ping for 2 min. Expected 12:01 UTC, grace 1 min. Down since 12:02 UTC.";
    expect(JSON.parse(webhook?.body ?? "")).toMatchObject({ text, last_ping_body: "42 files\n\u0007ok\n" });
    const link = `${await consoleOf(owner)}/monitors/${beat["id"]}`;
    expect(JSON.parse(slack?.body ?? "").text).toBe(
      `[DOWN] Backup\n${text} · ${link}\nLast ping: 42 files\nok`,
    );
    const raw = mail.received[0]?.raw ?? "";
    expect(raw).toContain(`${text}\r\n\r\nLast ping: 42 files\r\nok\r\n\r\nIncident: https://`);
    expect(raw).not.toContain("heartbeat:");
    await ping("");
    await server.clock.advance(SECOND);
    taken();
    await ping(`disk full ${"x".repeat(2_000)}`, "/fail");
    await server.clock.advance(SECOND);
    const failed = taken();
    expect(JSON.parse(failed["slack"]?.body ?? "").text).toMatch(
      /^\[DOWN\] Backup\nfail · since 12:02 UTC · https.+\nLast ping: disk full x{900,}…$/,
    );
  });

  test("get the channel's events, also after a restart, not again after the cooldown, and not for manual checks", async () => {
    await create({ kind: "slack", config: { url: sink.url("/all") }, events: ALERT_EVENTS });
    await create({ kind: "slack", config: { url: sink.url("/up") }, events: ["monitor.up"] });
    const id = await monitored({ interval: 30_000, cooldown_ms: 60_000 });
    site.answers(500);
    await owner.post(`/v1/pulse/${id}/check`);
    site.answers(200);
    await owner.post(`/v1/pulse/${id}/check`);
    expect(sink.take()).toEqual([]);
    await server.restart();
    owner = server.client(owner.key);
    site.answers(500);
    await server.clock.advance(35 * SECOND);
    await server.clock.advance(90 * SECOND);
    expect(sink.take().map(({ path }) => path)).toEqual(["/all"]);
    const { body } = await owner.get("/v1/pulse/incidents?status=open");
    const [incident] = body["incidents"] as { id: string }[];
    await owner.post(`/v1/pulse/incidents/${incident?.id}/acknowledge`);
    await owner.post(`/v1/pulse/incidents/${incident?.id}/acknowledge`);
    await server.clock.advance(90 * SECOND);
    const acknowledged = sink.take().map(({ path, body }) => [path, JSON.parse(body).text.split("\n")[0]]);
    expect(acknowledged).toEqual([["/all", "[ACKNOWLEDGED] Shop"]]);
    const { body: told } = await owner.post("/v1/pulse/incidents", { title: "Payments fail" });
    await owner.post(`/v1/pulse/incidents/${told["id"]}/acknowledge`);
    await server.clock.advance(0);
    const [by] = sink.take();
    expect(JSON.parse(by?.body ?? "").text).toMatch(
      /^\[ACKNOWLEDGED\] Payments fail\nby .* · since \d\d:\d\d UTC · /,
    );
    expect(by?.body).toContain(`${await consoleOf(owner)}/monitors/incidents/${told["id"]}`);
    site.answers(200);
    await server.clock.advance(30 * SECOND);
    expect(
      sink
        .take()
        .map(({ path }) => path)
        .sort(),
    ).toEqual(["/all", "/up"]);
  });

  test("a busy channel is retried after Retry-After; a rejection is not retried", async () => {
    await create({ kind: "discord", config: { url: sink.url("/busy") } });
    sink.answers(new Response(null, { status: 429, headers: { "Retry-After": "120" } }), 204);
    site.answers(500);
    await monitored({ interval: 300_000, cooldown_ms: 3_600_000 });
    await server.clock.advance(100 * SECOND);
    expect(sink.take().length).toBe(1);
    await server.clock.advance(25 * SECOND);
    expect(sink.take().length).toBe(1);
  });
});

describe("a test of a channel", () => {
  test("sends once and returns the result", async () => {
    for (const channel of KINDS().slice(0, 7)) {
      const id = await create({ ...channel, name: "Ops" });
      const sent = await owner.post(`${CHANNELS}/${id}/test`);
      expect([sent.status, sent.body]).toEqual([
        200,
        { status: "sent", response_status: 200, response: null, error: null },
      ]);
    }
    const requests = sink.take();
    expect(requests.length).toBe(7);
    expect(requests[0]?.headers.get("x-svc-signature")).toMatch(/^sha256=/);
    expect(JSON.parse(requests[0]?.body ?? "")).toMatchObject({ event: "channel.test", name: "Ops" });
    expect(JSON.parse(requests[1]?.body ?? "").text).toStartWith("[TEST] Ops\n");
    const failing = await create({ kind: "slack", config: { url: sink.url("/no") } });
    sink.answers(500);
    const refused = await owner.post(`${CHANNELS}/${failing}/test`);
    const error = "the target responded with 500";
    const answered = { status: "failed", response_status: 500, response: null, error };
    expect(refused.body).toEqual(answered);
    await server.clock.advance(60 * SECOND);
    expect(sink.take().length).toBe(1);
    sink.stop();
    const lost = await owner.post(`${CHANNELS}/${failing}/test`);
    expect(lost.body).toMatchObject({ status: "failed", response_status: null });
    expect(lost.body["error"]).toStartWith("connect: ");
  });

  test("of an e-mail channel sends the message and returns the response of the mail server", async () => {
    const id = await create({ kind: "email", name: "Ops", config: { to: ["owner@example.com"] } });
    const { body } = await owner.post(`${CHANNELS}/${id}/test`);
    expect(body).toEqual({
      status: "sent",
      response_status: 250,
      response: expect.stringMatching(/^250 /),
      error: null,
    });
    expect(mail.received[0]?.raw).toContain("Subject: [TEST] Ops");
  });

  test("shows what the mail server rejects, and that it cannot be reached", async () => {
    const id = await create({ kind: "email", config: { to: ["owner@example.com"] } });
    mail.refuseWith = 550;
    const rejected = await owner.post(`${CHANNELS}/${id}/test`);
    expect(rejected.body).toEqual({
      status: "failed",
      response_status: 550,
      response: null,
      error: expect.stringContaining("550 not today"),
    });
    expect((await owner.get(`${CHANNELS}/${id}`)).body).toMatchObject({
      last_sent_at: null,
      last_error: expect.stringContaining("550 not today"),
    });
    await mail.stop();
    const lost = await owner.post(`${CHANNELS}/${id}/test`);
    expect(lost.body).toMatchObject({
      status: "failed",
      response_status: null,
      error: "the mail server could not be reached",
    });
    await mail.start();
    mail.refuseWith = null;
    await owner.post(`${CHANNELS}/${id}/test`);
    expect((await owner.get(`${CHANNELS}/${id}`)).body).toMatchObject({
      last_sent_at: expect.any(String),
      last_error: null,
    });
  });

  test("an e-mail is sent to the account's current address, once for any spelling", async () => {
    const pro = await server.account({ tier: "pro", email: "old@example.com" });
    const to = ["old@example.com", "OLD@example.com"];
    const id = await create({ kind: "email", config: { to } }, pro);
    await pro.post(`${CHANNELS}/${id}/test`);
    await server.operator.patch(`/v1/admin/accounts/${pro.userId}`, { email: "new@example.com" });
    await pro.post(`${CHANNELS}/${id}/test`);
    const several = { kind: "email", config: { to: ["a@example.com", "b@example.com"] } };
    const ops = await create(several, server.operator);
    await server.operator.post(`${CHANNELS}/${ops}/test`);
    await server.clock.advance(SECOND);
    const sent = mail.received.flatMap(({ to }) => to);
    expect(sent.sort()).toEqual(["a@example.com", "b@example.com", "new@example.com", "old@example.com"]);
  });
});

test("a chat service that is down for half an hour still gets the alert; the monitor's webhook has four attempts", async () => {
  const hook = new WebhookSink();
  await create({ kind: "slack", config: { url: sink.url("/slack") } });
  await monitored({ webhook_url: hook.url("/own"), cooldown_ms: 60 * 60 * SECOND });
  await server.clock.advance(5 * SECOND);
  sink.answers(503);
  hook.answers(503);
  site.answers(503);
  await server.clock.advance(30 * SECOND + 6 * 60 * SECOND);
  expect([sink.take().length, hook.take().length]).toEqual([3, 4]);
  sink.answers(200);
  await server.clock.advance(30 * 60 * SECOND);
  expect(sink.take().length).toBeGreaterThanOrEqual(1);
  const { body } = await owner.get("/v1/relay?filter=pulse");
  const ended = (body["deliveries"] as { status: string }[]).map(({ status }) => status).sort();
  expect(ended).toEqual(["delivered", "failed"]);
  hook.stop();
});

test("an alert that is not delivered when the target recovers is merged with the recovery", async () => {
  await create({ kind: "slack", config: { url: sink.url("/slack") } });
  await monitored();
  await server.clock.advance(5 * SECOND);
  sink.answers(503);
  site.answers(503);
  await server.clock.advance(20 * 60 * SECOND);
  sink.take();
  site.answers(200);
  sink.answers(200);
  await server.clock.advance(40 * SECOND);
  const [merged, ...others] = sink.take().map(({ body }) => JSON.parse(body).text as string);
  expect(others).toEqual([]);
  expect(merged).toMatch(/^\[UP\] Shop\nwas down \d\d:\d\d–\d\d:\d\d UTC/);
  await server.clock.advance(24 * 60 * 60 * SECOND);
  expect(sink.take()).toEqual([]);
});

describe("the last result of a channel", () => {
  const lastOf = async (id: string): Promise<unknown[]> => {
    const { body } = await owner.get(`${CHANNELS}/${id}`);
    return [body["last_sent_at"], body["last_error"]];
  };

  test("is that of its last message, also while it is retried and after a restart", async () => {
    const id = await create({ kind: "slack", config: { url: sink.url("/slack") } });
    expect(await lastOf(id)).toEqual([null, null]);
    await monitored();
    sink.answers(500);
    site.answers(503);
    await server.clock.advance(5 * SECOND);
    expect(await lastOf(id)).toEqual([null, expect.stringContaining("500")]);
    await server.restart();
    owner = server.client(owner.key);
    sink.answers(200);
    await server.clock.advance(10 * SECOND);
    const [sentAt, error] = await lastOf(id);
    expect([typeof sentAt, error]).toEqual(["string", null]);
    sink.answers(404);
    site.answers(200);
    await server.clock.advance(60 * SECOND);
    expect(await lastOf(id)).toEqual([sentAt, expect.stringContaining("404")]);
    expect((await owner.patch(`${CHANNELS}/${id}`, { name: "Other" })).body["last_sent_at"]).toBe(sentAt);
    const { entries } = (await owner.get("/v1/audit?limit=1")).body as { entries: { after: object }[] };
    expect(Object.keys(entries[0]?.after ?? {})).not.toContain("last_error");
  });

  test("of an e-mail channel is that of the mail server", async () => {
    const id = await create({ kind: "email", config: { to: ["owner@example.com"] } });
    mail.refuseWith = 451;
    site.answers(503);
    await monitored();
    await server.clock.advance(5 * SECOND);
    expect(await lastOf(id)).toEqual([null, expect.stringContaining("451")]);
    const { mail: failing } = (await server.operator.get("/v1/admin/status")).body as { mail: object };
    expect(failing).toEqual({
      configured: true,
      queued: 1,
      sent: 0,
      failures: expect.any(Number),
      failing_since: expect.any(String),
      last_error: expect.stringContaining("451"),
    });
    const card = (await server.operator.get("/v1/overview")).body["mail"];
    expect(card).toEqual({ configured: true, failing_since: expect.any(String) });
    expect((await owner.get("/v1/overview")).body["mail"]).toBeUndefined();
    expect((await server.operator.get("/metrics")).text).toContain("\nninefold_mail_failing 1\n");
    mail.refuseWith = null;
    await server.clock.advance(60 * SECOND);
    expect(await lastOf(id)).toEqual([expect.any(String), null]);
    expect((await server.operator.get("/v1/overview")).body["mail"]).toEqual({
      configured: true,
      failing_since: null,
    });
    const { text } = await server.operator.get("/metrics");
    expect(text).toContain("\nninefold_mail_failing 0\n");
    expect(text).toContain("\nninefold_mail_sent_total 1\n");
  });
});
