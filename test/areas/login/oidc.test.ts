import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Client } from "../../support/client.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { ARGS, invite, join } from "../people/support.ts";
import { HostileProvider } from "./hostile-provider.ts";
import { audited, failure, LoginBrowser, settings, whose } from "./support.ts";

let server: TestServer;
const provider = new HostileProvider(() => server.clock.now());
beforeAll(async () => {
  const oidc = [
    settings(provider),
    settings(provider, { name: "trusting", trustEmail: true, allowedDomains: ["trusted.example"] }),
    settings(provider, {
      name: "groups",
      account: "groups@example.com",
      roles: new Map([
        ["ops", "admin"],
        ["dev", "editor"],
        ["*", "viewer"],
      ]),
      allowedDomains: ["example.com"],
      create: true,
    }),
    settings(provider, {
      name: "strict",
      account: "groups@example.com",
      roles: new Map([["ops", "admin"]]),
      allowedGroups: ["staff", "ops"],
    }),
  ];
  server = await startTestServer({ manualClock: true, args: ARGS, config: { oidc } });
});
afterAll(async () => {
  await server.stop();
  await provider.stop();
});

let people = 0;

/** Claims of a person whom nobody else is. */
function somebody(claims: Record<string, unknown> = {}) {
  people += 1;
  return { email: `somebody-${people}@example.com`, sub: `somebody-${people}`, ...claims };
}

describe("the way to a provider and back", () => {
  test("opens a session of an invited person, who is active from then on", async () => {
    const account = await server.account();
    const claims = somebody({ name: "Some Body" });
    const { person_id } = await invite(account, {
      email: String(claims.email).toUpperCase(),
      role: "editor",
    });
    const browser = new LoginBrowser(server);
    const url = new URL(await browser.begin("sso", "?return_to=/dashboard/%23/gate"));
    expect(url.origin + url.pathname).toBe(`${provider.issuer}/authorize`);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: "code",
      client_id: "ninefold",
      redirect_uri: "https://ninefold.example.com/login/oidc/sso/callback",
      scope: "openid email profile",
      code_challenge_method: "S256",
      max_age: "604800",
    });
    expect(url.searchParams.get("response_mode")).toBeNull();
    expect(browser.loginCookie).toStartWith("__Host-ninefold_");
    const back = await browser.comeBack(provider.authorize(url.href, { claims }));
    expect(back).toBe("/dashboard/#/gate");
    expect(await browser.session()).toMatchObject({
      user_id: account.userId,
      method: "oidc",
      accounts: [],
      person: { person_id, role: "editor", name: "Some Body" },
    });
    const { body } = await account.get(`/v1/people/${person_id}`);
    expect(body).toMatchObject({ status: "active", login_methods: ["oidc"], invitation_expires_at: null });
    expect(body["identities"]).toMatchObject([{ issuer: provider.issuer }]);
    expect(await audited(account, "people.invitation.accept")).toHaveLength(1);
    expect(await audited(account, "session.create")).toMatchObject([{ after: { method: "oidc" } }]);
  });
});

/** A person who was invited and has logged in. */
async function member(
  account: Client,
  terms: Record<string, unknown> = {},
  deviation: Record<string, unknown> = {},
) {
  const claims = somebody();
  const person = await invite(account, { email: claims.email, role: "editor", ...terms });
  const browser = new LoginBrowser(server);
  browser.personId = String(person["person_id"]);
  expect(await browser.logInAt(provider, { claims: { ...claims, ...deviation } })).toBe("/dashboard/");
  return { browser, claims };
}

describe("what the browser is told", () => {
  test("cookies that no script reads, and no cache or next page sees the code", async () => {
    const account = await server.account();
    const claims = somebody();
    await invite(account, { email: claims.email, role: "viewer" });
    const browser = new LoginBrowser(server);
    const begun = await browser.get("/login/oidc/sso");
    const [cookie = ""] = begun.headers.getSetCookie();
    expect(cookie.replace(/^[^=]*=[^;]*/, "")).toBe("; HttpOnly; SameSite=Lax; Path=/; Max-Age=600; Secure");
    const { pathname, search } = new URL(provider.authorize(begun.headers.get("location") ?? "", { claims }));
    const back = await browser.get(pathname + search, { headers: { cookie: browser.loginCookie } });
    for (const { status, headers } of [begun, back])
      expect([status, headers.get("cache-control"), headers.get("referrer-policy")]).toEqual([
        303,
        "no-store",
        "no-referrer",
      ]);
    const [session = ""] = back.headers.getSetCookie();
    expect(session).toContain("; HttpOnly; SameSite=Strict; Path=/");
  });

  test("over plain HTTP, cookies without the prefix", async () => {
    const plain = await startTestServer({ manualClock: true, config: { oidc: [settings(provider)] } });
    const { headers } = await plain.client(null).get("/login/oidc/sso");
    expect(headers.getSetCookie()[0]).toMatch(
      /^ninefold_[^=]*_login=[^;]*; HttpOnly; SameSite=Lax; Path=\/; Max-Age=600$/,
    );
    expect(new URL(headers.get("location") ?? "").searchParams.get("redirect_uri")).toBe(
      `${plain.url}/login/oidc/sso/callback`,
    );
    await plain.stop();
  });

  test("a button for each provider, behind a proxy with its prefix", async () => {
    const { body } = await new LoginBrowser(server).get("/v1/session");
    const { methods } = body["login"] as { readonly methods: readonly Record<string, unknown>[] };
    expect(methods.filter(({ type }) => type === "oidc").slice(0, 2)).toEqual([
      { type: "oidc", name: "Company", url: "/login/oidc/sso" },
      { type: "oidc", name: "Company", url: "/login/oidc/trusting" },
    ]);
    const prefixed = await startTestServer({
      manualClock: true,
      args: ["--public-url", "https://example.com/ninefold", "--trust-proxy", "127.0.0.1"],
      config: { oidc: [settings(provider)] },
    });
    const browser = new LoginBrowser(prefixed);
    expect((await browser.get("/v1/session")).body["login"]).toMatchObject({
      methods: [{ type: "oidc", url: "/ninefold/login/oidc/sso" }, { type: "key" }],
    });
    const url = await browser.begin("sso", "?return_to=/ninefold/dashboard/%23/x");
    expect(new URL(url).searchParams.get("redirect_uri")).toBe(
      "https://example.com/ninefold/login/oidc/sso/callback",
    );
    const claims = somebody();
    await invite(await prefixed.account(), { email: claims.email, role: "viewer" });
    const back = new URL(provider.authorize(url, { claims }));
    expect(await browser.comeBack(back.href.replace("/ninefold/", "/"))).toBe("/ninefold/dashboard/#/x");
    await prefixed.stop();
  });

  test.each([
    ["https://evil.example/dashboard/", "/dashboard/"],
    ["//evil.example/dashboard/", "/dashboard/"],
    ["/\\evil.example/dashboard/", "/dashboard/"],
    ["/dashboard/../v1/session", "/dashboard/"],
    ["/dashboard/%2e%2e/docs", "/dashboard/"],
    ["/dashboardx", "/dashboard/"],
    ["/dashboard", "/dashboard/"],
    ["javascript:alert(1)//dashboard/", "/dashboard/"],
    ["\t//evil.example/dashboard/", "/dashboard/"],
    ["https://localhost@evil.example/dashboard/", "/dashboard/"],
    [`/dashboard/#/${"x".repeat(512)}`, "/dashboard/"],
    ["/dashboard/?a=b#/monitors/1?c=d", "/dashboard/?a=b#/monitors/1?c=d"],
    ["/dashboard/./#/ä", "/dashboard/#/%C3%A4"],
  ])("after a login with return_to=%s: %s", async (text, page) => {
    const { browser, claims } = await member(await server.account());
    const query = `?return_to=${encodeURIComponent(text)}`;
    expect(await browser.logInAt(provider, { claims }, query)).toBe(page);
  });

  test("405 for HEAD, which would use up the login, and no route for POST", async () => {
    const browser = new LoginBrowser(server);
    const { pathname, search } = new URL(provider.authorize(await browser.begin(), { claims: somebody() }));
    expect((await browser.send("HEAD", pathname + search)).status).toBe(405);
    expect((await browser.send("HEAD", "/login/oidc/sso")).status).toBe(405);
    expect((await browser.post(pathname)).status).toBe(404);
    expect(await browser.comeBack(`http://x${pathname}${search}`)).toBe(failure("refused"));
  });

  test("with --dashboard off: 404", async () => {
    const headless = await startTestServer({
      manualClock: true,
      args: ["--dashboard", "off"],
      config: { oidc: [settings(provider)] },
    });
    const client = headless.client(null);
    expect((await client.get("/login/oidc/sso")).status).toBe(404);
    expect((await client.get("/login/oidc/sso/callback")).status).toBe(404);
    await headless.stop();
  });

  test("404 for a provider that does not exist", async () => {
    expect((await server.client(null).get("/login/oidc/other")).status).toBe(404);
  });
});

describe("who logs in", () => {
  test("later, the person of the identity, whatever their address is there by then", async () => {
    const account = await server.account();
    const { browser, claims } = await member(account);
    const bob = await join(server, account, { role: "owner" });
    expect(await browser.logInAt(provider, { claims: { ...claims, email: bob.email } })).toBe("/dashboard/");
    expect(await whose(browser)).toBe(claims.email);
    expect(await browser.logInAt(provider, { claims: { ...claims, email_verified: false } })).toBe(
      "/dashboard/",
    );
  });

  test("nobody who is unknown, unverified or disabled, and nobody learns which", async () => {
    const account = await server.account();
    const invited = somebody();
    await invite(account, { email: invited.email, role: "editor" });
    const { browser: ann, claims } = await member(account);
    await account.patch(`/v1/people/${ann.personId}`, { disabled: true });
    for (const other of [
      somebody(),
      claims,
      { ...invited, email_verified: false },
      { ...invited, email_verified: undefined },
      { ...invited, email_verified: "false" },
      { ...invited, email_verified: 1 },
      { ...invited, email: undefined },
    ]) {
      const browser = new LoginBrowser(server);
      expect(await browser.logInAt(provider, { claims: other })).toBe(failure("refused"));
      expect([browser.cookie, await browser.session()]).toEqual(["", null]);
    }
    const browser = new LoginBrowser(server);
    expect(await browser.logInAt(provider, { claims: { ...invited, email_verified: "true" } })).toBe(
      "/dashboard/",
    );
  });

  test("with trust_email, also without the claim, but not against it", async () => {
    const account = await server.account();
    const claims = { ...somebody(), email: "entra@trusted.example" };
    await invite(account, { email: claims.email, role: "editor" });
    const browser = new LoginBrowser(server);
    const attempt = (email_verified?: boolean) =>
      browser.logInAt(provider, { claims: { ...claims, email_verified } }, "", "trusting");
    expect(await attempt(false)).toBe(failure("refused"));
    expect(await attempt()).toBe("/dashboard/");
  });

  test("not another identity with an address that changed hands, until an admin removes the first", async () => {
    const account = await server.account();
    const { browser, claims } = await member(account);
    const heir = { ...claims, sub: "heir" };
    const other = new LoginBrowser(server);
    expect(await other.logInAt(provider, { claims: heir })).toBe(failure("refused"));
    const [refused] = await audited(account, "session.refused");
    expect(refused).toMatchObject({
      target: { type: "person", id: browser.personId },
      after: { method: "oidc", reason: "conflict" },
    });
    const path = `/v1/people/${browser.personId}`;
    const { identities } = (await account.get(path)).body as { identities: { identity_id: string }[] };
    expect((await account.delete(`${path}/identities/${identities[0]?.identity_id}`)).status).toBe(200);
    expect(await other.logInAt(provider, { claims: heir })).toBe("/dashboard/");
    expect(await whose(other)).toBe(claims.email);
    expect(await new LoginBrowser(server).logInAt(provider, { claims })).toBe(failure("refused"));
  });

  test("claims that the ID token lacks are those of UserInfo, of the same subject and address", async () => {
    const { issuer } = provider;
    provider.metadata = { userinfo_endpoint: `${issuer}/userinfo` };
    await server.clock.advance(3_600_000);
    const account = await server.account();
    const claims = somebody();
    await invite(account, { email: claims.email, role: "viewer" });
    const bare = { sub: claims.sub, email: undefined, email_verified: undefined, name: undefined };
    const attempt = (userInfo: Record<string, unknown> | null, token: object = bare) =>
      new LoginBrowser(server).logInAt(provider, { claims: { ...token }, userInfo });
    expect(await attempt({ ...claims, email_verified: true, sub: "another" })).toBe(failure("provider"));
    expect(await attempt(null)).toBe(failure("provider"));
    expect(await attempt({ ...claims, email_verified: false })).toBe(failure("refused"));
    // The other address is verified, not that of the token.
    const unverified = { ...claims, email_verified: undefined };
    expect(await attempt({ ...claims, email: "other@example.com", email_verified: true }, unverified)).toBe(
      failure("refused"),
    );
    expect(await attempt({ ...claims, email_verified: true }, { ...bare, email_verified: true })).toBe(
      "/dashboard/",
    );
    provider.metadata = {};
    await server.clock.advance(3_600_000);
  });
});

describe("several accounts", () => {
  test("in which the identity is an active person can be switched, which is no login", async () => {
    const [first, second, other] = [await server.account(), await server.account(), await server.account()];
    const { browser, claims } = await member(first);
    await invite(second, { email: claims.email, role: "viewer" });
    await server.clock.advance(60_000);
    const auth_time = Math.floor(server.clock.now() / 1000);
    expect(await browser.logInAt(provider, { claims: { ...claims, auth_time } })).toBe("/dashboard/");
    expect(await browser.session()).toMatchObject({
      user_id: first.userId,
      accounts: [{ user_id: second.userId }],
    });
    const at = (await browser.session())?.["authenticated_at"];
    await server.clock.advance(1_000_000);
    const before = browser.cookie;
    expect((await browser.post("/v1/session/account", { user_id: second.userId })).status).toBe(201);
    expect(await browser.session()).toMatchObject({
      user_id: second.userId,
      authenticated_at: at,
      accounts: [{ user_id: first.userId }],
    });
    const old = new LoginBrowser(server);
    old.cookie = before;
    expect(await old.session()).toBeNull();
    expect((await browser.post("/v1/session/account", { user_id: other.userId })).status).toBe(404);
    const refused = await browser.delete("/v1/people/me/passkeys/none");
    expect(refused.body).toMatchObject({ code: "login_required", methods: ["oidc"] });
  });

  test("an account of the provider's settings is the only one", async () => {
    const account = await server.account({ email: "only@example.com" });
    const { claims } = await member(account);
    const browser = new LoginBrowser(server);
    expect(await browser.logInAt(provider, { claims: { ...claims, groups: ["ops"] } }, "", "strict")).toBe(
      failure("provider"),
    );
  });
});

describe("a step-up", () => {
  const now = () => Math.floor(server.clock.now() / 1000);
  const tooOld = 16 * 60_000;

  test("needs a login at the provider within the last minute, and keeps the session with another cookie", async () => {
    const { browser, claims } = await member(await server.account(), { role: "owner" }, { auth_time: now() });
    const { session_id: id } = (await browser.session()) ?? {};
    await server.clock.advance(tooOld);
    const refused = await browser.delete("/v1/people/me/passkeys/none");
    expect(refused.body).toMatchObject({ code: "login_required", methods: ["oidc"] });
    for (const auth_time of [undefined, now() - 61, now() + 61, String(now())]) {
      const before = browser.cookie;
      expect(await browser.logInAt(provider, { claims: { ...claims, auth_time } }, "?step_up=true")).toBe(
        failure("provider"),
      );
      expect([browser.cookie, (await browser.session())?.["session_id"]]).toEqual([before, id]);
    }
    expect((await browser.delete("/v1/people/me/passkeys/none")).body["code"]).toBe("login_required");
    const before = browser.cookie;
    const begun = await browser.begin("sso", "?step_up=true&return_to=/dashboard/%23/keys");
    expect(new URL(begun).searchParams.get("max_age")).toBe("0");
    expect(
      await browser.comeBack(provider.authorize(begun, { claims: { ...claims, auth_time: now() - 30 } })),
    ).toBe("/dashboard/#/keys");
    expect(await browser.session()).toMatchObject({ session_id: id, method: "oidc" });
    expect(browser.cookie).not.toBe(before);
    expect((await browser.delete("/v1/people/me/passkeys/none")).status).toBe(404);
    const old = new LoginBrowser(server);
    old.cookie = before;
    expect(await old.session()).toBeNull();
  });

  test("is not for another identity, and not without a session", async () => {
    const account = await server.account();
    const { browser, claims } = await member(account, { role: "owner" });
    const { claims: others } = await member(account);
    const fresh = { auth_time: now() };
    const before = browser.cookie;
    expect(await browser.logInAt(provider, { claims: { ...others, ...fresh } }, "?step_up=true")).toBe(
      failure("refused"),
    );
    expect(await browser.logInAt(provider, { claims: { ...somebody(), ...fresh } }, "?step_up=true")).toBe(
      failure("refused"),
    );
    expect([browser.cookie, await whose(browser)]).toEqual([before, claims.email]);
    const nobody = new LoginBrowser(server);
    expect(await nobody.logInAt(provider, { claims: { ...claims, ...fresh } }, "?step_up=true")).toBe(
      failure("refused"),
    );
    expect(nobody.cookie).toBe("");
  });

  test("is not offered at a provider that sent no time, and a plain login there is another session", async () => {
    const { browser, claims } = await member(await server.account(), { role: "owner" });
    const before = await browser.session();
    await server.clock.advance(tooOld);
    expect((await browser.delete("/v1/people/me/passkeys/none")).body).toMatchObject({
      code: "login_required",
      methods: [],
    });
    const cookie = browser.cookie;
    expect(await browser.logInAt(provider, { claims })).toBe("/dashboard/");
    expect((await browser.session())?.["session_id"]).not.toBe(before?.["session_id"]);
    const old = new LoginBrowser(server);
    old.cookie = cookie;
    expect(await old.session()).toBeNull();
  });

  test("cannot be had by a plain login that the provider let through without asking", async () => {
    const { browser, claims } = await member(await server.account(), { role: "owner" });
    const auth_time = now();
    await server.clock.advance(tooOld);
    expect(await browser.logInAt(provider, { claims: { ...claims, auth_time } })).toBe("/dashboard/");
    expect((await browser.delete("/v1/people/me/passkeys/none")).body).toMatchObject({
      code: "login_required",
      methods: ["oidc"],
    });
  });
});

describe("rules of a provider", () => {
  const at = (name: string, claims: Record<string, unknown>, browser = new LoginBrowser(server)) =>
    browser.logInAt(provider, { claims }, "", name);
  let account: Awaited<ReturnType<TestServer["account"]>>;
  beforeAll(async () => {
    account = await server.account({ email: "groups@example.com", tier: "starter" });
  });
  const roleOf = async (email: unknown) => {
    const { people: all } = (await account.get("/v1/people?limit=100")).body as {
      people: { email: string; role: string }[];
    };
    return all.find((person) => person.email === email)?.role ?? null;
  };

  test("groups give the highest role at every login, and create people of allowed domains", async () => {
    const claims = somebody();
    const browser = new LoginBrowser(server);
    expect(await at("groups", { ...claims, groups: ["dev", "ops", 7] }, browser)).toBe("/dashboard/");
    expect(await roleOf(claims.email)).toBe("admin");
    expect(await audited(account, "people.create")).toMatchObject([
      { actor: { type: "public" }, after: { role: "admin" } },
    ]);
    expect(await at("groups", { ...claims, groups: "dev" }, browser)).toBe("/dashboard/");
    expect(await roleOf(claims.email)).toBe("editor");
    const [update] = await audited(account, "people.update");
    expect(update).toMatchObject({ before: { role: "admin" }, after: { role: "editor" } });
    expect(await at("groups", { ...claims, groups: [] }, browser)).toBe("/dashboard/");
    expect(await roleOf(claims.email)).toBe("viewer");
  });

  test("without the groups, or with none that has a role, the login is rejected and nothing changes", async () => {
    const claims = somebody();
    await at("groups", { ...claims, groups: ["dev"] });
    expect(await at("groups", claims)).toBe(failure("refused"));
    expect(await at("groups", { ...claims, groups: { ops: true } })).toBe(failure("refused"));
    expect(await at("strict", { ...claims, groups: ["staff"] })).toBe(failure("refused"));
    expect(await at("strict", { ...claims, groups: ["other"] })).toBe(failure("refused"));
    expect(await roleOf(claims.email)).toBe("editor");
    expect(await at("strict", { ...claims, groups: ["ops"] })).toBe("/dashboard/");
    expect(await roleOf(claims.email)).toBe("admin");
    const stranger = somebody();
    expect(await at("strict", { ...stranger, groups: ["ops"] })).toBe(failure("refused"));
    expect(await roleOf(stranger.email)).toBeNull();
  });

  test("another domain, and an unverified one, is rejected at every login", async () => {
    const claims = somebody();
    expect(await at("groups", { ...claims, email: "a@EXAMPLE.com", groups: [] })).toBe("/dashboard/");
    for (const email of ["a@evil.example", "a@example.com.evil.example", '"a@example.com"@evil.example'])
      expect(await at("groups", { ...claims, email, groups: [] })).toBe(failure("refused"));
    expect(await at("groups", { ...claims, email: "a@example.com", email_verified: false, groups: [] })).toBe(
      failure("refused"),
    );
  });

  test("the last owner keeps their role", async () => {
    const claims = somebody();
    await invite(account, { email: claims.email, role: "owner" });
    expect(await new LoginBrowser(server).logInAt(provider, { claims })).toBe("/dashboard/");
    expect(await at("groups", { ...claims, groups: ["dev"] })).toBe("/dashboard/");
    expect(await roleOf(claims.email)).toBe("owner");
    expect(server.logs.some(({ message }) => message.includes("the last owner"))).toBeTrue();
  });

  test("nobody is created above the limit of the tier", async () => {
    const fill = async (): Promise<void> => {
      const { status } = await account.post("/v1/people", {
        email: `${crypto.randomUUID()}@example.com`,
        role: "viewer",
      });
      if (status === 201) return fill();
      expect(status).toBe(403);
    };
    await fill();
    const claims = somebody();
    expect(await at("groups", { ...claims, groups: [] })).toBe(failure("refused"));
    expect(await roleOf(claims.email)).toBeNull();
  });
});

describe("rejected logins", () => {
  test("are counted, and the log of the account has those of its people, at most ten a minute", async () => {
    const account = await server.account();
    const { browser, claims } = await member(account);
    await account.patch(`/v1/people/${browser.personId}`, { disabled: true });
    const count = async () => {
      const text = (await server.operator.get("/metrics")).text;
      return Number(/ninefold_logins_total\{method="oidc",result="rejected"\} (\d+)/.exec(text)?.[1]);
    };
    const before = await count();
    for (let at = 0; at < 12; at += 1)
      expect(await new LoginBrowser(server).logInAt(provider, { claims })).toBe(failure("refused"));
    expect((await count()) - before).toBe(12);
    expect(await audited(account, "session.refused")).toHaveLength(10);
  });

  test("are limited for a network", async () => {
    const browser = new LoginBrowser(server);
    for (let at = 0; at < 10; at += 1)
      expect(await browser.logInAt(provider, { claims: somebody() })).toBe(failure("refused"));
    const { status, headers } = await browser.get("/login/oidc/sso");
    expect([status, headers.has("retry-after")]).toEqual([429, true]);
  });
});
