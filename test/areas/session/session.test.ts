import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  IDLE_MS,
  LOGINS_MAX,
  LOGINS_WINDOW_MS,
  REJECTED_LOGINS_ENTRY_MS,
  REJECTED_LOGINS_MAX,
  REJECTED_LOGINS_WINDOW_MS,
  REJECTED_NETWORKS_MAX,
  SESSION_MS,
  SESSIONS_PER_ACCOUNT_MAX,
} from "../../../src/areas/session/domain.ts";
import { USER_AGENT_LENGTH_MAX } from "../../../src/kernel/audit/trail.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { entriesIn, entriesOf, newestOf } from "../audit/support.ts";
import { Browser, OWN_PAGE } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--trust-proxy", "127.0.0.1"] });
});
afterAll(() => server.stop());

/** Rejected logins are counted by address: each test has its own. */
let addresses = 0;
function browser(): Browser {
  const fresh = new Browser(server);
  addresses += 1;
  fresh.headers["x-forwarded-for"] = `203.0.113.${addresses}`;
  return fresh;
}

describe("POST /v1/session", () => {
  test("201: an HttpOnly cookie for the key", async () => {
    const account = await server.account({ balance: 100 });
    const mine = browser();
    const answer = await mine.post("/v1/session", { key: account.key });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      user_id: account.userId,
      email: account.email,
      tier: "scale",
      operator: false,
      key_id: null,
      key_name: null,
      scopes: ["*"],
      project_id: null,
      expires_at: new Date(server.clock.now() + SESSION_MS).toISOString(),
      version: expect.stringMatching(/^\d+\./) as never,
    });
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const [cookie = ""] = answer.headers.getSetCookie();
    expect(cookie).toMatch(
      /^ninefold_[0-9a-f]{8}=[A-Za-z0-9_-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=604800$/,
    );
    expect((await mine.get("/v1/session")).body.session).toEqual(answer.body);
    expect((await mine.get("/v1/meter/balance")).body).toEqual({ balance: 100, user_id: account.userId });
    // Only the hash is stored.
    const token = mine.cookie.split("=")[1] ?? "";
    const rows = server.server.kernel.db.all<Record<string, unknown>>("SELECT * FROM sessions")();
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(JSON.stringify(rows)).not.toContain(String(account.key));
  });

  test(`of a user agent, ${USER_AGENT_LENGTH_MAX} characters are stored`, async () => {
    const stored = server.server.kernel.db.one<{ user_agent: string }>(
      "SELECT user_agent FROM sessions ORDER BY id DESC LIMIT 1",
    );
    for (const length of [USER_AGENT_LENGTH_MAX, USER_AGENT_LENGTH_MAX + 1]) {
      const mine = browser();
      mine.headers["user-agent"] = "a".repeat(length);
      await mine.logIn(server.key);
      expect(stored()?.user_agent).toBe("a".repeat(USER_AGENT_LENGTH_MAX));
    }
  });

  test("201 behind a TLS proxy: the cookie is for TLS only", async () => {
    const mine = browser();
    mine.headers["x-forwarded-proto"] = "https";
    await mine.logIn(server.key);
    expect(mine.cookie).toStartWith("__Host-ninefold_");
    expect((await mine.get("/v1/projects")).status).toBe(200);
  });

  test("201 ends the previous session of the browser, also one of another account", async () => {
    const [first, second] = [await server.account(), await server.account()];
    const mine = await browser().logIn(first.key);
    const replaced = mine.cookie;
    // A failed login does not end the session.
    expectError(await mine.post("/v1/session", { key: "sm_none" }), "unauthorized");
    expect((await mine.get("/v1/gate")).status).toBe(200);
    await mine.logIn(second.key);
    expect((await mine.get("/v1/session")).body.session).toMatchObject({ user_id: second.userId });
    mine.cookie = replaced;
    expectError(await mine.get("/v1/gate"), "unauthorized");
  });

  test("over HTTPS only the __Host- cookie is accepted: another host of the domain can set the other one", async () => {
    const [mine, theirs] = [await server.account(), await server.account()];
    const planted = (await browser().logIn(theirs.key)).cookie;
    const secure = browser();
    secure.headers["x-forwarded-proto"] = "https";
    secure.cookie = planted;
    expectError(await secure.get("/v1/gate"), "unauthorized");
    secure.cookie = "";
    await secure.logIn(mine.key);
    secure.cookie = `${planted}; ${secure.cookie}`;
    expect((await secure.get("/v1/session")).body.session).toMatchObject({ user_id: mine.userId });
    // A login with it does not end that session either.
    const neighbour = browser();
    neighbour.headers["x-forwarded-proto"] = "https";
    neighbour.cookie = planted;
    await neighbour.logIn(mine.key);
    const plain = browser();
    plain.cookie = planted;
    expect((await plain.get("/v1/gate")).status).toBe(200);
  });

  test("400 without key and link, with both, and with other types", async () => {
    const body = { key: server.key, link: "x" };
    for (const wrong of [{}, body, { key: 1 }]) {
      expectError(await browser().post("/v1/session", wrong), "validation_error");
    }
  });

  test("401 with the same message for every invalid key or link; one audit entry per minute, not per attempt", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"] });
    const revoked = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["*"] });
    await account.delete(`/v1/keys/${revoked.body.key_id}`);
    const mine = browser();
    const messages = new Set<string>();
    for (const key of ["sm_none", body.secret, revoked.body.secret]) {
      messages.add(expectError(await mine.post("/v1/session", { key }), "unauthorized").error.message);
    }
    expect(messages.size).toBe(1);
    await server.clock.advance(REJECTED_LOGINS_ENTRY_MS);
    const refused = "/v1/admin/audit?action=session.refused&limit=1";
    const [entry] = entriesIn(await server.operator.get(refused));
    expect(entry).toMatchObject({
      actor: { type: "public", user_id: null },
      after: { count: 3 },
      ip: mine.headers["x-forwarded-for"],
    });
    expectError(await mine.post("/v1/session", { link: "none" }), "unauthorized");
    expect(entriesIn(await server.operator.get(refused))[0]?.sequence).toBe(entry?.sequence as string);
  });

  test("403 for a suspended account and for a key of a deleted project", async () => {
    const account = await server.account();
    const project = await account.post("/v1/projects", { name: "Shop" });
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const key = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
    await account.delete(`/v1/projects/${project.body.id}`);
    expectError(await browser().post("/v1/session", { key: key.body.secret }), "forbidden");
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
    expectError(await browser().post("/v1/session", { key: account.key }), "forbidden");
  });

  test(`rejected logins from very many networks write at most ${REJECTED_NETWORKS_MAX + 1} entries a minute`, async () => {
    const refused = "/v1/admin/audit?action=session.refused&limit=100";
    await server.clock.advance(REJECTED_LOGINS_ENTRY_MS);
    const before = entriesIn(await server.operator.get(refused)).length;
    for (let count = 0; count < 2 * REJECTED_NETWORKS_MAX; count += 1) {
      expectError(await browser().post("/v1/session", { key: "sm_none" }), "unauthorized");
    }
    await server.clock.advance(REJECTED_LOGINS_ENTRY_MS);
    const entries = entriesIn(await server.operator.get(refused));
    expect(entries).toHaveLength(before + REJECTED_NETWORKS_MAX + 1);
    const others = entries.find(({ summary }) => summary.includes("from many addresses"));
    expect(others?.after).toEqual({ count: REJECTED_NETWORKS_MAX });
  });

  test(`429 after ${REJECTED_LOGINS_MAX} rejected logins from one address, also for a valid key`, async () => {
    const mine = browser();
    for (let tries = 0; tries < REJECTED_LOGINS_MAX; tries += 1) {
      // Rejections for other reasons do not count.
      expect((await mine.post("/v1/session", { key: 1 })).status).toBe(400);
      const headers = { "sec-fetch-site": "cross-site" };
      expect((await mine.post("/v1/session", { key: server.key }, { headers })).status).toBe(403);
      expect((await mine.post("/v1/session", { key: "sm_none" })).status).toBe(401);
    }
    const answer = await mine.post("/v1/session", { key: server.key });
    expectError(answer, "rate_limit_exceeded");
    expect(answer.headers.get("retry-after")).toBe(String(REJECTED_LOGINS_WINDOW_MS / 1000));
    await server.clock.advance(REJECTED_LOGINS_WINDOW_MS);
    expect((await mine.post("/v1/session", { key: server.key })).status).toBe(201);
  });

  test(`429 after ${LOGINS_MAX} logins of one account in a minute, and no session is stored`, async () => {
    const account = await server.account();
    const attempts = Array.from({ length: 3 * LOGINS_MAX }, () =>
      browser().post("/v1/session", { key: account.key }),
    );
    const statuses = (await Promise.all(attempts)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(LOGINS_MAX);
    expect(statuses.filter((status) => status === 429)).toHaveLength(2 * LOGINS_MAX);
    expect(await entriesOf(account, "?action=session.create&limit=100")).toHaveLength(LOGINS_MAX);
    const answer = await browser().post("/v1/session", { key: account.key });
    expectError(answer, "rate_limit_exceeded");
    expect(answer.headers.get("retry-after")).toBe(String(LOGINS_WINDOW_MS / 1000));
    await browser().logIn((await server.account()).key);
    await server.clock.advance(LOGINS_WINDOW_MS);
    await browser().logIn(account.key);
  });

  test(`429 after ${LOGINS_MAX} logins from one network in a minute, with any key`, async () => {
    const network = browser().headers;
    const fromThere = () => Object.assign(browser(), { headers: network });
    for (let count = 0; count < LOGINS_MAX; count += 1) await fromThere().logIn((await server.account()).key);
    const account = await server.account();
    for (const key of [account.key, "sm_none"])
      expectError(await fromThere().post("/v1/session", { key }), "rate_limit_exceeded");
    await browser().logIn(account.key);
    await server.clock.advance(LOGINS_WINDOW_MS);
    await fromThere().logIn(account.key);
  });

  test(`an account has at most ${SESSIONS_PER_ACCOUNT_MAX} sessions: the oldest is ended`, async () => {
    const account = await server.account();
    const all: Browser[] = [];
    for (let index = 0; index <= SESSIONS_PER_ACCOUNT_MAX; index += 1) {
      await server.clock.advance(LOGINS_WINDOW_MS / LOGINS_MAX);
      all.push(await browser().logIn(account.key));
      if (index === SESSIONS_PER_ACCOUNT_MAX - 1) expect((await all[0]?.get("/v1/gate"))?.status).toBe(200);
    }
    expectError((await all[0]?.get("/v1/gate")) as never, "unauthorized");
    expect((await all[1]?.get("/v1/gate"))?.status).toBe(200);
  });
});

describe("GET /v1/session", () => {
  test("null without a session", async () => {
    expect((await browser().get("/v1/session")).body).toEqual({
      session: null,
      login: { methods: [{ type: "key" }] },
    });
  });

  test("null once the key is revoked; 403 for another page, 404 for a project of another account", async () => {
    const account = await server.account();
    const created = await account.post("/v1/keys", { prefix: "sm", name: "CI", scopes: ["gate:read"] });
    const mine = await browser().logIn(String(created.body.secret));
    expect((await mine.get("/v1/session")).body.session).toMatchObject({
      key_id: created.body.key_id,
      key_name: "CI",
      scopes: ["gate:read"],
    });
    const headers = { "x-ninefold-project": "proj_none" };
    expectError(await mine.get("/v1/session", { headers }), "forbidden");
    const whole = await browser().logIn(account.key);
    expectError(await whole.get("/v1/session", { headers }), "not_found");
    delete mine.headers["x-ninefold-session"];
    expectError(await mine.get("/v1/session"), "forbidden");
    Object.assign(mine.headers, OWN_PAGE);
    await account.delete(`/v1/keys/${created.body.key_id}`);
    expect((await mine.get("/v1/session")).body).toEqual({
      session: null,
      login: { methods: [{ type: "key" }] },
    });
    expectError(await mine.get("/v1/gate"), "unauthorized");
  });
});

describe("the end of a session", () => {
  test("DELETE /v1/session: 204, and the cookie no longer works", async () => {
    const account = await server.account();
    const mine = await browser().logIn(account.key);
    const stolen = mine.cookie;
    const answer = await mine.delete("/v1/session");
    expect(answer.status).toBe(204);
    expect(answer.headers.get("clear-site-data")).toBe('"cache"');
    expect(mine.cookie).toBe("");
    mine.cookie = stolen;
    expectError(await mine.get("/v1/gate"), "unauthorized");
    expectError(await mine.delete("/v1/session"), "unauthorized");
    expectError(await account.delete("/v1/session", { headers: OWN_PAGE }), "forbidden");
    const actions = (await entriesOf(account, "?action=session.*")).map(({ action }) => action);
    expect(actions).toEqual(["session.end", "session.create"]);
    expect((await newestOf(account)).actor.type).toBe("session");
  });

  test("DELETE /v1/sessions: all sessions of the account, with a key that has all scopes", async () => {
    const account = await server.account();
    const others = await browser().logIn((await server.account()).key);
    const two = [await browser().logIn(account.key), await browser().logIn(account.key)];
    const weak = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["gate:*"] });
    expectError(await server.client(String(weak.body.secret)).delete("/v1/sessions"), "forbidden");
    expect((await account.delete("/v1/sessions")).body).toEqual({ ended: 2 });
    for (const one of two) expectError(await one.get("/v1/gate"), "unauthorized");
    expect((await others.get("/v1/gate")).status).toBe(200);
    expect(await newestOf(account)).toMatchObject({ action: "sessions.end", before: { sessions: 2 } });
    // Without sessions there is no audit entry.
    expect((await account.delete("/v1/sessions")).body).toEqual({ ended: 0 });
    expect(await entriesOf(account, "?action=sessions.end")).toHaveLength(1);
  });

  test("after a day without a request, and after seven days in any case, also across restarts", async () => {
    const account = await server.account();
    const [idle, busy] = [await browser().logIn(account.key), await browser().logIn(account.key)];
    for (let days = 1; days < 7; days += 1) {
      await server.clock.advance(IDLE_MS - 1);
      expect((await busy.get("/v1/gate")).status).toBe(200);
      if (days === 1) expect((await idle.get("/v1/session")).body.session).not.toBeNull();
    }
    expectError(await idle.get("/v1/gate"), "unauthorized");
    await server.clock.advance(IDLE_MS - 1);
    expect((await busy.get("/v1/gate")).status).toBe(200);
    await server.clock.advance(6);
    expect((await busy.get("/v1/gate")).status).toBe(200);
    await server.clock.advance(1);
    expectError(await busy.get("/v1/gate"), "unauthorized");
  }, 60_000);

  test("with the grace period of a rotated platform key, also after a restart", async () => {
    const account = await server.account();
    const mine = await browser().logIn(account.key);
    const { url } = server;
    await server.restart();
    const again = new Browser(server);
    again.cookie = mine.cookie;
    expect(server.url).not.toBe(url);
    expect((await again.get("/v1/gate")).status).toBe(200);
    const key = server.client(account.key);
    expect((await key.post("/v1/keys/rotate", { grace_hours: 1 })).status).toBe(200);
    expect((await again.get("/v1/gate")).status).toBe(200);
    expectError(await again.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"] }), "forbidden");
    await server.clock.advance(60 * 60 * 1000);
    expectError(await again.get("/v1/gate"), "unauthorized");
  });
});
