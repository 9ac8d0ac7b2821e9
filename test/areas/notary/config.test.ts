import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DESTINATIONS_PER_PROJECT_MAX, PREFIX_LENGTH_MAX } from "../../../src/areas/notary/domain.ts";
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

const accepted = (name: string, change: object): Scenario => ({
  name,
  request: ["POST", CONFIG, { ...good, ...change }],
  status: 200,
  body: { success: true, configured: true },
});

/** A configuration that is rejected for one field and not stored. */
const rejected = (name: string, change: object, field: string, message?: string): Scenario => ({
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

const PRIVATE = "must have a public address";
const SECRET = "must be 16 to 256 printable characters without spaces";

describe("POST /v1/witness/config", () => {
  endpoint(() => server, `POST ${CONFIG}`, [
    accepted("a storage", {}),
    accepted("a path after the host", { endpoint: "https://example.supabase.co/storage/v1/s3" }),
    accepted("a port and a slash at the end", { endpoint: "https://s3.example.com:9000/" }),
    accepted("the shortest names", {
      bucket: "abc",
      region: "a",
      accessKeyId: "A".repeat(16),
      secretAccessKey: "s".repeat(16),
    }),
    accepted("the longest names", {
      bucket: "b".repeat(63),
      region: "r".repeat(64),
      accessKeyId: "A".repeat(128),
      secretAccessKey: "s".repeat(256),
      prefix: "p".repeat(PREFIX_LENGTH_MAX),
    }),
    accepted("without a chain and a prefix", { prefix: "" }),
    rejected("plain HTTP", { endpoint: "http://s3.example.com" }, "endpoint", "must be an https URL"),
    rejected("another scheme", { endpoint: "ftp://s3.example.com" }, "endpoint"),
    rejected("no URL", { endpoint: "s3.example.com" }, "endpoint"),
    rejected("localhost", { endpoint: "https://localhost" }, "endpoint", PRIVATE),
    rejected("loopback", { endpoint: "https://127.0.0.1:9000" }, "endpoint", PRIVATE),
    rejected("a private address", { endpoint: "https://10.0.0.1" }, "endpoint", PRIVATE),
    rejected("a private address in disguise", { endpoint: "https://[::ffff:10.0.0.1]" }, "endpoint", PRIVATE),
    rejected("the metadata service", { endpoint: "https://169.254.169.254" }, "endpoint", PRIVATE),
    rejected("credentials in it", { endpoint: "https://user:secret@s3.example.com" }, "endpoint"),
    rejected(
      "a query",
      { endpoint: "https://s3.example.com/?a=1" },
      "endpoint",
      "must not have a query or a fragment",
    ),
    rejected(
      "an empty fragment",
      { endpoint: "https://s3.example.com/#" },
      "endpoint",
      "must not have a query or a fragment",
    ),
    rejected("too long", { endpoint: `https://s3.example.com/${"a".repeat(2_048)}` }, "endpoint"),
    rejected("missing", { endpoint: undefined }, "endpoint", "is required: it must be a public https URL"),
    rejected("2 characters", { bucket: "ab" }, "bucket"),
    rejected("64 characters", { bucket: "b".repeat(64) }, "bucket"),
    rejected("a slash", { bucket: "a/b" }, "bucket"),
    rejected("the folder above", { bucket: "a..b" }, "bucket", "must not have two consecutive dots"),
    rejected("dots alone", { bucket: "..." }, "bucket"),
    rejected("a number", { bucket: 123 }, "bucket"),
    rejected("empty", { region: "" }, "region"),
    rejected("65 characters", { region: "r".repeat(65) }, "region"),
    rejected("a slash", { region: "a/b" }, "region"),
    rejected("15 characters", { accessKeyId: "A".repeat(15) }, "accessKeyId"),
    rejected("129 characters", { accessKeyId: "A".repeat(129) }, "accessKeyId"),
    rejected("a line end", { accessKeyId: `${"A".repeat(16)}\r\nX: y` }, "accessKeyId"),
    rejected("a slash", { accessKeyId: `${"A".repeat(16)}/x` }, "accessKeyId"),
    rejected("a comma", { accessKeyId: `${"A".repeat(16)},x` }, "accessKeyId"),
    rejected("15 characters", { secretAccessKey: "s".repeat(15) }, "secretAccessKey", SECRET),
    rejected("257 characters", { secretAccessKey: "s".repeat(257) }, "secretAccessKey", SECRET),
    rejected("missing", { secretAccessKey: undefined }, "secretAccessKey", `is required: it ${SECRET}`),
    rejected("one character too many", { prefix: "p".repeat(PREFIX_LENGTH_MAX + 1) }, "prefix"),
    ...["/a", "a//b", "..", "a/../b", "./a", "a/.", "/"].map((prefix) =>
      rejected(prefix, { prefix }, "prefix", "must be folder names separated by slashes, such as logs/2026"),
    ),
    ...["a b", "a%2fb", "ü", "a?b", "a#b"].map((prefix) => rejected(prefix, { prefix }, "prefix")),
    { name: "no key", as: "nobody", request: ["POST", CONFIG, good], status: 401, code: "unauthorized" },
    {
      name: "Idempotency-Key of another request",
      before: ({ account }: World) => account.post(CONFIG, good, { headers: { "idempotency-key": "k" } }),
      request: ["POST", CONFIG, { ...good, bucket: "other" }],
      headers: { "idempotency-key": "k" },
      status: 409,
      code: "conflict",
    },
  ]);

  test("addresses that the operator allows can be local and use plain HTTP", async () => {
    const account = await permissive.account();
    const { status } = await account.post(CONFIG, { ...good, endpoint: "http://127.0.0.1:9000" });
    expect(status).toBe(200);
    expect((await account.post(CONFIG, { ...good, endpoint: "http://10.0.0.1" })).status).toBe(400);
  });

  test("a project has a maximum of destinations; the credentials of the last one can still change", async () => {
    const account = await server.account();
    for (let n = 1; n <= DESTINATIONS_PER_PROJECT_MAX; n += 1) {
      const { status } = await account.post(CONFIG, { ...good, prefix: `p${n}` });
      expect(status).toBe(200);
      if (n % 50 === 0) await server.clock.advance(60_000);
    }
    const last = { ...good, prefix: `p${DESTINATIONS_PER_PROJECT_MAX}` };
    const { status, body } = await account.post(CONFIG, { ...good, prefix: "p1" });
    expect({ status, body }).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect((await account.get(CONFIG)).body.prefix).toBe(last.prefix);
    expect((await account.post(CONFIG, { ...last, accessKeyId: "B".repeat(16) })).status).toBe(200);
    expect((await account.get(CONFIG)).body.accessKeyId).toBe("BBBB...BBBB");
  });

  test("the database file contains no key in plain text", async () => {
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
      name: "the current configuration with masked credentials",
      before: ({ account }: World) => account.post(CONFIG, { ...good, prefix: "a/b" }),
      request: ["GET", CONFIG],
      status: 200,
      holds: {
        endpoint: good.endpoint,
        bucket: good.bucket,
        region: good.region,
        prefix: "a/b",
        accessKeyId: "AKIA...MPLE",
        buffered: 0,
        last_error: null,
      },
      lacks: [good.accessKeyId, good.secretAccessKey],
    },
    {
      name: "the newest configuration",
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
