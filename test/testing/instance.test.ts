import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyDelivery } from "../../src/client/index.ts";
import { type NinefoldInstance, startNinefold } from "../../src/testing/index.ts";
import { Client } from "../support/client.ts";
import { until } from "../support/eventually.ts";
import { isRunning, TIMEOUT_MS } from "./support.ts";

const HOUR_MS = 3_600_000;
/** A well-formed platform key. */
const OPERATOR_KEY = `sm_${"0".repeat(43)}_92dff3c0`;

const temporary = mkdtempSync(join(tmpdir(), "ninefold-test-"));
const env = { TMPDIR: temporary };
let nf: NinefoldInstance;

beforeAll(async () => {
  nf = await startNinefold();
}, TIMEOUT_MS);
afterAll(async () => {
  await nf.stop();
  rmSync(temporary, { recursive: true, force: true });
}, TIMEOUT_MS);

/** The message of a rejection. */
async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it was not rejected");
}

describe("an instance", () => {
  test("accepts the operator's key", async () => {
    expect(nf.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(nf.apiKey).toMatch(/^sm_[A-Za-z0-9]{43}_[0-9a-f]{8}$/);
    const answer = await new Client(nf.url, nf.apiKey).get("/v1/meter/balance");
    expect([answer.status, answer.body["user_id"]]).toEqual([200, nf.userId]);
    expect(isRunning(nf.pid)).toBe(true);
    expect((await nf.client.account.balance()).user_id).toBe(nf.userId);
    const { userId, apiKey } = await nf.account();
    expect((await nf.client.withKey(apiKey).account.balance()).user_id).toBe(userId);
  });

  test("advances by numbers and texts and rejects anything else", async () => {
    const start = await nf.now();
    expect(await nf.now()).toBe(start);
    expect(await nf.advance(1_500)).toBe(start + 1_500);
    expect(await nf.advance("2h30m")).toBe(start + 1_500 + 2.5 * HOUR_MS);
    expect(await refusal(nf.advance("soon"))).toStartWith('"soon" is not a duration: ');
    expect(await nf.now()).toBe(start + 1_500 + 2.5 * HOUR_MS);
  });

  test("refills rate limits in real time and when the clock advances", async () => {
    const { apiKey } = await nf.account({ tier: "free", balance: 1_000 });
    const client = new Client(nf.url, apiKey);
    const start = await nf.now();
    const empty = async () => {
      for (;;) {
        const answer = await client.get("/v1/meter/balance");
        if (answer.status !== 200) return answer;
      }
    };
    const { status, headers } = await empty();
    expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
    // A minute of the server's time, to its second.
    const resetMs = Number(headers.get("x-ratelimit-reset")) * 1_000 - start;
    expect(resetMs).toBeGreaterThan(58_000);
    expect(resetMs).toBeLessThanOrEqual(61_000);
    // The client waits for the `Retry-After` of the server in real time, in which one token is refilled.
    const { balance } = await nf.client.withKey(apiKey).account.balance({ retries: 2 });
    expect([balance > 0, await nf.now()]).toEqual([true, start]);
    await empty();
    await nf.advance("30 s");
    const statuses: number[] = [];
    for (let asked = 0; asked < 30; asked += 1) statuses.push((await client.get("/v1/meter/balance")).status);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  test("signs with its own time, which verifiers can be given", async () => {
    const sink = await nf.webhookSink();
    await nf.client.relay.schedule({
      target_url: sink.url,
      method: "POST",
      delay: "3d",
      payload: { a: 1 },
      headers: {},
    });
    await nf.advance("3 days");
    const [{ headers, body } = { headers: {}, body: "" }] = sink.received;
    const verified = verifyDelivery(headers, body, nf.apiKey, { now: await nf.now() });
    expect((await verified).json()).toEqual({ a: 1 });
    expect(await refusal(verifyDelivery(headers, body, nf.apiKey))).toContain("it was signed");
  });

  test("a webhook receiver sees the server's time while the clock is advanced", async () => {
    const times: number[] = [];
    using receiver = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async () => {
        times.push(await nf.now());
        return new Response();
      },
    });
    const start = await nf.now();
    const target_url = receiver.url.href;
    await nf.client.relay.schedule({ target_url, method: "POST", delay: "1h", payload: {}, headers: {} });
    await nf.advance("1 day");
    expect(times).toEqual([start + HOUR_MS]);
  });

  test("starts at the real time", async () => {
    await using other = await startNinefold();
    expect(Math.abs((await other.now()) - Date.now())).toBeLessThan(TIMEOUT_MS);
  });

  test("creates accounts with a tier, a balance and an e-mail address", async () => {
    const given = await nf.account({ tier: "free", balance: 7, email: "ada@example.com" });
    expect(given.email).toBe("ada@example.com");
    const client = new Client(nf.url, given.apiKey);
    expect((await client.get("/v1/meter/balance")).body).toEqual({ balance: 7, user_id: given.userId });
    expect((await client.post("/v1/projects", { name: "Shop" })).status).toBe(201);

    const plain = await nf.account();
    const balance = await new Client(nf.url, plain.apiKey).get("/v1/meter/balance");
    expect(balance.body).toEqual({ balance: 10_000_000, user_id: plain.userId });
    expect(plain.email).not.toBe((await nf.account()).email);

    expect(await refusal(nf.account({ email: "ada@example.com" }))).toMatch(
      /^POST \/v1\/admin\/accounts returned 409: \w.*\.$/,
    );
  });

  test("receives webhooks with their exact body and responds with the set status", async () => {
    const sink = await nf.webhookSink();
    const client = new Client(nf.url, nf.apiKey);
    const relay = (path: string) =>
      client.post("/v1/relay", {
        target_url: `${sink.url}${path}`,
        method: "PUT",
        delay: "1d",
        payload: { text: "ü" },
        headers: { "X-Shop": "7" },
      });
    await relay("/a?b=c");
    await nf.advance("23h 59m 59s");
    expect(sink.received).toEqual([]);
    await nf.advance("1s");
    expect(sink.received).toMatchObject([
      { method: "PUT", path: "/a?b=c", body: '{"text":"ü"}', headers: { "x-shop": "7" } },
    ]);

    sink.status = 410;
    const { relay_id } = (await relay("/gone")).body;
    await nf.advance("1 day");
    expect((await client.get(`/v1/relay/${relay_id}`)).body).toMatchObject({
      status: "failed",
      response_status: 410,
    });
  });

  test("ignores a sender that disconnects in the middle of a webhook", async () => {
    const sink = await nf.webhookSink();
    const socket = connect(Number(new URL(sink.url).port), "127.0.0.1");
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    await Bun.sleep(20);
    socket.destroy();
    await Bun.sleep(20);
    expect((await fetch(sink.url, { method: "POST", body: "whole" })).status).toBe(200);
    expect(sink.received.map(({ body }) => body)).toEqual(["whole"]);
  });

  test.each([0, 99, 199, 600, 200.5, Number.NaN])("a sink rejects the status %p", async (status) => {
    const sink = await nf.webhookSink();
    expect(() => {
      sink.status = status;
    }).toThrow(new RangeError(`status must be an HTTP status from 200 to 599, not ${status}`));
    expect(sink.status).toBe(200);
    sink.status = 599;
    expect((await fetch(sink.url)).status).toBe(599);
  });

  test("is independent of instances that run concurrently", async () => {
    const others = await Promise.all([1, 2, 3, 4].map(() => startNinefold()));
    const all = [nf, ...others];
    expect(new Set(all.map(({ url }) => url)).size).toBe(5);
    expect(new Set(all.map(({ apiKey }) => apiKey)).size).toBe(5);
    await Promise.all(
      all.map((item, at) => new Client(item.url, item.apiKey).post("/v1/meter/m/refill", { amount: at + 1 })),
    );
    const balances = all.map((item) => new Client(item.url, item.apiKey).get("/v1/meter/m/balance"));
    expect((await Promise.all(balances)).map(({ body }) => body["balance"])).toEqual([1, 2, 3, 4, 5]);
    const before = await nf.now();
    await others[0]?.advance("1 week");
    expect(await nf.now()).toBe(before);
    await Promise.all(others.map((other) => other.stop()));
    expect(others.map(({ pid }) => isRunning(pid))).toEqual([false, false, false, false]);
  });
});

describe("options", () => {
  test("the clock `real` runs by itself", async () => {
    await using real = await startNinefold({ clock: "real" });
    const first = await real.now();
    await until(() => Date.now() > first, "a millisecond later");
    expect(await real.now()).toBeGreaterThan(first);
    expect(await refusal(real.advance("1h"))).toBe(
      'This instance uses the real clock: start it without clock: "real" to advance it.',
    );
  });

  test("args are passed to the server", async () => {
    const file = join(temporary, "ninefold.toml");
    writeFileSync(file, "[tiers.free]\nmonthly_credits = 3\n");
    await using other = await startNinefold({ args: ["--signup", "closed", "--config", file] });
    const signup = { email: "ada@example.com", tier: "free" };
    expect((await new Client(other.url, null).post("/v1/signup", signup)).status).toBe(403);
    const { apiKey } = await other.account({ tier: "free" });
    expect((await new Client(other.url, apiKey).get("/v1/meter/balance")).body["balance"]).toBe(3);
  });

  test("passes env to the server, but not the environment of the test process", async () => {
    process.env["NINEFOLD_SIGNUP"] = "neither";
    process.env["NINEFOLD_PORT"] = "1";
    try {
      await using other = await startNinefold({ env: { NINEFOLD_OPERATOR_KEY: OPERATOR_KEY } });
      expect(other.apiKey).toBe(OPERATOR_KEY);
      expect(await other.now()).toBeGreaterThan(0);
    } finally {
      delete process.env["NINEFOLD_SIGNUP"];
      delete process.env["NINEFOLD_PORT"];
    }
  });
});

describe("a start that fails", () => {
  test.each([
    [["--port", "99999"], "Ninefold did not start: --port must be a port from 0 to 65535."],
    [["--colour"], "Ninefold did not start: Unknown option '--colour'. Try ninefold serve --help."],
    [
      ["--config", "/nowhere/n.toml"],
      "Ninefold did not start: --config: /nowhere/n.toml cannot be read (Error: ENOENT: no such file or directory, open '/nowhere/n.toml').",
    ],
  ])("rejects with the server's message: %p", async (args, message) => {
    expect(await refusal(startNinefold({ args }))).toBe(message);
  });

  test.each([
    [
      "/nowhere/ninefold",
      /^Ninefold did not start: it could not be run \(.*ENOENT.*\)\. The program was \/nowhere\/ninefold\.$/,
    ],
    [
      ["/bin/sh", "-c", "exit 3"],
      /^Ninefold did not start: it ended with exit code 3\. The program was \/bin\/sh\.$/,
    ],
    [
      ["/bin/sh", "-c", "echo oh >&2; kill -9 $$"],
      /^Ninefold did not start: it was ended by SIGKILL\. The program was \/bin\/sh\.\noh\n$/,
    ],
    [
      ["/bin/echo", "hello"],
      /^\/bin\/echo is not a Ninefold server of this version: it printed "hello serve /,
    ],
    [["/bin/echo", "{}"], /^\/bin\/echo is not a Ninefold server of this version: /],
  ] as const)("reports the outcome of the program: %p", async (command, message) => {
    expect(await refusal(startNinefold({ command }))).toMatch(message);
  });

  test("times out and leaves no process", async () => {
    const pidFile = join(temporary, "pid");
    const command = ["/bin/sh", "-c", `echo $$ > ${pidFile}; exec cat`] as const;
    expect(await refusal(startNinefold({ command, startTimeoutMs: 2_000 }))).toBe(
      "Ninefold did not start: it was not ready within 2000 ms. The program was /bin/sh.",
    );
    expect(isRunning(Number(await Bun.file(pidFile).text()))).toBe(false);
  });
});

test(
  "times out for a program that hangs behind a script",
  async () => {
    const pidFile = join(temporary, "hanging");
    // The shell waits for it, and it has the shell's output open.
    const command = ["/bin/sh", "-c", `sleep 600 & echo $! > ${pidFile}; wait`] as const;
    expect(await refusal(startNinefold({ command, startTimeoutMs: 2_000 }))).toBe(
      "Ninefold did not start: it was not ready within 2000 ms. The program was /bin/sh.",
    );
    process.kill(Number(await Bun.file(pidFile).text()));
  },
  TIMEOUT_MS,
);

describe("the end", () => {
  test("leaves neither process nor folder, and can be repeated", async () => {
    const other = await startNinefold({ env });
    expect(readdirSync(temporary).filter((name) => name.startsWith(`ninefold-${other.pid}-`))).toHaveLength(
      1,
    );
    const sink = await other.webhookSink();
    await Promise.all([other.stop(), other.stop()]);
    await other.stop();
    await other[Symbol.asyncDispose]();
    expect(isRunning(other.pid)).toBe(false);
    expect(readdirSync(temporary).filter((name) => name.startsWith("ninefold-"))).toEqual([]);
    await expect(fetch(sink.url)).rejects.toThrow();
  });

  test("reports a killed server with its log; stop() deletes its folder", async () => {
    const other = await startNinefold({ env });
    process.kill(other.pid, "SIGKILL");
    await until(() => !isRunning(other.pid), "the server's end");
    expect(await refusal(other.advance("1h"))).toMatch(
      /^The Ninefold server has ended: it was ended by SIGKILL\./,
    );
    const [folder = ""] = readdirSync(temporary).filter((name) => name.startsWith("ninefold-"));
    expect(existsSync(join(temporary, folder, "ninefold.db"))).toBe(true);
    await other.stop();
    expect(readdirSync(temporary).filter((name) => name.startsWith("ninefold-"))).toEqual([]);
  });

  test(
    "kills a server that does not react",
    async () => {
      const other = await startNinefold({ env });
      process.kill(other.pid, "SIGSTOP");
      await other.stop();
      expect(isRunning(other.pid)).toBe(false);
      expect(readdirSync(temporary).filter((name) => name.startsWith("ninefold-"))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test("responds to a pending request for a lock before it stops", async () => {
    const other = await startNinefold();
    const client = new Client(other.url, other.apiKey);
    await client.post("/v1/latch/a/acquire", {});
    const waiting = client.post("/v1/latch/a/acquire", { timeout: 900_000 });
    let queued = 0;
    while (queued === 0) queued = Number((await client.get("/v1/latch/a")).body["queue_depth"]);
    await other.stop();
    expect((await waiting).status).toBe(503);
  });
});
