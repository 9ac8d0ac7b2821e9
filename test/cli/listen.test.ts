import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { aboutEvent } from "../../src/cli/listen/listen.ts";
import { accepted, bucketOf, eventOf, newBucket, Receiver } from "../areas/catch/support.ts";
import { freePort } from "../harness/processes/ports.ts";
import { eventually } from "../support/eventually.ts";
import { Scrape } from "../support/metrics.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { killListeners } from "./listen-run.ts";
import { ninefold, ROOT } from "./run.ts";

let server: TestServer;
let account: AccountClient;
let environment: Record<string, string>;
let receiver: Receiver;
let folder: string;
let id: string;
beforeAll(async () => {
  server = await startTestServer();
  folder = mkdtempSync(join(tmpdir(), "ninefold-listen-"));
  receiver = new Receiver();
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(async () => {
  account = await server.account();
  environment = { NINEFOLD_API_KEY: String(account.key), NINEFOLD_URL: server.url };
  id = (await newBucket(account, { target_url: null, delivery: "pull" })).id;
  receiver.hits.length = 0;
  receiver.respond = () => 200;
});

const listen = (...args: string[]) => ninefold(["listen", ...args], { environment });
const all = ["--after", "beginning"];

/** A listener that runs until it is stopped. */
function spawned(...args: string[]) {
  return Bun.spawn([process.execPath, "src/main.ts", "listen", ...args], {
    cwd: ROOT,
    env: { ...process.env, ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Reads a stream until it contains a text. */
async function until(stream: ReadableStream<Uint8Array>, text: string): Promise<string> {
  const decoder = new TextDecoder();
  let found = "";
  for await (const chunk of stream) {
    found += decoder.decode(chunk, { stream: true });
    if (found.includes(text)) return found;
  }
  throw new Error(`it ended without ${text}: ${found}`);
}

test("people see the method and the start of the body of an event, and its address in the console", () => {
  const payload_base64 = Buffer.from(
    `{\n  "type": "invoice.paid",\n  "note": "${"x".repeat(200)}"\n}`,
  ).toString("base64");
  const event = { id: "evt_1", method: "PUT", payload_base64 };
  const [first = "", address] = aboutEvent(event, "http://127.0.0.1:9909/dashboard/#/catch/brave-otter-1");
  expect(first).toStartWith('PUT { "type": "invoice.paid", "note": "xxx');
  expect(first.length).toBeLessThanOrEqual(104);
  expect(address).toBe("http://127.0.0.1:9909/dashboard/#/catch/brave-otter-1/evt_1");
});

describe("forwarded requests", () => {
  test("keeps the method, and appends path and query below the bucket", async () => {
    const sent = { method: "PUT", headers: { "content-type": "text/plain" }, body: "hello" };
    await fetch(`${server.url}/v1/in/${id}/orders/7%20a?shop=1&x=%C3%BC`, sent);
    const forward = ["--forward-to", receiver.url, "--once", "1"];
    expect((await listen(id, ...all, ...forward)).code).toBe(0);
    expect((await listen(id, ...all, ...forward, "--keep-path")).code).toBe(0);
    expect(receiver.hits.map(({ method, path, body }) => [method, path, body.toString()])).toEqual([
      ["PUT", "/hooks?from=ninefold", "hello"],
      ["PUT", "/hooks/orders/7%20a?from=ninefold&shop=1&x=%C3%BC", "hello"],
    ]);
  });

  test("keeps the exact bytes and headers with the signature, and adds its own headers", async () => {
    const body = '{"type": "invoice.paid",  "n":1}';
    const seconds = Math.floor(Date.now() / 1000);
    const signed = createHmac("sha256", "whsec_x").update(`${seconds}.${body}`).digest("hex");
    const signature = `t=${seconds},v1=${signed}`;
    const { id: stripe } = await newBucket(account, {
      delivery: "pull",
      provider: "stripe",
      signing_secret: "whsec_x",
    });
    const event = await accepted(server, stripe, body, {
      "stripe-signature": signature,
      "x-svc-event-id": "forged",
      "x-ninefold-hops": "3",
      "x-own": "1",
      host: "nf.example",
    });
    const ended = await listen(
      stripe,
      ...all,
      "--forward-to",
      receiver.url,
      "--once",
      "1",
      "--header",
      "X-Own: 2",
    );
    expect(ended.code, ended.error).toBe(0);
    const [hit] = receiver.hits;
    expect(hit?.body.toString()).toBe(body);
    expect([hit?.method, hit?.path]).toEqual(["POST", "/hooks?from=ninefold"]);
    const { received_at } = await eventOf(account, stripe, event);
    for (const [name, value] of [
      ["stripe-signature", signature],
      ["content-type", "application/json"],
      ["x-svc-event-id", event],
      ["x-svc-timestamp", String(Date.parse(received_at))],
      ["x-ninefold-hops", "4"],
      ["x-own", "2"],
      ["host", new URL(receiver.url).host],
      ["webhook-id", null],
    ] as const)
      expect(hit?.headers.get(name) ?? null, name).toBe(value);
    const time = received_at.slice(11, 23);
    expect(ended.out).toMatch(
      new RegExp(`^${time}  ${event}  stripe  invoice.paid  valid  → 200  \\d+ ms\\n$`),
    );
    expect((await eventOf(account, stripe, event)).status).toBe("pending");
  }, 180_000);

  test("forwards one at a time and in order, and does not retry a status of 400 or more", async () => {
    const sent = [
      await accepted(server, id, "1"),
      await accepted(server, id, "2"),
      await accepted(server, id, "3"),
    ];
    receiver.respond = (_, number) => [200, 503, 302][number - 1] ?? 200;
    const ended = await listen(id, ...all, "--forward-to", receiver.url, "--ack", "--json", "--once", "3");
    expect(ended.code, ended.error).toBe(1);
    expect(receiver.texts).toEqual(["1", "2", "3"]);
    const lines = ended.out.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      [200, 503, 302].map((response_status, index) => ({
        event_id: sent[index],
        event_type: null,
        verification: "none",
        response_status,
        error: null,
        duration_ms: expect.any(Number),
      })),
    );
    expect((await bucketOf(account, id)).events).toEqual({ pending: 0, delivered: 2, failed: 1 });
    expect(await eventOf(account, id, sent[1] ?? "")).toMatchObject({
      status: "failed",
      response_status: 503,
      error: "the target responded with 503",
      attempts: 1,
    });
  }, 180_000);

  test("counts an unreachable target and a timeout as failures", async () => {
    await accepted(server, id, "1");
    receiver.respond = () => Bun.sleep(3_000).then(() => 200);
    const slow = await listen(id, ...all, "--forward-to", receiver.url, "--timeout", "1", "--once", "1");
    expect([slow.code, slow.out]).toEqual([
      1,
      expect.stringContaining("→ no complete response within 1000 ms"),
    ]);
    const none = await listen(id, ...all, "--forward-to", "http://127.0.0.1:9/", "--ack", "--once", "1");
    expect([none.code, none.out]).toEqual([1, expect.stringMatching(/→ .*connection/)]);
    expect((await bucketOf(account, id)).events.failed).toBe(1);
  }, 180_000);

  test("filters by type and signature, and only prints without a target", async () => {
    const github = await newBucket(account, { delivery: "pull", provider: "github", signing_secret: "s" });
    await accepted(server, github.id, "{}", { "x-github-event": "push" });
    const skipped = await listen(github.id, ...all, "--once", "1", "--print", "headers");
    expect(skipped.out).toContain("  github  push  invalid\n");
    expect(skipped.out).toContain("\n  x-github-event: push\n");
    await accepted(server, id, '{"type":"one"}');
    await accepted(server, id, '{"type":"two\\u001b[2J"}\nsecond\u001b line');
    await accepted(server, id, '{"type":"three"}');
    const some = await listen(
      id,
      ...all,
      "--once",
      "1",
      "--event-type",
      "three",
      "--print",
      "body",
      "--skip-invalid",
    );
    expect(some.out).toEndWith('  -  three  none\n  {"type":"three"}\n');
    const body = await listen(id, ...all, "--once", "2", "--print", "body");
    expect(body.out).toEndWith(
      '\\u001b[2J"}\n  second\\u001b line\n'.replace('\\u001b[2J"}', '{"type":"two\\u001b[2J"}'),
    );
  }, 180_000);
});

describe("the position", () => {
  test("continues from the file, which overrides --after and has mode 0600", async () => {
    const file = join(folder, "cursor");
    const sent = [await accepted(server, id, "1"), await accepted(server, id, "2")];
    const once = ["--forward-to", receiver.url, "--resume", file, "--once", "1"];
    for (const event of sent) {
      expect((await listen(id, ...all, ...once)).code).toBe(0);
      expect(readFileSync(file, "utf8")).toBe(`${event}\n`);
      expect(statSync(file).mode & 0o777).toBe(0o600);
    }
    expect(receiver.texts).toEqual(["1", "2"]);
    const behind = await listen(id, "--after", sent[0] ?? "", "--once", "1");
    expect(behind.out).toContain(sent[1] ?? "");
    writeFileSync(file, "now\n");
    expect(await listen(id, ...once)).toMatchObject({
      code: 1,
      error: expect.stringContaining("does not contain a cursor"),
    });
  }, 180_000);

  test("starts with new events, stores the position immediately, and runs until it is interrupted", async () => {
    const file = join(folder, "now");
    const before = await accepted(server, id, "before");
    const listener = spawned(id, "--forward-to", receiver.url, "--resume", file);
    while (!existsSync(file)) await Bun.sleep(10);
    expect(readFileSync(file, "utf8")).toBe(`${before}\n`);
    const event = await accepted(server, id, "after");
    expect(await until(listener.stdout, "\n")).toContain(event);
    listener.kill("SIGINT");
    expect(await listener.exited).toBe(0);
    expect(receiver.texts).toEqual(["after"]);
  }, 180_000);

  test("reconnects to a restarted server and prints a line for each", async () => {
    // The same port again after the restart.
    const separateServer = await startTestServer({ args: ["--port", String(freePort())] });
    try {
      const client = separateServer.client(separateServer.key);
      const bucket = await newBucket(client, { delivery: "pull" });
      environment = { NINEFOLD_API_KEY: separateServer.key, NINEFOLD_URL: separateServer.url };
      const listener = spawned(bucket.id);
      const errors = until(listener.stderr, "Connection is back.");
      const printed = until(listener.stdout, "\n");
      // Its request waits at the server, beside the one for this number.
      await eventually(async () => {
        const { text } = await client.get("/metrics");
        expect(new Scrape(text).find("ninefold_http_requests_in_flight")).toBe(2);
      });
      await separateServer.restart();
      const event = await accepted(separateServer, bucket.id, "1");
      expect(await printed).toContain(event);
      expect((await errors).match(/Connection lost: /g)).toHaveLength(1);
      listener.kill("SIGTERM");
      expect(await listener.exited).toBe(0);
    } finally {
      await separateServer.stop();
    }
  }, 180_000);

  test("forwards every event in order despite repeated kills, and repeats only with the same id", async () => {
    const size = { kills: 2, perSecond: 100, aliveMs: 1_200 };
    const result = await killListeners(server.url, server.key, size);
    expect(result.sent).toBeGreaterThan(50);
    expect(result).toMatchObject({ handed: result.sent, lost: [], wrong: [], isInOrder: true });
    // One event is in flight at each kill.
    expect(result.repeats).toBeLessThanOrEqual(size.kills);
  }, 180_000);
});

describe("rejected calls", () => {
  const usage = async (...args: string[]) => {
    const { code, error } = await listen(...args);
    expect(code, error).toBe(2);
    return error;
  };
  test("rejects options that exclude each other", async () => {
    expect(await usage()).toContain("needs BUCKET, or --create");
    expect(await usage(id, "--create")).toContain("--create creates");
    expect(await usage("--create", "--resume", "x")).toContain("--create creates");
    expect(await usage(id, "--ack")).toContain("--ack requires --forward-to");
    expect(await usage(id, "--keep-path")).toContain("--keep-path requires --forward-to");
    expect(await usage(id, "--after", "yesterday")).toContain("--after must be");
    expect(await usage(id, "--once", "0")).toContain("--once must be");
    expect(await usage(id, "--timeout", "3601")).toContain("--timeout must be");
    expect(await usage(id, "--forward-to", "localhost:3000")).toContain("--forward-to must be");
    expect(await usage(id, "--header", "no colon")).toContain("--header must be");
    expect(await usage(id, "--header", "Content-Length: 1")).toContain("--header cannot be Content-Length");
    expect(await usage(id, "--print", "all")).toContain("--print must be one of");
  }, 180_000);

  test("exits for a rejected key, bucket or scope", async () => {
    const ended = await listen("brave-otter-314159");
    expect([ended.code, ended.error]).toEqual([1, expect.stringContaining("(404)")]);
    const { body } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["gate:read"] });
    environment["NINEFOLD_API_KEY"] = String(body["secret"]);
    const refused = await listen(id);
    expect([refused.code, refused.error]).toEqual([
      1,
      expect.stringContaining("does not have the scope catch:read"),
    ]);
    delete environment["NINEFOLD_API_KEY"];
    expect((await listen(id)).code).toBe(1);
  }, 180_000);

  test("rejects --ack for a bucket that pushes", async () => {
    const { id: push } = await newBucket(account);
    const ended = await listen(push, "--ack", "--forward-to", receiver.url);
    expect([ended.code, ended.error]).toEqual([1, expect.stringContaining("with the delivery pull")]);
  }, 180_000);
});

test("--create creates a bucket for the session, and deletes it at its end", async () => {
  const listener = spawned("--create", "--once", "1");
  const line = await until(listener.stderr, "\n");
  const [, made = ""] = /\/v1\/in\/(\S+)/.exec(line) ?? [];
  expect(await bucketOf(account, made)).toMatchObject({ delivery: "pull" });
  await accepted(server, made, "1");
  expect(await listener.exited).toBe(0);
  expect((await account.get(`/v1/catch/buckets/${made}`)).status).toBe(404);
}, 180_000);

test("explains once why the target rejects an old event with a dated signature", async () => {
  const separateServer = await startTestServer({ manualClock: true });
  try {
    const client = await separateServer.account();
    const { id: stripe } = await newBucket(client, { delivery: "pull", provider: "stripe" });
    environment = { NINEFOLD_API_KEY: String(client.key), NINEFOLD_URL: separateServer.url };
    // The test's clock is years behind.
    for (const body of ["1", "2"]) await accepted(separateServer, stripe, body);
    receiver.respond = () => 400;
    const ended = await listen(stripe, ...all, "--forward-to", receiver.url, "--once", "2");
    expect(ended.error.match(/Hint: /g)).toHaveLength(1);
    expect(ended.error).toContain("libraries of stripe reject signatures older than 5 min");
  } finally {
    await separateServer.stop();
  }
}, 180_000);
