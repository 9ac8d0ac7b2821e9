import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import {
  KEYS_MAX,
  KEYS_PAUSE_MS,
  LOGIN_MS,
  METADATA_MS,
  RESPONSE_BYTES_MAX,
  VERIFYING_MAX,
} from "../../../src/areas/login/oidc/domain.ts";
import { JSON_VALUES_MAX } from "../../../src/json-text.ts";
import { until } from "../../support/eventually.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { ARGS, invite } from "../people/support.ts";
import { type Deviation, HostileProvider, signingKey } from "./hostile-provider.ts";
import { failure, LoginBrowser, settings, whose } from "./support.ts";

let server: TestServer;
const provider = new HostileProvider(() => server.clock.now());
const evil = new HostileProvider(() => server.clock.now());
const ANN = { email: "ann@example.com", sub: "ann" };

beforeAll(async () => {
  const oidc = [settings(provider), settings(evil, { name: "evil" })];
  server = await startTestServer({ manualClock: true, args: ARGS, config: { oidc } });
  await invite(await server.account(), { email: ANN.email, role: "owner" });
  expect(await new LoginBrowser(server).logInAt(provider, { claims: ANN })).toBe("/dashboard/");
});
afterAll(async () => {
  await server.stop();
  await Promise.all([provider.stop(), evil.stop()]);
});

const JSON_TYPE = { headers: { "content-type": "application/json" } };

/** Logs in with a deviation. Returns where the browser is, having made sure that it has a session only after a success. */
async function attempt(deviation: Deviation, name = "sso"): Promise<string> {
  const browser = new LoginBrowser(server);
  const at = name === "sso" ? provider : evil;
  const page = await browser.logInAt(at, { ...deviation, claims: { ...ANN, ...deviation.claims } }, "", name);
  expect(await whose(browser)).toBe(page === "/dashboard/" ? ANN.email : null);
  return page;
}

describe("the state", () => {
  test("is that of the same browser: nobody is logged in by a link of somebody else", async () => {
    const [mallory, victim] = [new LoginBrowser(server), new LoginBrowser(server)];
    const link = provider.authorize(await mallory.begin(), { claims: ANN });
    expect(await victim.comeBack(link)).toBe(failure("expired"));
    await victim.begin();
    expect(await victim.comeBack(link)).toBe(failure("expired"));
    expect(await whose(victim)).toBeNull();
  });

  test("is there, once, for minutes", async () => {
    const browser = new LoginBrowser(server);
    for (const state of [undefined, "", "A".repeat(43), "ä"]) {
      const back = new URL(provider.authorize(await browser.begin(), { claims: ANN }));
      if (state === undefined) back.searchParams.delete("state");
      else back.searchParams.set("state", state);
      expect(await browser.comeBack(back.href)).toBe(failure("expired"));
    }
    const cookie = browser.loginCookie;
    const back = provider.authorize(await browser.begin(), { claims: ANN });
    const begun = browser.loginCookie;
    expect(await browser.comeBack(back)).toBe("/dashboard/");
    browser.loginCookie = begun;
    expect(await browser.comeBack(back)).toBe(failure("expired"));
    expect(cookie).not.toBe("");
    const other = new LoginBrowser(server);
    const late = provider.authorize(await other.begin(), { claims: ANN });
    await server.clock.advance(LOGIN_MS + 1_000);
    expect(await other.comeBack(late)).toBe(failure("expired"));
  });

  test("is used up whatever the result", async () => {
    const browser = new LoginBrowser(server);
    const begun = await browser.begin();
    const cookie = browser.loginCookie;
    expect(await browser.comeBack(provider.authorize(begun, { claims: { nonce: "other" } }))).toBe(
      failure("provider"),
    );
    browser.loginCookie = cookie;
    expect(await browser.comeBack(provider.authorize(begun, { claims: ANN }))).toBe(failure("expired"));
  });

  test("outlives a restart", async () => {
    const browser = new LoginBrowser(server);
    const back = provider.authorize(await browser.begin(), { claims: ANN });
    await server.restart();
    const again = new LoginBrowser(server);
    again.loginCookie = browser.loginCookie;
    expect(await again.comeBack(back)).toBe("/dashboard/");
  });

  test("of five logins at a time, each in a tab; a sixth ends the first, and the cookie fits", async () => {
    const browser = new LoginBrowser(server);
    const query = `?return_to=${encodeURIComponent(`/dashboard/#/${"x".repeat(490)}`)}`;
    const tabs: string[] = [];
    for (let tab = 0; tab < 6; tab += 1) tabs.push(await browser.begin("sso", query));
    expect(browser.loginCookie.length).toBeLessThan(4_096);
    expect(browser.loginCookie.length).toBeGreaterThan(3_000);
    expect(await browser.comeBack(provider.authorize(tabs[0] ?? "", { claims: ANN }))).toBe(
      failure("expired"),
    );
    for (const tab of tabs.slice(1))
      expect(await browser.comeBack(provider.authorize(tab, { claims: ANN }))).toStartWith(
        "/dashboard/#/xxx",
      );
  });

  test("a cookie that was changed, is too long or is none of ours opens nothing", async () => {
    const browser = new LoginBrowser(server);
    const back = provider.authorize(await browser.begin(), { claims: ANN });
    const { loginCookie: cookie } = browser;
    const [name = "", value = ""] = cookie.split("=");
    const bytes = Buffer.from(value, "base64url");
    // The address to return to, which it ends with.
    const changed = Buffer.concat([bytes.subarray(0, -11), Buffer.from("/dashboard/x")]).toString(
      "base64url",
    );
    for (const other of [changed, `${value}=`, "", ".", "A", "A".repeat(5_000), "x.".repeat(2_000)]) {
      const begun = new LoginBrowser(server);
      begun.loginCookie = `${name}=${other}`;
      expect(await begun.comeBack(back)).toBe(failure("expired"));
    }
    expect(await browser.comeBack(back)).toBe("/dashboard/");
  });

  test("the session that a browser had is ended, and its cookie is another one", async () => {
    const browser = new LoginBrowser(server);
    expect(await browser.logInAt(provider, { claims: ANN })).toBe("/dashboard/");
    const { cookie } = browser;
    expect(await browser.logInAt(provider, { claims: ANN })).toBe("/dashboard/");
    const old = new LoginBrowser(server);
    old.cookie = cookie;
    expect([await old.session(), browser.cookie === cookie]).toEqual([null, false]);
  });
});

describe("mix-up of two providers", () => {
  test("a state of one opens nothing at the callback of the other", async () => {
    const browser = new LoginBrowser(server);
    const back = provider.authorize(await browser.begin(), { claims: ANN });
    expect(await browser.comeBack(back.replace("/sso/", "/evil/"))).toBe(failure("expired"));
    expect(evil.requestsTo("/token")).toBe(0);
  });

  test("the issuer in the answer is that of the provider, and is there where its metadata says so", async () => {
    expect(await attempt({ returned: { iss: provider.issuer } })).toBe("/dashboard/");
    const requests = provider.requestsTo("/token");
    expect(await attempt({ returned: { iss: evil.issuer } })).toBe(failure("provider"));
    expect(await attempt({ returned: { iss: "" } })).toBe(failure("provider"));
    provider.metadata = { authorization_response_iss_parameter_supported: true };
    await server.clock.advance(METADATA_MS);
    expect(await attempt({})).toBe(failure("provider"));
    // The code was shown to nobody.
    expect(provider.requestsTo("/token")).toBe(requests);
    expect(await attempt({ returned: { iss: provider.issuer } })).toBe("/dashboard/");
    provider.metadata = {};
    await server.clock.advance(METADATA_MS);
  });

  test("the same subject at another provider is another identity", async () => {
    expect(await attempt({ claims: { email: "other@example.com" } }, "evil")).toBe(failure("refused"));
    expect(await attempt({ claims: { iss: provider.issuer } }, "evil")).toBe(failure("provider"));
    expect(await attempt({ key: provider.keys[0] as never, claims: { iss: provider.issuer } }, "evil")).toBe(
      failure("provider"),
    );
  });
});

describe("codes", () => {
  test("of another login, replayed, or of another provider bring nothing", async () => {
    const browser = new LoginBrowser(server);
    const stolen =
      new URL(provider.authorize(await browser.begin(), { claims: ANN })).searchParams.get("code") ?? "";
    const mallory = new LoginBrowser(server);
    expect(await mallory.logInAt(provider, { returned: { code: stolen } })).toBe(failure("provider"));
    const ofEvil = new URL(evil.authorize(await mallory.begin("evil"))).searchParams.get("code") ?? "";
    expect(await mallory.logInAt(provider, { returned: { code: ofEvil } })).toBe(failure("provider"));
    expect(await mallory.logInAt(provider, { returned: { code: undefined } })).toBe(failure("provider"));
    expect(mallory.cookie).toBe("");
  });

  test("what the provider says instead of one", async () => {
    const denied = { code: undefined, error: "access_denied", error_description: "no" };
    expect(await attempt({ returned: denied })).toBe(failure("denied"));
    expect(await attempt({ returned: { code: undefined, error: "server_error" } })).toBe(failure("provider"));
    expect(await attempt({ returned: { ...denied, iss: evil.issuer } })).toBe(failure("provider"));
    const browser = new LoginBrowser(server);
    expect(await browser.comeBack("https://x/login/oidc/sso/callback?error=access_denied&state=x")).toBe(
      failure("expired"),
    );
  });
});

describe("ID tokens", () => {
  const now = () => Math.floor(server.clock.now() / 1000);
  beforeEach(() => {
    provider.keys = [signingKey()];
    return server.clock.advance(KEYS_PAUSE_MS);
  });

  test.each(["RS256", "PS256", "ES256", "ES384", "EdDSA"])("signed with %s are accepted", async (alg) => {
    provider.keys = [signingKey(alg)];
    expect(await attempt({})).toBe("/dashboard/");
  });

  test("signed with another algorithm, a shared secret, or not at all are not", async () => {
    const [key = signingKey()] = provider.keys;
    const publicPem = key.publicKey.export({ format: "pem", type: "spki" }).toString();
    const rs512 = { ...key, alg: "RS512" };
    const es512 = signingKey("ES512");
    provider.keys = [key, rs512, es512];
    for (const deviation of [
      { key: null },
      { key: null, header: { alg: "NONE" } },
      { key: null, header: { alg: "RS256", kid: key.kid } },
      { key: provider.clientSecret },
      { key: publicPem, header: { kid: key.kid } },
      { key: JSON.stringify(key.publicKey.export({ format: "jwk" })) },
      { key: rs512 },
      { key: es512 },
      { key: key, header: { alg: "PS256" } },
      { key: key, header: { crit: ["x"], x: 1 } },
    ])
      expect(await attempt(deviation)).toBe(failure("provider"));
  });

  test("signed by somebody else are not, whatever their header says", async () => {
    const [key = signingKey()] = provider.keys;
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const jwk = publicKey.export({ format: "jwk" });
    const requests = evil.requestsTo("/jwks");
    for (const header of [{}, { jwk }, { jku: `${evil.issuer}/jwks` }, { x5c: ["MIIB"] }])
      expect(await attempt({ key: { ...key, privateKey }, header })).toBe(failure("provider"));
    expect(evil.requestsTo("/jwks")).toBe(requests);
  });

  test("are for this client, of this login and of now", async () => {
    for (const claims of [
      { aud: "another" },
      { aud: [provider.clientId, "another"] },
      { aud: [provider.clientId, "another"], azp: "another" },
      { azp: "another" },
      { aud: undefined },
      { iss: "https://evil.example" },
      { iss: `${provider.issuer}/` },
      { nonce: "another" },
      { nonce: undefined },
      { exp: now() - 61 },
      { exp: undefined },
      { iat: now() + 61, exp: now() + 600 },
      { iat: undefined },
      { nbf: now() + 61 },
      { sub: undefined },
      { sub: "" },
      { sub: "x".repeat(256) },
      { sub: 7 },
    ])
      expect([claims, await attempt({ claims })]).toEqual([claims, failure("provider")]);
    for (const claims of [
      { aud: [provider.clientId] },
      { aud: [provider.clientId, "another"], azp: provider.clientId },
      { azp: provider.clientId },
      { exp: now() - 59 },
      { iat: now() + 59 },
    ])
      expect([claims, await attempt({ claims })]).toEqual([claims, "/dashboard/"]);
  });

  test("keys can be replaced: a new one is fetched, at most once a minute, however many tokens name others", async () => {
    expect(await attempt({})).toBe("/dashboard/");
    provider.keys = [signingKey()];
    await server.clock.advance(KEYS_PAUSE_MS);
    expect(await attempt({})).toBe("/dashboard/");
    const before = provider.requestsTo("/jwks");
    const attempts = Array.from({ length: 5 }, () => attempt({ key: signingKey() }));
    for (const page of await Promise.all(attempts)) expect(page).toBe(failure("provider"));
    expect(provider.requestsTo("/jwks")).toBe(before);
    await server.clock.advance(KEYS_PAUSE_MS);
    const later = Array.from({ length: 5 }, () => attempt({ key: signingKey() }));
    for (const page of await Promise.all(later)) expect(page).toBe(failure("provider"));
    expect(provider.requestsTo("/jwks")).toBe(before + 1);
    expect(await attempt({})).toBe("/dashboard/");
    // A key that was withdrawn is none, after some minutes at the latest.
    const [withdrawn = signingKey()] = provider.keys;
    provider.keys = [signingKey()];
    await server.clock.advance(5 * KEYS_PAUSE_MS);
    expect(await attempt({ key: withdrawn })).toBe(failure("provider"));
  });
});

describe("a provider that misbehaves", () => {
  const broken = async (
    path: string,
    response: () => Response | Promise<Response>,
    page = failure("provider"),
  ) => {
    provider.responses.set(path, response);
    await server.clock.advance(METADATA_MS);
    expect(await attempt({}).catch(() => "not begun")).toBe(page);
    provider.responses.clear();
  };

  test("is an error of the login, and the next one works", async () => {
    const requests = evil.requestsTo("/token");
    for (const path of ["/token", "/jwks"]) {
      await broken(path, () => new Response("busy", { status: 503 }));
      await broken(path, () => Response.redirect(`${evil.issuer}${path}`, 307));
      await broken(path, () => new Response("<html>", { headers: { "content-type": "text/html" } }));
      await broken(path, () => Response.json([]));
      await broken(
        path,
        () =>
          new Response("x".repeat(RESPONSE_BYTES_MAX + 1), {
            headers: { "content-type": "application/json" },
          }),
      );
      expect(await attempt({})).toBe("/dashboard/");
    }
    expect(evil.requestsTo("/token")).toBe(requests);
  });

  test("with metadata of somebody else, or none, begins nothing", async () => {
    const path = "/.well-known/openid-configuration";
    for (const response of [
      () => new Response("", { status: 500 }),
      () => Response.json({ issuer: evil.issuer }),
      () =>
        Response.json({ issuer: provider.issuer, id_token_signing_alg_values_supported: ["HS256", "none"] }),
    ]) {
      provider.responses.set(path, response);
      await server.clock.advance(METADATA_MS);
      const browser = new LoginBrowser(server);
      expect(await browser.begin()).toBe(failure("provider"));
      expect(browser.loginCookie).toBe("");
    }
    provider.responses.clear();
    expect(await attempt({})).toBe("/dashboard/");
  });

  test("with very many small values, or keys, holds nobody up", async () => {
    await broken("/jwks", () => new Response(`{"keys":[${"{},".repeat(JSON_VALUES_MAX)}{}]}`, JSON_TYPE));
    const [key = signingKey()] = provider.keys;
    const many = Array.from({ length: KEYS_MAX }, (_, at) => ({ kty: "oct", kid: `other-${at}` }));
    const jwks = (keys: readonly object[]) => () => Response.json({ keys });
    const usual = { ...key.publicKey.export({ format: "jwk" }), kid: key.kid };
    await broken("/jwks", jwks([...many, usual]));
    await broken("/jwks", jwks([...many.slice(1), usual]), "/dashboard/");
  });

  test("that responds late keeps a limited number of logins waiting", async () => {
    const gate = Promise.withResolvers<void>();
    provider.responses.set("/token", async () => {
      await gate.promise;
      return new Response("late", { status: 503 });
    });
    const before = provider.requestsTo("/token");
    const waiting = Array.from({ length: VERIFYING_MAX }, () => attempt({}));
    await until(() => provider.requestsTo("/token") - before === VERIFYING_MAX);
    expect(await attempt({})).toBe(failure("provider"));
    expect(provider.requestsTo("/token") - before).toBe(VERIFYING_MAX);
    gate.resolve();
    for (const page of await Promise.all(waiting)) expect(page).toBe(failure("provider"));
    provider.responses.clear();
    expect(await attempt({})).toBe("/dashboard/");
  });

  test("may not send requests elsewhere in the own network", async () => {
    const { port } = new URL(evil.issuer);
    const before = evil.requestsTo("/token");
    for (const endpoint of ["token_endpoint", "jwks_uri"]) {
      for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, "10.0.0.1", "169.254.169.254"]) {
        provider.metadata = { [endpoint]: `http://${host}/token` };
        await server.clock.advance(METADATA_MS);
        expect(await attempt({})).toBe(failure("provider"));
      }
    }
    provider.metadata = {};
    await server.clock.advance(METADATA_MS);
    expect(evil.requestsTo("/token")).toBe(before);
    const reasons = server.logs.filter(({ message }) => message === "a login at a provider failed");
    expect(
      reasons.some(({ fields }) => String(fields["reason"]).includes("--allow-private-targets")),
    ).toBeTrue();
    expect(JSON.stringify(server.logs)).not.toContain(provider.clientSecret);
  });
});
