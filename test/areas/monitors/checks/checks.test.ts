import { describe, expect, test } from "bun:test";
import { expectError } from "../../../support/errors.ts";
import { RawServer } from "../../../support/raw-server.ts";
import { AccountClient, TEST_START_MS } from "../../../support/server.ts";
import { isSignedNotification } from "../../../support/webhook-sink.ts";
import { monitorStage } from "../support.ts";

const SECOND = 1_000;
const _LOOPBACK = ["--allow-private-targets", "127.0.0.0/8"];

const stage = monitorStage();
const { create, told, statusOf, restart } = stage;

describe("a monitor", () => {
  test("is checked within 5 seconds of its creation, and then once per interval", async () => {
    const id = await create();
    expect(await statusOf(id)).toMatchObject({
      monitor_id: id,
      url: stage.site.url("/health"),
      status: "unknown",
      latency_ms: null,
      last_checked_at: null,
      consecutive_failures: 0,
    });
    await stage.server.clock.advance(5 * SECOND);
    expect(stage.site.take().map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /health"]);
    const status = await statusOf(id);
    expect(status).toMatchObject({ status: "up", consecutive_failures: 0 });
    expect(Number(status["last_checked_at"])).toBeGreaterThanOrEqual(TEST_START_MS / 1_000);
    expect(Number(status["last_checked_at"])).toBeLessThanOrEqual(TEST_START_MS / 1_000 + 5);
    expect(Number.isInteger(status["latency_ms"])).toBe(true);
    await stage.server.clock.advance(10 * 15 * SECOND + 7_500);
    expect([10, 11]).toContain(stage.site.take().length);
    await stage.server.clock.advance(100 * 15 * SECOND);
    expect(stage.site.take().length).toBe(100);
  });

  test("is checked once for all checks that were missed while the server was down", async () => {
    const id = await create();
    await stage.server.clock.advance(60 * SECOND);
    await stage.server.server.stop();
    stage.site.take();
    await stage.server.clock.advance(3_600 * SECOND);
    await stage.server.start();
    stage.account = new AccountClient(
      stage.server.url,
      stage.account.key ?? "",
      stage.account.userId,
      stage.account.email,
    );
    await stage.server.clock.advance(0);
    expect(stage.site.take().length).toBe(1);
    await stage.server.clock.advance(15 * SECOND);
    expect(stage.site.take().length).toBe(1);
    expect(await statusOf(id)).toMatchObject({ status: "up" });
  });

  test("that is inactive is not checked and keeps its status; activated, it is checked within 5 seconds", async () => {
    const id = await create();
    await stage.server.clock.advance(5 * SECOND);
    expect((await stage.account.put(`/v1/pulse/${id}`, { active: false })).body).toMatchObject({
      active: false,
      status: "up",
    });
    stage.site.take();
    await stage.server.clock.advance(600 * SECOND);
    expect(stage.site.take()).toEqual([]);
    expect(await statusOf(id)).toMatchObject({ status: "up" });
    await stage.account.put(`/v1/pulse/${id}`, { active: true });
    await stage.server.clock.advance(5 * SECOND);
    expect(stage.site.take().length).toBe(1);
  });

  test("that is deleted is not checked", async () => {
    const id = await create();
    expect((await stage.account.delete(`/v1/pulse/${id}`)).body).toEqual({ deleted: true });
    await stage.server.clock.advance(600 * SECOND);
    expect(stage.site.take()).toEqual([]);
    expectError(await stage.account.get(`/v1/pulse/${id}`), "not_found");
  });

  test("sends its method, headers and, with POST, its body", async () => {
    const headers = { "X-Probe": "1", "user-agent": "Acme/1", Host: "shop.example.com:8080" };
    await create({ method: "POST", headers, body: '{"ping":true}' });
    await create({ method: "POST", body: "plain" });
    await create({ method: "HEAD", body: "unsent" });
    await stage.server.clock.advance(5 * SECOND);
    const seen = new Map(stage.site.take().map((received) => [received.method + received.body, received]));
    const json = seen.get('POST{"ping":true}');
    const received = ["x-probe", "user-agent", "content-type", "host"].map((name) => json?.headers.get(name));
    expect(received).toEqual(["1", "Acme/1", "application/json", "shop.example.com:8080"]);
    expect(seen.get("POSTplain")?.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(seen.get("HEAD")?.headers.get("content-length")).toBe(null);
  });

  const results: readonly (readonly [name: string, answer: number | Response, status: string])[] = [
    ["200", 200, "up"],
    ["204", 204, "up"],
    ["399", 399, "up"],
    ["304", 304, "up"],
    ["400", 400, "down"],
    ["401", 401, "down"],
    ["404", 404, "down"],
    ["500", 500, "down"],
    ["503", 503, "down"],
  ];
  for (const [name, answer, status] of results) {
    test(`with a target that responds with ${name} is ${status}`, async () => {
      stage.site.answers(answer);
      const id = await create();
      await stage.server.clock.advance(5 * SECOND);
      expect(await statusOf(id)).toMatchObject({ status });
    });
  }

  for (const [hops, status] of [
    [5, "up"],
    [6, "down"],
  ] as const) {
    test(`after ${hops} redirects is ${status}`, async () => {
      stage.site.answersBy(({ path }) => {
        const left = Number(path.slice(1));
        return left === 0 ? 200 : new Response(null, { status: 302, headers: { Location: `/${left - 1}` } });
      });
      const id = await create({ url: stage.site.url(`/${hops}`) });
      await stage.server.clock.advance(5 * SECOND);
      expect(await statusOf(id)).toMatchObject({ status });
    });
  }

  test("with a target that redirects to a private address is down", async () => {
    stage.site.answers(new Response(null, { status: 302, headers: { Location: "http://10.0.0.1/" } }));
    const id = await create();
    await stage.server.clock.advance(5 * SECOND);
    expect(await statusOf(id)).toMatchObject({ status: "down" });
    const history = await stage.account.get(`/v1/pulse/${id}/history`);
    expect((history.body["checks"] as object[])[0]).toMatchObject({
      status: "down",
      response_status: null,
      error:
        "blocked: the URL must have a public address. To allow private addresses, start the server with --allow-private-targets private",
    });
  });

  test("with a target that sends nothing is down, with the timeout as its latency", async () => {
    const silent = await new RawServer(() => {}).start();
    try {
      const id = await create({ url: `http://127.0.0.1:${silent.port}/`, timeout: 1_000 });
      await stage.server.clock.advance(5 * SECOND);
      expect(await statusOf(id)).toMatchObject({
        status: "down",
        latency_ms: 1_000,
        consecutive_failures: 1,
      });
    } finally {
      silent.stop();
    }
  });

  test("with a target that never ends its body is down; with a long body it is up", async () => {
    const slow = await new RawServer((socket, request) => {
      if (request.includes(" /slow ")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
      else socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n${"x".repeat(65_537)}`);
    }).start();
    try {
      const ids = [];
      for (const [path, timeout] of Object.entries({ slow: 1_000, long: 30_000 })) {
        ids.push(await create({ url: `http://127.0.0.1:${slow.port}/${path}`, timeout }));
      }
      await stage.server.clock.advance(5 * SECOND);
      expect(await statusOf(ids[0] ?? "")).toMatchObject({ status: "down", latency_ms: 1_000 });
      expect(await statusOf(ids[1] ?? "")).toMatchObject({ status: "up" });
    } finally {
      slow.stop();
    }
  });
});

describe("notifications", () => {
  test("report an outage once, in time and signed, and the recovery", async () => {
    const id = await create({
      webhook_url: stage.hooks.url("/alerts"),
      consecutive_threshold: 2,
      notify_recovery: true,
    });
    await stage.server.clock.advance(60 * SECOND);
    expect(told()).toEqual([]);
    stage.site.answers(500);
    await stage.server.clock.advance(15 * SECOND);
    expect(told()).toEqual([]);
    await stage.server.clock.advance(15 * SECOND);
    const [received, ...more] = stage.hooks.take();
    if (received === undefined) throw new Error("no alert was sent");
    expect(more).toEqual([]);
    const seconds = Math.floor(stage.server.clock.now() / 1_000);
    const body = JSON.parse(received.body);
    expect(Object.keys(body)).toEqual([
      "event",
      "monitor_id",
      "name",
      "url",
      "status",
      "previous_status",
      "error",
      "response_status",
      "latency_ms",
      "consecutive_failures",
      "checked_at",
      "timestamp",
    ]);
    expect(body).toMatchObject({
      event: "monitor.down",
      monitor_id: id,
      name: `127.0.0.1:${stage.site.port}`,
      url: stage.site.url("/health"),
      status: "down",
      previous_status: "up",
      error: "the target responded with 500",
      response_status: 500,
      consecutive_failures: 2,
    });
    expect(seconds - body.checked_at).toBeLessThanOrEqual(15);
    expect(body.timestamp).toBe(body.checked_at);
    expect(received.method).toBe("POST");
    expect(received.path).toBe("/alerts");
    expect(received.headers.get("content-type")).toBe("application/json");
    expect(received.headers.get("x-svc-event")).toBe("monitor.down");
    expect(received.headers.get("user-agent")).toBe("Svc-Relay/1.0");
    expect(received.headers.get("x-svc-delivery-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(isSignedNotification(received, stage.account.key ?? "")).toBe(true);
    stage.site.answers(200);
    await stage.server.clock.advance(15 * SECOND);
    const recovery = stage.hooks.take();
    expect(recovery.map((one) => JSON.parse(one.body))).toMatchObject([
      {
        event: "monitor.up",
        status: "up",
        previous_status: "down",
        consecutive_failures: 0,
        error: null,
        response_status: 200,
      },
    ]);
    expect(recovery[0]?.headers.get("x-svc-delivery-id")).not.toBe(received.headers.get("x-svc-delivery-id"));
  });

  test("are listed among the deliveries", async () => {
    const id = await create({ webhook_url: stage.hooks.url() });
    stage.site.answers(500);
    await stage.server.clock.advance(5 * SECOND);
    const { body } = await stage.account.get("/v1/relay?filter=pulse");
    expect(body["deliveries"]).toMatchObject([
      {
        kind: "pulse",
        event: "monitor.down",
        monitor_id: id,
        target_url: stage.hooks.url(),
        method: "POST",
        status: "delivered",
        attempts: 1,
        response_status: 200,
      },
    ]);
  });

  test("are retried after 1, 5 and 15 seconds with the same id, also after a restart", async () => {
    stage.hooks.answers(500, 500, 200);
    await create({ webhook_url: stage.hooks.url(), interval: 300_000 });
    stage.site.answers(500);
    await stage.server.clock.advance(5 * SECOND);
    await restart();
    await stage.server.clock.advance(60 * SECOND);
    const received = stage.hooks.take();
    expect(received.length).toBe(3);
    expect(new Set(received.map(({ headers }) => headers.get("x-svc-delivery-id"))).size).toBe(1);
    expect(new Set(received.map(({ body }) => body)).size).toBe(1);
    const { body } = await stage.account.get("/v1/relay?filter=pulse");
    const [delivery] = body["deliveries"] as { relay_id: string }[];
    const read = await stage.account.get(`/v1/relay/${delivery?.relay_id}`);
    const starts = (read.body["attempt_log"] as { started_at: number }[]).map(({ started_at }) => started_at);
    expect(starts.slice(1).map((start, number) => start - (starts[number] ?? 0))).toEqual([1_000, 5_000]);
  });

  test("step by step: threshold, cooldown, restart, manual checks, recovery", async () => {
    const id = await create({
      webhook_url: stage.hooks.url(),
      consecutive_threshold: 2,
      cooldown_ms: 60_000,
      notify_recovery: true,
    });
    await stage.server.clock.advance(30 * SECOND);
    const check = async () => (await stage.account.post(`/v1/pulse/${id}/check`)).body;
    const round = async () => {
      await stage.server.clock.advance(15 * SECOND);
      return [(await statusOf(id))["status"], (await statusOf(id))["consecutive_failures"], told().join()];
    };
    expect(await round()).toEqual(["up", 0, ""]);
    stage.site.answers(500);
    expect(await round()).toEqual(["up", 1, ""]);
    // A manual check reaches the threshold: the status changes, and no alert is sent.
    expect(await check()).toMatchObject({ status: "down", consecutive_failures: 2 });
    expect(told()).toEqual([]);
    await restart();
    expect(await round()).toEqual(["down", 3, "monitor.down"]);
    expect(await round()).toEqual(["down", 4, ""]);
    await restart();
    expect(await check()).toMatchObject({ status: "down", consecutive_failures: 5 });
    expect(await round()).toEqual(["down", 6, ""]);
    expect(await round()).toEqual(["down", 7, ""]);
    expect(await round()).toEqual(["down", 8, "monitor.down"]);
    stage.site.answers(200);
    expect(await round()).toEqual(["up", 0, "monitor.up"]);
    expect(await round()).toEqual(["up", 0, ""]);
    stage.site.answers(500);
    expect(await check()).toMatchObject({ status: "up", consecutive_failures: 1 });
    expect(await round()).toEqual(["down", 2, "monitor.down"]);
    stage.site.answers(200);
    expect(await check()).toMatchObject({ status: "up", consecutive_failures: 0 });
    expect(told()).toEqual([]);
    expect(await round()).toEqual(["up", 0, ""]);
  });
});
