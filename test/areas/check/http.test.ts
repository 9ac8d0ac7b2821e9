import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { PROXY_FLAGS_MAX, SCOPES_HEADER_BYTES_MAX } from "../../../src/areas/check/domain.ts";
import { WARNING_PAUSE_MS } from "../../../src/kernel/throttled-warning.ts";
import type { Answer } from "../../support/client.ts";
import { expectError, expectErrorShape } from "../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { makeBearer, makeKey } from "../keys/support.ts";
import { makeProject } from "../projects/support.ts";
import { loggedIn, OWN_PAGE } from "../session/support.ts";
import { customer, meterFigures, remainingOf } from "./support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--trust-proxy", "127.0.0.1"] });
});
afterAll(() => server.stop());
beforeEach(async () => {
  account = await server.account({ balance: 1_000 });
  server.logs.length = 0;
});

type Headers_ = Readonly<Record<string, string>>;

/** Sends the check of a proxy for a client with this key. */
function through(secret: string | null, query = "", headers: Headers_ = {}, method = "GET"): Promise<Answer> {
  const own = { "x-ninefold-key": account.key ?? "", ...headers };
  return server.client(secret).send(method, `/v1/check/http${query}`, undefined, { headers: own });
}

const HEADERS = [
  ...["x-check-code", "x-check-status", "x-key-id", "x-key-owner", "x-key-environment", "x-key-scopes"],
  ...["x-meter-available", "x-flags"],
];
const headersOf = ({ headers }: Answer) => HEADERS.map((name) => headers.get(name));
const accountBalance = async () => (await account.get("/v1/meter/balance")).body.balance;
const PER_MINUTE = [{ name: "requests", limit: 2, duration_ms: 60_000 }];

describe("an allowed request", () => {
  test("is 200 with the result of the check and all headers", async () => {
    const { secret, id } = await customer(account, 10, { environment: "live", scopes: ["orders:*", "a"] });
    await account.post("/v1/gate", { flag_key: "on", enabled: true });
    await account.post("/v1/gate", { flag_key: "yours", enabled: false, off_variant: null });
    const query = "?require=orders:read&require=a&deduct=3&flag=on&flag=gone&flag=yours";
    const response = await through(secret, query, { "user-agent": "phone" });
    expect(response.status, response.text).toBe(200);
    expect(response.body).toMatchObject({ allowed: true, code: "ok", meter: { balance: 7, deducted: 3 } });
    const variants = "on=on,gone=-,yours=-";
    expect(headersOf(response)).toEqual(["ok", "200", id, "acme", "live", "orders:* a", "7", variants]);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect((await account.get(`/v1/keys/${id}`)).body.last_used_ua).toBe("phone");
  });

  test("has all headers, including empty ones", async () => {
    const { secret, id } = await makeKey(account);
    const nothing = ["ok", "200", id, "-", "-", "orders:read", "-", "-"];
    expect(headersOf(await through(secret))).toEqual(nothing);
  });

  test("costs one credit, with GET and HEAD", async () => {
    const { secret } = await customer(account, 10, { uses: { remaining: 5 } });
    const before = Number(await accountBalance());
    expect((await through(secret, "?deduct=1", {}, "HEAD")).status).toBe(200);
    expect((await through(secret, "?deduct=1")).status).toBe(200);
    expect(await meterFigures(account)).toEqual([8, 8]);
    expect(await remainingOf(account, secret)).toEqual([3]);
    expect(await accountBalance()).toBe(before - 3);
  });

  test("the key is in the header that the proxy names", async () => {
    const { secret } = await makeKey(account);
    const code = async (header: string, value: string) =>
      (await through(null, `?header=${header}`, { [header]: value })).headers.get("x-check-code");
    expect(await code("X-Api-Key", secret)).toBe("ok");
    expect(await code("x-api-key", `Bearer ${secret}`)).toBe("invalid_key");
    expect(await code("authorization", `bearer ${secret}`)).toBe("ok");
    expect(await code("authorization", secret)).toBe("invalid_key");
    expect((await through(secret, "?header=x-api-key")).headers.get("x-check-code")).toBe("invalid_key");
  });
});

describe("a denied request", () => {
  async function denied(response: Promise<Answer>, status: number, code: string): Promise<Headers> {
    const { headers, body, ...rest } = await response;
    expect([rest.status, body.code, headers.get("x-check-code")], rest.text).toEqual([status, code, code]);
    for (const name of HEADERS) expect(headers.get(name), name).toMatch(/^\S+/);
    expect([headers.get("x-flags"), headers.get("cache-control")]).toEqual(["-", "no-store"]);
    return headers;
  }

  test("has the standard error body and the status of the check", async () => {
    const { secret } = await makeKey(account, { enabled: false });
    const response = await through(secret);
    expectErrorShape(response);
    const { error } = expectError(response, "disabled");
    // Its client cannot read this server's pages.
    expect(error.docs).toBeUndefined();
    expect(response.body.request_id).toBe(response.headers.get("x-request-id"));
  });

  test("401, 403, 402 and 429, each with its headers", async () => {
    const none = await denied(through(null), 401, "invalid_key");
    expect([none.get("www-authenticate"), none.get("x-key-id")]).toEqual(["Bearer", "-"]);
    const { secret, id } = await customer(account, 0, { ratelimits: PER_MINUTE });
    const scope = await denied(through(secret, "?require=x"), 403, "insufficient_scope");
    expect([scope.get("x-key-id"), scope.get("www-authenticate")]).toEqual([id, null]);
    const broke = await denied(through(secret, "?deduct=1"), 402, "insufficient_balance");
    expect([broke.get("x-meter-available"), broke.get("x-key-owner")]).toEqual(["0", "acme"]);
    await through(secret, "?ratelimit=requests:2");
    const limited = await denied(through(secret), 429, "rate_limited");
    expect(
      ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining"].map((name) => limited.get(name)),
    ).toEqual([...["30", "2", "0"]]);
    expect(limited.get("x-ratelimit-reset")).toBe(String(Math.ceil(server.clock.now() / 1_000) + 60));
    const used = await makeKey(account, { uses: { remaining: 0 } });
    const empty = await denied(through(used.secret), 429, "usage_exceeded");
    expect([empty.get("retry-after"), empty.get("x-ratelimit-limit")]).toEqual([null, null]);
    expect((await through(used.secret, "?cost=0")).status).toBe(200);
  });

  test("with deny=403: 402 and 429 become 403, with the original status in a header", async () => {
    const { secret } = await customer(account, 0, { ratelimits: [{ ...PER_MINUTE[0], limit: 1 }] });
    const broke = await denied(through(secret, "?deduct=1&deny=403"), 403, "insufficient_balance");
    expect(broke.get("x-check-status")).toBe("402");
    await through(secret);
    const limited = await denied(through(secret, "?deny=403"), 403, "rate_limited");
    expect([limited.get("x-check-status"), limited.get("retry-after")]).toEqual(["429", "60"]);
    expect((await denied(through(null, "?deny=403"), 401, "invalid_key")).get("x-check-status")).toBe("401");
    expect((await denied(through(null, "?deny=exact"), 401, "invalid_key")).get("www-authenticate")).toBe(
      "Bearer",
    );
  });

  test("a secret above the maximum length is unknown", async () => {
    await denied(through(`acme_${"x".repeat(2_000)}`), 401, "invalid_key");
    await denied(through(null, "", { authorization: `Bearer${" ".repeat(3_000)}x y` }), 401, "invalid_key");
  });
});

describe("addresses", () => {
  test("the client's key is checked with the address that the trusted proxy forwards", async () => {
    const { secret, id } = await makeKey(account, { allowed_ips: ["203.0.113.0/24"] });
    const from = (address: string) => through(secret, "", { "x-forwarded-for": address });
    expect((await from("203.0.113.9")).status).toBe(200);
    expect((await account.get(`/v1/keys/${id}`)).body.last_used_ip).toBe("203.0.113.9");
    expectError(await from("198.51.100.1"), "ip_not_allowed");
    expectError(await from("203.0.113.9, 198.51.100.1"), "ip_not_allowed");
    expectError(await through(secret), "ip_not_allowed");
  });

  test("the proxy's own key is checked with the address of the socket", async () => {
    const { secret } = await makeKey(account);
    const terms = { prefix: "sm", scopes: ["check:write"] };
    const here = await makeKey(account, { ...terms, allowed_ips: ["127.0.0.1"] });
    const there = await makeKey(account, { ...terms, allowed_ips: ["203.0.113.9"] });
    const from = { "x-forwarded-for": "203.0.113.9" };
    expect((await through(secret, "", { ...from, "x-ninefold-key": here.secret })).status).toBe(200);
    expectError(
      await through(secret, "", { ...from, "x-ninefold-key": there.secret }),
      "service_unavailable",
    );
  });
});

describe("errors that the client did not cause", () => {
  /** Expects 503 without details, and a log entry. */
  async function hidden(response: Promise<Answer>, reason: RegExp): Promise<void> {
    const found = await response;
    expectError(found, "service_unavailable");
    await server.clock.advance(WARNING_PAUSE_MS);
    expect(found.headers.get("www-authenticate")).toBeNull();
    expect(found.text).not.toMatch(reason);
    const { level, fields, message } = server.logs.at(-1) ?? { level: "", message: "", fields: {} };
    expect([level, message]).toEqual([
      "warn",
      "a proxy's client was rejected because of an error that is not its own",
    ]);
    expect(String(fields["reason"])).toMatch(reason);
    expect(fields["request_id"]).toBe(found.headers.get("x-request-id") ?? "");
  }

  test("the proxy's key: missing, invalid, without the scope, of a suspended account", async () => {
    const { secret } = await makeKey(account);
    const by = (key: string) => through(secret, "", { "x-ninefold-key": key });
    await hidden(by(""), /is missing or malformed/);
    await hidden(by(`Bearer ${account.key}`), /Send the key alone, without Bearer/);
    await hidden(by("sm_nothing"), /checksum/);
    await hidden(by((await makeBearer(account, ["keys:*"])).secret), /does not have the scope check:write/);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
    await hidden(by(account.key ?? ""), /suspended/);
  });

  test("its credits and its rate limit: never 402 or 429, which the client would attribute to its own key", async () => {
    const { secret } = await makeKey(account);
    await account.post("/v1/meter/deduct", { amount: Number(await accountBalance()) });
    await hidden(through(secret), /insufficient|credit|balance/i);
    const free = await server.account({ tier: "free", balance: 500 });
    const theirs = await makeKey(free);
    const postCheck = () => through(theirs.secret, "", { "x-ninefold-key": free.key ?? "" });
    const all = await Promise.all(Array.from({ length: 80 }, postCheck));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200, 503]));
    expect(server.logs.filter(({ level }) => level === "warn").length).toBeLessThanOrEqual(3);
  });

  const QUERIES: [query: string, names: RegExp][] = [
    ["?requires=x", /requires is no parameter/],
    ["?require=", /require/],
    [`?${Array.from({ length: 21 }, () => "require=x").join("&")}`, /require/],
    ["?cost=-1", /cost/],
    ["?cost=x", /cost/],
    ["?cost=1&cost=2", /cost is given more than once/],
    ["?deduct=0", /deduct/],
    ["?deduct=", /deduct/],
    ["?deduct=1.5", /deduct/],
    ["?deduct=9007199254740992", /deduct/],
    ["?deduct=1&meter=a%20b", /meter/],
    ["?meter=acme", /meter requires deduct/],
    ["?ratelimit=A", /ratelimit/],
    ["?ratelimit=a:x", /ratelimit/],
    [`?${Array.from({ length: 11 }, (_, at) => `ratelimit=l${at}`).join("&")}`, /ratelimit/],
    ["?ratelimit=unknown", /is not a limit of the key/],
    ["?flag=A", /flag/],
    [`?${Array.from({ length: PROXY_FLAGS_MAX + 1 }, (_, at) => `flag=f${at}`).join("&")}`, /flag/],
    ["?header=a%20b", /header/],
    [`?header=${"x".repeat(65)}`, /header/],
    ["?deny=401", /deny/],
  ];
  test.each(QUERIES)("the query %p", async (query, names) => {
    const { secret } = await makeKey(account, { scopes: ["x"], owner_id: "acme" });
    const before = await accountBalance();
    await hidden(through(secret, query), names);
    expect(await accountBalance()).toBe(before);
  });

  test("the query at its limits is accepted", async () => {
    const limits = Array.from({ length: 10 }, (_, at) => ({ ...PER_MINUTE[0], name: `l${at}`, auto: false }));
    const { secret } = await customer(account, 1, { ratelimits: limits, scopes: ["x"] });
    const many = (count: number, one: (at: number) => string) =>
      Array.from({ length: count }, (_, at) => one(at));
    const query = [
      ...many(20, () => "require=x"),
      ...many(10, (at) => `ratelimit=l${at}`),
      ...many(PROXY_FLAGS_MAX, (at) => `flag=f${at}`),
      ...["cost=1000000", `header=${"x".repeat(64)}`, "deduct=1", "meter=acme"],
    ];
    const response = await through(null, `?${query.join("&")}`, { ["x".repeat(64)]: secret });
    expect(response.status, response.text).toBe(200);
  });

  test("a full disk, and a bug", async () => {
    const { secret } = await customer(account, 10);
    const { db } = server.server.kernel;
    db.execute("PRAGMA query_only = ON");
    try {
      expectError(await through(secret, "?deduct=1"), "service_unavailable");
    } finally {
      db.execute("PRAGMA query_only = OFF");
    }
    expect(await meterFigures(account)).toEqual([10, 10]);
  });
});

describe("headers of the client", () => {
  test("an Idempotency-Key has no effect", async () => {
    const { secret } = await customer(account, 10);
    const headers = { "idempotency-key": "mine" };
    for (const balance of [9, 8, 7]) {
      const response = await through(secret, "?deduct=1", headers);
      expect([response.body.meter, response.headers.get("idempotent-replayed")]).toMatchObject([
        { balance },
        null,
      ]);
    }
  });

  test("neither its key nor a cookie replaces the proxy's key", async () => {
    const { key } = account;
    expectError(await through(key, "", { "x-ninefold-key": "" }), "service_unavailable");
    const { cookie } = await loggedIn(server, key ?? "");
    expect(cookie).toStartWith("ninefold_");
    expectError(
      await through(null, "", { ...OWN_PAGE, cookie, "x-ninefold-key": "" }),
      "service_unavailable",
    );
  });

  test("its query is not forwarded, and the proxy's key is not accepted elsewhere", async () => {
    const headers = { "x-ninefold-key": account.key ?? "" };
    expectError(await server.client(null).get("/v1/meter/balance", { headers }), "unauthorized");
  });
});

test("values can neither end a header nor split a list", async () => {
  const scopes = ["a b", "c,d", "é", "100%", "-"];
  const { secret } = await makeKey(account, { scopes, environment: "a\r\nX-Key-Owner: root" });
  const response = await through(secret);
  expect(response.headers.get("x-key-scopes")).toBe("a%20b c%2Cd %C3%A9 100%25 %2D");
  expect(response.headers.get("x-key-environment")).toBe("a%0D%0AX-Key-Owner:%20root");
  expect(response.headers.get("x-key-owner")).toBe("-");
});

test("scopes above the limit of proxies are omitted from the headers", async () => {
  const scopes = (count: number) => Array.from({ length: count }, (_, at) => `${"x".repeat(60)}${100 + at}`);
  expect(scopes(64).join(" ")).toHaveLength(SCOPES_HEADER_BYTES_MAX - 1);
  const [most, more] = [
    await makeKey(account, { scopes: scopes(64) }),
    await makeKey(account, { scopes: scopes(65) }),
  ];
  expect((await through(most.secret)).headers.get("x-key-scopes")).toBe(scopes(64).join(" "));
  expect((await through(more.secret)).headers.get("x-key-scopes")).toBe("-");
});

test("keys, meters and flags are those of the proxy's project", async () => {
  const project = await makeProject(account);
  const proxy = { "x-ninefold-key": (await makeBearer(account, ["check:write"], project)).secret };
  const outside = await makeKey(account);
  const inside = await makeKey(account, { owner_id: "acme" }, project);
  expectError(await through(outside.secret, "", proxy), "invalid_key");
  expect((await through(inside.secret, "", proxy)).status).toBe(200);
  expectError(await through(inside.secret), "invalid_key");
});
