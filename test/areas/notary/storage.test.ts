import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createNotary } from "../../../src/areas/notary/index.ts";
import { IMMEDIATE_UPLOAD_TIMEOUT_MS } from "../../../src/areas/notary/uploads.ts";
import { OutboundClient } from "../../../src/kernel/outbound/client.ts";
import { Scheduler } from "../../../src/kernel/scheduler/scheduler.ts";
import type { Client } from "../../support/client.ts";
import { S3Server } from "../../support/s3-server.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let s3: S3Server;
let account: Client;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());
beforeEach(async () => {
  s3 = await new S3Server().start();
  account = await server.account({ balance: 1_000 });
  await account.post("/v1/witness/sys/init");
});
afterEach(() => s3.stop());

/** Longer than the first delay before a retry, including jitter. */
const FIRST_RETRY_MS = 6_000;

async function configure(
  config: Record<string, string> = s3.config(),
  client: Client = account,
): Promise<void> {
  const { status, body } = await client.post("/v1/witness/config", config);
  expect({ status, body }).toEqual({ status: 200, body: { success: true, configured: true } });
}

const log = (n: number, client: Client = account) => client.post("/v1/witness/log", { log: { n } });

/** The delivery fields of the configuration. */
async function deliveries(client: Client = account): Promise<unknown> {
  const { buffered, last_error } = (await client.get("/v1/witness/config")).body;
  return { buffered, last_error };
}

const NOTHING_BUFFERED = { buffered: 0, last_error: null };

describe("an available storage", () => {
  test("has the receipt before the log request returns, also if it demands checksums", async () => {
    s3.demandsChecksum = true;
    await configure();
    const { status, headers, body } = await log(1);
    const location = `${s3.endpoint}/receipts/witness/receipts/1.json`;
    expect({ status, header: headers.get("x-witness-status") }).toEqual({ status: 200, header: null });
    expect(body).toMatchObject({ storage_status: "delivered", storage_location: location });
    const { storage_status, storage_location, ...receipt } = body;
    expect(await s3.object("witness/receipts/1.json")).toBe(JSON.stringify(receipt));
    expect(s3.requests).toHaveLength(1);
    expect(s3.requests[0]?.headers.get("content-type")).toBe("application/json");
    expect((await account.get("/v1/witness/receipts/1")).body).toEqual(body);
    expect((await account.get("/v1/witness/receipts")).body.receipts).toEqual([body]);
    expect((await account.post("/v1/witness/verify", { receipt: body })).body.valid).toBe(true);
    expect(await deliveries()).toEqual(NOTHING_BUFFERED);
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(998);
  });

  test("gets no further requests when everything is delivered", async () => {
    await configure();
    await log(1);
    await server.clock.advance(24 * 60 * 60 * 1000);
    expect(s3.requests).toHaveLength(1);
  });

  test("gets the receipts created after its configuration, and no earlier ones", async () => {
    const before = (await log(1)).body;
    await configure();
    await log(2);
    expect(before.storage_status).toBeUndefined();
    expect(await s3.object("witness/receipts/1.json")).toBeNull();
    expect(await s3.object("witness/receipts/2.json")).not.toBeNull();
    expect((await account.get("/v1/witness/receipts/1")).body).toEqual(before);
  });

  test.each([
    ["tenant-a", "tenant-a/witness/receipts/1.json"],
    ["tenant-a/", "tenant-a/witness/receipts/1.json"],
    ["a/b_c.d", "a/b_c.d/witness/receipts/1.json"],
    ["", "witness/receipts/1.json"],
  ])("keeps chains apart by the prefix %j", async (prefix, key) => {
    await configure(s3.config(prefix));
    expect((await log(1)).body.storage_location).toBe(`${s3.endpoint}/receipts/${key}`);
    expect(await s3.object(key)).not.toBeNull();
  });

  test("gets concurrent receipts", async () => {
    await configure();
    await Promise.all(Array.from({ length: 40 }, (_, n) => log(n)));
    // On a busy machine, some uploads take longer than the request waits for them.
    await server.clock.advance(FIRST_RETRY_MS);
    expect(await deliveries()).toEqual(NOTHING_BUFFERED);
    const objects = Array.from({ length: 40 }, (_, n) => s3.object(`witness/receipts/${n + 1}.json`));
    expect(await Promise.all(objects)).not.toContain(null);
  });
});

describe("an unavailable storage", () => {
  test.each([
    ["down", "the storage returned 503 SlowDown"],
    ["redirecting", "the storage returned 307: redirects are not followed; check endpoint and region"],
    ["hanging", /^no response from the storage: /],
  ] as const)("%s: the receipt is buffered and delivered when the storage recovers", async (mode, error) => {
    await configure();
    s3.mode = mode;
    const startedAt = performance.now();
    const { status, headers, body } = await log(1);
    const tookMs = performance.now() - startedAt;
    if (mode === "hanging") expect(tookMs).toBeGreaterThan(IMMEDIATE_UPLOAD_TIMEOUT_MS - 50);
    expect({ status, header: headers.get("x-witness-status") }).toEqual({ status: 202, header: "buffered" });
    expect(body.storage_status).toBe("buffered");
    expect(body.storage_location).toBeUndefined();
    expect((await account.get("/v1/witness/receipts/1")).body).toEqual(body);
    expect(await deliveries()).toEqual({
      buffered: 1,
      last_error: typeof error === "string" ? error : (expect.stringMatching(error) as unknown as string),
    });
    s3.mode = "up";
    await server.clock.advance(FIRST_RETRY_MS);
    const { storage_status, ...receipt } = body;
    expect(await s3.object("witness/receipts/1.json")).toBe(JSON.stringify(receipt));
    expect((await account.get("/v1/witness/receipts/1")).body).toMatchObject({ storage_status: "delivered" });
    expect(await deliveries()).toEqual(NOTHING_BUFFERED);
  });

  test("a redirect is not followed", async () => {
    await configure();
    s3.mode = "redirecting";
    await log(1);
    expect(s3.requests.map(({ path }) => path)).toEqual(["/receipts/witness/receipts/1.json"]);
  });

  test("is retried after 5, 10, 20, … seconds, at most every 5 minutes, without an end", async () => {
    await configure();
    s3.mode = "down";
    await log(1);
    const pauses: number[] = [];
    let waited = 0;
    let seen = s3.requests.length;
    for (let step = 0; step < 1_400 && pauses.length < 9; step += 1) {
      await server.clock.advance(1_000);
      waited += 1;
      if (s3.requests.length === seen) continue;
      pauses.push(waited);
      waited = 0;
      seen = s3.requests.length;
    }
    for (const [index, expected] of [5, 5, 10, 20, 40, 80, 160, 300, 300].entries()) {
      const pause = pauses[index] ?? 0;
      expect(pause).toBeGreaterThanOrEqual(Math.floor(expected * 0.9));
      expect(pause).toBeLessThanOrEqual(Math.ceil(expected * 1.1) + 1);
    }
    s3.mode = "up";
    await server.clock.advance(331_000);
    expect(await deliveries()).toEqual(NOTHING_BUFFERED);
  });

  test("a backlog is delivered completely, oldest first, also after a restart", async () => {
    await configure();
    s3.mode = "down";
    for (let n = 1; n <= 30; n += 1) await log(n);
    await server.restart();
    account = server.client(account.key);
    expect(await deliveries()).toEqual({ buffered: 30, last_error: "the storage returned 503 SlowDown" });
    s3.mode = "up";
    s3.requests.length = 0;
    await server.clock.advance(FIRST_RETRY_MS);
    expect(await deliveries()).toEqual(NOTHING_BUFFERED);
    const order = s3.requests.map(({ path }) => Number(/(\d+)\.json$/.exec(path)?.[1]));
    expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    expect(order.slice(0, 8).every((sequence) => sequence <= 8)).toBe(true);
    for (let n = 1; n <= 30; n += 1)
      expect(await s3.object(`witness/receipts/${n}.json`)).toContain(`"n":${n}}`);
  });

  test("wrong credentials leave receipts buffered until they are corrected", async () => {
    await configure({ ...s3.config(), secretAccessKey: "wrong+secret/wrong+secret" });
    expect((await log(1)).status).toBe(202);
    expect(await deliveries()).toEqual({
      buffered: 1,
      last_error: "the storage returned 403 SignatureDoesNotMatch",
    });
    await configure();
    await server.clock.advance(1);
    expect(await deliveries()).toEqual(NOTHING_BUFFERED);
    expect(await s3.object("witness/receipts/1.json")).not.toBeNull();
  });

  test("another storage gets the buffered receipts; delivered copies stay in place", async () => {
    await configure();
    await log(1);
    s3.mode = "down";
    await log(2);
    s3.mode = "up";
    await configure(s3.config("new"));
    await server.clock.advance(1);
    const locations = async () =>
      ((await account.get("/v1/witness/receipts")).body.receipts as Record<string, unknown>[]).map(
        (receipt) => receipt.storage_location,
      );
    expect(await locations()).toEqual([
      `${s3.endpoint}/receipts/new/witness/receipts/2.json`,
      `${s3.endpoint}/receipts/witness/receipts/1.json`,
    ]);
    expect(await s3.object("new/witness/receipts/2.json")).not.toBeNull();
  });
});

describe("an existing object", () => {
  test("with the same bytes counts as delivered", async () => {
    await configure();
    s3.mode = "down";
    const { storage_status, ...receipt } = (await log(1)).body;
    s3.mode = "up";
    await s3.place("witness/receipts/1.json", JSON.stringify(receipt));
    await server.clock.advance(FIRST_RETRY_MS);
    expect(await deliveries()).toEqual(NOTHING_BUFFERED);
    expect(s3.requests.at(-1)?.method).toBe("GET");
  });

  test("with other bytes is not changed, its receipt stays buffered, and others are delivered", async () => {
    await configure();
    await s3.place("witness/receipts/1.json", "someone else's");
    expect((await log(1)).status).toBe(202);
    expect((await log(2)).status).toBe(200);
    const conflict = {
      buffered: 1,
      last_error: "witness/receipts/1.json already exists with different content",
    };
    expect(await deliveries()).toEqual(conflict);
    await server.clock.advance(60_000);
    expect(await deliveries()).toEqual(conflict);
    expect(await s3.object("witness/receipts/1.json")).toBe("someone else's");
  });

  test("many of them do not delay later receipts", async () => {
    await configure();
    s3.mode = "down";
    for (let n = 1; n <= 9; n += 1) {
      await s3.place(`witness/receipts/${n}.json`, "someone else's");
      await log(n);
    }
    await log(10);
    s3.mode = "up";
    await server.clock.advance(FIRST_RETRY_MS * 2);
    expect(await s3.object("witness/receipts/10.json")).not.toBeNull();
    expect(await deliveries()).toMatchObject({ buffered: 9 });
  });
});

describe("under an Idempotency-Key", () => {
  const keyed = { headers: { "idempotency-key": "k" } };

  test("a repeated request gets the first response, delivered or buffered", async () => {
    await configure();
    const first = await account.post("/v1/witness/log", { log: { n: 1 } }, keyed);
    const repeat = await account.post("/v1/witness/log", { log: { n: 1 } }, keyed);
    expect({ status: repeat.status, text: repeat.text }).toEqual({ status: 200, text: first.text });
    s3.mode = "down";
    const other = { headers: { "idempotency-key": "other" } };
    const buffered = await account.post("/v1/witness/log", { log: { n: 2 } }, other);
    s3.mode = "up";
    const retryLater = await account.post("/v1/witness/log", { log: { n: 2 } }, other);
    expect({ status: retryLater.status, text: retryLater.text }).toEqual({
      status: 202,
      text: buffered.text,
    });
    expect(retryLater.headers.get("x-witness-status")).toBe("buffered");
    expect((await account.get("/v1/witness/receipts")).body.receipts).toHaveLength(2);
  });

  test("a repeated request during the upload is a conflict", async () => {
    await configure();
    s3.mode = "hanging";
    const first = account.post("/v1/witness/log", { log: { n: 1 } }, keyed);
    while (s3.requests.length === 0) await Bun.sleep(5);
    expect((await account.post("/v1/witness/log", { log: { n: 1 } }, keyed)).status).toBe(409);
    expect((await first).status).toBe(202);
  });
});

describe("the storage of a deleted project", () => {
  test("gets no further receipts, and every row is removed", async () => {
    await configure();
    await log(1);
    s3.mode = "down";
    await log(2);
    s3.mode = "up";
    const sent = s3.requests.length;
    const { kernel } = server.server;
    // A second notary on the same file, used like the first one by the removal of projects.
    const scheduler = new Scheduler(kernel.db, kernel.writer, kernel.clock, kernel.log);
    const { resources } = createNotary({ ...kernel, scheduler }, new OutboundClient([]), {
      accountOf: () => null,
    });
    const ref = Number(
      kernel.db.one<{ ref: number }>("SELECT max(project_ref) AS ref FROM receipt_stores")()?.ref,
    );
    expect(resources.count(ref, null)).toBe(1);
    await kernel.writer.submit((tx) => resources.projectDeleted?.(tx, ref));
    await server.clock.advance(60_000);
    expect(s3.requests).toHaveLength(sent);
    const removed: number[] = [];
    for (let rows = 2; rows === 2; ) {
      rows = await kernel.writer.submit((tx) => resources.removeRows(tx, ref, 2));
      removed.push(rows);
    }
    // Two copies, receipts and leaves; the chain and the storage; none.
    expect(removed).toEqual([2, 2, 2, 2, 0]);
    expect(resources.count(ref, null)).toBe(0);
    const left =
      "SELECT (SELECT count(*) FROM receipt_stores WHERE project_ref = ?1) + (SELECT count(*) FROM chains WHERE project_ref = ?1) AS n";
    expect(kernel.db.one<{ n: number }, [number]>(left)(ref)?.n).toBe(0);
  });
});

describe("storages of several accounts", () => {
  test("do not see each other", async () => {
    await configure();
    const other = await server.account();
    await other.post("/v1/witness/sys/init");
    expect((await other.get("/v1/witness/config")).status).toBe(404);
    expect((await log(1, other)).body.storage_status).toBeUndefined();
    expect(s3.requests).toEqual([]);
  });
});
