import { describe, expect, test } from "bun:test";
import { TEXT_BYTES_MAX } from "../../src/config/sources.ts";
import { loadConfig } from "../../src/config.ts";
import { StartupError } from "../../src/kernel/errors.ts";
import { DEFAULT_TIERS } from "../../src/kernel/limits/tiers.ts";
import { configFolder, refusal } from "./config-support.ts";

const HOUR_MS = 60 * 60 * 1000;
const { file } = configFolder();

describe("rejected options, each with an error of one line", () => {
  test.each([
    [["--nonsense"], "--nonsense"],
    [["--port"], "--port"],
    [["stray"], "stray"],
    [["--json=yes"], "--json"],
    [["--port", "many"], "--port must be a port from 0 to 65535."],
    [["--port", "-1"], "--port"],
    [["--port", "65536"], "--port must be a port from 0 to 65535."],
    [["--port", "80.5"], "--port must be a port from 0 to 65535."],
    [["--port", ""], "--port must be a port from 0 to 65535."],
    [["--signup", "everyone"], "--signup must be one of closed, free, open."],
    [["--durability", "off"], "--durability must be one of full, normal, none."],
    [["--durability", "none"], "--durability none needs --ephemeral: a power cut would damage the database."],
    [["--log-level", "loud"], "--log-level must be one of debug, info, warn, error."],
    [["--host", ""], "--host must be a text."],
    ...["http://x", "0.0.0.0:80", "a b", " 127.0.0.1", "::1%lo", "999.1.1.1", "/run/x.sock", "[x]:1"].map(
      (host): [string[], string] => [["--host", host], `host: "${host}" is not an address such as 127.0.0.1`],
    ),
    [["--test-clock"], "--test-clock needs --ephemeral."],
    [["--tls-cert", "a.pem"], "tls_cert and tls_key go together: one of them is missing."],
    [["--tls-key", "a.pem"], "tls_cert and tls_key go together: one of them is missing."],
    [["--smtp-url", "smtp://mail"], "smtp_url and mail_from go together: one of them is missing."],
    [["--mail-from", "a@example.com"], "smtp_url and mail_from go together: one of them is missing."],
    [["--operator-email", "ops@"], 'operator_email: "ops@" is not an e-mail address.'],
    [["--operator-email", `${"a".repeat(250)}@b.de`], "is not an e-mail address."],
    ...["1.1.1.1", "1.1.1.1:0", "1.1.1.1:65536", "http://a:80", "a b:80", "user@a:80", ":80"].map(
      (target): [string[], string] => [
        ["--observer-targets", target],
        `observer_targets: "${target}" is not a host and port such as 192.0.2.1:53.`,
      ],
    ),
    [
      ["--observer-targets", Array.from({ length: 6 }, (_, one) => `10.0.0.${one}:53`).join()],
      "observer_targets: at most 5 hosts can be named.",
    ],
    [["--cors-origins", "*"], 'cors_origins: "*" is not an origin such as https://app.example.com.'],
    [["--cors-origins", "https://a.example.com/"], "is not an origin"],
    [["--cors-origins", "a.example.com"], "is not an origin"],
    ...[
      "*",
      "https://*",
      "https://a.example.com/",
      "https://a.example.com; script-src *",
      "'self'",
      "a.example.com",
    ].map((origin): [string[], string] => [
      ["--portal-origins", origin],
      `portal_origins: "${origin}" is not an origin such as https://app.example.com.`,
    ]),
    [["--config", "/nowhere/ninefold.toml"], "--config: /nowhere/ninefold.toml cannot be read"],
  ])("%j", (args, message) => {
    const text = refusal(() => loadConfig(args, {}));
    expect(text).toContain(message);
    expect(text).not.toContain("\n");
  });

  test.each([
    [{ NINEFOLD_PORT: "http" }, "NINEFOLD_PORT must be a port from 0 to 65535."],
    [{ NINEFOLD_JSON: "yes" }, "NINEFOLD_JSON must be true or false."],
    [
      { NINEFOLD_KEYS_ROTATION_GRACE_HOURS: "week" },
      "NINEFOLD_KEYS_ROTATION_GRACE_HOURS must be a number of hours",
    ],
    [
      { NINEFOLD_KEYS_ROTATION_GRACE_HOURS: "-1" },
      "NINEFOLD_KEYS_ROTATION_GRACE_HOURS must be a number of hours",
    ],
  ])("%j", (environment, message) => {
    expect(refusal(() => loadConfig([], environment))).toContain(message);
  });

  test.each([
    ["prot = 8080", 'there is no option "prot"'],
    ['config = "other.toml"', 'there is no option "config"'],
    ["rotation_grace_hours = 24", 'there is no option "rotation_grace_hours"'],
    ["[keys]\nrotation = 24", 'there is no option "keys.rotation"'],
    ["[server]\nport = 8080", 'there is no option "server"'],
    ["keys = 24", "keys must be a table"],
    ["port = 8080.5", "must be a port from 0 to 65535."],
    ["port = true", "must be a port from 0 to 65535."],
    ["json = 1", "must be true or false."],
    ["cors_origins = [1]", "must be a list of texts."],
    ["host = 127", "must be a text."],
    ["port = = 8080", "is not a TOML file"],
    ["[keys]\nrotation_grace_hours = 87601", "must be a number of hours from 0 to 87600."],
  ])("in the file: %j", (toml, message) => {
    const path = file(`${toml}\n`);
    const text = refusal(() => loadConfig(["--config", path], {}));
    expect(text).toContain(message);
    expect(text).toContain(path);
  });
});

describe("limits", () => {
  test.each(["0", "65535"])("port %s", (port) => {
    expect(loadConfig(["--port", port], {}).port).toBe(Number(port));
  });

  test.each(["0", "87600"])("grace of %s hours", (hours) => {
    const config = loadConfig([], { NINEFOLD_KEYS_ROTATION_GRACE_HOURS: hours });
    expect(config.rotationGraceMs).toBe(Number(hours) * HOUR_MS);
  });
});

describe("tiers", () => {
  const withTiers = (toml: string) => loadConfig(["--config", file(toml)], {}).tiers;

  test("any limit of any tier can be overridden; the others stay", () => {
    const tiers = withTiers(
      "[tiers.free]\nrequests_per_minute = 5\nmonthly_credits = 0\n[tiers.pro]\nevents_per_bucket = 7\n",
    );
    expect(tiers.free).toEqual({
      ...DEFAULT_TIERS.free,
      requestsPerMinute: 5,
      // Ten times the limit of a key, unless it is set itself.
      accountRequestsPerMinute: 50,
      monthlyCredits: 0,
    });
    expect(tiers.pro).toEqual({ ...DEFAULT_TIERS.pro, eventsPerBucket: 7 });
    expect(tiers.starter).toEqual(DEFAULT_TIERS.starter);
    expect(DEFAULT_TIERS.free.requestsPerMinute).toBe(60);
  });

  test("every limit has a name in the file", () => {
    const names = Object.keys(DEFAULT_TIERS.free).map((name) =>
      name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
    );
    const tiers = withTiers(
      `[tiers.scale]\n${names.map((name, index) => `${name} = ${index + 1}`).join("\n")}\n`,
    );
    expect(Object.values(tiers.scale)).toEqual(names.map((_, index) => index + 1));
  });

  test.each([
    ["[tiers.gold]\nbuckets = 1", 'there is no tier "gold": free, starter, pro, scale, unlimited.'],
    // Names of properties that every object has are neither tiers nor limits.
    ["[tiers.constructor]\nbuckets = 1", 'there is no tier "constructor"'],
    ["[tiers.free]\ntoString = 1", 'tiers.free: there is no figure "toString".'],
    ["[tiers.free]\nbukets = 1", 'tiers.free: there is no figure "bukets".'],
    [
      "# a\n[tiers.free]\n\nbukets = 1",
      '.toml:4: tiers.free: there is no figure "bukets". Did you mean buckets?',
    ],
    ["\n[tiers.fre]\nbuckets = 1", '.toml:2: there is no tier "fre"'],
    ["[tiers.fre]\nbuckets = 1", "Did you mean free?"],
    ["[tiers.pro]\n[tiers.free]\nbuckets = 0", ":3: tiers.free.buckets must be an integer from 1"],
    ["[tiers.free]\nbuckets = 0", "tiers.free.buckets must be an integer from 1 to 9007199254740991."],
    ["[tiers.free]\nbuckets = 1.5", "tiers.free.buckets must be an integer"],
    ["[tiers.free]\nmonthly_credits = -1", "tiers.free.monthly_credits must be an integer from 0"],
    ['[tiers.free]\nbuckets = "many"', "tiers.free.buckets must be an integer"],
    ["tiers = 5", "tiers must be tables such as [tiers.free]."],
    ["[tiers]\nfree = 5", "tiers.free must be a table."],
  ])("%j is rejected", (toml, message) => {
    expect(refusal(() => withTiers(`${toml}\n`))).toContain(message);
  });
});

test("a configuration file is read up to its maximum size", () => {
  const padded = (bytes: number) => file("port = 8080\n".padEnd(bytes, "#"));
  expect(loadConfig([`--config=${padded(TEXT_BYTES_MAX)}`], {}).port).toBe(8080);
  const larger = padded(TEXT_BYTES_MAX + 1);
  expect(() => loadConfig([`--config=${larger}`], {})).toThrow(
    new StartupError(`--config: ${larger} is larger than ${TEXT_BYTES_MAX} bytes: that is another file.`),
  );
});
