import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import { consoleOf, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;

let server: TestServer;
let mail: MailServer;
let site: WebhookSink;
beforeEach(async () => {
  site = new WebhookSink();
  ({ server, mail } = await startMailing(["--public-url", "https://ninefold.example"]));
});
afterEach(async () => {
  await server.stop();
  await mail.stop();
  site.stop();
});

/** A closed port of this machine. */
async function closedPort(): Promise<number> {
  const sink = new WebhookSink();
  const { port } = sink;
  sink.stop();
  return port;
}

describe("e-mail alerts", () => {
  test("are sent to the account's address once on the outage and once on recovery", async () => {
    const account = await server.account({ tier: "pro", email: "owner@example.com" });
    const body = { url: site.url("/health"), interval: 30_000, email_alert: true, notify_recovery: true };
    const created = await account.post("/v1/pulse", body);
    expect(created.body).toMatchObject({ email_alert: true });
    await server.clock.advance(60 * SECOND);
    expect(mail.received).toEqual([]);
    site.answers(500);
    await server.clock.advance(90 * SECOND);
    expect(mail.received.map(({ to }) => to)).toEqual([["owner@example.com"]]);
    expect(mail.received[0]?.raw).toContain(`Subject: [DOWN] 127.0.0.1:${site.port}`);
    const { body: list } = await account.get("/v1/pulse/incidents");
    const [incident] = list["incidents"] as { id: string }[];
    expect(mail.received[0]?.raw).toContain("the target responded with 500\r\nsince 12:01 UTC\r\n\r\n");
    expect(mail.received[0]?.raw).toContain(
      `URL: ${site.url("/health")}\r\nIncident: ${await consoleOf(account)}/monitors/incidents/${incident?.id}\r\n`,
    );
    site.answers(200);
    await server.clock.advance(30 * SECOND);
    expect(mail.received.length).toBe(2);
    expect(mail.received[1]?.raw).toContain(`Subject: [UP] 127.0.0.1:${site.port}`);
    expect(mail.received[1]?.raw).toMatch(/responded with 200 in \d+ ms\r\nwas down for /);
    // Without a webhook there is nothing to deliver.
    expect((await account.get("/v1/relay?filter=pulse")).body["deliveries"]).toEqual([]);
  });

  test("contain the error and the name of the monitor", async () => {
    const account = await server.account({ tier: "pro" });
    const nobody = `http://127.0.0.1:${await closedPort()}/`;
    await account.post("/v1/pulse", { url: nobody, interval: 300_000, email_alert: true, name: "Shop" });
    await server.clock.advance(5 * SECOND);
    const { raw } = mail.received[0] ?? { raw: "" };
    expect(raw).toContain("Subject: [DOWN] Shop\r\n");
    expect(raw).toContain("connect: the connection was refused\r\n");
    expect(raw).toContain(`URL: ${nobody}`);
  });

  test("are retried until the mail server accepts them, also after a restart", async () => {
    await mail.stop();
    const account = await server.account({ tier: "pro" });
    site.answers(500);
    await account.post("/v1/pulse", { url: site.url(), interval: 300_000, email_alert: true });
    await server.clock.advance(5 * SECOND);
    await server.restart();
    await mail.start();
    await server.clock.advance(60 * SECOND);
    expect(mail.received.length).toBe(1);
  });
});

describe("e-mail alerts of a target that stays down", () => {
  /** Subjects of the e-mails since the last call. */
  const subjects = () =>
    mail.received.splice(0).map(({ raw }) => /^Subject: (.+)\r$/m.exec(raw)?.[1]?.replace(/127.+/, "site"));
  const monitor = { interval: 30_000, email_alert: true, notify_recovery: true, cooldown_ms: 60_000 };

  test("are not repeated, unlike the webhook after each cooldown", async () => {
    const hooks = new WebhookSink();
    const account = await server.account({ tier: "pro" });
    site.answers(500);
    await account.post("/v1/pulse", { ...monitor, url: site.url(), webhook_url: hooks.url() });
    await server.clock.advance(600 * SECOND);
    expect(subjects()).toEqual(["[DOWN] site"]);
    expect(hooks.take().length).toBeGreaterThan(8);
    hooks.stop();
  });

  test("are one e-mail with a channel to the same address, two with another", async () => {
    const account = await server.account({ tier: "unlimited", email: "one@example.com" });
    const email = (to: string) => ({ name: to, kind: "email", config: { to: [to] } });
    const { body: channel } = await account.post("/v1/pulse/channels", email("One@example.com"));
    site.answers(500);
    const { body: made } = await account.post("/v1/pulse", { ...monitor, url: site.url() });
    await server.clock.advance(60 * SECOND);
    expect(subjects()).toEqual(["[DOWN] site"]);
    site.answers(200);
    await server.clock.advance(60 * SECOND);
    expect(subjects()).toEqual(["[UP] site"]);
    // A channel that does not report recoveries leaves them to the alert of the monitor.
    await account.patch(`/v1/pulse/channels/${channel["id"]}`, { events: ["monitor.down"] });
    await account.post("/v1/pulse/channels", email("two@example.com"));
    site.answers(500);
    await server.clock.advance(60 * SECOND);
    expect(mail.received.flatMap(({ to }) => to).toSorted()).toEqual(["One@example.com", "two@example.com"]);
    mail.received.length = 0;
    site.answers(200);
    await server.clock.advance(60 * SECOND);
    expect(mail.received.flatMap(({ to }) => to).toSorted()).toEqual(["one@example.com", "two@example.com"]);
    expect((await account.get(`/v1/pulse/${made["id"]}`)).body["status"]).toBe("up");
  });

  test.each([
    ["of minutes", 600, /was down \d\d:\d\d–\d\d:\d\d UTC/],
    ["of a day, with dates", 22 * 3_600, /was down \d{4}-\d\d-\d\d \d\d:\d\d–\d{4}-\d\d-\d\d \d\d:\d\d UTC/],
  ])("are merged with the recovery after an outage of the mail server %s", async (_, seconds, text) => {
    const account = await server.account({ tier: "pro" });
    await account.post("/v1/pulse", { ...monitor, url: site.url(), interval: 300 * SECOND });
    await server.clock.advance(600 * SECOND);
    await mail.stop();
    site.answers(500);
    await server.clock.advance(seconds * SECOND);
    site.answers(200);
    await server.clock.advance(600 * SECOND);
    await mail.start();
    await server.clock.advance(3_600 * SECOND);
    const texts = mail.received.map(({ raw }) => raw.replaceAll("=E2=80=93", "–").replace(/=\r\n/g, ""));
    expect(texts).toEqual([expect.stringMatching(text)]);
    expect(subjects()).toEqual(["[UP] site"]);
  });
});

describe("a project that is deleted", () => {
  test("counts its monitors and deliveries, which stop immediately and are removed", async () => {
    const account = await server.account();
    const { body: project } = await account.post("/v1/projects", { name: "Short-lived" });
    const created = await account.post(`/v1/projects/${project["id"]}/keys`, {
      prefix: "sm",
      name: "all",
      scopes: ["*"],
    });
    const inside = server.client(String(created.body["secret"]));
    for (let number = 0; number < 3; number += 1) {
      await inside.post("/v1/pulse", { url: site.url("/checked"), interval: 15_000 });
    }
    const relay = { target_url: site.url("/hook"), method: "POST", delay: "1h", payload: {}, headers: {} };
    for (let number = 0; number < 2; number += 1) await inside.post("/v1/relay", relay);
    const cancelled = await inside.post("/v1/relay", relay);
    await inside.delete(`/v1/relay/${cancelled.body["relay_id"]}`);
    await server.clock.advance(5 * SECOND);
    expect(site.take().length).toBe(3);
    const overview = await account.get(`/v1/projects/${project["id"]}/overview`);
    expect(overview.body["resources"]).toMatchObject({ monitors: 3, relays: 2 });
    expect((await account.delete(`/v1/projects/${project["id"]}`)).status).toBe(200);
    await server.clock.advance(2 * 3_600 * SECOND);
    expect(site.take()).toEqual([]);
    const { db } = server.server.kernel;
    for (const table of ["monitors", "monitor_states", "monitor_hours", "relays", "relay_attempts"]) {
      expect([table, db.one(`SELECT count(*) AS rows FROM ${table}`)()]).toEqual([table, { rows: 0 }]);
    }
    const jobs = db.all("SELECT kind FROM jobs WHERE kind IN ('monitors.check', 'relay.deliver')")();
    expect(jobs).toEqual([]);
  });
});

test("a project key sees only its monitors and deliveries", async () => {
  const account = await server.account();
  const { body: project } = await account.post("/v1/projects", { name: "Other" });
  const created = await account.post(`/v1/projects/${project["id"]}/keys`, {
    prefix: "sm",
    name: "reader",
    scopes: ["pulse:read", "relay:read"],
  });
  const inside = server.client(String(created.body["secret"]));
  const monitor = { url: site.url(), interval: 15_000 };
  const relay = { target_url: site.url(), method: "POST", delay: "1h", payload: {}, headers: {} };
  const { body: outer } = await account.post("/v1/pulse", monitor);
  const { body: delivery } = await account.post("/v1/relay", relay);
  expect((await inside.get("/v1/pulse")).body).toEqual({ monitors: [] });
  expect((await inside.get("/v1/relay")).body).toEqual({ deliveries: [] });
  expectError(await inside.get(`/v1/pulse/${outer["id"]}`), "not_found");
  expectError(await inside.get(`/v1/relay/${delivery["relay_id"]}`), "not_found");
  for (const answer of [
    await inside.post("/v1/pulse", monitor),
    await inside.post(`/v1/pulse/${outer["id"]}/check`),
    await inside.post("/v1/relay", relay),
    await inside.delete(`/v1/relay/${delivery["relay_id"]}`),
  ]) {
    expect(expectError(answer, "forbidden").error.message).toContain(":write");
  }
});

test("a tier change applies immediately: a shorter interval is raised to the new minimum", async () => {
  const account = await server.account({ tier: "scale" });
  await account.post("/v1/pulse", { url: site.url(), interval: 15_000 });
  await server.clock.advance(20 * SECOND);
  site.take();
  await server.clock.advance(300 * SECOND);
  expect(site.take().length).toBe(20);
  await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "starter" });
  await server.clock.advance(60 * SECOND);
  site.take();
  await server.clock.advance(600 * SECOND);
  expect(site.take().length).toBe(10);
});
