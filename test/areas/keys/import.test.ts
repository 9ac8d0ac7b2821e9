import { beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { check } from "../check/support.ts";
import { INVALID, makeKey, verdictOf } from "./support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account();
});

const balanceOf = async (client: AccountClient) => {
  const { accounts } = (await server.operator.get("/v1/admin/accounts?limit=100")).body;
  return (accounts as { user_id: string; balance: number }[]).find((a) => a.user_id === client.userId)
    ?.balance;
};
const SECRET = "unkey_3Zx9";
const hex = (secret: string) => createHash("sha256").update(secret).digest("hex");
const base64 = (secret: string) => createHash("sha256").update(secret).digest("base64");
const termsOf = (secret: string, more: object = {}) => ({
  hash: hex(secret),
  hash_algorithm: "sha256-hex",
  name: "Imported",
  scopes: ["orders:read"],
  ...more,
});
type Imported = { index: number; key_id: string; existing?: true }[];
async function imported(client: AccountClient, ...keys: object[]): Promise<Imported> {
  const { status, body, text } = await client.post("/v1/keys/import", { keys });
  expect(status, text).toBe(201);
  return body["keys"] as Imported;
}
const fieldsOf = async (...keys: unknown[]) =>
  Object.keys(expectError(await account.post("/v1/keys/import", { keys }), "validation_error").fields ?? {});

describe("an imported key", () => {
  test("is verified by its secret, with every field of a creation", async () => {
    const [key] = await imported(
      account,
      termsOf(SECRET, {
        prefix: "unkey",
        owner_id: "acme",
        meter_id: "acme",
        environment: "live",
        metadata: { plan: "pro" },
        expires_at: new Date(server.clock.now() + 1_000_000).toISOString(),
        uses: { remaining: 10 },
        ratelimits: [{ name: "requests", limit: 5, duration_ms: 60_000 }],
      }),
    );
    expect(key).toEqual({ index: 0, key_id: expect.any(String) });
    expect(await verdictOf(account, SECRET)).toMatchObject({
      valid: true,
      key_id: key?.key_id,
      scopes: ["orders:read"],
      owner_id: "acme",
      environment: "live",
      metadata: { plan: "pro" },
      uses_remaining: 9,
    });
    // The second time its digest is cached.
    expect(await verdictOf(account, SECRET)).toMatchObject({ valid: true, uses_remaining: 8 });
    expect(await check(account, { secret: SECRET })).toMatchObject({ allowed: true });
    expect(await verdictOf(account, `${SECRET}x`)).toEqual(INVALID);
    expect((await account.get(`/v1/keys/${key?.key_id}`)).body).toMatchObject({
      imported: true,
      prefix: "unkey",
      masked_secret: "unkey_...",
      last4: "",
    });
  });

  test("may have no prefix and no scopes, and a secret of any length, or one that looks like ours", async () => {
    const { secret: ours } = await makeKey(await server.account());
    for (const secret of ["x", "é".repeat(2_000), ours]) {
      const [key] = await imported(account, {
        hash: base64(secret),
        hash_algorithm: "sha256-base64",
        prefix: null,
        name: "k",
        scopes: [],
      });
      expect(await verdictOf(account, secret)).toMatchObject({
        valid: true,
        key_id: key?.key_id,
        scopes: [],
      });
      expect(await verdictOf(account, secret)).toMatchObject({ valid: true, key_id: key?.key_id });
    }
    const { keys } = (await account.get("/v1/keys")).body as { keys: object[] };
    expect(keys).toMatchObject(Array(3).fill({ prefix: null, masked_secret: "...", last4: "" }));
  });

  test("costs as much to verify as any other", async () => {
    await imported(account, termsOf(SECRET));
    const before = await balanceOf(account);
    await verdictOf(account, SECRET);
    await verdictOf(account, "unknown");
    expect(await balanceOf(account)).toBe(Number(before) - 2);
  });

  test("is no Bearer credential, even if its hash is that of one", async () => {
    await imported(account, termsOf(SECRET, { scopes: ["*"] }));
    expectError(await server.client(SECRET).get("/v1/keys"), "unauthorized");
    const { secret } = await makeKey(account, { prefix: "sm", scopes: ["keys:read"] });
    const other = await server.account();
    const [key] = await imported(other, termsOf(secret));
    expect(key?.existing).toBeUndefined();
    expect(await verdictOf(other, secret)).toMatchObject({ valid: true, key_id: key?.key_id });
    expect(await verdictOf(account, secret)).toMatchObject({ valid: true, scopes: ["keys:read"] });
    expect((await server.client(secret).get("/v1/keys")).status).toBe(200);
  });

  test("is of its account only: others can import the same hash", async () => {
    const other = await server.account();
    const [first] = await imported(account, termsOf(SECRET, { name: "a" }));
    const [second] = await imported(other, termsOf(SECRET, { name: "b" }));
    expect(second?.existing).toBeUndefined();
    for (let time = 0; time < 2; time += 1) {
      expect(await verdictOf(account, SECRET)).toMatchObject({ name: "a", key_id: first?.key_id });
      expect(await verdictOf(other, SECRET)).toMatchObject({ name: "b", key_id: second?.key_id });
    }
    expect(await verdictOf(await server.account(), SECRET)).toEqual(INVALID);
  });

  test("is of the project of a key that imports it", async () => {
    const { body } = await account.post("/v1/projects", { slug: "import", name: "import" });
    const id = String(body["id"] ?? body["project_id"]);
    const { secret } = await makeKey(account, { prefix: "sm", scopes: ["keys:*"] }, id);
    const { status } = await server.client(secret).post("/v1/keys/import", { keys: [termsOf(SECRET)] });
    expect(status).toBe(201);
    expect(await verdictOf(account, SECRET)).toMatchObject({ project_id: id });
  });

  test("is rotated to a key of ours, with the prefix key if it has none", async () => {
    const [bare, prefixed] = await imported(account, termsOf("a"), termsOf("b", { prefix: "unkey" }));
    const rotate = async (id: string | undefined) =>
      (await account.post(`/v1/keys/${id}/rotate`, { grace_hours: 1 })).body;
    const rotated = await rotate(bare?.key_id);
    expect(rotated["new_secret"]).toStartWith("key_");
    expect((await rotate(prefixed?.key_id))["new_secret"]).toStartWith("unkey_");
    expect(await verdictOf(account, String(rotated["new_secret"]))).toMatchObject({ valid: true });
    expect(await verdictOf(account, "a")).toMatchObject({ valid: true });
    await server.clock.advance(3_600_000);
    expect(await verdictOf(account, "a")).toMatchObject({ error: "expired" });
    const { body } = await account.get(`/v1/keys/${rotated["new_key_id"]}`);
    expect(body).toMatchObject({ prefix: "key", masked_secret: "key_..." });
    expect(body["imported"]).toBeUndefined();
  });
});

describe("a hash that the account has", () => {
  test("returns its key unchanged, free of charge", async () => {
    const [first] = await imported(account, termsOf(SECRET));
    const before = await balanceOf(account);
    const again = await imported(
      account,
      termsOf(SECRET, { hash: base64(SECRET), hash_algorithm: null, name: "n" }),
    );
    expect(again).toEqual([{ index: 0, key_id: String(first?.key_id), existing: true }]);
    expect(await balanceOf(account)).toBe(Number(before));
    expect(await verdictOf(account, SECRET)).toMatchObject({ name: "Imported" });
  });

  test("can be that of a key of ours, or stand twice in a request", async () => {
    const ours = await makeKey(account);
    const before = await balanceOf(account);
    const keys = await imported(account, termsOf("a"), termsOf(ours.secret), termsOf("a"), termsOf("b"));
    expect(keys.map(({ existing }) => existing ?? false)).toEqual([false, true, true, false]);
    expect(keys.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    expect(keys[1]?.key_id).toBe(ours.id);
    expect(keys[2]?.key_id).toBe(String(keys[0]?.key_id));
    expect(await balanceOf(account)).toBe(Number(before) - 2);
  });

  test("is free again once its key is purged, also before its row is removed", async () => {
    const [first] = await imported(account, termsOf(SECRET));
    await account.send("DELETE", `/v1/keys/${first?.key_id}`);
    expect(await imported(account, termsOf(SECRET))).toMatchObject([{ existing: true }]);
    expect(await verdictOf(account, SECRET)).toMatchObject({ error: "revoked" });
    await server.clock.advance(30 * 86_400_000);
    const [second] = await imported(account, termsOf(SECRET));
    expect(second?.existing).toBeUndefined();
    expect(await verdictOf(account, SECRET)).toMatchObject({ valid: true, key_id: second?.key_id });
  });
});

describe("an import", () => {
  test.each([
    [{ hash: "a".repeat(63) }, "hash"],
    [{ hash: "g".repeat(64) }, "hash"],
    [{ hash: "a".repeat(65) }, "hash"],
    [{ hash: "a".repeat(44), hash_algorithm: null }, "hash"],
    [{ hash: base64(SECRET) }, "hash"],
    [{ hash_algorithm: "sha256-base64" }, "hash"],
    [{ hash_algorithm: "sha1" }, "hash_algorithm"],
    [{ hash: undefined }, "hash"],
    [{ prefix: "sm" }, "prefix"],
    [{ prefix: "A" }, "prefix"],
    [{ name: "" }, "name"],
    [{ scopes: [""] }, "scopes.0"],
    [{ expires_at: "2001-01-01T00:00:00Z" }, "expires_at"],
    [{ allowed_ips: ["nowhere"] }, "allowed_ips"],
  ])("with %j is a 400 about that key, and imports none", async (more, field) => {
    expect(await fieldsOf(termsOf("a"), termsOf(SECRET, more))).toEqual([`keys.1.${field}`]);
    expect(await verdictOf(account, "a")).toEqual(INVALID);
  });

  test("has 1 to 100 keys and 256 KiB", async () => {
    expect(await fieldsOf()).toEqual(["keys"]);
    const metadata = { note: "m".repeat(1_900) };
    const many = Array.from({ length: 101 }, (_, index) => termsOf(`s${index}`, { metadata }));
    expect(await fieldsOf(...many)).toEqual(["keys"]);
    const before = await balanceOf(account);
    expect(await imported(account, ...many.slice(0, 100))).toHaveLength(100);
    expect(await balanceOf(account)).toBe(Number(before) - 100);
    const large = many.slice(0, 100).map((key) => ({ ...key, metadata: { note: "m".repeat(2_700) } }));
    expectError(await account.post("/v1/keys/import", { keys: large }), "request_too_large");
  });

  test("above the tier's number of keys, imports none, free of charge", async () => {
    const small = await server.account({ tier: "free", balance: 200 });
    const keys = Array.from({ length: 51 }, (_, index) => termsOf(`s${index}`));
    expectError(await small.post("/v1/keys/import", { keys }), "key_limit_exceeded");
    expect(await balanceOf(small)).toBe(200);
    expect((await small.get("/v1/keys")).body["keys"]).toEqual([]);
    expect(await imported(small, ...keys.slice(0, 50))).toHaveLength(50);
    expectError(await small.post("/v1/keys/import", { keys: keys.slice(49) }), "key_limit_exceeded");
    const [existing] = await imported(small, keys[49] as object);
    expect(existing).toMatchObject({ existing: true });
  });

  test("without credits for all of them, imports none", async () => {
    const poor = await server.account({ balance: 2 });
    const keys = ["a", "b", "c"].map((secret) => termsOf(secret));
    expectError(await poor.post("/v1/keys/import", { keys }), "insufficient_balance");
    expect(await balanceOf(poor)).toBe(2);
    expect((await poor.get("/v1/keys")).body["keys"]).toEqual([]);
  });

  test("is one entry of the audit log, without hashes", async () => {
    await imported(account, termsOf("a"), termsOf("b"));
    await imported(account, termsOf("a"));
    const { body, text } = await account.get("/v1/audit");
    const entries = (body["entries"] as { action: string }[]).filter(
      ({ action }) => action === "keys.import",
    );
    expect(entries).toHaveLength(1);
    expect(entries).toMatchObject([{ summary: "2 keys imported" }]);
    expect(text).not.toContain(hex("a"));
  });
});
