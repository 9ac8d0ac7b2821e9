import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { STEP_UP_MS } from "../../../src/kernel/http/operation.ts";
import { HOUR_MS } from "../../../src/kernel/time/units.ts";
import { Scratch } from "../../kernel/support.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";
import { Browser } from "./support.ts";

const scratch = new Scratch();
afterAll(() => scratch.remove());

/** A browser behind a trusted proxy, which sets these headers. */
function behind(server: TestServer, headers: Record<string, string>): Browser {
  return Object.assign(new Browser(server), { headers: { ...new Browser(server).headers, ...headers } });
}

const logIn = (browser: Browser) => browser.post("/v1/session", { proxy: true });
const person = async (client: Client, email: string, role: string) =>
  (await client.post("/v1/people", { email, role })).body;
const metric = async (server: TestServer) =>
  /^ninefold_login_header_ignored_total (\d+)$/m.exec((await server.operator.get("/metrics")).text)?.[1];

describe("the header of a trusted proxy", () => {
  let server: TestServer;
  beforeAll(async () => {
    const path = scratch.path("header.toml");
    writeFileSync(
      path,
      'trust_proxy = ["127.0.0.1"]\n[login.header]\nemail = "Remote-Email"\nname = "Remote-Name"\n',
    );
    server = await startTestServer({ manualClock: true, args: ["--config", path] });
  });
  afterAll(() => server.stop());

  test("logs in who it names, and accepts their invitation", async () => {
    const account = await server.account();
    const invited = await person(account, "Ann@example.com", "admin");
    const ann = behind(server, { "remote-email": "ann@EXAMPLE.com", "remote-name": "Jörg Müller" });
    expect((await ann.get("/v1/session")).body).toEqual({
      session: null,
      login: { methods: [{ type: "header" }, { type: "key" }] },
    });
    const { status, body } = await logIn(ann);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      user_id: account.userId,
      method: "header",
      person: {
        person_id: invited["person_id"],
        email: "Ann@example.com",
        name: "Jörg Müller",
        role: "admin",
      },
      accounts: [],
    });
    expect((await newestOf(account)).action).toBe("session.create");
    expect((await account.get(`/v1/people/${invited["person_id"]}`)).body["status"]).toBe("active");
  });

  test.each([
    ["=?utf-8?q?Ferd_=C3=A9?= =?UTF-8?B?cmljaw==?= B.", "Ferd érick B."],
    ["Doe, Ann", "Doe, Ann"],
    ["=?x?q?a?=", "=?x?q?a?="],
    ["", null],
  ])("gives the name %p", async (header, name) => {
    const account = await server.account();
    const email = `named-${account.userId}@example.com`.toLowerCase();
    await person(account, email, "viewer");
    const { body } = await logIn(behind(server, { "remote-email": email, "remote-name": header }));
    expect(body["person"]).toMatchObject({ name });
  });

  test("counts as a fresh login at any time, and the session needs the same header in each request", async () => {
    const account = await server.account();
    await person(account, "bob@example.com", "admin");
    const bob = behind(server, { "remote-email": "bob@example.com" });
    expect((await logIn(bob)).status).toBe(201);
    await server.clock.advance(STEP_UP_MS + 1);
    const create = () => bob.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["meter:read"] });
    expect((await create()).status).toBe(201);
    for (const email of ["eve@example.com", "bob@example.com, bob@example.com", "", null]) {
      if (email === null) delete bob.headers["remote-email"];
      else bob.headers["remote-email"] = email;
      expectError(await create(), "unauthorized");
      expect((await bob.get("/v1/session")).body["session"]).toBeNull();
    }
    bob.headers["remote-email"] = "BOB@example.com";
    expect((await create()).status).toBe(201);
  });

  test("alone authorizes nothing", async () => {
    await person(await server.account(), "carol@example.com", "owner");
    const carol = behind(server, { "remote-email": "carol@example.com" });
    expectError(await carol.get("/v1/gate"), "unauthorized");
    carol.headers["x-ninefold-session"] = "";
    expectError(await logIn(carol), "forbidden");
  });

  test.each([
    ["nobody@example.com"],
    ["dan@example.com, dan@example.com"],
    ["dan@example.com,"],
    ["x, dan@example.com"],
    ["dan"],
    [""],
  ])("rejects %p with the one 401 of rejected logins", async (email) => {
    const account = await server.account();
    await person(account, "dan@example.com", "viewer");
    const rejected = await logIn(behind(server, { "remote-email": email }));
    expectError(rejected, "unauthorized");
    expect(rejected.text).toContain("This login was rejected.");
  });

  test("of another name, a disabled person or a suspended account is no login", async () => {
    const account = await server.account();
    const { person_id } = await person(account, "fay@example.com", "viewer");
    expectError(await logIn(behind(server, { remote_email: "fay@example.com" })), "unauthorized");
    await account.patch(`/v1/people/${person_id}`, { disabled: true });
    expectError(await logIn(behind(server, { "remote-email": "fay@example.com" })), "unauthorized");
    await account.patch(`/v1/people/${person_id}`, { disabled: false });
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
    expectError(await logIn(behind(server, { "remote-email": "fay@example.com" })), "unauthorized");
  });

  test("opens the other accounts of its address, which is no new login", async () => {
    const [first, second] = [await server.account(), await server.account()];
    await person(first, "gus@example.com", "viewer");
    await person(second, "gus@example.com", "editor");
    const gus = behind(server, { "remote-email": "gus@example.com" });
    const opened = (await logIn(gus)).body;
    const [other] = opened["accounts"] as { user_id: string }[];
    expect(new Set([opened["user_id"], other?.user_id])).toEqual(new Set([first.userId, second.userId]));
    await server.clock.advance(HOUR_MS);
    // To the own account, too: nobody continues a session forever without a login.
    const stayed = await gus.post("/v1/session/account", { user_id: opened["user_id"] });
    expect(stayed.body["expires_at"]).toBe(opened["expires_at"] as string);
    const switched = await gus.post("/v1/session/account", { user_id: other?.user_id });
    expect(switched.body).toMatchObject({
      user_id: other?.user_id,
      method: "header",
      authenticated_at: opened["authenticated_at"],
    });
    expect(switched.body["expires_at"]).toBe(opened["expires_at"] as string);
    // A login again stays in the account of the session.
    expect((await logIn(gus)).body["user_id"]).toBe(other?.user_id);
    expectError(await gus.post("/v1/session/account", { user_id: "usr_none" }), "not_found");
  });
});

test("a header from an address that is no proxy is ignored and counted", async () => {
  const path = scratch.path("other.toml");
  writeFileSync(path, 'trust_proxy = ["10.0.0.1"]\n[login.header]\nemail = "Remote-Email"\n');
  const server = await startTestServer({ args: ["--config", path] });
  try {
    await person(server.operator, "ann@example.com", "owner");
    const eve = behind(server, { "remote-email": "ann@example.com" });
    expect(await metric(server)).toBe("0");
    expectError(await logIn(eve), "unauthorized");
    expect(await metric(server)).toBe("1");
    expect((await eve.get("/v1/session")).body["login"]).toEqual({ methods: [{ type: "key" }] });
  } finally {
    await server.stop();
  }
});

test("groups give roles in one account at every login", async () => {
  const path = scratch.path("groups.toml");
  writeFileSync(path, "");
  const server = await startTestServer({ manualClock: true, args: ["--config", path] });
  try {
    const account = await server.account({ email: "team@example.com" });
    await person(await server.account(), "ann@example.com", "viewer");
    const ann = await person(account, "ann@example.com", "viewer");
    writeFileSync(
      path,
      [
        'trust_proxy = ["127.0.0.1"]\n[login.header]\nemail = "Remote-Email"\ngroups = "Remote-Groups"',
        'groups_separator = "|"\naccount = "TEAM@example.com"\nroles = { "ops" = "admin", "dev" = "editor" }',
      ].join("\n"),
    );
    await server.restart();
    const client = server.client(account.key);
    const roleOf = async () => (await client.get(`/v1/people/${ann["person_id"]}`)).body["role"];
    const log = (groups: string | null) =>
      logIn(
        behind(server, {
          "remote-email": "ann@example.com",
          ...(groups === null ? {} : { "remote-groups": groups }),
        }),
      );
    expect((await log("dev|ops")).body).toMatchObject({ user_id: account.userId, accounts: [] });
    expect(await roleOf()).toBe("admin");
    expect((await newestOf(client)).actor).toMatchObject({ email: "ann@example.com" });
    expect((await log(" dev ")).status).toBe(201);
    expect(await roleOf()).toBe("editor");
    // Without the header, with no group that has a role, or with one that may be the client's own.
    for (const groups of [null, "", "guests", "ops|x, dev", "*"])
      expectError(await log(groups), "unauthorized");
    expect(await roleOf()).toBe("editor");
    await server.clock.advance(0);
    const { body } = await client.get("/v1/audit?action=session.refused");
    expect(body["entries"]).toMatchObject(
      Array(4).fill({ after: { method: "header", reason: "no group with a role" } }),
    );
  } finally {
    await server.stop();
  }
});

describe("a signed token in the header", () => {
  const keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const published: object[] = [{ ...keys.publicKey.export({ format: "jwk" }), kid: "k1", alg: "RS256" }];
  let issuer: Server;
  let requests = 0;
  let url = "";
  let server: TestServer;
  beforeAll(async () => {
    issuer = createServer((request, response) => {
      const isCerts = request.url === "/cdn-cgi/access/certs";
      if (isCerts) requests += 1;
      response.statusCode = isCerts ? 200 : 404;
      response.end(JSON.stringify({ keys: published }));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => issuer.once("listening", resolve));
    url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`;
    const path = scratch.path("token.toml");
    writeFileSync(
      path,
      `trust_proxy = ["127.0.0.1"]\n[login.header]\njwt = "Cf-Access-Jwt-Assertion"\nissuer = "${url}"\naudience = "aud-1"\n`,
    );
    server = await startTestServer({ manualClock: true, args: ["--config", path] });
    await person(server.operator, "ann@example.com", "owner");
  });
  afterAll(async () => {
    await server.stop();
    issuer.close();
  });

  const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = () => Math.floor(server.clock.now() / 1000);
  function token(
    claims: object = {},
    header: object = {},
    signer: (text: Buffer) => Buffer = (text) => sign("sha256", text, keys.privateKey),
  ): string {
    const all = {
      iss: url,
      aud: ["aud-1"],
      exp: now() + 3_600,
      iat: now(),
      email: "ann@example.com",
      ...claims,
    };
    const text = `${base64({ alg: "RS256", kid: "k1", ...header })}.${base64(all)}`;
    return `${text}.${signer(Buffer.from(text)).toString("base64url")}`;
  }
  const ecSigner = (key: KeyObject) => (text: Buffer) =>
    sign("sha256", text, { key, dsaEncoding: "ieee-p1363" });
  const attempt = (assertion: string) => {
    const browser = behind(server, {
      "cf-access-jwt-assertion": assertion,
      "remote-email": "ann@example.com",
    });
    return { browser, response: logIn(browser) };
  };

  test("logs in, and each request of the session needs a valid one", async () => {
    const { browser, response } = attempt(token());
    expect((await response).body).toMatchObject({ method: "header", person: { email: "ann@example.com" } });
    browser.headers["cf-access-jwt-assertion"] = token({ jti: "another" });
    expect((await browser.get("/v1/gate")).status).toBe(200);
    browser.headers["cf-access-jwt-assertion"] = token({ email: "bob@example.com" });
    expectError(await browser.get("/v1/gate"), "unauthorized");
    const short = token({ exp: now() + 100 });
    browser.headers["cf-access-jwt-assertion"] = short;
    expect((await browser.get("/v1/gate")).status).toBe(200);
    await server.clock.advance(161_000);
    expectError(await browser.get("/v1/gate"), "unauthorized");
  });

  test.each<[string, () => string]>([
    ["another issuer", () => token({ iss: "https://evil.example" })],
    ["another audience", () => token({ aud: ["aud-2"] })],
    ["several audiences", () => token({ aud: ["aud-1", "aud-2"] })],
    ["no audience", () => token({ aud: undefined })],
    ["an expired one", () => token({ exp: now() - 61 })],
    ["one without an end", () => token({ exp: undefined })],
    ["one of the future", () => token({ nbf: now() + 61 })],
    ["no address", () => token({ email: undefined })],
    ["no signature", () => `${token().split(".").slice(0, 2).join(".")}.`],
    ["alg none", () => token({}, { alg: "none" }, () => Buffer.from("x"))],
    ["a foreign key", () => token({}, { alg: "ES256" }, ecSigner(ec.privateKey))],
    [
      "a public key as a secret",
      () =>
        token(
          {},
          { alg: "HS256" },
          (text) =>
            new Bun.CryptoHasher("sha256", String(keys.publicKey.export({ type: "spki", format: "pem" })))
              .update(text)
              .digest() as Buffer,
        ),
    ],
    ["a critical extension", () => token({}, { crit: ["x"] })],
    ["text", () => "ann@example.com"],
  ])("rejects %s", async (_, make) => {
    expectError(await attempt(make()).response, "unauthorized");
  });

  test("its keys rotate: an unknown one is fetched, at most once a minute", async () => {
    await server.clock.advance(60_000);
    const before = requests;
    const rotated = () => token({}, { alg: "ES256", kid: "k2" }, ecSigner(ec.privateKey));
    expectError(await attempt(rotated()).response, "unauthorized");
    published.push({ ...ec.publicKey.export({ format: "jwk" }), kid: "k2" });
    expectError(await attempt(rotated()).response, "unauthorized");
    expect(requests).toBe(before + 1);
    await server.clock.advance(60_000);
    expect((await attempt(rotated()).response).status).toBe(201);
    expect(requests).toBe(before + 2);
  });
});
