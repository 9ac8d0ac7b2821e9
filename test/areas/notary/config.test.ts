import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PREFIX_LENGTH_MAX } from "../../../src/areas/notary/domain.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let permissive: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  permissive = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(async () => {
  await server.stop();
  await permissive.stop();
});

const CONFIG = "/v1/witness/config";
const good = {
  endpoint: "https://s3.eu-central-1.amazonaws.com",
  bucket: "acme-receipts",
  region: "eu-central-1",
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

const taken = (name: string, change: object): Scenario => ({
  name,
  request: ["POST", CONFIG, { ...good, ...change }],
  status: 200,
  body: { success: true, configured: true },
});

/** A configuration that is refused for one field, and leaves nothing behind. */
const refused = (name: string, change: object, field: string, message?: string): Scenario => ({
  name: `${field}: ${name}`,
  request: ["POST", CONFIG, { ...good, ...change }],
  status: 400,
  code: "validation_error",
  after: async ({ account }, { body }) => {
    expect(Object.keys(body.fields as object)).toEqual([field]);
    if (message !== undefined) expect(body.fields).toEqual({ [field]: [expect.stringContaining(message)] });
    expect((await account.get(CONFIG)).status).toBe(404);
  },
});

const PRIVATE = "must lead to a public address";
const SECRET = "must be 16 to 256 printable characters without spaces";

describe("POST /v1/witness/config", () => {
  endpoint(() => server, `POST ${CONFIG}`, [
    taken("a storage", {}),
    taken("a path after the host", { endpoint: "https://example.supabase.co/storage/v1/s3" }),
    taken("a port and a slash at the end", { endpoint: "https://s3.example.com:9000/" }),
    taken("the shortest names", {
      bucket: "abc",
      region: "a",
      accessKeyId: "A".repeat(16),
      secretAccessKey: "s".repeat(16),
    }),
    taken("the longest names", {
      bucket: "b".repeat(63),
      region: "r".repeat(64),
      accessKeyId: "A".repeat(128),
      secretAccessKey: "s".repeat(256),
      prefix: "p".repeat(PREFIX_LENGTH_MAX),
    }),
    taken("no chain is needed, nor a prefix", { prefix: "" }),
    refused("plain HTTP", { endpoint: "http://s3.example.com" }, "endpoint", "must be an https URL"),
    refused("another scheme", { endpoint: "ftp://s3.example.com" }, "endpoint"),
    refused("no URL", { endpoint: "s3.example.com" }, "endpoint"),
    refused("localhost", { endpoint: "https://localhost" }, "endpoint", PRIVATE),
    refused("loopback", { endpoint: "https://127.0.0.1:9000" }, "endpoint", PRIVATE),
    refused("a private address", { endpoint: "https://10.0.0.1" }, "endpoint", PRIVATE),
    refused("a private address in disguise", { endpoint: "https://[::ffff:10.0.0.1]" }, "endpoint", PRIVATE),
    refused("the metadata service", { endpoint: "https://169.254.169.254" }, "endpoint", PRIVATE),
    refused("credentials in it", { endpoint: "https://user:secret@s3.example.com" }, "endpoint"),
    refused(
      "a query",
      { endpoint: "https://s3.example.com/?a=1" },
      "endpoint",
      "must not have a query or a fragment",
    ),
    refused(
      "an empty fragment",
      { endpoint: "https://s3.example.com/#" },
      "endpoint",
      "must not have a query or a fragment",
    ),
    refused("too long", { endpoint: `https://s3.example.com/${"a".repeat(2_048)}` }, "endpoint"),
    refused("missing", { endpoint: undefined }, "endpoint", "is required: it must be a public https URL"),
    refused("2 characters", { bucket: "ab" }, "bucket"),
    refused("64 characters", { bucket: "b".repeat(64) }, "bucket"),
    refused("a slash", { bucket: "a/b" }, "bucket"),
    refused("the folder above", { bucket: "a..b" }, "bucket", "must not have two dots beside each other"),
    refused("dots alone", { bucket: "..." }, "bucket"),
    refused("a number", { bucket: 123 }, "bucket"),
    refused("empty", { region: "" }, "region"),
    refused("65 characters", { region: "r".repeat(65) }, "region"),
    refused("a slash", { region: "a/b" }, "region"),
    refused("15 characters", { accessKeyId: "A".repeat(15) }, "accessKeyId"),
    refused("129 characters", { accessKeyId: "A".repeat(129) }, "accessKeyId"),
    refused("a line end", { accessKeyId: `${"A".repeat(16)}\r\nX: y` }, "accessKeyId"),
    refused("a slash", { accessKeyId: `${"A".repeat(16)}/x` }, "accessKeyId"),
    refused("a comma", { accessKeyId: `${"A".repeat(16)},x` }, "accessKeyId"),
    refused("15 characters", { secretAccessKey: "s".repeat(15) }, "secretAccessKey", SECRET),
    refused("257 characters", { secretAccessKey: "s".repeat(257) }, "secretAccessKey", SECRET),
    refused("missing", { secretAccessKey: undefined }, "secretAccessKey", `is required: it ${SECRET}`),
    refused("one character too many", { prefix: "p".repeat(PREFIX_LENGTH_MAX + 1) }, "prefix"),
    ...["/a", "a//b", "..", "a/../b", "./a", "a/.", "/"].map((prefix) =>
      refused(
        prefix,
        { prefix },
        "prefix",
        "must be folder names with a slash between them, such as logs/2026",
      ),
    ),
    ...["a b", "a%2fb", "ü", "a?b", "a#b"].map((prefix) => refused(prefix, { prefix }, "prefix")),
    { name: "no key", as: "nobody", request: ["POST", CONFIG, good], status: 401, code: "unauthorized" },
    {
      name: "under an Idempotency-Key that was used for another request",
      before: ({ account }: World) => account.post(CONFIG, good, { headers: { "idempotency-key": "k" } }),
      request: ["POST", CONFIG, { ...good, bucket: "other" }],
      headers: { "idempotency-key": "k" },
      status: 409,
      code: "conflict",
    },
  ]);

  test("addresses that the operator permits may be local, and plain HTTP", async () => {
    const account = await permissive.account();
    const { status } = await account.post(CONFIG, { ...good, endpoint: "http://127.0.0.1:9000" });
    expect(status).toBe(200);
    expect((await account.post(CONFIG, { ...good, endpoint: "http://10.0.0.1" })).status).toBe(400);
  });

  test("the keys are nowhere in the database file", async () => {
    const account = await server.account();
    const secretAccessKey = `secret-${crypto.randomUUID()}`;
    await account.post(CONFIG, { ...good, secretAccessKey });
    await account.post("/v1/witness/sys/init");
    const { db } = server.server.kernel;
    const row = db.one<{ secret_access_key: Uint8Array }>(
      "SELECT secret_access_key FROM receipt_stores ORDER BY ref DESC LIMIT 1",
    )();
    expect(Buffer.from(row?.secret_access_key ?? []).includes(secretAccessKey)).toBe(false);
    expect(row?.secret_access_key.length).toBeGreaterThan(secretAccessKey.length);
    const chain = db.one<{ private_key: Uint8Array }>(
      "SELECT private_key FROM chains ORDER BY ref DESC LIMIT 1",
    )();
    expect(chain?.private_key.length).toBeGreaterThan(43);
  });
});

describe("GET /v1/witness/config", () => {
  endpoint(() => server, `GET ${CONFIG}`, [
    {
      name: "what is in force, its secrets masked",
      before: ({ account }: World) => account.post(CONFIG, { ...good, prefix: "a/b" }),
      request: ["GET", CONFIG],
      status: 200,
      body: {
        endpoint: good.endpoint,
        bucket: good.bucket,
        region: good.region,
        prefix: "a/b",
        accessKeyId: "AKIA...MPLE",
        buffered: 0,
        last_error: null,
      },
      lacks: [good.accessKeyId, good.secretAccessKey, "secretAccessKey"],
    },
    {
      name: "the newest one",
      before: async ({ account }: World) => {
        await account.post(CONFIG, good);
        await account.post(CONFIG, { ...good, bucket: "other" });
        await account.post(CONFIG, { ...good, bucket: "other", accessKeyId: "B".repeat(16) });
      },
      request: ["GET", CONFIG],
      status: 200,
      holds: { bucket: "other", prefix: "", accessKeyId: "BBBB...BBBB" },
    },
    { name: "nothing configured", request: ["GET", CONFIG], status: 404, code: "not_found" },
    { name: "no key", as: "nobody", request: ["GET", CONFIG], status: 401, code: "unauthorized" },
  ]);
});
