import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const DAY = 24 * 3_600_000;
/** For tests of many days. */
const TIMEOUT_MS = 60_000;

/** What the registry responds. */
let respond: () => Response;
let asked: string[] = [];
let registry: ReturnType<typeof Bun.serve>;
let hooks: WebhookSink;
let server: TestServer;
let account: AccountClient;
const folder = mkdtempSync(join(tmpdir(), "ninefold-rdap-"));
const bootstrap = join(folder, "dns.json");

beforeAll(() => {
  registry = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      asked.push(new URL(request.url).pathname);
      return respond();
    },
  });
  writeFileSync(
    bootstrap,
    JSON.stringify({ services: [[["com"], [`http://127.0.0.1:${registry.port}/rdap`]]] }),
  );
  hooks = new WebhookSink();
});
afterAll(() => {
  registry.stop(true);
  hooks.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  asked = [];
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "loopback", "--rdap-bootstrap", bootstrap],
  });
  account = await server.account({ tier: "pro" });
  hooks.take();
});
afterEach(async () => {
  await server.stop();
});

/** The registry knows the name until a time, given in epoch milliseconds. */
function registeredUntil(at: number): void {
  const events = [
    { eventAction: "registration", eventDate: "1995-08-14T04:00:00Z" },
    { eventAction: "expiration", eventDate: new Date(at).toISOString() },
  ];
  respond = () => Response.json({ objectClassName: "domain", ldhName: "EXAMPLE.COM", events });
}

/** A response with a date of expiry as it is written. */
function expiring(eventDate: string): Response {
  return Response.json({ objectClassName: "domain", events: [{ eventAction: "expiration", eventDate }] });
}

async function create(more: object = {}): Promise<string> {
  const { status, body } = await account.post("/v1/pulse", { type: "domain", host: "example.com", ...more });
  expect(status).toBe(201);
  return String((body as { id: string }).id);
}

const view = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body as Record<string, unknown>;

/** Values of a metric. */
async function gauge(family: string): Promise<number[]> {
  const { text } = await server.operator.get("/metrics");
  return [...text.matchAll(new RegExp(`^${family}\\{.*\\} (.+)$`, "gm"))].map(([, value]) => Number(value));
}

/** A channel with the default events. */
async function channel(): Promise<void> {
  const hook = { name: "Hook", kind: "webhook", config: { url: hooks.url("/") } };
  expect((await account.post("/v1/pulse/channels", hook)).status).toBe(201);
}

/** What the channel was notified of since the last time: the days that are left, or another event. */
function told(): unknown[] {
  const sent = hooks.take().map(({ body }) => JSON.parse(body));
  return sent.map(({ event, days_left }) => (event === "monitor.domain" ? days_left : event));
}

async function days(count: number): Promise<void> {
  for (let day = 0; day < count; day += 1) await server.clock.advance(DAY);
}

/** Runs the first check. */
const first = () => server.clock.advance(5_000);

describe("a domain monitor", () => {
  test("is checked once a day at the registry of its name, and shows when that expires", async () => {
    const expiresAt = server.clock.now() + 100 * DAY;
    registeredUntil(expiresAt);
    const id = await create();
    expect(await view(id)).toMatchObject({
      interval: DAY,
      status: "unknown",
      domain: null,
      url: "domain:example.com",
    });
    await first();
    expect(asked).toEqual(["/rdap/domain/example.com"]);
    expect(await view(id)).toMatchObject({
      status: "up",
      name: "example.com",
      error: null,
      domain: { expires_at: Math.floor(expiresAt / 1_000), days_left: 99 },
    });
    expect(await gauge("ninefold_monitor_domain_expires_timestamp_seconds")).toEqual([expiresAt / 1_000]);
    const page = { title: "Acme", slug: "acme", published: true, groups: [{ name: "", monitor_ids: [id] }] };
    expect((await account.post("/v1/pulse/pages", page)).status).toBe(201);
    const badge = {
      schemaVersion: 1,
      label: "Monitor 1 registration",
      message: "99 days",
      color: "brightgreen",
    };
    expect((await account.get("/status/acme/badge/1.json?metric=domain")).body).toEqual(badge);
    // The second check is at the time of day of the monitor, up to two days later.
    await server.clock.advance(2 * DAY);
    const before = asked.length;
    await days(5);
    expect(asked.length).toBe(before + 5);
  });

  test(
    "notifies 30, 14, 7 and 1 days before, once each, and is down when the registration has expired",
    async () => {
      await channel();
      registeredUntil(server.clock.now() + 32 * DAY);
      const id = await create();
      await first();
      await days(33);
      expect(told()).toEqual([30, 14, 7, 1, "monitor.down"]);
      expect(await view(id)).toMatchObject({
        status: "down",
        error: expect.stringMatching(/^domain: the registration expired on \d{4}-\d\d-\d\d$/),
      });
      registeredUntil(server.clock.now() + 365 * DAY);
      await server.clock.advance(DAY);
      expect(await view(id)).toMatchObject({ status: "up" });
    },
    TIMEOUT_MS,
  );

  test(
    "is notified of once, also when the server restarts between two checks",
    async () => {
      await channel();
      registeredUntil(server.clock.now() + 32 * DAY);
      await create();
      await days(8);
      expect(told()).toEqual([30]);
      await server.restart();
      await days(8);
      expect(told()).toEqual([]);
      await days(8);
      expect(told()).toEqual([14]);
    },
    TIMEOUT_MS,
  );

  test(
    "that is renewed is notified of again before its new end",
    async () => {
      await channel();
      registeredUntil(server.clock.now() + 32 * DAY);
      await create();
      await days(20);
      expect(told()).toEqual([30, 14]);
      registeredUntil(server.clock.now() + 40 * DAY);
      await days(5);
      expect(told()).toEqual([]);
      await days(25);
      expect(told()).toEqual([30, 14]);
    },
    TIMEOUT_MS,
  );

  test("is checked by hand without a notification, and the next check notifies", async () => {
    await channel();
    registeredUntil(server.clock.now() + 100 * DAY);
    const id = await create();
    await first();
    registeredUntil(server.clock.now() + 20 * DAY);
    expect((await account.post(`/v1/pulse/${id}/check`)).status).toBe(200);
    expect(await view(id)).toMatchObject({ domain: { days_left: 20 } });
    await server.clock.advance(60_000);
    expect(told()).toEqual([]);
    await days(2);
    expect(told()).toHaveLength(1);
  });

  test("notifies of nothing during maintenance, but after it", async () => {
    await channel();
    const now = server.clock.now();
    registeredUntil(now + 13.5 * DAY);
    const at = (ms: number) => new Date(now + ms).toISOString();
    const planned = await account.post("/v1/pulse/maintenance", {
      title: "Work",
      monitor_ids: [await create()],
      starts_at: at(0),
      ends_at: at(3 * DAY),
    });
    expect(planned.status).toBe(201);
    await server.clock.advance(3 * DAY - 60_000);
    expect(told()).toEqual([]);
    await days(2);
    expect(told()).toHaveLength(1);
  });

  test.each([
    ["a name that is not registered", () => new Response("", { status: 404 }), /does not know example\.com/],
    ["an error", () => new Response("", { status: 503 }), /responded with 503/],
    ["no JSON", () => new Response("<html>"), /something else than a domain/],
    ["no date", () => Response.json({ objectClassName: "domain", events: [] }), /publishes no expiry/],
    [
      "another name",
      () => Response.json({ objectClassName: "domain", ldhName: "example.net", events: [] }),
      /about another name/,
    ],
    ["too much", () => new Response("[".repeat(300_000)), /did not respond/],
    ["a deep object", () => new Response("[".repeat(100_000)), /something else than a domain/],
    ["the year 1", () => expiring("0001-01-01T00:00:00Z"), /publishes no expiry/],
  ] as const)("is unknown after %s", async (_name, response, error) => {
    respond = response;
    const id = await create();
    await first();
    const { status, error: shown, domain } = await view(id);
    expect([status, domain]).toEqual(["unknown", null]);
    expect(shown).toMatch(error);
    expect(shown).toMatch(/^domain: /);
  });

  test("is unknown where the registry has no RDAP server", async () => {
    const id = await create({ host: "example.nosuch" });
    await first();
    expect(await view(id)).toMatchObject({
      status: "unknown",
      error: "domain: the registry of example.nosuch has no RDAP server",
    });
  });

  test.each([
    ["2031-06-30", "2031-06-30T00:00:00Z"],
    ["2031-06-30T23:59:59", "2031-06-30T23:59:59Z"],
    ["2031-06-30 23:59:59+02:00", "2031-06-30T21:59:59Z"],
    ["2031-06-30T23:59:60Z", "2031-06-30T23:59:59Z"],
    ["2031-06-30t23:59:59.123456789z", "2031-06-30T23:59:59Z"],
  ])("reads %s as %s", async (written, time) => {
    respond = () => expiring(written);
    const id = await create();
    await first();
    expect(await view(id)).toMatchObject({ status: "up", domain: { expires_at: Date.parse(time) / 1_000 } });
  });

  test("is unknown while the list of a file cannot be used, which is logged once", async () => {
    registeredUntil(server.clock.now() + 100 * DAY);
    const id = await create();
    await first();
    const checked = async () => {
      await account.post(`/v1/pulse/${id}/check`);
      return (await view(id))["error"];
    };
    const list = readFileSync(bootstrap, "utf8");
    rmSync(bootstrap);
    expect(await checked()).toBe("domain: the list of RDAP servers cannot be read");
    writeFileSync(bootstrap, "<html>");
    expect(await checked()).toBe("domain: the list of RDAP servers cannot be read");
    writeFileSync(bootstrap, list);
    expect(await checked()).toBeNull();
    const logged = server.logs.filter(({ message }) => message === "the list of RDAP servers cannot be read");
    expect(logged).toMatchObject([{ level: "warn" }]);
  });

  test.each([
    ["host", { host: "localhost" }],
    ["host", { host: "192.0.2.1" }],
    ["host", { host: `${"a".repeat(64)}.com` }],
    ["host", { host: "-example.com" }],
    ["host", { host: "example-.com" }],
    ["interval", { interval: 60_000 }],
    ["probes", { probes: ["local"] }],
  ])("rejects %s that does not suit it", async (field, more) => {
    const response = await account.post("/v1/pulse", { type: "domain", host: "example.com", ...more });
    expectError(response, "validation_error");
    expect(JSON.stringify(response.body)).toContain(field);
  });

  test("takes another name, in letters of any script, and forgets what it knew of the one before", async () => {
    registeredUntil(server.clock.now() + 100 * DAY);
    const id = await create();
    await first();
    expectError(await account.put(`/v1/pulse/${id}`, { host: "local" }), "validation_error");
    respond = () => new Response("", { status: 404 });
    expect((await account.put(`/v1/pulse/${id}`, { host: "Bücher.com" })).status).toBe(200);
    expect(await view(id)).toMatchObject({ domain: null, url: "domain:xn--bcher-kva.com" });
    await first();
    expect(asked.at(-1)).toBe("/rdap/domain/xn--bcher-kva.com");
  });
});
