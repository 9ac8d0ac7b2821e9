import { describe, expect, test } from "bun:test";
import { OPTIONS, type Option, type OptionName } from "../../src/config/options.ts";
import { type Config, loadConfig } from "../../src/config.ts";
import { DEFAULT_TIERS } from "../../src/kernel/limits/tiers.ts";
import vectors from "../vectors/keys-and-signatures.json" with { type: "json" };
import { configFolder, refusal } from "./config-support.ts";

const { file } = configFolder();

const HOUR_MS = 60 * 60 * 1000;
const KEY = vectors.keys[0]?.key ?? "";

/** A value of an option as text and as TOML, and the part of the configuration that shows it. */
interface Sample {
  readonly text: string;
  readonly toml: string;
  readonly shown: Partial<Config>;
  /** Other variables that the option needs. */
  readonly beside?: Readonly<Record<string, string>>;
}

const quoted = (text: string) => JSON.stringify(text);
const textSample = (text: string, shown: Partial<Config>): Sample => ({ text, toml: quoted(text), shown });

/** Options that are not set by a flag. */
type PlacedOption = Exclude<OptionName, "config" | "accept_damaged_log">;

const CLUSTER = {
  url: "etcd://10.0.0.1,10.0.0.2:2380",
  cell: "main",
  leaseMs: 10_000,
  advertise: null,
  isTrusted: false,
  extraCaPath: null,
};
const HEADER = {
  email: "Remote-Email",
  name: null,
  groups: null,
  separator: ",",
  roles: new Map(),
  account: null,
  token: null,
};
const TOKEN = {
  header: "Cf-Access-Jwt-Assertion",
  issuer: "https://t.cloudflareaccess.com",
  audience: "aud",
};
/** Variables that make a header log people in. */
const WITH_HEADER = { NINEFOLD_LOGIN_HEADER_EMAIL: "Remote-Email", NINEFOLD_TRUST_PROXY: "10.0.0.1" };
const WITH_TOKEN = {
  NINEFOLD_TRUST_PROXY: "10.0.0.1",
  NINEFOLD_LOGIN_HEADER_JWT: TOKEN.header,
  NINEFOLD_LOGIN_HEADER_ISSUER: TOKEN.issuer,
  NINEFOLD_LOGIN_HEADER_AUDIENCE: TOKEN.audience,
};
/** A setting of the header, in addition to those that it needs. */
const headerSample = (
  text: string,
  header: object,
  beside: Readonly<Record<string, string>> = {},
): Sample => ({
  ...textSample(text, { login: { ...LOGIN, header: { ...HEADER, ...header } } }),
  beside: { ...WITH_HEADER, ...beside },
});
const tokenSample = (text: string): Sample => ({
  ...textSample(text, { login: { ...LOGIN, header: { ...HEADER, email: null, token: TOKEN } } }),
  beside: WITH_TOKEN,
});
const LOGIN = { keys: "all", emailLinks: false, header: null } as const;
const ARCHIVE = {
  url: "s3://bucket/prefix",
  endpoint: null,
  region: "us-east-1",
  accessKeyId: "id",
  secretAccessKey: "secret",
  intervalMs: 1_000,
  keepMs: 7 * 24 * HOUR_MS,
};
const ARCHIVE_KEYS = {
  NINEFOLD_ARCHIVE_ACCESS_KEY_ID: "id",
  NINEFOLD_ARCHIVE_SECRET_ACCESS_KEY: "secret",
};
const WITH_ARCHIVE = { ...ARCHIVE_KEYS, NINEFOLD_ARCHIVE: ARCHIVE.url };

/** The verifier key of a chain. */
const LOG =
  "ninefold/wc_guAzGTNSfV3ibRopzIp5tgMNJfCyUnjN+7888d71d+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";

const SAMPLES: Record<PlacedOption, Sample> = {
  host: textSample("0.0.0.0", { host: "0.0.0.0" }),
  port: { text: "8080", toml: "8080", shown: { port: 8080 } },
  data: textSample("/srv/ninefold", { dataFolder: "/srv/ninefold" }),
  ephemeral: { text: "true", toml: "true", shown: { ephemeral: true, port: 0, signup: "open" } },
  test_clock: {
    text: "1",
    toml: "true",
    shown: { testClock: true },
    beside: { NINEFOLD_EPHEMERAL: "true" },
  },
  json: { text: "true", toml: "true", shown: { json: true } },
  stop_with_stdin: { text: "1", toml: "true", shown: { stopWithStdin: true } },
  signup: textSample("free", { signup: "free" }),
  durability: textSample("normal", { durability: "normal" }),
  allow_private_targets: {
    text: "10.0.0.0/8, ::1/128,",
    toml: '["10.0.0.0/8", "::1/128"]',
    shown: { allowPrivateTargets: ["10.0.0.0/8", "::1/128"] },
  },
  apply: textSample("ninefold.yaml", { applyPath: "ninefold.yaml" }),
  extra_ca: textSample("ca.pem", { extraCaPath: "ca.pem" }),
  tls_cert: {
    ...textSample("cert.pem", { tls: { certPath: "cert.pem", keyPath: "key.pem" } }),
    beside: { NINEFOLD_TLS_KEY: "key.pem" },
  },
  tls_key: {
    ...textSample("other.pem", { tls: { certPath: "cert.pem", keyPath: "other.pem" } }),
    beside: { NINEFOLD_TLS_CERT: "cert.pem" },
  },
  smtp_url: {
    ...textSample("smtp://user:pw@mail:587", {
      smtp: { url: "smtp://user:pw@mail:587", from: "a@example.com" },
    }),
    beside: { NINEFOLD_MAIL_FROM: "a@example.com" },
  },
  mail_from: {
    ...textSample("b@example.com", { smtp: { url: "smtp://mail", from: "b@example.com" } }),
    beside: { NINEFOLD_SMTP_URL: "smtp://mail" },
  },
  operator_email: textSample("ops@example.com", { operatorEmail: "ops@example.com" }),
  cors_origins: {
    text: "https://a.example.com,http://localhost:5173",
    toml: '["https://a.example.com", "http://localhost:5173"]',
    shown: { corsOrigins: ["https://a.example.com", "http://localhost:5173"] },
  },
  portal_origins: {
    text: "https://app.example.com,https://*.example.com:8443",
    toml: '["https://app.example.com", "https://*.example.com:8443"]',
    shown: { portalOrigins: ["https://app.example.com", "https://*.example.com:8443"] },
  },
  observer_targets: {
    text: "192.0.2.1:53, [2001:db8::1]:443",
    toml: '["192.0.2.1:53", "[2001:db8::1]:443"]',
    shown: { observerTargets: ["192.0.2.1:53", "[2001:db8::1]:443"] },
  },
  rdap_bootstrap: textSample("https://rdap.example.com/dns.json", {
    rdapBootstrap: "https://rdap.example.com/dns.json",
  }),
  brand_color: textSample("#aa3300", { brand: { color: "#aa3300", logo: null, website_url: null } }),
  brand_logo: textSample("data:image/png;base64,AAAA", {
    brand: { color: null, logo: "data:image/png;base64,AAAA", website_url: null },
  }),
  brand_website: textSample("https://acme.example", {
    brand: { color: null, logo: null, website_url: "https://acme.example" },
  }),
  public_url: textSample("https://n.example.com", { publicUrl: "https://n.example.com" }),
  trust_proxy: { text: "10.0.0.1", toml: '["10.0.0.1"]', shown: { trustProxy: ["10.0.0.1"] } },
  metrics_access: textSample("operator", { metricsAccess: "operator" }),
  audit_retention_days: {
    text: "30",
    toml: "30",
    shown: { audit: { retentionDays: 30, keepsAddresses: true } },
  },
  audit_ip: textSample("off", { audit: { retentionDays: 365, keepsAddresses: false } }),
  dashboard: textSample("off", { dashboard: false }),
  mcp: { text: "1", toml: "true", shown: { mcp: true } },
  mcp_write: {
    text: "1",
    toml: "true",
    shown: { mcp: true, mcpWrite: true },
    beside: { NINEFOLD_MCP: "1" },
  },
  log_level: textSample("debug", { logLevel: "debug" }),
  log_format: textSample("text", { logFormat: "text" }),
  archive: {
    ...textSample("s3://other/prefix", { archive: { ...ARCHIVE, url: "s3://other/prefix" } }),
    beside: ARCHIVE_KEYS,
  },
  archive_endpoint: {
    ...textSample("http://10.0.0.9:9000", { archive: { ...ARCHIVE, endpoint: "http://10.0.0.9:9000" } }),
    beside: WITH_ARCHIVE,
  },
  archive_region: {
    ...textSample("eu-central-1", { archive: { ...ARCHIVE, region: "eu-central-1" } }),
    beside: WITH_ARCHIVE,
  },
  archive_interval: {
    text: "0.2",
    toml: "0.2",
    shown: { archive: { ...ARCHIVE, intervalMs: 200 } },
    beside: WITH_ARCHIVE,
  },
  archive_keep: {
    text: "30",
    toml: "30",
    shown: { archive: { ...ARCHIVE, keepMs: 30 * 24 * HOUR_MS } },
    beside: WITH_ARCHIVE,
  },
  archive_access_key_id: {
    ...textSample("other", { archive: { ...ARCHIVE, accessKeyId: "other" } }),
    beside: { NINEFOLD_ARCHIVE: ARCHIVE.url, NINEFOLD_ARCHIVE_SECRET_ACCESS_KEY: "secret" },
  },
  archive_secret_access_key: {
    ...textSample("other", { archive: { ...ARCHIVE, secretAccessKey: "other" } }),
    beside: { NINEFOLD_ARCHIVE: ARCHIVE.url, NINEFOLD_ARCHIVE_ACCESS_KEY_ID: "id" },
  },
  backup_dir: textSample("/backups", { backups: { folder: "/backups", cron: "0 3 * * *", keep: 7 } }),
  backup_cron: {
    ...textSample("*/5 * * * *", { backups: { folder: "/backups", cron: "*/5 * * * *", keep: 7 } }),
    beside: { NINEFOLD_BACKUP_DIR: "/backups" },
  },
  backup_keep: {
    text: "30",
    toml: "30",
    shown: { backups: { folder: "/backups", cron: "0 3 * * *", keep: 30 } },
    beside: { NINEFOLD_BACKUP_DIR: "/backups" },
  },
  commit_log: textSample(CLUSTER.url, { cluster: CLUSTER }),
  commit_log_trusted: {
    text: "true",
    toml: "true",
    shown: { cluster: { ...CLUSTER, isTrusted: true } },
    beside: { NINEFOLD_COMMIT_LOG: CLUSTER.url },
  },
  cell: {
    ...textSample("eu-1", { cluster: { ...CLUSTER, cell: "eu-1" } }),
    beside: { NINEFOLD_COMMIT_LOG: CLUSTER.url },
  },
  lease_seconds: {
    text: "3",
    toml: "3",
    shown: { cluster: { ...CLUSTER, leaseMs: 3_000 } },
    beside: { NINEFOLD_COMMIT_LOG: CLUSTER.url },
  },
  advertise: {
    ...textSample("https://n1.internal:9909", {
      cluster: { ...CLUSTER, advertise: "https://n1.internal:9909" },
    }),
    beside: { NINEFOLD_COMMIT_LOG: CLUSTER.url },
  },
  master_key: textSample("ab".repeat(32), { masterKey: "ab".repeat(32) }),
  operator_key: textSample(KEY, { operatorKey: KEY }),
  rotation_grace_hours: { text: "24", toml: "24", shown: { rotationGraceMs: 24 * HOUR_MS } },
  breaker_failures: {
    text: "3",
    toml: "3",
    shown: { relay: { breakerFailures: 3, payloadRetentionMs: 168 * HOUR_MS } },
  },
  checkpoint_seconds: { text: "60", toml: "60", shown: { checkpointDelayMs: 60_000 } },
  paypal: {
    text: "a.example,b.example:8443",
    toml: '["a.example", "b.example:8443"]',
    shown: { certificateHosts: { paypal: ["a.example", "b.example:8443"], sns: [] } },
  },
  sns: {
    text: "a.example:8443",
    toml: '["a.example:8443"]',
    shown: { certificateHosts: { paypal: [], sns: ["a.example:8443"] } },
  },
  witness_name: textSample("example.com/witness", { peerWitness: { name: "example.com/witness", logs: [] } }),
  witnessed: {
    text: LOG,
    toml: `["${LOG}"]`,
    shown: { peerWitness: { name: "example.com/witness", logs: [LOG] } },
    beside: { NINEFOLD_NOTARY_WITNESS_NAME: "example.com/witness" },
  },
  login_keys: textSample("operator", { login: { ...LOGIN, keys: "operator" } }),
  login_email_links: { text: "true", toml: "true", shown: { login: { ...LOGIN, emailLinks: true } } },
  header_email: headerSample("Remote-Email", {}),
  header_name: headerSample("Remote-Name", { name: "Remote-Name" }),
  header_groups: headerSample("Remote-Groups", { groups: "Remote-Groups" }),
  header_groups_separator: headerSample("|", { separator: "|" }),
  header_roles: {
    ...headerSample(
      "cn=ops=admin,*=viewer",
      {
        groups: "Remote-Groups",
        account: "a@example.com",
        roles: new Map([
          ["cn=ops", "admin"],
          ["*", "viewer"],
        ]),
      },
      { NINEFOLD_LOGIN_HEADER_GROUPS: "Remote-Groups", NINEFOLD_LOGIN_HEADER_ACCOUNT: "a@example.com" },
    ),
    toml: '{ "cn=ops" = "admin", "*" = "viewer" }',
  },
  header_account: headerSample("usr_1", { account: "usr_1" }),
  header_jwt: tokenSample(TOKEN.header),
  header_issuer: tokenSample(TOKEN.issuer),
  header_audience: tokenSample(TOKEN.audience),
  payload_retention_hours: {
    text: "0",
    toml: "0",
    shown: { relay: { breakerFailures: 10, payloadRetentionMs: 0 } },
  },
};

const sampled = OPTIONS.filter(({ name, flagOnly }) => name !== "config" && flagOnly !== true);

function sampleOf(option: Option): Sample {
  return SAMPLES[option.name as PlacedOption];
}

/** The name of an option within its section. */
function keyOf({ fileName }: Option): string {
  return fileName.split(".").at(-1) ?? fileName;
}

/** The option as a line of the configuration file, in its section. */
function tomlLine(option: Option, value: string): string {
  const section = option.section === undefined ? "" : `[${option.section}]\n`;
  return `${section}${keyOf(option)} = ${value}\n`;
}

test.each([
  [{ WITNESSED: LOG }, "notary.witnessed needs notary.witness_name"],
  [{ WITNESS_NAME: "a b" }, 'notary.witness_name: "a b" must have'],
  [{ WITNESS_NAME: "a+b" }, 'notary.witness_name: "a+b" must have'],
  [{ WITNESS_NAME: "w", WITNESSED: `${LOG},x` }, 'notary.witnessed: "x" is not the vkey of a chain'],
  [
    {
      WITNESS_NAME: "w",
      WITNESSED: "ninefold/witness-1+84c42f62+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK",
    },
    "is not the vkey of a chain",
  ],
])("a witness that cannot work is rejected: %p", (given, message) => {
  const environment = Object.entries(given).map(([name, value]) => [`NINEFOLD_NOTARY_${name}`, value]);
  expect(refusal(() => loadConfig([], Object.fromEntries(environment)))).toContain(message);
});

describe("headers of a proxy log in", () => {
  test.each([
    [{ TRUST_PROXY: "" }, "login.header needs trust_proxy"],
    [{ TRUST_PROXY: "0.0.0.0/0" }, "trust_proxy is wider than /8"],
    [{ TRUST_PROXY: "10.0.0.0/8,192.168.0.1" }, "trust_proxy is wider than /8"],
    [{ TRUST_PROXY: "2000::/15" }, "trust_proxy is wider than /16"],
    [{ TRUST_PROXY: "::/0" }, "trust_proxy is wider than /16"],
    [{ LOGIN_HEADER_EMAIL: "", LOGIN_HEADER_NAME: "Remote-Name" }, "needs either email or jwt"],
    [{ LOGIN_HEADER_JWT: "Assertion" }, "needs either email or jwt"],
    [{ LOGIN_HEADER_EMAIL: "", LOGIN_HEADER_JWT: "Assertion" }, "needs login.header.issuer"],
    [{ LOGIN_HEADER_ISSUER: "https://a.example" }, "need login.header.jwt"],
    [{ LOGIN_HEADER_EMAIL: "Remote_Email" }, "is not the name of a header"],
    [{ LOGIN_HEADER_ROLES: "ops=admin" }, "needs login.header.groups"],
    [{ LOGIN_HEADER_ROLES: "ops=admin", LOGIN_HEADER_GROUPS: "Remote-Groups" }, "needs login.header.account"],
    [
      { LOGIN_HEADER_ROLES: "ops=king", LOGIN_HEADER_GROUPS: "Remote-Groups" },
      'login.header.roles: "ops=king"',
    ],
  ])("not with %p", (given, message) => {
    const entries = Object.entries(given).map(([name, value]) => [`NINEFOLD_${name}`, value]);
    const environment = { ...WITH_HEADER, ...Object.fromEntries(entries) };
    expect(refusal(() => loadConfig([], environment))).toContain(message);
  });

  test.each([
    "10.0.0.0/8",
    "10.0.0.0/8,10.1.0.0/16,10.0.0.0/8",
    "10.0.0.0/9,10.128.0.0/9,2000::/16",
    "::ffff:10.0.0.0/104",
  ])("from %s", (ranges) => {
    const config = loadConfig([], { ...WITH_HEADER, NINEFOLD_TRUST_PROXY: ranges });
    expect(config.login.header).toEqual(HEADER);
  });
});

describe("people of the configuration file", () => {
  test("are read with roles for the account or in projects", () => {
    const path = file(`
[[people]]
email = "Ann@example.com"
role = "owner"
name = "Ann"

[[people]]
email = "bob@example.com"
account = "usr_1"
projects = [{ project_id = "proj_1", role = "editor" }]
`);
    const { people, settings } = loadConfig(["--config", path], {});
    expect(people).toEqual([
      { email: "Ann@example.com", name: "Ann", role: "owner", projects: [], account: null },
      {
        email: "bob@example.com",
        name: null,
        role: null,
        projects: [{ projectId: "proj_1", role: "editor" }],
        account: "usr_1",
      },
    ]);
    expect(settings.filter(({ name }) => name.startsWith("people."))).toMatchObject([
      { name: "people.Ann@example.com", value: "owner", source: "file", origin: path },
      { name: "people.usr_1.bob@example.com", value: ["proj_1=editor"] },
    ]);
  });

  test.each([
    ['people = "ann"', "people must be tables"],
    ['[[people]]\nemail = "ann"\nrole = "owner"', "email must be an e-mail address"],
    ['[[people]]\nemail = "a@b.c"', "needs either role or projects"],
    ['[[people]]\nemail = "a@b.c"\nrole = "king"', "role must be one of"],
    ['[[people]]\nemail = "a@b.c"\nrole = "owner"\nrolle = 1', 'there is no field "rolle"'],
    ['[[people]]\nemail = "a@b.c"\nprojects = []', "projects must be a list"],
    [
      '[[people]]\nemail = "a@b.c"\nprojects = [{ project_id = "p", role = "owner" }]',
      "each of projects needs",
    ],
    [
      '[[people]]\nemail = "a@b.c"\nrole = "owner"\n[[people]]\nemail = "A@B.C"\nrole = "viewer"',
      "has A@B.C twice",
    ],
  ])("not with %p", (text, message) => {
    expect(refusal(() => loadConfig(["--config", file(text)], {}))).toContain(message);
  });
});

test("--accept-damaged-log is a flag only, not a variable or an entry of the file", () => {
  expect(loadConfig(["--accept-damaged-log"], {}).acceptDamagedLog).toBe(true);
  expect(loadConfig([], { NINEFOLD_ACCEPT_DAMAGED_LOG: "true" }).acceptDamagedLog).toBe(false);
  const path = file("accept_damaged_log = true");
  expect(refusal(() => loadConfig(["--config", path], {}))).toContain(
    'there is no option "accept_damaged_log"',
  );
});

describe("defaults", () => {
  test("of a plain start", () => {
    expect(loadConfig([], {})).toEqual({
      settings: expect.any(Array),
      values: expect.any(Object),
      host: "127.0.0.1",
      port: 9909,
      dataFolder: "./ninefold-data",
      ephemeral: false,
      testClock: false,
      json: false,
      stopWithStdin: false,
      signup: "closed",
      durability: "full",
      acceptDamagedLog: false,
      applyPath: null,
      allowPrivateTargets: [],
      extraCaPath: null,
      tls: null,
      smtp: null,
      operatorEmail: null,
      observerTargets: [],
      rdapBootstrap: null,
      publicUrl: null,
      brand: { color: null, logo: null, website_url: null },
      corsOrigins: [],
      portalOrigins: [],
      trustProxy: [],
      metricsAccess: "loopback",
      audit: { retentionDays: 365, keepsAddresses: true },
      optionsSet: [],
      dashboard: true,
      login: { keys: "all", emailLinks: false, header: null },
      people: [],
      mcp: false,
      mcpWrite: false,
      logLevel: "info",
      logFormat: "json",
      masterKey: null,
      operatorKey: null,
      rotationGraceMs: 168 * HOUR_MS,
      checkpointDelayMs: 1_000,
      peerWitness: null,
      relay: { breakerFailures: 10, payloadRetentionMs: 168 * HOUR_MS },
      certificateHosts: { paypal: [], sns: [] },
      backups: null,
      cluster: null,
      archive: null,
      tiers: DEFAULT_TIERS,
      oidc: [],
    });
  });

  test.each([
    ["--ephemeral", "commit_log cannot be used with --ephemeral."],
    ["--advertise=n1:9909", "advertise must be a URL such as https://n1.internal:9909."],
    ["--cell=A b", "cell must be 1 to 40 lower-case letters, digits and hyphens."],
    ["--commit-log=redis://h", "commit_log must be a URL such as etcd://"],
    ["--commit-log=etcd://", "commit_log must be a URL such as etcd://"],
  ])("of a cluster reject %s", (flag, message) => {
    expect(refusal(() => loadConfig(["--commit-log", CLUSTER.url, flag], {}))).toContain(message);
  });

  test("of an ephemeral start, each of which can be overridden", () => {
    expect(loadConfig(["--ephemeral"], {})).toMatchObject({
      port: 0,
      signup: "open",
      durability: "none",
      allowPrivateTargets: ["loopback"],
    });
    const flags = ["--port", "8080", "--signup", "closed", "--durability", "full"];
    const given = loadConfig(["--ephemeral", ...flags, "--allow-private-targets", "10.0.0.0/8"], {});
    expect(given).toMatchObject({
      port: 8080,
      signup: "closed",
      durability: "full",
      allowPrivateTargets: ["10.0.0.0/8"],
    });
    expect(loadConfig(["--ephemeral", "--allow-private-targets", ""], {}).allowPrivateTargets).toEqual([]);
  });
});

describe("every option", () => {
  test.each(sampled.filter(({ flag }) => flag !== null))("as a flag: $name", (option) => {
    const { text, shown, beside } = sampleOf(option);
    const args = option.schema.type === "boolean" ? [String(option.flag)] : [String(option.flag), text];
    expect(loadConfig(args, beside ?? {})).toMatchObject(shown);
  });

  test.each(sampled)("in the environment: $name", (option) => {
    const { text, shown, beside } = sampleOf(option);
    expect(loadConfig([], { ...beside, [option.variable]: text })).toMatchObject(shown);
  });

  test.each(sampled)("in the configuration file: $name", (option) => {
    const { toml, shown, beside } = sampleOf(option);
    const path = file(tomlLine(option, toml));
    expect(loadConfig(["--config", path], beside ?? {})).toMatchObject(shown);
  });

  test("all of them in one file, with sections last", () => {
    // A commit log, and the token of a header, exclude some of the others.
    const excluding = ["commit_log", "header_jwt", "header_issuer", "header_audience"];
    const together = sampled.filter(({ name }) => !excluding.includes(name));
    const sections = Map.groupBy(together, ({ section = "" }) => section);
    const tables = [...sections].map(([section, options]) => {
      const lines = options.map((option) => `${keyOf(option)} = ${sampleOf(option).toml}\n`);
      return `${section === "" ? "" : `[${section}]\n`}${lines.join("")}`;
    });
    const config = loadConfig([], { NINEFOLD_CONFIG: file(tables.join("")) });
    expect(config).toMatchObject({
      host: "0.0.0.0",
      port: 8080,
      testClock: true,
      rotationGraceMs: 24 * HOUR_MS,
    });
    expect(config.tls).toEqual({ certPath: "cert.pem", keyPath: "other.pem" });
    expect(config.smtp).toEqual({ url: "smtp://user:pw@mail:587", from: "b@example.com" });
  });

  test("lists in the file can be one text", () => {
    const path = file('cors_origins = "https://a.example.com, https://b.example.com"\n');
    expect(loadConfig(["--config", path], {}).corsOrigins).toEqual([
      "https://a.example.com",
      "https://b.example.com",
    ]);
  });
});

describe("precedence: flags, then the environment, then the file, then the default", () => {
  const path = file(
    'port = 1001\nsignup = "free"\njson = true\ncors_origins = ["https://file.example.com"]\n',
  );

  test("the file over the default", () => {
    expect(loadConfig(["--config", path], {})).toMatchObject({
      port: 1001,
      signup: "free",
      json: true,
      corsOrigins: ["https://file.example.com"],
      durability: "full",
    });
  });

  const environment = {
    NINEFOLD_CONFIG: path,
    NINEFOLD_PORT: "1002",
    NINEFOLD_JSON: "false",
    NINEFOLD_CORS_ORIGINS: "https://environment.example.com",
  };

  test("the environment over the file, one option at a time; lists are replaced, not joined", () => {
    expect(loadConfig([], environment)).toMatchObject({
      port: 1002,
      signup: "free",
      json: false,
      corsOrigins: ["https://environment.example.com"],
    });
  });

  test("flags over both", () => {
    expect(loadConfig(["--port", "1003", "--json", "--signup=open"], environment)).toMatchObject({
      port: 1003,
      signup: "open",
      json: true,
      corsOrigins: ["https://environment.example.com"],
    });
  });

  test("a file named by a flag wins over one named by the environment", () => {
    expect(loadConfig(["--config", file("port = 1004\n")], { NINEFOLD_CONFIG: path }).port).toBe(1004);
  });

  test("empty variables, variables of other programs, of Kubernetes and of the client are ignored", () => {
    const config = loadConfig([], {
      NINEFOLD_PORT: "",
      NINEFOLD_SIGNUP: "",
      NINEFOLD_PROT: "",
      PORT: "1",
      NINEFOLD_SERVICE_HOST: "10.0.0.1",
      NINEFOLD_SERVICE_PORT: "9909",
      NINEFOLD_PORT_9909_TCP_ADDR: "10.0.0.1",
      NINEFOLD_URL: "http://127.0.0.1:9909",
    });
    expect(config).toEqual(loadConfig([], {}));
  });

  test("values that Kubernetes sets for services named ninefold are ignored, and named where they replace an option", () => {
    const environment = {
      NINEFOLD_PORT: "tcp://10.43.12.9:9909",
      NINEFOLD_PORT_9909_TCP: "tcp://10.43.12.9:9909",
      NINEFOLD_PORT_9909_TCP_PROTO: "tcp",
      NINEFOLD_SERVICE_PORT_HTTP: "9909",
      NINEFOLD_HEADLESS_PORT: "tcp://10.43.12.10:9909",
      NINEFOLD_HEADLESS_SERVICE_HOST: "10.43.12.10",
      NINEFOLD_HEADLESS_PORT_9909_TCP_ADDR: "10.43.12.10",
    };
    expect(loadConfig([], environment)).toEqual({
      ...loadConfig([], {}),
      ignoredVariables: ["NINEFOLD_PORT"],
    });
    expect(loadConfig([], { ...environment, NINEFOLD_CONFIG: file("port = 1004\n") }).port).toBe(1004);
  });

  test("a host can be an IPv6 address in brackets", () => {
    expect(loadConfig(["--host", "[::1]"], {}).host).toBe("::1");
  });

  test.each([
    ["NINEFOLD_PROT", "NINEFOLD_PROT: there is no such option. Did you mean NINEFOLD_PORT?"],
    ["NINEFOLD_SOMETHING_ELSE", "NINEFOLD_SOMETHING_ELSE: there is no such option."],
  ])("the unknown variable %s is an error", (name, message) => {
    expect(refusal(() => loadConfig([], { [name]: "1" }))).toBe(message);
  });

  test("an unknown option in the file is an error with its line and the nearest option", () => {
    const misspelt = file('# Comment\nhost = "0.0.0.0"\nprot = 1\n');
    expect(refusal(() => loadConfig(["--config", misspelt], {}))).toBe(
      `${misspelt}:3: there is no option "prot". Did you mean port?`,
    );
    const inSection = file("port = 1\n[relay]\nbreaker_failure = 5\n");
    expect(refusal(() => loadConfig(["--config", inSection], {}))).toBe(
      `${inSection}:3: there is no option "relay.breaker_failure". Did you mean relay.breaker_failures?`,
    );
  });
});

describe("secrets", () => {
  const secret = OPTIONS.filter(({ secret }) => secret === true);

  test("are these options", () => {
    expect(secret.map(({ name }) => name)).toEqual([
      "smtp_url",
      "commit_log",
      "archive_access_key_id",
      "archive_secret_access_key",
      "master_key",
      "operator_key",
    ]);
  });

  test.each(secret)("$name can be read from the file named by its _FILE variable", (option) => {
    const { text, shown, beside } = sampleOf(option);
    const name = `${option.variable}_FILE`;
    expect(loadConfig([], { ...beside, [name]: file(`${text}\n`) })).toMatchObject(shown);
    expect(refusal(() => loadConfig([], { ...beside, [name]: "/nowhere/secret" }))).toContain(
      `${name}: /nowhere/secret cannot be read`,
    );
  });

  test("the variable itself wins over its _FILE", () => {
    const environment = { NINEFOLD_MASTER_KEY: "direct", NINEFOLD_MASTER_KEY_FILE: file("from the file") };
    expect(loadConfig([], environment).masterKey).toBe("direct");
  });

  test("options that are not secret have no _FILE variable", () => {
    expect(refusal(() => loadConfig([], { NINEFOLD_PORT_FILE: file("1234") }))).toContain(
      "NINEFOLD_PORT_FILE",
    );
  });

  test.each(["--master-key", "--operator-key", "--rotation-grace-hours"])(
    "%s is not available as a flag",
    (flag) => {
      expect(refusal(() => loadConfig([flag, "x"], {}))).toContain(flag);
    },
  );

  test("a malformed operator key is rejected without repeating it", () => {
    const message = refusal(() => loadConfig([], { NINEFOLD_OPERATOR_KEY: `${KEY}0` }));
    expect(message).toContain("NINEFOLD_OPERATOR_KEY is not a well-formed platform key");
    expect(message).not.toContain(KEY);
  });
});
