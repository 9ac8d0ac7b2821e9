import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createHash, createPublicKey, verify } from "node:crypto";
import {
  INDEX_FIELDS_MAX,
  POINTER_LENGTH_MAX,
  VALUE_LENGTH_MAX,
} from "../../../../src/areas/notary/domain.ts";
import { NOTE_LENGTH_MAX, REASON_LENGTH_MAX, RETAIN_DAYS_MAX } from "../../../../src/areas/notary/schema.ts";
import { verifyBundle, verifyChain, verifyReceipt } from "../../../../src/verify/index.ts";
import type { Receipt } from "../../../../src/verify/receipt.ts";
import { S3Server } from "../../../support/s3-server.ts";
import { endpoint, play, type Scenario, type World } from "../../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
let s3: S3Server | null = null;
async function start(): Promise<void> {
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "127.0.0.0/8"],
  });
}
beforeAll(start);
afterAll(() => server.stop());
afterEach(async () => {
  await s3?.stop();
  s3 = null;
});

const sha256 = (text: string | Uint8Array) => createHash("sha256").update(text).digest("hex");
const HASH = sha256("a file");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const init = ({ account }: World) => account.post("/v1/witness/sys/init");

async function chain(...logs: object[]): Promise<AccountClient> {
  const account = await server.account({ balance: 10_000 });
  await account.post("/v1/witness/sys/init");
  for (const log of logs) await account.post("/v1/witness/log", { log });
  return account;
}

async function receiptsOf(account: AccountClient, query = ""): Promise<Receipt[]> {
  return (await account.get(`/v1/witness/receipts${query}`)).body.receipts as Receipt[];
}

const positions = async (account: AccountClient, query: string) =>
  (await receiptsOf(account, query)).map(({ sequence_id }) => sequence_id);

/** Checks a chain, newest first, without our verifier. */
function holds(receipts: readonly Receipt[]): boolean {
  let previous = "0".repeat(64);
  return receipts.toReversed().every((receipt, index) => {
    const position = Buffer.alloc(8);
    position.writeBigUInt64BE(BigInt(index + 1));
    const hash = createHash("sha256")
      .update(Buffer.from(previous, "hex"))
      .update(position)
      .update(Buffer.from(receipt.content_hash, "hex"))
      .digest();
    const key = createPublicKey({
      key: { ...receipt.public_key },
      format: "jwk",
    });
    previous = receipt.chain_hash;
    return (
      hash.toString("hex") === receipt.chain_hash &&
      verify(null, hash, key, Buffer.from(receipt.signature, "hex")) &&
      (receipt.log === undefined || sha256(JSON.stringify(receipt.log)) === receipt.content_hash)
    );
  });
}

describe("POST /v1/witness/log without the log", () => {
  const rejected = (name: string, body: object, field: string): Scenario => ({
    name,
    before: init,
    request: ["POST", "/v1/witness/log", body],
    status: 400,
    code: "validation_error",
    after: (_, { body: { fields } }) => {
      expect(Object.keys(fields as object)).toEqual([field]);
    },
  });
  const scenarios: Scenario[] = [
    {
      name: "a hash with the longest note",
      before: init,
      request: ["POST", "/v1/witness/log", { content_hash: HASH, note: "n".repeat(NOTE_LENGTH_MAX) }],
      spent: 1,
      status: 200,
      after: async ({ account }, { body }) => {
        expect(body).toMatchObject({
          content_hash: HASH,
          note: "n".repeat(NOTE_LENGTH_MAX),
        });
        expect(body).not.toHaveProperty("log");
        expect((await account.get("/v1/witness/receipts/1")).body).toEqual(body);
        expect((await account.post("/v1/witness/verify", { receipt: body })).body).toMatchObject({
          valid: true,
          checks: { content_hash_matches: null },
        });
      },
    },
    rejected("a hash in upper case", { content_hash: HASH.toUpperCase() }, "content_hash"),
    rejected("a hash and a log", { content_hash: HASH, log: { a: 1 } }, "content_hash"),
    rejected("a hash with a salt", { content_hash: HASH, salt: true }, "salt"),
    rejected(
      "a note that is too long",
      { content_hash: HASH, note: "n".repeat(NOTE_LENGTH_MAX + 1) },
      "note",
    ),
    rejected("a note next to a log", { log: { a: 1 }, note: "n" }, "note"),
    rejected("a salt in a log that has one", { log: { $salt: "mine" }, salt: true }, "salt"),
  ];
  test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))("%s", (_, scenario) =>
    play(server, scenario),
  );

  test("verify accepts the log next to the receipt", async () => {
    const account = await chain();
    const log = { b: [1, "ä"], a: null };
    const { body: receipt } = await account.post("/v1/witness/log", {
      content_hash: sha256(JSON.stringify(log)),
    });
    const check = async (given: unknown) =>
      (await account.post("/v1/witness/verify", { receipt, log: given })).body;
    expect(await check(log)).toMatchObject({
      valid: true,
      checks: { content_hash_matches: true },
    });
    for (const other of [{ ...log, a: 1 }, {}, null, "text", { a: null, b: [1, "ä"] }])
      expect(await check(other)).toMatchObject({
        valid: false,
        checks: { content_hash_matches: false },
      });
    expect(verifyReceipt(receipt, log).checks.content_hash_matches).toBe(true);
    expect(verifyReceipt(JSON.stringify(receipt), JSON.stringify(log)).valid).toBe(true);
    expect(verifyReceipt(JSON.stringify(receipt), `{"b":[1,"ä"],"a":1,"a":null}`).valid).toBe(false);
    expect(verifyReceipt(JSON.stringify(receipt), "{").valid).toBe(false);
    expect(verifyReceipt(receipt).checks.content_hash_matches).toBeNull();
  });

  test("salt adds 22 random characters that are part of the hash", async () => {
    const account = await chain();
    const log = { event: "login", __proto__: 1 };
    const salted = async () =>
      (await account.post("/v1/witness/log", { log, salt: true })).body as unknown as Receipt;
    const [first, second] = [await salted(), await salted()];
    expect(first.log?.["$salt"]).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(first.log?.["$salt"]).not.toBe(second.log?.["$salt"]);
    expect(sha256(JSON.stringify(first.log))).toBe(first.content_hash);
    expect(holds(await receiptsOf(account))).toBe(true);
  });
});

describe("POST /v1/witness/receipts/{sequence_id}/redact", () => {
  const redact = (reason: unknown, position = "1") =>
    ["POST", `/v1/witness/receipts/${position}/redact`, { reason }] as const;
  const one = async ({ account }: World) => {
    await account.post("/v1/witness/sys/init");
    await account.post("/v1/witness/log", { log: { person: "Ada" } });
  };
  endpoint(() => server, "POST /v1/witness/receipts/{sequence_id}/redact", [
    {
      name: "the longest reason",
      before: one,
      request: redact("r".repeat(REASON_LENGTH_MAX)),
      spent: 1,
      status: 200,
      after: async ({ account }, { body }) => {
        expect(body.declared_by).toBe("2");
        expect(body.receipt).not.toHaveProperty("log");
        expect((body.receipt as Receipt).redacted_at).toBe(new Date(server.clock.now()).toISOString());
        expect((await account.get("/v1/witness/receipts/2")).body.log).toEqual({
          ninefold: "redacted",
          sequence_id: "1",
          reason: "r".repeat(REASON_LENGTH_MAX),
        });
      },
    },
    {
      name: "a reason that is too long",
      before: one,
      request: redact("r".repeat(REASON_LENGTH_MAX + 1)),
      status: 400,
      code: "validation_error",
    },
    {
      name: "no reason",
      before: one,
      request: redact(""),
      status: 400,
      code: "validation_error",
    },
    {
      name: "without a chain",
      request: redact("r"),
      spent: 1,
      status: 404,
      code: "not_found",
    },
    {
      name: "past the end",
      before: one,
      request: redact("r", "2"),
      spent: 1,
      status: 404,
      code: "not_found",
    },
    {
      name: "position zero",
      before: one,
      request: redact("r", "0"),
      status: 400,
      code: "validation_error",
    },
    {
      name: "twice",
      before: async (world: World) => {
        await one(world);
        await world.account.post("/v1/witness/receipts/1/redact", {
          reason: "r",
        });
      },
      request: redact("r"),
      spent: 1,
      status: 409,
      code: "conflict",
    },
    {
      name: "without credits",
      account: { balance: 2 },
      before: one,
      request: redact("r"),
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "no key",
      as: "nobody",
      request: redact("r"),
      status: 401,
      code: "unauthorized",
    },
  ]);

  test("a redacted chain is verified by us and by others, with every proof", async () => {
    const account = await chain({ person: "Ada" }, { person: "Grace" });
    await account.post("/v1/witness/log", {
      content_hash: HASH,
      note: "grace.pdf",
    });
    const before = await receiptsOf(account);
    for (const position of [2, 3, 1])
      await account.post(`/v1/witness/receipts/${position}/redact`, {
        reason: "request",
      });
    const after = await receiptsOf(account);
    expect(holds(after)).toBe(true);
    expect(verifyChain(after.toReversed()).valid).toBe(true);
    expect(JSON.stringify(after)).not.toMatch(/Ada|Grace|grace/);
    for (const { log: _, note: __, ...fields } of before)
      expect(after.find(({ sequence_id }) => sequence_id === fields.sequence_id)).toMatchObject(fields);
    expect((await account.post("/v1/witness/verify", { receipt: before[2] })).body.valid).toBe(true);
    const { body: bundle } = await account.get("/v1/witness/receipts/1/bundle");
    expect(verifyBundle(bundle)).toMatchObject({ valid: true, sequence: "1" });
    const { text } = await account.get("/v1/witness/export");
    expect(verifyChain(text.trim().split("\n"))).toMatchObject({
      valid: true,
      count: 6,
    });
  });

  test("the text is not in the database any more, however long it was", async () => {
    // A server of its own: the first page of a table may be split, which leaves copies of its rows in unused bytes.
    const fresh = await startTestServer({ manualClock: true });
    try {
      const marker = "erase-me-from-this-file";
      const account = await fresh.account({ balance: 100 });
      await account.post("/v1/witness/sys/init");
      for (const text of [marker, marker.repeat(2_000)])
        await account.post("/v1/witness/log", { log: { text } });
      for (const position of [1, 2])
        await account.post(`/v1/witness/receipts/${position}/redact`, {
          reason: "request",
        });
      fresh.server.kernel.db.execute("PRAGMA wal_checkpoint(TRUNCATE)");
      const file = Buffer.from(await Bun.file(`${fresh.folder}/ninefold.db`).arrayBuffer());
      expect(file.includes(marker)).toBe(false);
    } finally {
      await fresh.stop();
    }
  });

  test("replaces the copy in the storage, and no other object", async () => {
    s3 = await new S3Server().start();
    const account = await chain();
    await account.post("/v1/witness/config", s3.config());
    await account.post("/v1/witness/log", { log: { person: "Ada" } });
    expect(await s3.object("witness/receipts/1.json")).toContain("Ada");
    const { body } = await account.post("/v1/witness/receipts/1/redact", {
      reason: "request",
    });
    expect(body.receipt).toMatchObject({ storage_status: "buffered" });
    await server.clock.advance(10_000);
    expect(await s3.object("witness/receipts/1.json")).not.toContain("Ada");
    expect((await account.get("/v1/witness/receipts/1")).body.storage_status).toBe("delivered");

    // Another chain with the same objects.
    const other = await chain();
    await other.post("/v1/witness/config", s3.config());
    await other.post("/v1/witness/log", { log: { person: "Grace" } });
    await other.post("/v1/witness/receipts/1/redact", { reason: "request" });
    const object = await s3.object("witness/receipts/1.json");
    await server.clock.advance(60_000);
    expect(await s3.object("witness/receipts/1.json")).toBe(object);
  });
});

describe("PUT /v1/witness/index", () => {
  const put = (body: object) => ["PUT", "/v1/witness/index", body] as const;
  const fields = (count: number) => Array.from({ length: count }, (_, n) => `/${n}`);
  const bad = (name: string, body: object) => ({
    name,
    before: init,
    request: put(body),
    status: 400,
    code: "validation_error" as const,
  });
  endpoint(() => server, "PUT /v1/witness/index", [
    {
      name: "the limits",
      before: init,
      request: put({
        fields: [...fields(INDEX_FIELDS_MAX - 1), `/${"p".repeat(POINTER_LENGTH_MAX - 1)}`],
        retain_days: RETAIN_DAYS_MAX,
      }),
      status: 200,
      after: async ({ account }, { body }) => {
        expect((await account.get("/v1/witness/index")).body).toEqual(body);
        // What is omitted stays.
        const { body: later } = await account.put("/v1/witness/index", {
          retain_days: 0,
        });
        expect(later).toEqual({ ...body, retain_days: 0 });
      },
    },
    bad("too many fields", { fields: fields(INDEX_FIELDS_MAX + 1) }),
    bad("a path that is too long", {
      fields: [`/${"p".repeat(POINTER_LENGTH_MAX)}`],
    }),
    bad("a path without a slash", { fields: ["invoice"] }),
    bad("the whole log", { fields: [""] }),
    bad("an unsupported escape", { fields: ["/a~2"] }),
    bad("negative days", { retain_days: -1 }),
    bad("too many days", { retain_days: RETAIN_DAYS_MAX + 1 }),
    {
      name: "without a chain",
      request: put({ fields: [] }),
      status: 409,
      code: "conflict",
    },
    {
      name: "no key",
      as: "nobody",
      request: put({ fields: [] }),
      status: 401,
      code: "unauthorized",
    },
  ]);
  endpoint(() => server, "GET /v1/witness/index", [
    {
      name: "by default",
      before: init,
      request: ["GET", "/v1/witness/index"],
      status: 200,
      body: { fields: [], retain_days: 0 },
    },
    {
      name: "the same without a chain",
      request: ["GET", "/v1/witness/index"],
      status: 200,
      body: { fields: [], retain_days: 0 },
    },
    {
      name: "no key",
      as: "nobody",
      request: ["GET", "/v1/witness/index"],
      status: 401,
      code: "unauthorized",
    },
  ]);
});

describe("the search", () => {
  const find = (field: string, value: string) =>
    `?field=${encodeURIComponent(field)}&value=${encodeURIComponent(value)}`;

  test("finds scalar values by their text, from the time of the index on", async () => {
    const account = await chain({ invoice: "in_1" });
    await account.put("/v1/witness/index", {
      fields: ["/invoice", "/customer/id", "/a~1b/0"],
    });
    const logs = [
      { invoice: "in_1", customer: { id: 42 } },
      { invoice: "in_2", customer: { id: "42" } },
      { invoice: { in_1: 1 }, customer: null, "a/b": [true] },
      { invoice: "", customer: { id: null } },
      { invoice: "x".repeat(VALUE_LENGTH_MAX) },
      { invoice: "x".repeat(VALUE_LENGTH_MAX + 1) },
    ];
    for (const log of logs) await account.post("/v1/witness/log", { log });
    expect(await positions(account, find("/invoice", "in_1"))).toEqual(["2"]);
    expect(await positions(account, find("/customer/id", "42"))).toEqual(["3", "2"]);
    expect(await positions(account, find("/customer/id", "null"))).toEqual(["5"]);
    expect(await positions(account, find("/a~1b/0", "true"))).toEqual(["4"]);
    expect(await positions(account, find("/invoice", ""))).toEqual(["5"]);
    expect(await positions(account, find("/invoice", "x".repeat(VALUE_LENGTH_MAX)))).toEqual(["6"]);
    for (const hostile of ["' OR 1=1 --", "%", "\0", "𝒊", "[object Object]", "in_1\n"])
      expect(await positions(account, find("/invoice", hostile))).toEqual([]);
  });

  test("a receipt is not found once it is redacted", async () => {
    const account = await chain();
    await account.put("/v1/witness/index", { fields: ["/invoice"] });
    await account.post("/v1/witness/log", { log: { invoice: "in_1" } });
    await account.put("/v1/witness/index", { fields: [] });
    await account.post("/v1/witness/receipts/1/redact", { reason: "request" });
    await account.put("/v1/witness/index", { fields: ["/invoice"] });
    expect(await positions(account, find("/invoice", "in_1"))).toEqual([]);
    const { db } = server.server.kernel;
    expect(
      db.number(
        "SELECT count(*) AS n FROM receipt_values WHERE sequence = 1 AND chain_ref = (SELECT max(ref) FROM chains)",
      )(),
    ).toBe(0);
  });

  test("is paged, and limited by time, with a field and without", async () => {
    const account = await chain();
    await account.put("/v1/witness/index", { fields: ["/kind"] });
    const times: number[] = [];
    for (let n = 0; n < 9; n += 1) {
      await account.post("/v1/witness/log", { log: { kind: n % 3 } });
      times.push(server.clock.now());
      await server.clock.advance(1_000);
    }
    const between = `since=${times[2]}&until=${times[7]}`;
    expect(await positions(account, `?${between}`)).toEqual(["7", "6", "5", "4", "3"]);
    expect(await positions(account, `${find("/kind", "0")}&${between}`)).toEqual(["7", "4"]);
    expect(await positions(account, `?since=${times[8]}`)).toEqual(["9"]);
    expect(await positions(account, `?until=${times[0]}`)).toEqual([]);
    expect(await positions(account, `?since=${times[8]}&until=${times[0]}`)).toEqual([]);
    const first = (await account.get(`/v1/witness/receipts${find("/kind", "0")}&limit=2`)).body;
    expect((first.receipts as Receipt[]).map(({ sequence_id }) => sequence_id)).toEqual(["7", "4"]);
    const next = `${find("/kind", "0")}&limit=2&cursor=${first.cursor}`;
    expect((await account.get(`/v1/witness/receipts${next}`)).body).toMatchObject({
      receipts: [{ sequence_id: "1" }],
    });
  });

  const badSearch = (query: string): Scenario => ({
    name: query,
    before: init,
    request: ["GET", `/v1/witness/receipts${query}`],
    status: 400,
    code: "validation_error",
  });
  test.each([
    ["a field that is not indexed", "?field=/invoice&value=1"],
    ["a field without a value", "?field=/invoice"],
    ["a value without a field", "?value=1"],
    ["a value that is too long", `?field=/a&value=${"v".repeat(VALUE_LENGTH_MAX + 1)}`],
    ["an invalid time", "?since=yesterday"],
    ["a negative time", "?until=-1"],
  ])("rejects %s", (_, query) => play(server, badSearch(query)));
});

describe("retain_days", () => {
  // Chains of other tests would retry their uploads all these days.
  beforeAll(async () => {
    await server.stop();
    await start();
  });

  test("deletes the texts of older logs within an hour, and not before", async () => {
    const account = await chain({ person: "Ada" });
    await account.put("/v1/witness/index", {
      fields: ["/person"],
      retain_days: 2,
    });
    await server.clock.advance(DAY_MS);
    await account.post("/v1/witness/log", { log: { person: "Grace" } });
    await server.clock.advance(DAY_MS - HOUR_MS);
    expect((await account.get("/v1/witness/receipts/1")).body.log).toEqual({
      person: "Ada",
    });
    await server.clock.advance(2 * HOUR_MS);
    expect((await account.get("/v1/witness/receipts/1")).body).not.toHaveProperty("log");
    expect((await account.get("/v1/witness/receipts/2")).body.log).toEqual({
      person: "Grace",
    });
    await server.clock.advance(DAY_MS + HOUR_MS);
    const receipts = await receiptsOf(account);
    expect(receipts.map(({ redacted_at }) => redacted_at === undefined)).toEqual([false, false]);
    expect(holds(receipts)).toBe(true);
    // Later logs are dealt with as well.
    await account.post("/v1/witness/log", { log: { person: "Alan" } });
    await server.clock.advance(2 * DAY_MS + HOUR_MS);
    expect((await account.get("/v1/witness/receipts/3")).body).not.toHaveProperty("log");
  });

  test("deletes large logs of several chains, in steps", async () => {
    const text = "x".repeat(200_000);
    const accounts = await Promise.all([1, 2, 3].map((n) => chain({ n, text }, { n, text }, { n, text })));
    for (const account of accounts) await account.put("/v1/witness/index", { retain_days: 1 });
    await server.clock.advance(DAY_MS + HOUR_MS);
    for (const account of accounts)
      expect((await receiptsOf(account)).map(({ log }) => log)).toEqual([undefined, undefined, undefined]);
  });
});
