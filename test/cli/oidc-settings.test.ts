import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initialConfig } from "../../src/cli/config-init.ts";
import { FIELDS, OIDC_PROVIDERS_MAX } from "../../src/config/oidc.ts";
import { loadConfig } from "../../src/config.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-oidc-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, "n.toml");

const LEAST = `name = "sso"\nissuer = "https://sso.example.com"\nclient_id = "ninefold"\n`;
const SECRET = `client_secret = "hunter2"\n`;

function load(toml: string, environment: Record<string, string> = {}) {
  writeFileSync(path, toml);
  return loadConfig(["--config", path], environment);
}

/** The message of a start with one provider. */
function mistake(lines: string, environment: Record<string, string> = {}): string {
  try {
    load(`[[login.oidc]]\n${lines}`, environment);
  } catch (error) {
    return (error as Error).message.replace(`${path}: `, "");
  }
  return "starts";
}

test("a provider has these settings, and these without them", () => {
  const [least] = load(`[[login.oidc]]\n${LEAST}${SECRET}`).oidc;
  expect(least).toEqual({
    name: "sso",
    label: "sso",
    issuer: "https://sso.example.com",
    clientId: "ninefold",
    clientSecret: "hunter2",
    scopes: ["openid", "email", "profile"],
    allowedDomains: [],
    allowedGroups: [],
    groupsClaim: "groups",
    roles: new Map(),
    create: false,
    trustEmail: false,
    account: null,
  });
  const all = `${LEAST}${SECRET}label = "Company"\nscopes = ["groups"]\nallowed_domains = ["Example.com"]\nallowed_groups = ["staff"]\ngroups_claim = "roles"\nroles = { "ops" = "admin", "*" = "viewer" }\ncreate = true\ntrust_email = true\naccount = "ops@example.com"\n`;
  const [full] = load(`[[login.oidc]]\n${all}`).oidc;
  expect(full).toMatchObject({
    label: "Company",
    scopes: ["openid", "groups"],
    allowedDomains: ["example.com"],
    allowedGroups: ["staff"],
    groupsClaim: "roles",
    roles: new Map([
      ["ops", "admin"],
      ["*", "viewer"],
    ]),
    create: true,
    trustEmail: true,
    account: "ops@example.com",
  });
});

test("the secret is in the file, in a file, or in a variable, which wins; it is never shown", () => {
  const other = join(folder, "secret");
  writeFileSync(other, "from a file\n");
  const secretOf = (lines: string, environment = {}) =>
    load(`[[login.oidc]]\n${lines}`, environment).oidc[0]?.clientSecret;
  expect(secretOf(`${LEAST}client_secret_file = "${other}"\n`)).toBe("from a file");
  expect(secretOf(LEAST + SECRET, { NINEFOLD_LOGIN_OIDC_SSO_CLIENT_SECRET: "from a variable" })).toBe(
    "from a variable",
  );
  expect(secretOf(LEAST, { NINEFOLD_LOGIN_OIDC_SSO_CLIENT_SECRET_FILE: other })).toBe("from a file");
  const dashed = LEAST.replace('"sso"', '"my-sso"');
  const config = load(`[[login.oidc]]\n${dashed}`, { NINEFOLD_LOGIN_OIDC_MY_SSO_CLIENT_SECRET: "hunter3" });
  const shown = config.settings.filter(({ name }) => name.startsWith("login.oidc."));
  expect(JSON.stringify(shown)).not.toContain("hunter3");
  expect(shown.find(({ name }) => name === "login.oidc.my-sso.client_secret")).toEqual({
    name: "login.oidc.my-sso.client_secret",
    value: "********",
    source: "variable",
    origin: "NINEFOLD_LOGIN_OIDC_MY_SSO_CLIENT_SECRET",
    secret: true,
  });
  expect(shown.find(({ name }) => name === "login.oidc.my-sso.issuer")).toMatchObject({
    source: "file",
    origin: path,
  });
  expect(shown.find(({ name }) => name === "login.oidc.my-sso.groups_claim")).toMatchObject({
    value: "groups",
    source: "default",
    origin: null,
  });
});

test("plain HTTP is for issuers within the own network", () => {
  const started = (issuer: string) => mistake(LEAST.replace("https://sso.example.com", issuer) + SECRET);
  for (const host of [
    "127.0.0.1:3000",
    "[::1]:3000",
    "10.1.2.3",
    "localhost:3000",
    "dex:5556",
    "sso.internal",
  ])
    expect(started(`http://${host}`)).toBe("starts");
  for (const host of ["sso.example.com", "8.8.8.8", "[2606:4700::1111]", "localhost.example.com"])
    expect(started(`http://${host}`)).toContain("must be an https URL");
});

describe("the start fails", () => {
  test.each([
    [
      "without a client secret",
      LEAST,
      "login.oidc 1: client_secret is missing: set it, client_secret_file or NINEFOLD_LOGIN_OIDC_SSO_CLIENT_SECRET.",
    ],
    ["with two of them", `${LEAST}${SECRET}client_secret_file = "x"\n`, "exclude each other"],
    ["without a client id", LEAST.replace(/client_id.*\n/, "") + SECRET, "client_id is missing"],
    ["without an issuer", LEAST.replace(/issuer.*\n/, "") + SECRET, "issuer is missing"],
    ["for an issuer that is no URL", LEAST.replace("https://", "ftp://") + SECRET, "is not a URL"],
    ["for an issuer with a query", LEAST.replace("example.com", "example.com/?a=1") + SECRET, "is not a URL"],
    ["for a name that is no part of a path", LEAST.replace('"sso"', '"S/O"') + SECRET, "must have 1 to 32"],
    [
      "for an unknown setting",
      `${LEAST}${SECRET}allowed_domain = []\n`,
      'there is no setting "allowed_domain". Did you mean allowed_domains?',
    ],
    [
      "for a wrong type",
      `${LEAST}${SECRET}create = "perhaps"\n`,
      "login.oidc 1: create must be true or false.",
    ],
    [
      "for an unknown role",
      `${LEAST}${SECRET}account = "usr_a"\nroles = { ops = "root" }\n`,
      'roles: "ops" must be one of',
    ],
    ["for roles without an account", `${LEAST}${SECRET}roles = { ops = "admin" }\n`, "roles needs account"],
    [
      "for groups without an account",
      `${LEAST}${SECRET}allowed_groups = ["ops"]\n`,
      "allowed_groups needs account",
    ],
    [
      "for create without an account",
      `${LEAST}${SECRET}create = true\nallowed_domains = ["example.com"]\n`,
      "create needs account",
    ],
    [
      "for create without a restriction",
      `${LEAST}${SECRET}create = true\naccount = "usr_a"\n`,
      "create needs allowed_domains or allowed_groups",
    ],
    [
      "for an account that is none",
      `${LEAST}${SECRET}account = "ops"\n`,
      "neither a user_id nor an e-mail address",
    ],
    ["for a domain that is none", `${LEAST}${SECRET}allowed_domains = ["@example.com"]\n`, "is not a domain"],
    ...["common", "organizations", "consumers"].map((tenant) => [
      `for trust_email with the issuer of ${tenant}`,
      `${LEAST.replace("sso.example.com", `login.microsoftonline.com/${tenant}/v2.0`)}${SECRET}trust_email = true\n`,
      "trust_email needs the issuer of one tenant",
    ]),
  ])("%s", (_, lines = "", message = "") => {
    expect(mistake(lines)).toContain(message);
  });

  test("for the same name twice, too many providers, and what is no table", () => {
    expect(mistake(`${LEAST}${SECRET}[[login.oidc]]\n${LEAST}${SECRET}`)).toContain(
      'two providers have the name "sso"',
    );
    const provider = (at: number) => LEAST.replace('"sso"', `"sso-${at}"`) + SECRET;
    const many = (count: number) =>
      Array.from({ length: count }, (_, at) => provider(at)).join("[[login.oidc]]\n");
    expect(mistake(many(OIDC_PROVIDERS_MAX))).toBe("starts");
    expect(mistake(many(OIDC_PROVIDERS_MAX + 1))).toContain("at most 5 providers");
    expect(() => load("[login]\noidc = 1\n")).toThrow("[[login.oidc]]");
  });

  test("for the variable of a provider that does not exist", () => {
    const environment = { NINEFOLD_LOGIN_OIDC_SSSO_CLIENT_SECRET: "x" };
    expect(mistake(LEAST + SECRET, environment)).toContain(
      "Did you mean NINEFOLD_LOGIN_OIDC_SSO_CLIENT_SECRET?",
    );
  });
});

test("the initial configuration shows every setting of a provider", () => {
  for (const name of [
    "label",
    "issuer",
    "client_secret_file",
    "scopes",
    "allowed_domains",
    "allowed_groups",
    "groups_claim",
    "roles",
    "create",
    "trust_email",
    "account",
  ])
    expect(initialConfig()).toContain(`# ${name} = `);
});

describe("the guide", () => {
  const guide = readFileSync(join(import.meta.dir, "../../docs/guides/single-sign-on.md"), "utf8");
  const blocks = [...guide.matchAll(/^ *```toml\n(.*?)^ *```$/gms)]
    .map(([, block = ""]) => block)
    .filter((block) => block.includes("[[login.oidc]]"));

  test.each(blocks.map((block) => [/name = "(.*?)"/.exec(block)?.[1] ?? "", block]))(
    "has settings for %s that a server starts with, and their redirect URI",
    (name, block) => {
      const other = join(folder, "guide");
      writeFileSync(other, "a secret");
      const { oidc } = load(block.replace(/client_secret_file = ".*"/, `client_secret_file = "${other}"`));
      expect(oidc.map((provider) => provider.name)).toEqual([name]);
      if (name !== "sso") expect(guide).toContain(`https://ninefold.example.com/login/oidc/${name}/callback`);
    },
  );

  test("names every setting", () => {
    expect(blocks.length).toBe(8);
    for (const name of Object.keys(FIELDS)) expect(guide).toContain(`\`${name}\``);
  });
});
