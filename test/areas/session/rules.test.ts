import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { LINK_MINUTES, LINK_MINUTES_MAX, LOGINS_WINDOW_MS } from "../../../src/areas/session/domain.ts";
import { SESSION_REQUESTS_PER_MINUTE } from "../../../src/kernel/http/access/guard.ts";
import { DEFAULT_TIERS } from "../../../src/kernel/limits/tiers.ts";
import { Scratch } from "../../kernel/support.ts";
import { CertificateAuthority } from "../../support/certificates.ts";
import type { Answer, Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";
import { Browser, loggedIn } from "./support.ts";

const LISTED = "https://app.example.com";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--cors-origins", LISTED] });
});
afterAll(() => server.stop());
// Advances the clock by a minute, so that each test has its own login limit.
afterEach(() => server.clock.advance(LOGINS_WINDOW_MS));

describe("a cookie is accepted only in requests of this server's pages", () => {
  const FOREIGN: Readonly<Record<string, Record<string, string>>> = {
    "without the header": { "x-ninefold-session": "" },
    "with another value of it": { "x-ninefold-session": "true" },
    "of another site": { "sec-fetch-site": "cross-site" },
    "of another port of this host": { "sec-fetch-site": "same-site" },
    "that a person typed": { "sec-fetch-site": "none" },
    "of another origin": { origin: "http://127.0.0.1:1" },
    "of an origin that may call the API": { origin: LISTED },
    "of no origin": { origin: "null" },
  };

  test.each(Object.entries(FOREIGN))("403 for one %s", async (_name, headers) => {
    const mine = await loggedIn(server, server.key);
    const before = (await mine.get("/v1/gate")).body;
    expectError(await mine.get("/v1/gate", { headers }), "forbidden");
    expectError(await mine.post("/v1/gate", { flag_key: "csrf", enabled: true }, { headers }), "forbidden");
    expectError(await mine.post("/v1/session", { key: server.key }, { headers }), "forbidden");
    expectError(await mine.delete("/v1/session", { headers }), "forbidden");
    expect((await mine.get("/v1/gate")).body).toEqual(before);
    // A key is accepted from any page.
    const answer = await mine.get("/v1/gate", {
      headers: { ...headers, authorization: `Bearer ${server.key}` },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("a request of a page at another URL than the public one gets an error with the public URL", async () => {
    const headers = { "sec-fetch-site": "same-origin", origin: "http://ninefold.internal" };
    const mine = await loggedIn(server, server.key);
    const { error } = expectError(await mine.get("/v1/gate", { headers }), "forbidden");
    expect(error.message).toContain(`Open ${server.url} instead`);
  });

  test("requests of the same origin are accepted, and a cookie of another server is unknown", async () => {
    const mine = await loggedIn(server, server.key);
    const headers = { "sec-fetch-site": "same-origin", origin: server.url };
    expect((await mine.post("/v1/gate", { flag_key: "own", enabled: true }, { headers })).status).toBe(201);
    const foreign = new Browser(server);
    foreign.cookie = `ninefold_00000000=${mine.cookie.split("=")[1]}`;
    expectError(await foreign.get("/v1/gate"), "unauthorized");
    foreign.headers["x-ninefold-session"] = "";
    expectError(await foreign.get("/v1/gate"), "unauthorized");
    // A cookie of an ended session is unknown, too, but other pages are still rejected.
    const dead = new Browser(server);
    dead.cookie = `${mine.cookie.split("=")[0]}=${"a".repeat(43)}`;
    expectError(await dead.get("/v1/gate"), "unauthorized");
    dead.headers["x-ninefold-session"] = "";
    expectError(await dead.get("/v1/gate"), "forbidden");
  });

  test("with --public-url only that origin is accepted, whatever the request's Host is", async () => {
    const separateServer = await startTestServer({ args: ["--public-url", "https://n.example.com"] });
    try {
      const mine = await loggedIn(separateServer, separateServer.key);
      expect(mine.cookie).toStartWith("__Host-");
      expectError(await mine.get("/v1/gate", { headers: { origin: separateServer.url } }), "forbidden");
      const headers = { origin: "https://n.example.com" };
      expect((await mine.get("/v1/gate", { headers })).status).toBe(200);
      const link = await separateServer.operator.post("/v1/admin/login-links");
      expect(link.body.url).toStartWith("https://n.example.com/dashboard/#/setup/");
    } finally {
      await separateServer.stop();
    }
  });
});

test("over TLS the origin is https, and the cookie is for TLS only", async () => {
  const folder = new Scratch();
  const authority = new CertificateAuthority();
  const { cert, key } = authority.issue("own", "DNS:localhost");
  authority.remove();
  const [certPath, keyPath] = [folder.path("cert.pem"), folder.path("key.pem")];
  await Promise.all([Bun.write(certPath, cert), Bun.write(keyPath, key)]);
  const secure = await startTestServer({ args: ["--tls-cert", certPath, "--tls-key", keyPath] });
  try {
    const headers = { authorization: `Bearer ${secure.key}`, "content-type": "application/json" };
    const insecure = { method: "POST", tls: { rejectUnauthorized: false } };
    const link = await fetch(`${secure.url}/v1/admin/login-links`, { ...insecure, headers });
    expect(await link.json()).toMatchObject({
      url: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+\/dashboard/),
    });
    const own = { "content-type": "application/json", "x-ninefold-session": "1", origin: secure.url };
    const body = JSON.stringify({ key: secure.key });
    const opened = await fetch(`${secure.url}/v1/session`, { ...insecure, headers: own, body });
    expect(opened.headers.get("set-cookie")).toMatch(/^__Host-.*; Secure$/);
  } finally {
    await secure.stop();
    folder.remove();
  }
});

describe("X-Ninefold-Project", () => {
  test("selects the project of a session of the account, and of its key", async () => {
    const account = await server.account();
    const project = await account.post("/v1/projects", { name: "Shop" });
    const headers = { "x-ninefold-project": String(project.body.id) };
    const mine = await loggedIn(server, account.key);
    await mine.post("/v1/gate", { flag_key: "shop", enabled: true }, { headers });
    expect((await mine.get("/v1/gate", { headers })).body).toEqual({ flags: ["shop"] });
    expect((await mine.get("/v1/gate")).body).toEqual({ flags: [] });
    expect((await account.get("/v1/gate", { headers })).body).toEqual({ flags: ["shop"] });
    expect((await newestOf(account)).project_id).toBe(String(project.body.id));
    const stranger = await server.account();
    const others = await loggedIn(server, stranger.key);
    expectError(await others.get("/v1/gate", { headers }), "not_found");
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const key = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
    const bound = await loggedIn(server, String(key.body.secret));
    expect((await bound.get("/v1/gate", { headers })).body).toEqual({ flags: ["shop"] });
    const own = (await account.get("/v1/projects")).body.projects as { id: string }[];
    const other = { "x-ninefold-project": own.at(-1)?.id ?? "" };
    expectError(await bound.get("/v1/gate", { headers: other }), "forbidden");
  });

  test("403 for a session of a managed key without *: it has access to the project of its key only", async () => {
    const account = await server.account();
    const project = await account.post("/v1/projects", { name: "Shop" });
    const headers = { "x-ninefold-project": String(project.body.id) };
    const terms = { prefix: "sm", name: "k", scopes: ["gate:*", "keys:*"] };
    const { body } = await account.post("/v1/keys", terms);
    const mine = await loggedIn(server, String(body.secret));
    expectError(await mine.get("/v1/gate", { headers }), "forbidden");
    expectError(await mine.get("/v1/session", { headers }), "forbidden");
    const path = `/v1/projects/${project.body.id}/keys`;
    expectError(await mine.post(path, terms, { headers }), "forbidden");
    expectError(await mine.post("/v1/keys", terms, { headers }), "forbidden");
    expect((await account.get("/v1/keys")).body.keys).toHaveLength(1);
    // Its own project is accepted.
    const own = (await account.get("/v1/projects")).body.projects as { id: string }[];
    const named = { "x-ninefold-project": own.at(-1)?.id ?? "" };
    expect((await mine.get("/v1/gate", { headers: named })).status).toBe(200);
    // A managed key with * has access to all of them.
    const all = await account.post("/v1/keys", { ...terms, scopes: ["*"] });
    const whole = await loggedIn(server, String(all.body.secret));
    expect((await whole.get("/v1/gate", { headers })).status).toBe(200);
  });
});

describe("an Idempotency-Key under a session", () => {
  test("belongs to the project of the request", async () => {
    const account = await server.account();
    const project = await account.post("/v1/projects", { name: "Shop" });
    const mine = await loggedIn(server, account.key);
    const shop = { "x-ninefold-project": String(project.body.id), "idempotency-key": "once" };
    const flag = { flag_key: "once", enabled: true };
    const first = await mine.post("/v1/gate", flag, { headers: { "idempotency-key": "once" } });
    expect(first.status).toBe(201);
    const second = await mine.post("/v1/gate", flag, { headers: shop });
    expect([second.status, second.headers.get("idempotent-replayed")]).toEqual([201, null]);
    const headers = { "x-ninefold-project": shop["x-ninefold-project"] };
    expect((await mine.get("/v1/gate", { headers })).body).toEqual({ flags: ["once"] });
    const repeat = await mine.post("/v1/gate", flag, { headers: shop });
    expect([repeat.status, repeat.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    // A key of that project shares the Idempotency-Key with the session.
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const key = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
    const bound = server.client(String(key.body.secret));
    const shared = await bound.post("/v1/gate", flag, { headers: { "idempotency-key": "once" } });
    expect(shared.headers.get("idempotent-replayed")).toBe("true");
  });
});

describe("credits and limits of a session", () => {
  test("reads are free of charge, changes cost the same as with a key", async () => {
    const account = await server.account({ balance: 10 });
    const mine = await loggedIn(server, account.key);
    expect((await mine.get("/v1/keys")).status).toBe(200);
    expect((await mine.get("/v1/pulse")).status).toBe(200);
    expect((await mine.get("/v1/meter/balance")).body.balance).toBe(10);
    await mine.post("/v1/meter/customer/refill", { amount: 5 });
    expect((await mine.get("/v1/meter/balance")).body.balance).toBe(9);
  });

  /** Sends the same request many times. Returns how many were accepted. */
  async function accepted(browsers: readonly Client[], path: string, count: number): Promise<number> {
    const all = Array.from({ length: count }, (_, index) => browsers[index % browsers.length]?.get(path));
    return (await Promise.all(all)).filter((answer) => answer?.status === 200).length;
  }

  test(`${SESSION_REQUESTS_PER_MINUTE} requests a minute for all sessions of an account`, async () => {
    const account = await server.account({ tier: "pro" });
    const both = [await loggedIn(server, account.key), await loggedIn(server, account.key)];
    expect(await accepted(both, "/v1/gate", SESSION_REQUESTS_PER_MINUTE + 50)).toBe(
      SESSION_REQUESTS_PER_MINUTE,
    );
    expectError((await both[0]?.get("/v1/gate")) as Answer, "rate_limit_exceeded");
    // A new session shares the empty bucket; a key has a separate one.
    expectError(await (await loggedIn(server, account.key)).get("/v1/gate"), "rate_limit_exceeded");
    expect((await account.get("/v1/gate")).status).toBe(200);
    await server.clock.advance(60_000);
    expect((await both[0]?.get("/v1/gate"))?.status).toBe(200);
  });

  test("the monitor limit of the tier for all sessions of an account", async () => {
    const account = await server.account({ tier: "free" });
    const both = [await loggedIn(server, account.key), await loggedIn(server, account.key)];
    const { monitorBurst } = DEFAULT_TIERS.free;
    expect(await accepted(both, "/v1/pulse", monitorBurst + 10)).toBe(monitorBurst);
    const answer = (await both[0]?.get("/v1/pulse")) as Answer;
    expectError(answer, "rate_limit_exceeded");
    expect(answer.headers.get("x-ratelimit-limit")).toBe(String(monitorBurst));
    expect((await both[0]?.get("/v1/gate"))?.status).toBe(200);
    expect((await account.get("/v1/pulse")).status).toBe(200);
  });

  test("the account's limit, together with its keys", async () => {
    const account = await server.account({ tier: "free" });
    const mine = await loggedIn(server, account.key);
    const { accountRequestsPerMinute, requestsPerMinute } = DEFAULT_TIERS.free;
    expect(await accepted([account], "/v1/gate", requestsPerMinute)).toBe(requestsPerMinute);
    const left = accountRequestsPerMinute - requestsPerMinute;
    expect(await accepted([mine], "/v1/gate", accountRequestsPerMinute)).toBe(left);
    const { error } = expectError(await mine.get("/v1/gate"), "rate_limit_exceeded");
    expect(error.message).toContain("over all keys of this account");
  });
});

describe("POST /v1/admin/login-links", () => {
  endpoint(() => server, "POST /v1/admin/login-links", [
    {
      name: "a link",
      status: 201,
      request: ["POST", "/v1/admin/login-links", { minutes: LINK_MINUTES_MAX }],
      as: "operator",
    },
    {
      name: "too long",
      status: 400,
      code: "validation_error",
      request: ["POST", "/v1/admin/login-links", { minutes: LINK_MINUTES_MAX + 1 }],
      as: "operator",
    },
    {
      name: "no key",
      status: 401,
      code: "unauthorized",
      request: ["POST", "/v1/admin/login-links"],
      as: "nobody",
    },
    {
      name: "another request under its key",
      status: 409,
      code: "conflict",
      request: ["POST", "/v1/admin/login-links", { minutes: 1 }],
      as: "operator",
      headers: { "idempotency-key": "link" },
      before: ({ server: own }) =>
        own.operator.post(
          "/v1/admin/login-links",
          { minutes: 2 },
          { headers: { "idempotency-key": "link" } },
        ),
    },
  ]);

  async function linkOf(body?: object): Promise<string> {
    const { body: made } = await server.operator.post("/v1/admin/login-links", body);
    return String(made.url).split("#/setup/")[1] ?? "";
  }

  test("the link opens one session of the key that created it", async () => {
    const link = await linkOf();
    expect((await server.operator.post("/v1/admin/login-links")).body.url).toStartWith(
      `${server.url}/dashboard/#/setup/`,
    );
    const mine = new Browser(server);
    const answer = await mine.post("/v1/session", { link });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ operator: true, tier: "unlimited" });
    expect((await mine.get("/v1/admin/accounts")).status).toBe(200);
    expectError(await new Browser(server).post("/v1/session", { link }), "unauthorized");
  });

  test(`the link works for ${LINK_MINUTES} minutes by default, also if a session created it`, async () => {
    const mine = await loggedIn(server, server.key);
    const { body } = await mine.post("/v1/admin/login-links", { minutes: 1 });
    const short = String(body.url).split("#/setup/")[1];
    const [last, late] = [await linkOf(), await linkOf()];
    await server.clock.advance(60_000 - 1);
    expect((await new Browser(server).post("/v1/session", { link: short })).status).toBe(201);
    await server.clock.advance((LINK_MINUTES - 1) * 60_000);
    expect((await new Browser(server).post("/v1/session", { link: last })).status).toBe(201);
    await server.clock.advance(1);
    expectError(await new Browser(server).post("/v1/session", { link: late }), "unauthorized");
  });
});
