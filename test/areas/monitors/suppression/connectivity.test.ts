import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { isoTime } from "../../../../src/kernel/time/date-time.ts";
import { AllEvents } from "../../../support/all-events.ts";
import { Line } from "../../../support/line.ts";
import { scrape } from "../../../support/metrics.ts";
import { AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const CUT = "this server is offline: failures of monitors are ignored until it is online again";
const BACK = "this server is online again";

let line: Line;
let site: WebhookSink;
let hooks: WebhookSink;
let channel: AllEvents;
let server: TestServer;
let account: AccountClient;
beforeEach(() => {
  line = new Line();
  site = new WebhookSink();
  hooks = new WebhookSink();
  channel = new AllEvents();
});
afterEach(async () => {
  await server.stop();
  site.stop();
  hooks.stop();
  channel.stop();
});

async function start(...args: string[]): Promise<void> {
  const permitted = ["--allow-private-targets", "127.0.0.0/8", ...args];
  server = await startTestServer({ manualClock: true, args: permitted, deps: { outbound: line.overrides } });
  account = await server.account();
  await channel.open(account);
}

async function restart(): Promise<void> {
  await server.restart();
  account = new AccountClient(server.url, account.key ?? "", account.userId, account.email);
}

async function watch(host: string, change: object = {}): Promise<string> {
  const url = `http://${host}:${site.port}/`;
  const alerts = { webhook_url: hooks.url(`/${host}`), notify_recovery: true };
  const answer = await account.post("/v1/pulse", { url, interval: 15_000, ...alerts, ...change });
  expect(answer.status).toBe(201);
  return String(answer.body["id"]);
}

const statusOf = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body["status"];

async function historyOf(id: string) {
  const { body } = await account.get(`/v1/pulse/${id}/history?limit=100`);
  return body as unknown as {
    checks: { status: string; observer_offline: boolean; error: string | null; checked_at: number }[];
    uptime: Record<string, number | null>;
  };
}

/** The alerts that webhooks have received since the last call, in order. */
const told = (): string[] => hooks.take().map(({ path, body }) => `${path} ${JSON.parse(body).event}`);

const online = async (): Promise<number | null> =>
  (await scrape(server.operator)).find("ninefold_observer_online");

const logged = (wanted: string): number => server.logs.filter(({ message }) => message === wanted).length;

const outages = () =>
  server.server.kernel.db.all<{ from_at: number; to_at: number | null }>(
    "SELECT from_at, to_at FROM monitor_observer_outages",
  )();

describe("without observer targets", () => {
  test("an offline server sends no alerts and changes no status; once it is online, all monitors are checked within 15 s", async () => {
    await start();
    const ids = [await watch("a.example"), await watch("b.example"), await watch("c.example")];
    const inside = await watch("127.0.0.1");
    await server.clock.advance(2 * MINUTE);
    expect(await online()).toBe(1);
    line.isUp = false;
    const cutAt = server.clock.now();
    await server.clock.advance(5 * MINUTE);
    expect(told()).toEqual([]);
    expect(channel.take()).toEqual([]);
    expect(await online()).toBe(0);
    expect(logged(CUT)).toBe(1);
    for (const id of ids) {
      expect(await statusOf(id)).toBe("up");
      const { checks, uptime } = await historyOf(id);
      expect(uptime["24h"]).toBe(100);
      const during = checks.filter(({ checked_at }) => checked_at * 1_000 > cutAt);
      expect(during.length).toBeGreaterThanOrEqual(19);
      expect(during.every((check) => check.observer_offline && check.status === "down")).toBe(true);
    }
    // Results of the private network neither prove nor disprove connectivity.
    expect((await historyOf(inside)).checks.every((check) => !check.observer_offline)).toBe(true);
    const byHand = await account.post(`/v1/pulse/${ids[0]}/check`);
    expect(byHand.body).toMatchObject({ status: "up", consecutive_failures: 0 });
    expect((await historyOf(ids[0] ?? "")).checks[0]).toMatchObject({ observer_offline: true });
    line.isUp = true;
    await server.clock.advance(10 * SECOND);
    expect(await online()).toBe(1);
    expect(logged(BACK)).toBe(1);
    const [outage] = outages();
    expect(outage?.from_at).toBeGreaterThanOrEqual(cutAt);
    expect(outage?.to_at).toBeLessThanOrEqual(server.clock.now());
    await server.clock.advance(15 * SECOND - (server.clock.now() - (outage?.to_at ?? 0)));
    for (const id of ids) {
      const [newest] = (await historyOf(id)).checks;
      expect(newest).toMatchObject({ status: "up", observer_offline: false });
    }
    expect(told()).toEqual([]);
    const [notice, ...others] = channel.takeBodies();
    expect(others).toEqual([]);
    expect(notice).toMatchObject({
      event: "observer.offline",
      from: isoTime(outage?.from_at ?? 0),
      to: isoTime(outage?.to_at ?? 0),
    });
    const { body } = await account.get("/v1/pulse/incidents");
    expect(body["incidents"]).toEqual([]);
  });

  test("a single host that fails is down", async () => {
    await start();
    const ids = [await watch("a.example"), await watch("b.example"), await watch("c.example")];
    await server.clock.advance(MINUTE);
    line.gone.add("b.example");
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/b.example monitor.down"]);
    expect(await Promise.all(ids.map(statusOf))).toEqual(["up", "down", "up"]);
    expect(await online()).toBe(1);
    // The server goes offline as well, and no further alert is sent.
    line.isUp = false;
    await server.clock.advance(10 * MINUTE);
    expect(told()).toEqual([]);
    expect(await online()).toBe(0);
    line.isUp = true;
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/b.example monitor.down"]);
    const port = `b.example:${site.port}`;
    // Only the webhook repeats its alert after the cooldown.
    expect(channel.take()).toEqual([`${port} monitor.down`, "The monitoring server observer.offline"]);
  });

  test("two failing hosts are not enough: both are down", async () => {
    await start();
    await watch("a.example");
    await watch("b.example");
    await watch("127.0.0.1");
    await server.clock.advance(MINUTE);
    line.isUp = false;
    await server.clock.advance(MINUTE);
    expect(told().sort()).toEqual(["/a.example monitor.down", "/b.example monitor.down"]);
    expect(await online()).toBe(1);
  });

  test("any response proves connectivity, whatever its status", async () => {
    await start();
    const hosts = ["a.example", "b.example", "c.example"];
    for (const host of hosts) await watch(host);
    await server.clock.advance(MINUTE);
    site.answers(500);
    await server.clock.advance(MINUTE);
    expect(told().sort()).toEqual(hosts.map((host) => `/${host} monitor.down`));
    expect(await online()).toBe(1);
  });

  test("dead hosts of one account do not make the server offline while rarely checked hosts of others respond", async () => {
    await start();
    const rare = await watch("rare.example", { interval: 300_000 });
    await server.clock.advance(5 * MINUTE);
    expect(await statusOf(rare)).toBe("up");
    await server.clock.advance(2 * MINUTE);
    const other = await server.account();
    for (const host of ["x.example", "y.example", "z.example"]) {
      line.gone.add(host);
      const monitor = { url: `http://${host}:${site.port}/`, interval: 15_000, consecutive_threshold: 3 };
      expect((await other.post("/v1/pulse", monitor)).status).toBe(201);
    }
    await server.clock.advance(90 * SECOND);
    expect([await online(), logged(CUT), outages()]).toEqual([1, 0, []]);
  });

  test("the server does not stay offline if no public host is checked any more", async () => {
    await start();
    const ids = [await watch("a.example"), await watch("b.example"), await watch("c.example")];
    await server.clock.advance(MINUTE);
    line.isUp = false;
    await server.clock.advance(MINUTE);
    expect(await online()).toBe(0);
    for (const id of ids) await account.put(`/v1/pulse/${id}`, { active: false });
    await restart();
    expect(await online()).toBe(0);
    await server.clock.advance(20 * SECOND);
    expect(await online()).toBe(1);
  });

  test("the end of an outage is detected after the clock was set back", async () => {
    await start();
    const ids = [await watch("a.example"), await watch("b.example"), await watch("c.example")];
    await server.clock.advance(MINUTE);
    line.isUp = false;
    await server.clock.advance(MINUTE);
    expect(await online()).toBe(0);
    server.clock.setWall(-60 * MINUTE);
    await server.clock.advance(0);
    line.isUp = true;
    await server.clock.advance(30 * SECOND);
    expect(await online()).toBe(1);
    expect(await Promise.all(ids.map(statusOf))).toEqual(["up", "up", "up"]);
  });

  test("an outage is reported after a restart", async () => {
    await start();
    const ids = [await watch("a.example"), await watch("b.example"), await watch("c.example")];
    await server.clock.advance(MINUTE);
    line.isUp = false;
    await server.clock.advance(MINUTE);
    await restart();
    expect(await online()).toBe(0);
    await server.clock.advance(5 * MINUTE);
    expect(told()).toEqual([]);
    line.isUp = true;
    await server.clock.advance(30 * SECOND);
    expect(await online()).toBe(1);
    expect(await Promise.all(ids.map(statusOf))).toEqual(["up", "up", "up"]);
    expect(outages().length).toBe(1);
  });
});

describe("with several accounts", () => {
  const DEAD = ["v.example", "w.example", "x.example", "y.example", "z.example"];

  /** Another account that monitors hosts, each in a different network. */
  async function others(hosts: readonly string[]): Promise<AccountClient> {
    const other = await server.account();
    for (const [index, host] of hosts.entries()) {
      line.place(host, `8.8.${index}.1`);
      const monitor = { url: `http://${host}:${site.port}/`, interval: 15_000 };
      expect((await other.post("/v1/pulse", monitor)).status).toBe(201);
    }
    return other;
  }

  test("an account whose hosts all fail does not suppress alerts of others", async () => {
    await start();
    const victim = await watch("a.example");
    await watch("b.example");
    await others(DEAD);
    await server.clock.advance(MINUTE);
    for (const host of ["a.example", ...DEAD]) line.gone.add(host);
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/a.example monitor.down"]);
    expect([await statusOf(victim), await online(), logged(CUT)]).toEqual(["down", 1, 0]);
  });

  test("hosts of one account suppress only its alerts, and no heartbeat of others", async () => {
    await start();
    const beat = { type: "heartbeat", name: "Backup", period_ms: MINUTE, grace_ms: MINUTE };
    const { body } = await account.post("/v1/pulse", beat);
    await fetch(server.url + new URL(String(body["ping_url"])).pathname);
    const other = await others(DEAD);
    const its = await other.post("/v1/pulse", beat);
    await fetch(server.url + new URL(String(its.body["ping_url"])).pathname);
    await server.clock.advance(30 * SECOND);
    for (const host of DEAD) line.gone.add(host);
    await server.clock.advance(3 * MINUTE);
    expect(channel.take()).toEqual(["Backup monitor.down"]);
    const { body: list } = await other.get("/v1/pulse");
    const statuses = (list["monitors"] as { status: string }[]).map(({ status }) => status);
    expect([statuses, await online(), logged(CUT)]).toEqual([Array(6).fill("up"), 1, 0]);
    line.gone.clear();
    await server.clock.advance(5 * MINUTE);
    const beatOf = async () => (await other.get(`/v1/pulse/${its.body["id"]}`)).body["status"];
    expect(await beatOf()).toBe("down");
  });

  test("failing hosts of two accounts in three networks are enough", async () => {
    await start();
    await watch("a.example");
    await others(["x.example", "y.example"]);
    await server.clock.advance(MINUTE);
    line.isUp = false;
    await server.clock.advance(MINUTE);
    expect([told(), await online(), logged(CUT)]).toEqual([[], 0, 1]);
  });

  test("an account cannot change the results that another has for a host", async () => {
    await start();
    for (const host of ["a.example", "b.example"]) await watch(host);
    await others(["a.example", "b.example", ...DEAD]);
    await server.clock.advance(MINUTE);
    expect(await online()).toBe(1);
    line.gone.add("a.example");
    for (const host of DEAD) line.gone.add(host);
    await server.clock.advance(MINUTE);
    expect([told(), await online()]).toEqual([["/a.example monitor.down"], 1]);
  });
});

test("an outage immediately after a successful probe is detected", async () => {
  await start();
  for (const host of ["a.example", "b.example", "c.example", "d.example"]) await watch(host);
  await server.clock.advance(MINUTE);
  line.gone.add("a.example");
  while (told().length === 0) await server.clock.advance(100);
  line.isUp = false;
  await server.clock.advance(9 * SECOND);
  expect([told(), await online()]).toEqual([[], 0]);
});

describe("with observer targets", () => {
  test("the server is offline while none is reached, and online with the first", async () => {
    const { port } = site;
    await start("--observer-targets", `one.example:${port},${line.addressOf("two.example")}:${port}`);
    const id = await watch("a.example");
    await server.clock.advance(MINUTE);
    line.gone.add("one.example");
    line.gone.add("a.example");
    await server.clock.advance(MINUTE);
    // The other target responds: only this host is down.
    expect(told()).toEqual(["/a.example monitor.down"]);
    line.gone.clear();
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["/a.example monitor.up"]);
    line.isUp = false;
    await server.clock.advance(10 * MINUTE);
    expect(told()).toEqual([]);
    expect([await statusOf(id), await online()]).toEqual(["up", 0]);
    line.isUp = true;
    await server.clock.advance(10 * SECOND);
    expect(await online()).toBe(1);
  });

  test("private targets count; alerts of private hosts are sent as usual", async () => {
    const router = new WebhookSink();
    await start("--observer-targets", `127.0.0.1:${router.port}`);
    await watch("a.example");
    await watch("127.0.0.1");
    await server.clock.advance(MINUTE);
    router.stop();
    line.isUp = false;
    site.stop();
    await server.clock.advance(2 * MINUTE);
    expect(told()).toEqual(["/127.0.0.1 monitor.down"]);
    expect(await online()).toBe(0);
  });
});
