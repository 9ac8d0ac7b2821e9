import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { LINKS_PER_MINUTE } from "../../../src/areas/incidents/link-routes.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import { AccountClient, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const PUBLIC_URL = "https://ninefold.example";

let server: TestServer;
let site: WebhookSink;
let sink: WebhookSink;
let mail: MailServer;
let owner: AccountClient;
/** The paths of the channels of a test: monitors of earlier ones go on. */
let prefix: string;
beforeAll(async () => {
  [site, sink] = [new WebhookSink(), new WebhookSink()];
  ({ server, mail } = await startMailing(["--public-url", PUBLIC_URL]));
});
afterAll(async () => {
  await server.stop();
  await mail.stop();
  site.stop();
  sink.stop();
});
beforeEach(async () => {
  owner = await server.account({ tier: "pro" });
  prefix = `/${crypto.randomUUID()}`;
});

async function channel(name: string, more: object = {}): Promise<void> {
  const settings = { name, kind: "discord", config: { url: sink.url(`${prefix}/${name}`) }, ...more };
  const { status, text } = await owner.post("/v1/pulse/channels", settings);
  expect([status, text]).toEqual([201, expect.any(String)]);
}

/** Creates a monitor whose target goes down. */
async function outage(more: object = {}): Promise<string> {
  site.answers(200);
  const monitor = { url: site.url("/health"), interval: MINUTE, name: "Shop", ...more };
  const { body } = await owner.post("/v1/pulse", monitor);
  await server.clock.advance(5 * SECOND);
  site.answers(503);
  await server.clock.advance(2 * MINUTE);
  return String(body["id"]);
}

/** The texts that were sent since the last call, by the path of the channel. */
function received(): string[] {
  return bodies().map(({ name, body }) => `/${name} ${(JSON.parse(body) as { content: string }).content}`);
}

function bodies() {
  return sink
    .take()
    .filter(({ path }) => path.startsWith(`${prefix}/`))
    .map(({ path, body }) => ({ name: path.slice(prefix.length + 1), body }));
}

const LINK = /https:\/\/ninefold\.example(\/alerts\/[A-Za-z0-9_-]+)/;
const linkIn = (text: string | undefined): string => LINK.exec(text ?? "")?.[1] ?? "none";

async function open(path: string, action?: string) {
  const headers = { accept: "text/html" };
  const form =
    action === undefined ? { headers } : { headers, method: "POST", body: new URLSearchParams({ action }) };
  const response = await fetch(`${server.url}${path}`, form);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const incident = async () => {
  const { body } = await owner.get("/v1/pulse/incidents");
  return (body["incidents"] as Record<string, unknown>[])[0] ?? {};
};

describe("the link of an alert", () => {
  test("acknowledges the outage by a form, once, with the name of the channel", async () => {
    await channel("chat", { events: ["monitor.down", "monitor.acknowledged"], remind: "1h" });
    await outage();
    const [alert] = received();
    expect(alert).toContain("Acknowledge or snooze: ");
    const link = linkIn(alert);
    const page = await open(link);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.headers.get("cache-control")).toBe("no-store");
    expect(page.text).toContain("Shop is down");
    expect((await incident())["acknowledged_at"]).toBeNull();
    expect((await open(link, "delete")).status).toBe(400);
    expect((await open(link, "acknowledge")).text).toContain("Acknowledged by chat (link)");
    expect(await incident()).toMatchObject({ acknowledged_by: "chat (link)", snoozed_until: null });
    await server.clock.advance(0);
    const [notice] = received();
    expect(notice).toContain("[ACKNOWLEDGED] Shop");
    expect(notice).not.toContain("/alerts/");
    for (const again of [await open(link), await open(link, "acknowledge"), await open(link, "snooze")])
      expect(again.status).toBe(410);
    await server.clock.advance(3 * HOUR);
    expect(received()).toEqual([]);
    const { body } = await owner.get("/v1/audit?limit=1");
    expect(body["entries"]).toMatchObject([
      { action: "monitors.incidents.acknowledge", actor: { type: "public" } },
    ]);
  });

  test("snoozes the outage for an hour, after which channels are notified again", async () => {
    await channel("phone", { default: false });
    const { channels } = (await owner.get("/v1/pulse/channels")).body as { channels: { id: string }[] };
    const escalate = [{ after_ms: 10 * MINUTE, channel_ids: [channels[0]?.id] }];
    await channel("chat", { escalate });
    await outage();
    const link = linkIn(received()[0]);
    const answer = await open(link, "snooze");
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("Snoozed")]);
    const until = Date.parse(String((await incident())["snoozed_until"]));
    expect(until - server.clock.now()).toBe(HOUR);
    expect(await incident()).toMatchObject({ acknowledged_at: null });
    await server.clock.advance(58 * MINUTE);
    expect(received()).toEqual([]);
    await server.clock.advance(3 * MINUTE);
    const after = received();
    expect(after.map((text) => text.split(" ")[0]).toSorted()).toEqual(["/chat", "/phone"]);
    expect(linkIn(after[0])).not.toBe(link);
    expect((await open(link)).status).toBe(410);
    expect((await open(linkIn(after[0]))).status).toBe(200);
    site.answers(200);
    await server.clock.advance(MINUTE);
    expect((await open(linkIn(after[0]))).status).toBe(410);
    expect((await open(linkIn(after[1]), "acknowledge")).status).toBe(410);
  });

  test("says of an acknowledged outage that it is, and does not snooze it", async () => {
    await channel("chat");
    await channel("phone");
    await outage();
    const [link = "", other = ""] = received().map(linkIn);
    const { id } = await incident();
    expect((await owner.post(`/v1/pulse/incidents/${id}/acknowledge`, {})).status).toBe(200);
    const page = await open(link);
    expect(page.text).toContain("Nobody is notified again until the target recovers.");
    expect(page.text).not.toContain("<form");
    // Opened before it was acknowledged.
    const { status, text } = await open(link, "snooze");
    expect([status, text]).toEqual([200, expect.stringContaining("<h1>Acknowledged</h1>")]);
    expect(await incident()).toMatchObject({ acknowledged_at: expect.any(String), snoozed_until: null });
    const { body } = await owner.get("/v1/audit?limit=1");
    expect(body["entries"]).toMatchObject([{ actor: { type: expect.not.stringContaining("public") } }]);
    expect((await open(link)).status).toBe(410);
    expect((await open(other, "acknowledge")).status).toBe(200);
  });

  test("is of one recipient, and 404 if it is altered", async () => {
    await channel("a");
    await channel("b");
    await outage();
    const links = received().map(linkIn);
    expect(new Set(links).size).toBe(2);
    const [link = ""] = links;
    for (const altered of [
      `${link}A`,
      `${link.slice(0, -4)}AAAA`,
      "/alerts/x",
      `/alerts/${Buffer.from("1/1").toString("base64url")}`,
    ]) {
      const { status, text } = await open(altered);
      expect([status, text]).toEqual([404, expect.stringContaining("not valid")]);
      expect((await open(altered, "acknowledge")).status).toBe(404);
    }
    for (const one of links) expect((await open(one, "acknowledge")).status).toBe(200);
  });

  test("does nothing by requests of prefetchers, however often, and acts once when two people press at once", async () => {
    await channel("chat");
    await outage();
    const link = linkIn(received()[0]);
    const request = (method: string, init: RequestInit = {}) =>
      fetch(`${server.url}${link}`, { method, redirect: "manual", ...init });
    for (const headers of [
      { purpose: "prefetch" },
      { "sec-purpose": "prefetch;prerender" },
      { accept: "*/*" },
    ])
      expect((await request("GET", { headers })).status).toBe(200);
    const head = await request("HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
    for (const query of ["?action=acknowledge", "?action=snooze"])
      expect((await open(`${link}${query}`)).status).toBe(200);
    for (const method of ["OPTIONS", "PUT", "DELETE", "PATCH"])
      expect((await request(method)).status, method).toBeGreaterThanOrEqual(204);
    for (const body of [
      "",
      "action=",
      "action=Acknowledge",
      "ACTION=snooze",
      '{"action":"snooze"}',
      "x".repeat(60_000),
    ])
      expect((await request("POST", { body })).status, body.slice(0, 20)).toBe(400);
    expect(await incident()).toMatchObject({ acknowledged_at: null, snoozed_until: null });
    const both = await Promise.all([open(link, "acknowledge"), open(link, "snooze")]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 410]);
    const { acknowledged_at, snoozed_until } = await incident();
    expect([acknowledged_at, snoozed_until].filter((time) => time === null)).toHaveLength(1);
  });

  test("is of its server, its account and its outage only", async () => {
    await channel("chat");
    const id = await outage();
    const link = linkIn(received()[0]);
    const setSuspended = (suspended: boolean) =>
      server.operator.patch(`/v1/admin/accounts/${owner.userId}`, { suspended });
    await setSuspended(true);
    expect([(await open(link)).status, (await open(link, "snooze")).status]).toEqual([404, 404]);
    await setSuspended(false);
    expect((await open(link)).status).toBe(200);
    // Another server, and what else this one seals, are no links.
    const token = link.slice("/alerts/".length);
    const bytes = Buffer.from(token, "base64url");
    for (const [at, byte] of bytes.entries()) {
      if (at % 7 !== 0) continue;
      const altered = Buffer.from(bytes);
      altered[at] = byte ^ 1;
      await server.clock.advance(2 * SECOND);
      expect((await open(`/alerts/${altered.toString("base64url")}`, "acknowledge")).status).toBe(404);
    }
    await server.clock.advance(MINUTE);
    const { vault } = server.server.kernel;
    const other = Buffer.from(vault.seal(String((await incident())["id"]), "channel-config"));
    expect((await open(`/alerts/${other.toString("base64url")}`)).status).toBe(404);
    // A reference of a former incident, as a restored backup gives it to another one.
    const [{ ref } = { ref: 0 }] = server.server.kernel.db.all<{ ref: number }>(
      "SELECT max(ref) AS ref FROM incidents",
    )();
    const former = Buffer.from(vault.seal(`${ref}/1`, "alert-link")).toString("base64url");
    expect((await open(`/alerts/${former}`, "acknowledge")).status).toBe(410);
    expect((await open(`/alerts/${"A".repeat(201)}`)).status).toBe(400);
    expect((await owner.delete(`/v1/pulse/${id}`)).status).toBeLessThan(300);
    for (const action of [undefined, "acknowledge", "snooze"])
      expect((await open(link, action)).status).toBe(410);
  });

  test("ends with its project", async () => {
    const account = owner;
    const { id: project } = (await account.post("/v1/projects", { name: "Other" })).body;
    const key = { prefix: "sm", name: "other", scopes: ["pulse:*"] };
    const { secret } = (await account.post(`/v1/projects/${project}/keys`, key)).body;
    owner = new AccountClient(server.url, String(secret), account.userId, account.email);
    await channel("chat");
    await outage();
    const link = linkIn(received()[0]);
    expect((await open(link)).status).toBe(200);
    expect((await account.delete(`/v1/projects/${project}`)).status).toBe(200);
    for (const action of ["acknowledge", undefined]) expect((await open(link, action)).status).toBe(410);
  });

  test("is in e-mails, and not in webhooks", async () => {
    await channel("hook", { kind: "webhook" });
    mail.received.length = 0;
    await outage({ email_alert: true });
    expect(bodies().map(({ body }) => body.includes("/alerts/"))).toEqual([false]);
    const text = mail.received[0]?.raw.replaceAll("=\r\n", "").replaceAll("=3D", "=");
    const link = linkIn(text);
    expect((await open(link, "acknowledge")).text).toContain("Acknowledged by a link");
  });

  test("can be opened so often by a network", async () => {
    await server.clock.advance(MINUTE);
    const answers: number[] = [];
    for (let count = 0; count <= LINKS_PER_MINUTE; count += 1) answers.push((await open("/alerts/x")).status);
    expect(answers.slice(0, -1).every((status) => status === 404)).toBe(true);
    expect(answers.at(-1)).toBe(429);
  });
});
