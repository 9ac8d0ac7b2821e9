import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OPTIONS } from "../../src/config/options.ts";
import { FIGURE_NAMES } from "../../src/config/values.ts";
import { TIER_NAMES } from "../../src/kernel/limits/tiers.ts";
import vectors from "../vectors/keys-and-signatures.json" with { type: "json" };
import { ninefold } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const KEY = vectors.keys[0]?.key ?? "";

interface Shown {
  readonly name: string;
  readonly value: unknown;
  readonly source: string;
  readonly origin: string | null;
}

async function print(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<Map<string, Shown>> {
  const { code, out, error } = await ninefold(["config", "print", "--json", ...args], {
    environment,
    cwd: folder,
  });
  expect([code, error]).toEqual([0, ""]);
  const { settings } = JSON.parse(out) as { settings: readonly Shown[] };
  return new Map(settings.map((setting) => [setting.name, setting]));
}

test("prints every option and every limit of each tier, initially the defaults", async () => {
  const settings = await print([]);
  const figures = TIER_NAMES.flatMap((tier) =>
    [...FIGURE_NAMES.keys()].map((name) => `tiers.${tier}.${name}`),
  );
  expect([...settings.keys()]).toEqual([...OPTIONS.map(({ fileName }) => fileName), ...figures]);
  for (const { source, origin } of settings.values()) expect([source, origin]).toEqual(["default", null]);
  expect(settings.get("port")?.value).toBe(9909);
  expect(settings.get("smtp_url")?.value).toBeNull();
  expect(settings.get("tiers.free.requests_per_minute")?.value).toBe(60);
});

test("flags override variables, variables the file, and the file the defaults", async () => {
  const config = join(folder, "n.toml");
  writeFileSync(
    config,
    'port = 1\nsignup = "free"\nhost = "file.example"\n[keys]\nrotation_grace_hours = 5\n[tiers.pro]\nbuckets = 25\n',
  );
  const settings = await print(["--port", "3", "--cors-origins", "https://a.example,https://b.example"], {
    NINEFOLD_CONFIG: config,
    NINEFOLD_PORT: "2",
    NINEFOLD_SIGNUP: "open",
  });
  const of = (name: string) => {
    const { value, source, origin } = settings.get(name) ?? { value: null, source: null, origin: null };
    return [value, source, origin];
  };
  expect(of("port")).toEqual([3, "flag", "--port"]);
  expect(of("cors_origins")).toEqual([["https://a.example", "https://b.example"], "flag", "--cors-origins"]);
  expect(of("signup")).toEqual(["open", "variable", "NINEFOLD_SIGNUP"]);
  expect(of("config")).toEqual([config, "variable", "NINEFOLD_CONFIG"]);
  expect(of("host")).toEqual(["file.example", "file", config]);
  expect(of("keys.rotation_grace_hours")).toEqual([5, "file", config]);
  // Set in the file, although it is the default.
  expect(of("tiers.pro.buckets")).toEqual([25, "file", config]);
  expect(of("tiers.pro.catch_per_minute")).toEqual([600, "default", null]);
  expect(of("durability")).toEqual(["full", "default", null]);
});

test("an ephemeral server has other defaults", async () => {
  const settings = await print(["--ephemeral"]);
  expect(settings.get("port")).toMatchObject({ value: 0, source: "default" });
  expect(settings.get("signup")).toMatchObject({ value: "open", source: "default" });
  expect(settings.get("ephemeral")).toMatchObject({ value: true, source: "flag" });
});

test("--json of the command does not set the server's option", async () => {
  expect((await print([])).get("json")).toMatchObject({ value: false, source: "default" });
  expect((await print([], { NINEFOLD_JSON: "true" })).get("json")).toMatchObject({
    value: true,
    source: "variable",
  });
});

describe("secrets are masked", () => {
  const path = join(folder, "secret");
  writeFileSync(path, "cd".repeat(32));
  const environment = {
    NINEFOLD_MASTER_KEY_FILE: path,
    NINEFOLD_OPERATOR_KEY: KEY,
    NINEFOLD_SMTP_URL: "smtps://ada:hunter2@mail.example.com:465/?pass=hunter3",
    NINEFOLD_MAIL_FROM: "a@example.com",
  };

  test.each([["--json"], []])("%s", async (...args) => {
    const { out } = await ninefold(["config", "print", ...args.filter((arg) => typeof arg === "string")], {
      environment,
    });
    for (const secret of ["cdcd", KEY, "hunter2", "hunter3", "ada"]) expect(out).not.toContain(secret);
  });

  test("shows that a secret is set, its source, and the host of the mail server", async () => {
    const settings = await print([], environment);
    expect(settings.get("master_key")).toMatchObject({
      value: "********",
      origin: "NINEFOLD_MASTER_KEY_FILE",
    });
    expect(settings.get("operator_key")).toMatchObject({
      value: "********",
      origin: "NINEFOLD_OPERATOR_KEY",
    });
    expect(settings.get("smtp_url")?.value).toBe("smtps://********@mail.example.com:465?********");
  });

  test("masks every secret option", async () => {
    const values: Record<string, string> = {
      ...environment,
      NINEFOLD_MASTER_KEY: "ef".repeat(32),
      NINEFOLD_ARCHIVE_ACCESS_KEY_ID: "id",
      NINEFOLD_ARCHIVE_SECRET_ACCESS_KEY: "secret",
    };
    const settings = await print([], values);
    // It excludes an archive.
    const commitLog = "NINEFOLD_COMMIT_LOG";
    const clustered = await print([], { ...environment, [commitLog]: "postgres://ada:hunter2@db/nf" });
    expect(clustered.get("commit_log")?.value).toContain("********");
    for (const option of OPTIONS.filter(
      ({ secret, variable }) => secret === true && variable !== commitLog,
    )) {
      expect(values[option.variable]).toBeString();
      expect(String(settings.get(option.fileName)?.value)).toContain("********");
    }
  });
});

test("prints aligned text, with lists as one word and a dash for empty values", async () => {
  const { out } = await ninefold(["config", "print", "--trust-proxy", "10.0.0.1, 10.0.0.2", "--port", "80"]);
  const lines = out.split("\n").map((line) => line.split(/ {2,}/));
  expect(lines[0]).toEqual(["setting", "value", "from"]);
  expect(lines).toContainEqual(["trust_proxy", "10.0.0.1,10.0.0.2", "flag --trust-proxy"]);
  expect(lines).toContainEqual(["port", "80", "flag --port"]);
  expect(lines).toContainEqual(["master_key", "-", "default"]);
  const column = out.indexOf("value");
  for (const line of out.trimEnd().split("\n")) expect(line[column - 1]).toBe(" ");
});
