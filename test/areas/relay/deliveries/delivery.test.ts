import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { RELAY_RETENTION_MS } from "../../../../src/areas/relay/domain.ts";
import { expectError } from "../../../support/errors.ts";
import { until } from "../../../support/eventually.ts";
import { RawServer } from "../../../support/raw-server.ts";
import {
  type AccountClient,
  startTestServer,
  TEST_START_MS,
  type TestServer,
} from "../../../support/server.ts";
import { isSigned, WebhookSink } from "../../../support/webhook-sink.ts";

const SECOND = 1_000;
const DAY = 86_400_000;

let server: TestServer;
let account: AccountClient;
let sink: WebhookSink;
beforeEach(async () => {
  sink = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
});
afterEach(async () => {
  await server.stop();
  sink.stop();
});

async function schedule(change: object = {}): Promise<string> {
  const body = {
    target_url: sink.url("/hook"),
    method: "POST",
    delay: "10s",
    payload: { n: 1 },
    headers: {},
    ...change,
  };
  const answer = await account.post("/v1/relay", body);
  expect(answer.status).toBe(201);
  return String(answer.body["relay_id"]);
}

async function read(relayId: string): Promise<Record<string, unknown>> {
  return (await account.get(`/v1/relay/${relayId}`)).body;
}

/** Restarts the server; the account's client follows it to its new address. */
async function restart(): Promise<void> {
  await server.restart();
  const { key, userId, email } = account;
  account = new (account.constructor as typeof AccountClient)(server.url, key ?? "", userId, email);
}

describe("a delivery", () => {
  test("scheduled in 3 days arrives once, signed, despite a restart", async () => {
    const relayId = await schedule({ delay: "3d", payload: { text: "naïve ☃" } });
    await server.clock.advance(DAY);
    await restart();
    await server.clock.advance(2 * DAY - 1);
    expect(sink.take()).toEqual([]);
    await server.clock.advance(1);
    await server.clock.advance(DAY);
    const [received, ...more] = sink.take();
    if (received === undefined) throw new Error("nothing came");
    expect(more).toEqual([]);
    expect({ method: received.method, path: received.path, body: received.body }).toEqual({
      method: "POST",
      path: "/hook",
      body: '{"text":"naïve ☃"}',
    });
    expect(isSigned(received, account.key ?? "")).toBe(true);
    expect(received.headers.get("x-svc-timestamp")).toBe(String(TEST_START_MS + 3 * DAY));
    expect(received.headers.get("x-svc-delivery-id")).toBe(relayId);
    expect(received.headers.get("user-agent")).toBe("Svc-Relay/1.0");
    expect(received.headers.get("content-type")).toBe("application/json");
    expect(await read(relayId)).toMatchObject({
      status: "delivered",
      attempts: 1,
      response_status: 200,
      error: null,
      finished_at: TEST_START_MS + 3 * DAY,
    });
  });

  test("due while the server was down is sent at the start, in the order of due times", async () => {
    await schedule({ delay: "30s", payload: { n: 3 } });
    await schedule({ delay: "10s", payload: { n: 1 } });
    await schedule({ delay: "20s", payload: { n: 2 } });
    await server.server.stop();
    await server.clock.advance(3_600_000);
    await server.start();
    await server.clock.advance(0);
    expect(
      sink
        .take()
        .map(({ body }) => body)
        .sort(),
    ).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
  });

  test("without payload and headers sends an empty object, immediately without a delay", async () => {
    const body = { target_url: sink.url("/bare"), method: "POST", delay: "0s" };
    expect((await account.post("/v1/relay", body)).status).toBe(201);
    await server.clock.advance(0);
    const [received, ...more] = sink.take();
    expect([received?.path, received?.body, more]).toEqual(["/bare", "{}", []]);
  });

  test("by GET has no body, and its signature covers the timestamp alone", async () => {
    await schedule({ method: "GET", delay: "1s" });
    await server.clock.advance(SECOND);
    const [received] = sink.take();
    if (received === undefined) throw new Error("nothing came");
    expect({ method: received.method, body: received.body }).toEqual({ method: "GET", body: "" });
    expect(received.headers.get("content-length")).toBe(null);
    expect(isSigned(received, account.key ?? "")).toBe(true);
  });

  for (const method of ["PUT", "PATCH", "DELETE"]) {
    test(`by ${method} has its body`, async () => {
      await schedule({ method });
      await server.clock.advance(10 * SECOND);
      expect(sink.take().map((received) => [received.method, received.body])).toEqual([[method, '{"n":1}']]);
    });
  }

  test("names the reserved headers that it ignores, in responses to what is created and changed", async () => {
    const headers = {
      "X-Source": "billing",
      Host: "elsewhere",
      "accept-encoding": "gzip",
      X_Svc_Timestamp: "0",
    };
    const warnings = ["Host", "accept-encoding", "X_Svc_Timestamp"].map(
      (name) => `The header \`${name}\` is ignored: the server sets it itself.`,
    );
    const target_url = sink.url("/hook");
    const relay = { target_url, method: "POST", delay: "1h", payload: {}, headers };
    const endpoint = await account.post("/v1/relay/endpoints", { url: target_url, headers });
    const cron = { name: "n", cron: "0 0 1 1 *", target_url, payload: {}, headers };
    const schedule = await account.post("/v1/relay/schedules", cron);
    for (const answer of [
      await account.post("/v1/relay", relay),
      endpoint,
      schedule,
      await account.patch(`/v1/relay/endpoints/${endpoint.body["endpoint_id"]}`, { headers }),
      await account.patch(`/v1/relay/schedules/${schedule.body["schedule_id"]}`, { headers }),
    ])
      expect([answer.status < 300, answer.body["warnings"]]).toEqual([true, warnings]);
  });

  test("has the caller's headers, except reserved ones", async () => {
    await schedule({
      headers: {
        "X-Source": "billing",
        "content-type": "application/vnd.acme+json",
        "USER-AGENT": "Acme/1",
        Authorization: "Bearer theirs",
        "X-Svc-Signature": "forged",
        "x-svc-timestamp": "0",
        "X-SVC-DELIVERY-ID": "forged",
        "X-Svc-Anything": "forged",
        X_Svc_Signature: "forged",
        x_svc_timestamp: "0",
        Host: "elsewhere",
        "Content-Length": "1",
        Connection: "close",
        "Transfer-Encoding": "chunked",
      },
    });
    await server.clock.advance(10 * SECOND);
    const [received] = sink.take();
    if (received === undefined) throw new Error("nothing came");
    const header = (name: string) => received.headers.get(name);
    expect(["x-source", "content-type", "user-agent", "authorization", "x-svc-anything"].map(header)).toEqual(
      ["billing", "application/vnd.acme+json", "Acme/1", "Bearer theirs", null],
    );
    expect([...received.headers.keys()].filter((name) => name.includes("_"))).toEqual([]);
    expect(header("host")).toBe(`127.0.0.1:${sink.port}`);
    expect(isSigned(received, account.key ?? "")).toBe(true);
  });

  test("is signed with the newest key at the time of the attempt", async () => {
    await schedule();
    const rotated = await account.post("/v1/keys/rotate");
    await server.clock.advance(10 * SECOND);
    const [received] = sink.take();
    if (received === undefined) throw new Error("nothing came");
    expect(isSigned(received, account.key ?? "")).toBe(false);
    expect(isSigned(received, String(rotated.body["key"]))).toBe(true);
  });

  test("that is cancelled is not sent", async () => {
    const relayId = await schedule();
    await account.delete(`/v1/relay/${relayId}`);
    await server.clock.advance(DAY);
    expect(sink.take()).toEqual([]);
  });
});

describe("retries", () => {
  const times = (received: ReturnType<WebhookSink["take"]>) =>
    received.map(({ headers }) => Number(headers.get("x-svc-timestamp")) - TEST_START_MS);

  test("follow after 1, 5 and 25 seconds, varied by a tenth, each with a new signature under the same id; then it fails", async () => {
    sink.answers(500, 503, 408, 429);
    const relayId = await schedule();
    await server.clock.advance(120 * SECOND);
    const received = sink.take();
    expect(received.length).toBe(4);
    const at = times(received);
    const waits = at.map((time, number) => time - (at[number - 1] ?? 0));
    expect(waits[0]).toBe(10_000);
    for (const [number, wait] of [1_000, 5_000, 25_000].entries()) {
      expect(waits[number + 1]).toBeGreaterThanOrEqual(wait * 0.9);
      expect(waits[number + 1]).toBeLessThanOrEqual(wait * 1.1);
    }
    expect(received.every((one) => isSigned(one, account.key ?? ""))).toBe(true);
    expect(new Set(received.map(({ headers }) => headers.get("x-svc-delivery-id")))).toEqual(
      new Set([relayId]),
    );
    const delivery = await read(relayId);
    expect(delivery).toMatchObject({
      status: "failed",
      attempts: 4,
      response_status: 429,
      error: "the target responded with 429",
      finished_at: TEST_START_MS + (at[3] ?? 0),
    });
    const log = delivery["attempt_log"] as Record<string, unknown>[];
    expect(
      log.map(({ attempt, started_at, response_status }) => [attempt, started_at, response_status]),
    ).toEqual([
      [1, TEST_START_MS + 10_000, 500],
      [2, TEST_START_MS + (at[1] ?? 0), 503],
      [3, TEST_START_MS + (at[2] ?? 0), 408],
      [4, TEST_START_MS + (at[3] ?? 0), 429],
    ]);
  });

  test("have the status delivering from the first attempt until success, also after a restart", async () => {
    sink.answers(500, 502, 200);
    const relayId = await schedule();
    expect(await read(relayId)).toMatchObject({ status: "scheduled", attempts: 0 });
    await server.clock.advance(10 * SECOND);
    expect(await read(relayId)).toMatchObject({
      status: "delivering",
      attempts: 1,
      response_status: 500,
      error: "the target responded with 500",
      finished_at: null,
    });
    expectError(await account.delete(`/v1/relay/${relayId}`), "conflict");
    await restart();
    expect(await read(relayId)).toMatchObject({ status: "delivering", attempts: 1 });
    await server.clock.advance(1_100);
    expect(await read(relayId)).toMatchObject({ status: "delivering", attempts: 2, response_status: 502 });
    await restart();
    await server.clock.advance(5_500);
    expect(await read(relayId)).toMatchObject({
      status: "delivered",
      attempts: 3,
      response_status: 200,
      error: null,
    });
    await server.clock.advance(DAY);
    expect(sink.take().length).toBe(3);
    expectError(await account.delete(`/v1/relay/${relayId}`), "conflict");
  });

  for (const status of [200, 201, 204, 302, 304]) {
    test(`${status} is final: delivered, without following a redirect`, async () => {
      sink.answers(new Response(null, { status, headers: { Location: sink.url("/elsewhere") } }));
      const relayId = await schedule();
      await server.clock.advance(DAY);
      expect(sink.take().map(({ path }) => path)).toEqual(["/hook"]);
      expect(await read(relayId)).toMatchObject({ status: "delivered", response_status: status });
    });
  }

  for (const status of [400, 401, 404, 410, 422]) {
    test(`${status} is final: failed`, async () => {
      sink.answers(status);
      const relayId = await schedule();
      await server.clock.advance(DAY);
      expect(sink.take().length).toBe(1);
      expect(await read(relayId)).toMatchObject({
        status: "failed",
        attempts: 1,
        response_status: status,
        error: `the target responded with ${status}`,
      });
    });
  }

  test("wait as long as Retry-After requests, in both forms, at most an hour", async () => {
    const retryAfter = (value: string) =>
      new Response(null, { status: 503, headers: { "Retry-After": value } });
    const date = new Date(TEST_START_MS + 10_000 + 60_000 + 90_000).toUTCString();
    sink.answers(retryAfter("60"), retryAfter(date), retryAfter("86400"), 200);
    await schedule();
    await server.clock.advance(DAY);
    expect(times(sink.take())).toEqual([10_000, 70_000, 160_000, 160_000 + 3_600_000]);
  });

  test("follow network errors as well, which the attempts record", async () => {
    const answers = ["reset", "garbage", "short"];
    const raw = await new RawServer((socket) => {
      const kind = answers.shift();
      if (kind === "reset") socket.resetAndDestroy();
      else if (kind === "garbage") socket.end("nonsense\r\n\r\n");
      else if (kind === "short") socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
      else socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }).start();
    try {
      const relayId = await schedule({ target_url: `http://127.0.0.1:${raw.port}/` });
      await server.clock.advance(DAY);
      const delivery = await read(relayId);
      expect(delivery).toMatchObject({ status: "delivered", attempts: 4, response_status: 200 });
      const log = delivery["attempt_log"] as { error: string | null }[];
      expect(log.map(({ error }) => error?.split(":")[0] ?? null)).toEqual([
        "reset",
        "malformed",
        "reset",
        null,
      ]);
    } finally {
      raw.stop();
    }
  });

  test("are not made for a blocked target", async () => {
    const resolver = { resolve: async () => ["10.0.0.1"] };
    const guarded = await startTestServer({ manualClock: true, deps: { outbound: { resolver } } });
    try {
      const user = await guarded.account();
      const { body } = await user.post("/v1/relay", {
        target_url: "https://inner.example/",
        method: "POST",
        delay: "1s",
        payload: {},
        headers: {},
      });
      await guarded.clock.advance(DAY);
      const { body: delivery } = await user.get(`/v1/relay/${body["relay_id"]}`);
      expect(delivery).toMatchObject({
        status: "failed",
        attempts: 1,
        response_status: null,
        error:
          "blocked: the URL must have a public address. To allow private addresses, start the server with --allow-private-targets private",
      });
    } finally {
      await guarded.stop();
    }
  });
});

describe("misbehaving targets", () => {
  test("an endless response counts as delivered: 64 KiB are read", async () => {
    sink.answersBy(
      () =>
        new Response(
          new ReadableStream({
            pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
          }),
        ),
    );
    const relayId = await schedule();
    await server.clock.advance(10 * SECOND);
    expect(await read(relayId)).toMatchObject({ status: "delivered", attempts: 1 });
  });

  test("one that never responds does not hold up others; its delivery is delivering", async () => {
    const silent = await new RawServer(() => {}).start();
    const live = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
    try {
      const user = await live.account();
      const body = { method: "POST", delay: "1s", payload: {}, headers: {} };
      const stuck: string[] = [];
      for (let number = 0; number < 40; number += 1) {
        const target_url = `http://127.0.0.1:${silent.port}/`;
        const answer = await user.post("/v1/relay", { ...body, target_url });
        stuck.push(String(answer.body["relay_id"]));
      }
      const answer = await user.post("/v1/relay", { ...body, target_url: sink.url() });
      await until(() => sink.received.length > 0);
      // It is in flight until its outcome is recorded, after the sink's response.
      const done = `/v1/relay/${answer.body["relay_id"]}`;
      while ((await user.get(done)).body["status"] !== "delivered") await Bun.sleep(10);
      // 16 concurrent attempts to one host; the others wait.
      await until(() => silent.connections >= 16);
      expect(silent.connections).toBe(16);
      const count = async (status: string) => {
        const page = await user.get(`/v1/relay?limit=100&status=${status}`);
        return (page.body["deliveries"] as unknown[]).length;
      };
      expect([await count("delivering"), await count("scheduled")]).toEqual([16, 24]);
      expectError(await user.delete(`/v1/relay/${stuck[0]}`), "conflict");
      expect((await user.delete(`/v1/relay/${stuck[39]}`)).status).toBe(200);
      expect([await count("delivering"), await count("scheduled")]).toEqual([16, 23]);
    } finally {
      silent.stop();
      await live.stop();
    }
  });
});

test("a finished delivery is stored for 7 days", async () => {
  const ended = await schedule();
  await server.clock.advance(10 * SECOND);
  const waiting = await schedule({ delay: "30d" });
  await server.clock.advance(RELAY_RETENTION_MS - 3_600_000);
  expect(await read(ended)).toMatchObject({ status: "delivered" });
  await server.clock.advance(2 * 3_600_000);
  expectError(await account.get(`/v1/relay/${ended}`), "not_found");
  expect(await read(waiting)).toMatchObject({ status: "scheduled" });
});

test("the job of a cancelled and deleted delivery does not send a later one early", async () => {
  const cancelled = await schedule({ delay: "30d" });
  expect((await account.delete(`/v1/relay/${cancelled}`)).status).toBe(200);
  server.clock.freeze(RELAY_RETENTION_MS);
  await server.clock.advance(2 * 3_600_000);
  expectError(await account.get(`/v1/relay/${cancelled}`), "not_found");
  await restart();
  const later = await schedule({ delay: "30d" });
  server.clock.freeze(24 * DAY);
  await server.clock.advance(0);
  expect(await read(later)).toMatchObject({ status: "scheduled", attempts: 0 });
});
