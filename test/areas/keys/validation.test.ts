import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  ALLOWED_IPS_MAX,
  CLIENT_IP_LENGTH_MAX,
  COST_MAX,
  DURATION_MS_MAX,
  DURATION_MS_MIN,
  RATELIMIT_MAX,
  RATELIMIT_NAME_LENGTH_MAX,
  RATELIMITS_MAX,
  REQUIRE_MAX,
  SCOPE_LENGTH_MAX,
} from "../../../src/areas/keys/domain.ts";
import { HeldTexts } from "../../../src/areas/keys/held-texts.ts";
import { METADATA_LENGTH_MAX, OWNER_ID_LENGTH_MAX } from "../../../src/kernel/data/schema.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { makeKey, termsOf } from "./support.ts";

const REQUIRE_MESSAGE = "must be a list of 1 to 20 texts, or an object with `and` or `or`";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 100_000 });
});
afterAll(() => server.stop());

const LIMIT = { name: "requests", limit: 10, duration_ms: 60_000 };
const SHOWN = { ...LIMIT, auto: true, shared: "key" };
const limits = (count: number) => Array.from({ length: count }, (_, at) => ({ ...LIMIT, name: `l${at}` }));
const addresses = (count: number) => Array.from({ length: count }, (_, at) => `10.0.0.${at}`);
const MANY = Number.MAX_SAFE_INTEGER;
const monthly = (day?: number) => ({ every: "month", amount: 1, ...(day === undefined ? {} : { day }) });

/** Valid fields of a key, and how they are shown. */
const GOOD: [said: Record<string, unknown>, shown?: Record<string, unknown>][] = [
  [{ owner_id: "a" }],
  [{ owner_id: "Az09_.:@-".padEnd(OWNER_ID_LENGTH_MAX, "x") }],
  [{ meter_id: "x".repeat(64) }],
  [{ enabled: false }],
  [{ enabled: true }],
  [{ ratelimits: [LIMIT] }, { ratelimits: [SHOWN] }],
  [{ ratelimits: [{ ...SHOWN, auto: false }] }],
  [{ ratelimits: [{ ...SHOWN, shared: "owner" }], owner_id: "acme" }],
  [{ ratelimits: [{ ...SHOWN, name: "a0_.-".padEnd(RATELIMIT_NAME_LENGTH_MAX, "x") }] }],
  [{ ratelimits: [{ ...SHOWN, limit: 1, duration_ms: DURATION_MS_MIN }] }],
  [{ ratelimits: [{ ...SHOWN, limit: RATELIMIT_MAX, duration_ms: DURATION_MS_MAX }] }],
  [
    { ratelimits: limits(RATELIMITS_MAX) },
    { ratelimits: limits(RATELIMITS_MAX).map((limit) => ({ ...SHOWN, ...limit })) },
  ],
  [{ uses: { remaining: 0 } }],
  [{ uses: { remaining: MANY } }],
  [{ uses: { remaining: 1, refill: null } }, { uses: { remaining: 1 } }],
  [{ uses: { remaining: 1, refill: { every: "day", amount: 1 } } }],
  [{ uses: { remaining: 1, refill: { every: "day", amount: MANY } } }],
  [{ uses: { remaining: 1, refill: monthly() } }, { uses: { remaining: 1, refill: monthly(1) } }],
  [{ uses: { remaining: 1, refill: monthly(31) } }],
  [{ allowed_ips: addresses(ALLOWED_IPS_MAX) }],
  [{ allowed_ips: ["2001:DB8::/32", "10.0.0.1/32"] }, { allowed_ips: ["2001:db8::/32", "10.0.0.1"] }],
];
/** Resets all optional fields to their defaults. */
const NULLS = {
  owner_id: null,
  meter_id: null,
  enabled: null,
  ratelimits: null,
  uses: null,
  allowed_ips: null,
};
const NOTHING = { ...NULLS, enabled: true, ratelimits: [], allowed_ips: [] };

/** Invalid fields of a key, and the field that the error names. */
const BAD: [said: Record<string, unknown>, field: string, message?: string][] = [
  ...["", "a b", "ü", "a/b", "x".repeat(OWNER_ID_LENGTH_MAX + 1), 5].map(
    (owner_id): [Record<string, unknown>, string] => [{ owner_id }, "owner_id"],
  ),
  ...["", "a.b", "x".repeat(65), 5].map((meter_id): [Record<string, unknown>, string] => [
    { meter_id },
    "meter_id",
  ]),
  ...["true", 1].map((enabled): [Record<string, unknown>, string] => [{ enabled }, "enabled"]),
  [{ ratelimits: LIMIT }, "ratelimits", "must be a list of at most 10"],
  [{ ratelimits: limits(RATELIMITS_MAX + 1) }, "ratelimits", "must be a list of at most 10"],
  [{ ratelimits: [LIMIT, { ...LIMIT, limit: 5 }] }, "ratelimits", "must each have a different name"],
  [{ ratelimits: [{ ...LIMIT, shared: "owner" }] }, "ratelimits", "with shared: owner require an owner_id"],
  ...["", "A", "a/b", "x".repeat(RATELIMIT_NAME_LENGTH_MAX + 1), 5].map(
    (name): [Record<string, unknown>, string] => [{ ratelimits: [{ ...LIMIT, name }] }, "ratelimits.0.name"],
  ),
  ...[0, RATELIMIT_MAX + 1, 1.5, "5"].map((limit): [Record<string, unknown>, string, string] => [
    { ratelimits: [{ ...LIMIT, limit }] },
    "ratelimits.0.limit",
    "must be an integer from 1 to 1000000",
  ]),
  ...[DURATION_MS_MIN - 1, DURATION_MS_MAX + 1].map((duration_ms): [Record<string, unknown>, string] => [
    { ratelimits: [LIMIT, { ...LIMIT, duration_ms }] },
    "ratelimits.1.duration_ms",
  ]),
  [{ ratelimits: [{ ...LIMIT, shared: "account" }] }, "ratelimits.0.shared", "must be key or owner"],
  [{ ratelimits: [{ ...LIMIT, auto: 1 }] }, "ratelimits.0.auto"],
  ...[-1, MANY + 1, 0.5, "5"].map((remaining): [Record<string, unknown>, string] => [
    { uses: { remaining } },
    "uses.remaining",
  ]),
  [{ uses: { refill: { every: "day", amount: 1 } } }, "uses.remaining"],
  [{ uses: 5 }, "uses"],
  [
    { uses: { remaining: 1, refill: { every: "week", amount: 1 } } },
    "uses.refill.every",
    "must be day or month",
  ],
  ...[0, MANY + 1].map((amount): [Record<string, unknown>, string] => [
    { uses: { remaining: 1, refill: { every: "day", amount } } },
    "uses.refill.amount",
  ]),
  ...[0, 32].map((day): [Record<string, unknown>, string] => [
    { uses: { remaining: 1, refill: monthly(day) } },
    "uses.refill.day",
  ]),
  [
    { uses: { remaining: 1, refill: { every: "day", amount: 1, day: 1 } } },
    "uses",
    "must not have refill.day with every: day",
  ],
  [{ allowed_ips: addresses(ALLOWED_IPS_MAX + 1) }, "allowed_ips", "must be a list of at most 50"],
  ...["x", "10", "10.0.0.0/33", "fe80::1%eth0"].map((address): [Record<string, unknown>, string, string] => [
    { allowed_ips: ["10.0.0.1", address] },
    "allowed_ips",
    `contains "${address}", which is not an address or a range such as 10.0.0.0/8`,
  ]),
  [{ allowed_ips: ["x".repeat(CLIENT_IP_LENGTH_MAX + 1)] }, "allowed_ips.0"],
];

const named = (said: object): string => JSON.stringify(said).slice(0, 70);

describe("the fields of a key", () => {
  test.each(GOOD.map(([said, shown]) => [named(said), said, shown ?? said] as const))(
    "%s: valid in a creation and an update, and copied by a rotation",
    async (_, said, shown) => {
      const created = await account.post("/v1/keys", termsOf(said));
      expect(created.status, created.text).toBe(201);
      expect(created.body).toMatchObject(shown);
      const path = `/v1/keys/${created.body.key_id}`;
      expect((await account.get(path)).body).toMatchObject(shown);
      const plain = await makeKey(account);
      const changed = await account.patch(`/v1/keys/${plain.id}`, said);
      expect(changed.status, changed.text).toBe(200);
      expect(changed.body).toMatchObject(shown);
      expect((await account.get(`/v1/keys/${plain.id}`)).body).toEqual(changed.body);
      const { body } = await account.post(`${path}/rotate`, {});
      expect((await account.get(`/v1/keys/${body.new_key_id}`)).body).toMatchObject(shown);
      expect((await account.patch(`/v1/keys/${plain.id}`, NULLS)).body).toMatchObject(NOTHING);
    },
  );

  test.each(BAD.map(([said, field, message]) => [named(said), said, field, message] as const))(
    "%s: rejected in a creation and an update, free of charge",
    async (_, said, field, message) => {
      const { id } = await makeKey(account);
      const before = await account.get("/v1/meter/balance");
      const answers = [
        await account.post("/v1/keys", termsOf(said)),
        await account.patch(`/v1/keys/${id}`, said),
      ];
      for (const { status, body, text } of answers) {
        expect(status, text).toBe(400);
        const fields = body.fields as Record<string, string[]>;
        expect(Object.keys(fields)).toEqual([field]);
        if (message !== undefined) expect(fields[field]).toEqual([message]);
      }
      const { body } = await account.get("/v1/meter/balance");
      expect(Number(before.body.balance) - Number(body.balance)).toBeLessThanOrEqual(1);
    },
  );

  test("null means the same as omitting a field in a creation", async () => {
    const { status, body } = await account.post("/v1/keys", termsOf(NULLS));
    expect(status).toBe(201);
    expect(body).toMatchObject(NOTHING);
  });

  test.each([{ meter_id: "acme" }, { ratelimits: [LIMIT] }, { uses: { remaining: 1 } }])(
    "%p is rejected with the prefix sm: such a key is a credential of this API",
    async (said) => {
      const [field = ""] = Object.keys(said);
      const fields = {
        [field]: ["is not allowed for a key with the prefix sm: it applies to verification only"],
      };
      const bearer = { prefix: "sm", scopes: ["gate:read"] };
      expect((await account.post("/v1/keys", termsOf({ ...bearer, ...said }))).body).toMatchObject({
        fields,
      });
      const { id } = await makeKey(account, { ...bearer, owner_id: "acme", allowed_ips: ["10.0.0.0/8"] });
      const patched = await account.patch(`/v1/keys/${id}`, said);
      expect(patched.status).toBe(400);
      expect(patched.body).toMatchObject({ fields });
      expect((await account.patch(`/v1/keys/${id}`, { ratelimits: [], uses: null })).status).toBe(200);
    },
  );
});

describe("the fields of a verification", () => {
  const scopes = (count: number) => Array.from({ length: count }, () => "orders:read");
  test.each([
    { require: ["x"] },
    { require: scopes(REQUIRE_MAX) },
    { require: ["x".repeat(SCOPE_LENGTH_MAX)] },
    { cost: 0 },
    { cost: COST_MAX },
    { ratelimits: [] },
    { ratelimits: [{ name: "requests" }] },
    { ratelimits: [{ name: "requests", cost: 0 }] },
    { ratelimits: [{ name: "requests", cost: 10 }] },
    { require: null, cost: null, ratelimits: null },
    { ratelimits: [{ name: "requests", cost: null }] },
  ])("%p: valid", async (asked) => {
    const { secret } = await makeKey(account, { ratelimits: [LIMIT] });
    expect((await account.post("/v1/keys/verify", { secret, ...asked })).status).toBe(200);
  });

  test.each([
    [{ require: [] }, "require", REQUIRE_MESSAGE],
    [{ require: scopes(REQUIRE_MAX + 1) }, "require", REQUIRE_MESSAGE],
    [{ require: "x" }, "require", REQUIRE_MESSAGE],
    [{ require: ["x".repeat(SCOPE_LENGTH_MAX + 1)] }, "require.0", "must be a text of 1 to 255 characters"],
    [{ cost: -1 }, "cost", "must be an integer from 0 to 1000000"],
    [{ cost: COST_MAX + 1 }, "cost", "must be an integer from 0 to 1000000"],
    [{ ratelimits: limits(RATELIMITS_MAX + 1) }, "ratelimits", "must be a list of at most 10"],
    [{ ratelimits: [{ cost: 1 }] }, "ratelimits.0.name", null],
    [{ ratelimits: [{ name: "requests", cost: -1 }] }, "ratelimits.0.cost", null],
    [
      { ratelimits: [{ name: "requests", cost: 11 }] },
      "ratelimits",
      "has a cost for requests above its limit of 10",
    ],
    [{ ratelimits: [{ name: "others" }] }, "ratelimits", "names others, which is not a limit of the key"],
    [{ ratelimits: [{ name: "requests" }, { name: "requests" }] }, "ratelimits", "names requests twice"],
  ])("%p: rejected, and no uses or tokens are taken", async (asked, field, message) => {
    const { secret } = await makeKey(account, { ratelimits: [LIMIT], uses: { remaining: 5 } });
    const { status, body } = await account.post("/v1/keys/verify", { secret, ...asked });
    expect(status).toBe(400);
    const fields = body.fields as Record<string, string[]>;
    expect(Object.keys(fields)).toEqual([field]);
    if (message !== null) expect(fields[field]).toEqual([message]);
    const after = await account.post("/v1/keys/verify", {
      secret,
      cost: 0,
      ratelimits: [{ name: "requests", cost: 0 }],
    });
    expect(after.body).toMatchObject({ uses_remaining: 5, ratelimits: [{ remaining: 10 }] });
  });
});

test.each([
  ["orders:*", "orders:read", true],
  ["orders:*", "orders:items:read", true],
  ["orders:*", "orders", false],
  ["orders:*", "ordersx:read", false],
  ["orders.*", "orders.read", true],
  ["orders/*", "orders/7/items", true],
  ["orders/*", "orders:read", false],
  ["a*", "ab", false],
  ["a*", "a*", true],
  ["*", "anything", true],
  [":*", ":x", true],
  ["orders:read", "orders:*", false],
])("the scope %s covers %s: %p", (scope, required, expected) => {
  expect(new HeldTexts([scope]).covers(required)).toBe(expected);
});

test("among many texts, each with a star covers what begins with it", () => {
  const texts = ["b.*", "a:*", "a:b:*", "a.*", "a/b/*", "a/*", "aa:*", "exact", "B:*", "ä:*"];
  const held = new HeldTexts(texts);
  const required = ["a:x", "a:b:x", "a:", "a", "a.x", "a/b/x", "a/c", "aa:x", "aaa:x", "b.", "b:", "exact"];
  for (const text of [...required, "exact2", "B:x", "ä:x", "", ":", "~", ...texts])
    expect([text, held.covers(text)]).toEqual([
      text,
      texts.some((one) => one === text || (one.endsWith("*") && text.startsWith(one.slice(0, -1)))),
    ]);
});

test("verify returns the longest metadata, too", async () => {
  const metadata = { k: "x".repeat(METADATA_LENGTH_MAX - 8) };
  const { secret } = await makeKey(account, { metadata });
  for (let turn = 0; turn < 2; turn += 1)
    expect((await account.post("/v1/keys/verify", { secret })).body).toMatchObject({ metadata });
});
