import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { JSON_LEVELS_MAX } from "../../../src/json-text.ts";
import { expectError } from "../../support/errors.ts";
import { anyJson, makeChain } from "../../support/receipts.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

type Fields = Record<string, unknown>;

/** An account with a chain of three receipts. */
async function chainOf(account: AccountClient): Promise<Fields[]> {
  await account.post("/v1/witness/sys/init");
  const receipts: Fields[] = [];
  for (const n of [1, 2, 3])
    receipts.push((await account.post("/v1/witness/log", { log: { n, text: "é" } })).body);
  return receipts;
}

const VERIFY = "/v1/witness/verify";
const malformed = {
  valid: false,
  checks: { signature_valid: false, content_hash_matches: false, chain_link_valid: false },
  metadata: { sequence_id: null, timestamp: null, public_key: null },
};

describe("POST /v1/witness/verify", () => {
  const notReceipt = (name: string, receipt: unknown): Scenario => ({
    name,
    before: ({ account }: World) => chainOf(account),
    request: ["POST", VERIFY, { receipt }],
    status: 200,
    holds: malformed,
    after: (_, { body }) => {
      expect((body.errors as string[]).length).toBeGreaterThan(3);
    },
  });
  endpoint(() => server, `POST ${VERIFY}`, [
    notReceipt("an empty object", {}),
    notReceipt("null", null),
    notReceipt("a number", 5),
    notReceipt("an array", [{}]),
    notReceipt("text", "receipt"),
    {
      name: "no receipt",
      request: ["POST", VERIFY, {}],
      status: 400,
      code: "validation_error",
      holds: { fields: { receipt: ["is required: it must be a receipt"] } },
    },
    {
      name: "Idempotency-Key of another request",
      before: ({ account }) => account.post(VERIFY, { receipt: 1 }, { headers: { "idempotency-key": "k" } }),
      request: ["POST", VERIFY, { receipt: 2 }],
      headers: { "idempotency-key": "k" },
      status: 409,
      code: "conflict",
    },
    { name: "not JSON", request: ["POST", VERIFY, "{"], status: 400, code: "validation_error" },
    {
      name: "no key",
      as: "nobody",
      request: ["POST", VERIFY, { receipt: {} }],
      status: 401,
      code: "unauthorized",
    },
  ]);
});

describe("a receipt of the chain", () => {
  let account: AccountClient;
  let receipts: Fields[];
  let receipt: Fields;
  beforeAll(async () => {
    account = await server.account();
    receipts = await chainOf(account);
    receipt = receipts[1] as Fields;
  });

  const verify = async (changed: unknown): Promise<Fields> =>
    (await account.post(VERIFY, { receipt: changed })).body;

  test("is valid", async () => {
    for (const receipt of receipts) {
      expect(await verify(receipt)).toEqual({
        valid: true,
        checks: { signature_valid: true, content_hash_matches: true, chain_link_valid: true },
        metadata: {
          sequence_id: receipt.sequence_id,
          timestamp: receipt.timestamp,
          public_key: receipt.public_key,
        },
      });
    }
  });

  test("is valid with its signature in base64url and with storage fields", async () => {
    const signature = Buffer.from(String(receipt.signature), "hex").toString("base64url");
    expect(await verify({ ...receipt, signature, storage_status: "buffered" })).toMatchObject({
      valid: true,
    });
  });

  const zeros = "0".repeat(64);
  test.each([
    ["log", { log: { n: 2, text: "e" } }, "content_hash_matches", "content_hash is not the hash of log"],
    [
      "content_hash",
      { content_hash: zeros },
      "content_hash_matches chain_link_valid",
      "content_hash differs from the stored receipt 2",
    ],
    ["prev_hash", { prev_hash: zeros }, "chain_link_valid", "prev_hash differs from the stored receipt 2"],
    [
      "chain_hash",
      { chain_hash: zeros },
      "signature_valid chain_link_valid",
      "signature is not a valid signature of chain_hash by public_key",
    ],
    ["timestamp", { timestamp: 1 }, "chain_link_valid", "timestamp differs from the stored receipt 2"],
    ["sequence_id", { sequence_id: "9" }, "chain_link_valid", "this project's chain has no receipt 9"],
    [
      "sequence_id, past what is counted",
      { sequence_id: "18446744073709551615" },
      "chain_link_valid",
      "this project's chain has no receipt 18446744073709551615",
    ],
    [
      "signature",
      { signature: "0".repeat(128) },
      "signature_valid",
      "signature is not a valid signature of chain_hash by public_key",
    ],
    ["version", { version: 2 }, "signature_valid content_hash_matches chain_link_valid", "version must be 1"],
  ])("with another %s", async (_, change, failing, error) => {
    const { valid, checks, errors } = await verify({ ...receipt, ...change });
    const failed = Object.entries(checks as Fields)
      .filter(([, passed]) => !passed)
      .map(([name]) => name);
    expect({ valid, failed: failed.join(" ") }).toEqual({ valid: false, failed: failing });
    expect(errors).toContain(error);
  });

  test("signed with another key pair is invalid", async () => {
    const forged = makeChain([{ n: 1 }])[0];
    expect(await verify(forged)).toMatchObject({
      valid: false,
      checks: { signature_valid: false, content_hash_matches: true, chain_link_valid: false },
      errors: expect.arrayContaining([
        "public_key is not the key of this project's chain",
      ]) as unknown as string[],
    });
  });

  test("is invalid for another account's chain and without a chain", async () => {
    const other = await server.account();
    const verdict = async (): Promise<Fields> => (await other.post(VERIFY, { receipt })).body;
    expect(await verdict()).toMatchObject({
      valid: false,
      checks: { signature_valid: false, content_hash_matches: true, chain_link_valid: false },
      errors: ["this project has no chain", "this project's chain has no receipt 2"],
    });
    await other.post("/v1/witness/sys/init");
    for (const n of [7, 8]) await other.post("/v1/witness/log", { log: { n } });
    expect(await verdict()).toMatchObject({
      valid: false,
      checks: { signature_valid: false, content_hash_matches: true, chain_link_valid: false },
    });
  });

  test("with a duplicate name or an inexact number in its log fails the content check", async () => {
    const text = JSON.stringify({ receipt });
    for (const [from, to] of [
      ['"n":2', '"n":1,"n":2'],
      ['"n":2', '"n":2.00000000000000000001'],
    ] as const) {
      const { body } = await account.post(VERIFY, text.replace(from, to));
      expect(body.checks).toEqual({
        signature_valid: true,
        content_hash_matches: false,
        chain_link_valid: true,
      });
    }
    const { body } = await account.post(VERIFY, text.replace('"version":1', '"version":1,"version":1'));
    expect(body.checks).toEqual(malformed.checks);
    const twice = await account.post(VERIFY, `{"receipt":{},"receipt":${JSON.stringify(receipt)}}`);
    expect(twice.body.checks).toEqual(malformed.checks);
  });

  test("with any single bit changed is invalid, including the timestamp", async () => {
    const json = JSON.stringify(receipt);
    await fc.assert(
      fc.asyncProperty(fc.nat(Buffer.byteLength(json) * 8 - 1), async (bit) => {
        const bytes = Buffer.from(json);
        bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const { status, body } = await account.post(VERIFY, `{"receipt":${bytes.toString("utf8")}}`);
        if (status === 400) expect(body.code).toBe("validation_error");
        // The name of the log was changed: only the hashes are verified.
        else if ((body.checks as { content_hash_matches: unknown }).content_hash_matches === null) return;
        else
          expect({ status, valid: body.valid }).toEqual({
            status: 200,
            valid: false,
          });
      }),
      { numRuns: 300 },
    );
  });

  test("any JSON as a field gets a verdict", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(receipt)), anyJson, async (field, value) => {
        // The random value may equal the original.
        fc.pre(!Bun.deepEquals(value, (receipt as unknown as Record<string, unknown>)[field]));
        const { status, body } = await account.post(VERIFY, { receipt: { ...receipt, [field]: value } });
        expect({ status, valid: body.valid }).toEqual({ status: 200, valid: false });
      }),
      { numRuns: 150 },
    );
  });

  test("any JSON as a receipt gets a verdict", async () => {
    await fc.assert(
      fc.asyncProperty(anyJson, async (value) => {
        const { status, body } = await account.post(VERIFY, { receipt: value });
        expect({ status, valid: body.valid }).toEqual({ status: 200, valid: false });
      }),
      { numRuns: 150 },
    );
  });

  test("nested to the maximum depth gets a verdict; one level more is rejected", async () => {
    const nested = (levels: number): string =>
      `{"receipt":{"log":{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}}}`;
    const { status, body } = await account.post(VERIFY, nested(JSON_LEVELS_MAX));
    expect({ status, valid: body.valid }).toEqual({ status: 200, valid: false });
    for (const levels of [JSON_LEVELS_MAX + 1, 250_000]) {
      expectError(await account.post(VERIFY, nested(levels)), "validation_error");
    }
  });
});
