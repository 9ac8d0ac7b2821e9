import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

/** Each test runs some processes; busy machines take longer. */
setDefaultTimeout(60_000);

let server: TestServer;
let account: AccountClient;
let environment: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), "ninefold-key-import-"));
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(async () => {
  account = await server.account();
  environment = { NINEFOLD_API_KEY: String(account.key), NINEFOLD_URL: server.url };
});

let files = 0;
function file(value: unknown): string {
  files += 1;
  const path = join(folder, `${files}.json`);
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
}
const imported = (...args: string[]) => ninefold(["key", "import", ...args], { environment });
const verified = async (secret: string) => (await account.post("/v1/keys/verify", { secret })).body;
const hashOf = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("base64");

const ROLES = {
  meta: { requestId: "req_1" },
  data: [
    {
      id: "role_1",
      name: "support team",
      description: "Reads.",
      permissions: [{ id: "perm_1", name: "Read", slug: "documents.read" }, { slug: "customers.*" }],
    },
  ],
  pagination: { hasMore: false },
};
const FUTURE = Date.UTC(2100, 0, 1);
const KEY = {
  keyId: "key_1",
  start: "acme_live_5Qw7",
  plaintext: "acme_live_5Qw7Rt99",
  name: "Acme",
  enabled: true,
  createdAt: 1_700_000_000_000,
  expires: FUTURE,
  meta: { plan: "pro", seats: 3 },
  identity: {
    id: "id_1",
    externalId: "acme",
    meta: { a: 1 },
    ratelimits: [
      { id: "rl_2", name: "Shared Calls", limit: 100, duration: 3_600_000, autoApply: true },
      { id: "rl_3", name: "requests", limit: 1, duration: 60_000, autoApply: true },
    ],
  },
  credits: { remaining: 40, refill: { interval: "monthly", amount: 1_000, refillDay: 15 } },
  ratelimits: [{ id: "rl_1", name: "requests", limit: 10, duration: 60_000, autoApply: true }],
  permissions: ["documents.read", "customers.*", "orders.read"],
  roles: ["support team"],
};
const page = (data: readonly object[], isLast = true) => ({
  meta: { requestId: "req_2" },
  data,
  pagination: isLast ? { hasMore: false } : { hasMore: true, cursor: "key_9" },
});

test("keys keep their secrets, limits, uses, roles and own permissions, and a second import changes nothing", async () => {
  const paths = [file(ROLES), file(page([KEY]))];
  const first = await imported(...paths);
  expect([first.code, first.out]).toEqual([0, "1 imported, 0 were there already.\n"]);
  expect(first.error.split("\n")).toEqual([
    "key Acme: the meta of its identity is not carried over",
    "role support team: is called support-team",
    "key Acme: its rate limit Shared Calls is called shared-calls",
    "",
  ]);
  expect(await verified(KEY.plaintext)).toMatchObject({
    valid: true,
    name: "Acme",
    owner_id: "acme",
    metadata: { plan: "pro", seats: "3" },
    expires_at: "2100-01-01T00:00:00.000Z",
    roles: ["support-team"],
    permissions: ["orders.read", "documents.read", "customers.*"],
    uses_remaining: 39,
    ratelimits: [
      { name: "requests", limit: 10, remaining: 9 },
      { name: "shared-calls", limit: 100, remaining: 99 },
    ],
  });
  const [key] = (await account.get("/v1/keys")).body["keys"] as Record<string, unknown>[];
  expect(key).toMatchObject({
    prefix: "acme_live",
    permissions: ["orders.read"],
    uses: { refill: { every: "month", amount: 1_000, day: 15 } },
    ratelimits: [
      { name: "requests", duration_ms: 60_000, auto: true, shared: "key" },
      { name: "shared-calls", shared: "owner" },
    ],
  });
  const again = await imported(...paths);
  expect([again.code, again.out]).toEqual([0, "0 imported, 1 were there already.\n"]);
  expect((await account.get("/v1/keys/roles")).body["roles"]).toMatchObject([
    { name: "support-team", description: "Reads.", permissions: ["documents.read", "customers.*"] },
  ]);
});

test("keys that cannot be imported are skipped and named, and all others are imported", async () => {
  const others = Array.from({ length: 130 }, (_, at) => ({
    keyId: `key_${at}`,
    start: "k_1234",
    plaintext: `k_1234-${at}`,
    name: at === 70 ? "broken" : `n${at}`,
    ...(at === 70 ? { credits: { remaining: -1 } } : {}),
  }));
  const keys = [
    { keyId: "key_a", start: "k_1", name: "hidden" },
    { keyId: "key_b", start: "k_2", name: "old", plaintext: "k_2x", expires: 1_000 },
    ...others,
  ];
  const { code, out, error } = await imported(file([page(keys, false), page([], false)]));
  expect([code, out]).toEqual([1, "129 imported, 0 were there already.\n"]);
  expect(error).toContain("apis.listKeys: has more keys: add the other pages\n");
  expect(error).toContain("key hidden was skipped: has neither its secret");
  expect(error).toContain("key old was skipped: has expired\n");
  expect(error).toMatch(/key broken was skipped: .*keys\.0\.uses\.remaining/);
  for (const secret of ["k_1234-0", "k_1234-99", "k_1234-129"])
    expect(await verified(secret)).toMatchObject({ valid: true });
  expect(await verified("k_1234-70")).toMatchObject({ valid: false });
});

test("keys of a table and of the first version of the API, by hash", async () => {
  const rows = [
    { id: "key_1", start: "sm_12", name: "row", hash: hashOf("sm_12ab"), meta: '{"a":"b"}', remaining: 3 },
    { id: "key_2", start: "x", name: "object", hash: { value: hashOf("x2"), variant: "sha256_base64" } },
  ];
  const old = {
    keys: [
      {
        id: "key_3",
        start: "Old_1",
        plaintext: "Old_1x",
        ownerId: "o1",
        ratelimit: { type: "fast", limit: 5, refillInterval: 1_000, refillRate: 5 },
        remaining: 7,
        refill: { interval: "daily", amount: 9 },
        roles: ["gone"],
        permissions: ["a.b"],
        enabled: false,
      },
    ],
    total: 1,
  };
  const { code, out, error } = await imported(file(rows), file(old));
  expect([code, out]).toEqual([0, "3 imported, 0 were there already.\n"]);
  expect(error).toBe("role gone: is in none of the files; its keys have its permissions themselves\n");
  expect(await verified("sm_12ab")).toMatchObject({ valid: true, metadata: { a: "b" }, uses_remaining: 2 });
  expect(await verified("x2")).toMatchObject({ valid: true, name: "object" });
  expect(await verified("Old_1x")).toMatchObject({
    valid: false,
    error: "disabled",
    name: "Old_1",
    owner_id: "o1",
    permissions: ["a.b"],
    uses_remaining: 7,
    ratelimits: [{ name: "default", limit: 5 }],
  });
});

test("roles whose names would be the same here stay different", async () => {
  const role = (name: string, slug: string) => ({ id: name, name, permissions: [{ slug }] });
  const key = (name: string, slug: string) => ({
    keyId: name,
    start: "k",
    plaintext: `secret of ${name}`,
    roles: [name],
    permissions: [slug],
  });
  const roles = file([role("a b", "one"), role("a-b", "two")]);
  expect((await imported(roles, file([key("a b", "one"), key("a-b", "two")]))).code).toBe(0);
  expect(await verified("secret of a b")).toMatchObject({ roles: ["a-b"], permissions: ["one"] });
  expect(await verified("secret of a-b")).toMatchObject({ roles: ["a-b-2"], permissions: ["two"] });
});

test("a role that the project has stays as it is, and --json has everything", async () => {
  await account.put("/v1/keys/roles/support-team", { permissions: ["documents.read"] });
  const { code, out } = await imported(
    file(ROLES),
    file(page([KEY, { keyId: "key_x", start: "y" }])),
    "--json",
  );
  expect(code).toBe(1);
  const result = JSON.parse(out);
  expect(result).toMatchObject({
    roles: [],
    imported: 1,
    existing: 0,
    skipped: [{ label: "key y", reason: expect.any(String) }],
  });
  expect(result.notes).toContain("role support-team: has other permissions here, which stay");
  expect((await verified(KEY.plaintext))["permissions"]).toEqual([
    "customers.*",
    "orders.read",
    "documents.read",
  ]);
});

test("files of another kind are rejected, and no message contains what is in them", async () => {
  const secret = "acme_live_secret";
  for (const [text, message] of [
    [`{"data": [${secret}]}`, "is not JSON (Error: syntax error)"],
    [{ key: secret }, "must be a response of apis.listKeys or permissions.listRoles"],
    [{ data: [{ name: secret }] }, "an item is neither a key nor a role of Unkey"],
    [[[secret]], "each key and role must be an object"],
  ] as const) {
    const { code, out, error } = await imported(file(text));
    expect([code, out]).toEqual([1, ""]);
    expect(error).toContain(message);
    expect(error).not.toContain(secret);
  }
  expect((await imported()).code).toBe(2);
});
