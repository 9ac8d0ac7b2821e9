import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TEXT_BYTES_MAX } from "../../src/config/sources.ts";
import { readFile } from "../../src/configuration/file.ts";
import { kindsOf } from "../../src/configuration/kinds.ts";
import { startNinefold } from "../../src/testing/index.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { type AccountClient, useTestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

/** A command takes a second; busy machines take longer. */
setDefaultTimeout(60_000);

const server = useTestServer();
let account: AccountClient;
let folder: string;
beforeAll(async () => {
  account = await server.account({ tier: "unlimited" });
  folder = mkdtempSync(join(tmpdir(), "ninefold-configuration-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function run(args: readonly string[], environment: Record<string, string> = {}) {
  const own = { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: account.key ?? "" };
  return ninefold(args, { environment: { ...own, ...environment } });
}

const TEXT = `ninefold: 1
flags:
  new-checkout: { enabled: true, description: "Line\\u202e one" }
endpoints:
  billing: { url: https://example.com/hooks, secret: { file: ./billing.secret }, headers: { X-Key: { env: BILLING_KEY } } }
keys:
  web: { prefix: acme, scopes: [orders] }
`;

test("plan, apply and export: exit codes, output, secrets of new keys", async () => {
  file("billing.secret", `whsec_${Buffer.alloc(32, 1).toString("base64")}\n`);
  const path = file("ninefold.yaml", TEXT);
  const environment = { BILLING_KEY: "k-1" };
  const planned = await run(["plan", path], environment);
  expect(planned.out).toBe("+ create keys web\n+ create flags new-checkout\n+ create endpoints billing\n");
  expect(planned.code).toBe(2);
  const noKeys = await run(["apply", path, "--yes"], environment);
  expect([noKeys.code, noKeys.error]).toEqual([
    1,
    "ninefold: The file creates keys. Name a file for their secrets with --secrets-out FILE.\n",
  ]);
  const out = join(folder, "secrets.json");
  const args = ["apply", path, "--secrets-out", out];
  const unasked = await run(args, environment);
  expect([unasked.code, unasked.error]).toEqual([
    1,
    "ninefold: apply needs --yes where nobody can be asked.\n",
  ]);
  const dry = await run([...args, "--dry-run", "--json"], environment);
  expect(JSON.parse(dry.out).changes).toHaveLength(3);
  expect(dry.code).toBe(0);
  const applied = await run([...args, "--yes"], environment);
  expect(applied.out).toEndWith("3 of 3 changes applied.\n");
  expect(applied.code).toBe(0);
  const secrets = JSON.parse(readFileSync(out, "utf8"));
  const verified = await account.post("/v1/keys/verify", { secret: secrets.default.web });
  expect(verified.body["valid"]).toBe(true);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  const again = await run(["plan", path], environment);
  expect([again.code, again.out]).toEqual([0, "No changes.\n"]);
  const exported = await run(["export"]);
  expect(exported.out).toContain("billing:\n    url: https://example.com/hooks\n");
  expect(exported.error).toContain("ENDPOINTS_BILLING_SECRET");
  const variables = {
    ENDPOINTS_BILLING_SECRET: readFileSync(join(folder, "billing.secret"), "utf8").trim(),
    ENDPOINTS_BILLING_X_KEY: "k-1",
  };
  const same = await run(["plan", file("exported.yaml", exported.out)], variables);
  expect([same.code, same.out]).toEqual([0, "No changes.\n"]);
  const changed = await run(["plan", path, "--json"], { BILLING_KEY: "k-2" });
  expect(changed.code).toBe(2);
  const hidden = { field: "headers", old: "(sensitive)", new: "(sensitive)" };
  expect(JSON.parse(changed.out)).toEqual({
    changes: [{ action: "change", kind: "endpoints", name: "billing", fields: [hidden] }],
  });
});

test("a creation of a key that was interrupted before its secret was stored is continued", async () => {
  const path = file("keys.yaml", "ninefold: 1\nkeys:\n  late: { prefix: acme, scopes: [orders] }\n");
  const out = file("pending.json", "{}");
  const idempotency_key = crypto.randomUUID();
  const [project] = (await account.get("/v1/projects")).body["projects"] as { id: string }[];
  const body = { prefix: "acme", scopes: ["orders"], name: "late", managed_by: "apply" };
  const headers = { "idempotency-key": idempotency_key };
  const created = await account.post(`/v1/projects/${project?.id}/keys`, body, { headers });
  writeFileSync(out, JSON.stringify({ default: { late: { idempotency_key } } }));
  const applied = await run(["apply", path, "--yes", "--secrets-out", out]);
  expect(applied.code, applied.error).toBe(0);
  expect(JSON.parse(readFileSync(out, "utf8"))).toEqual({ default: { late: created.body["secret"] } });
});

test("apply prints the URLs that it made, a rename as one line, and lists have names, states and URLs", async () => {
  const text = "ninefold: 1\nmonitors:\n  Nightly: { type: heartbeat }\nbuckets:\n  In: { delivery: pull }\n";
  const applied = await run(["apply", file("urls.yaml", text), "--yes"]);
  expect([applied.code, applied.error]).toEqual([0, ""]);
  const [, ping] = /^monitors Nightly ping_url: (\S+)$/m.exec(applied.out) ?? [];
  const [, ingest] = /^buckets In ingest_url: (\S+)$/m.exec(applied.out) ?? [];
  expect((await fetch(String(ping))).status).toBe(200);
  expect((await fetch(String(ingest), { method: "POST", body: "{}" })).status).toBe(200);
  const listed = await run(["monitor", "list"]);
  expect(listed.out.split("\n")[0]).toMatch(/^name +state +url +monitor_id$/);
  expect(listed.out).toMatch(new RegExp(`^Nightly +up +${ping} `, "m"));
  const json = JSON.parse((await run(["monitor", "list", "--json"])).out);
  expect(json.monitors).toContainEqual(expect.objectContaining({ name: "Nightly", ping_url: ping }));
  expect((await run(["monitor", "pings"])).out).toContain(String(ping));
  expect((await run(["bucket", "list"])).out).toMatch(new RegExp(`^In +paused +${ingest} `, "m"));
  const renamed = file("urls.yaml", text.replace("Nightly: {", "Daily: { renamed_from: Nightly,"));
  expect((await run(["plan", renamed])).out).toBe("~ rename monitors Nightly → Daily\n");
  const { changes } = JSON.parse((await run(["plan", renamed, "--json"])).out);
  expect(changes).toEqual([
    { action: "rename", kind: "monitors", name: "Daily", renamed_from: "Nightly", fields: [] },
  ]);
  const forgotten = await run(["plan", file("urls.yaml", text.replace("Nightly:", "Daily:")), "--prune"]);
  expect(forgotten.error).toContain("monitors.Daily looks like Nightly with a new name");
});

test("with --secrets-out, ping URLs go to that file; with --json, others are fields of their change", async () => {
  const text = "ninefold: 1\nmonitors:\n  Hourly: { type: heartbeat }\nbuckets:\n  Out: { delivery: pull }\n";
  const out = join(folder, "urls.json");
  const applied = await run(["apply", file("quiet.yaml", text), "--yes", "--json", "--secrets-out", out]);
  expect(applied.out).not.toContain("/ping/");
  const { changes } = JSON.parse(applied.out);
  expect(changes[0].ingest_url).toContain("/v1/in/");
  const url: string = JSON.parse(readFileSync(out, "utf8")).ping_urls.default.Hourly;
  expect((await fetch(url)).status).toBe(200);
});

describe("errors", () => {
  test("an unset variable", async () => {
    const result = await run(["plan", file("ninefold.yaml", TEXT)]);
    expect(result.code).toBe(1);
    expect(result.error).toContain(":5:102: the environment variable BILLING_KEY is not set");
  });

  test("all unset variables, and those that are empty, in one message", async () => {
    const channel = (name: string) => `  ${name.toLowerCase()}: { kind: slack, url: { env: ${name} } }\n`;
    const names = ["FIRST", "SECOND", "THIRD"];
    const path = file("unset.yaml", `ninefold: 1\nchannels:\n${names.map(channel).join("")}`);
    const result = await run(["plan", path], { SECOND: "" });
    expect(result.error).toEndWith(":3:32: 3 environment variables are not set: FIRST, SECOND, THIRD\n");
  });

  test("a file of 1 MiB is read, and one byte more is not", async () => {
    const text = (bytes: number) => `ninefold: 1\n#${"x".repeat(bytes - 13)}`;
    const fits = await run(["plan", file("fits.yaml", text(TEXT_BYTES_MAX))]);
    expect([fits.code, fits.error]).toEqual([0, ""]);
    const past = await run(["plan", file("past.yaml", text(TEXT_BYTES_MAX + 1))]);
    expect(past.code).toBe(1);
    expect(past.error).toContain("is larger than 1048576 bytes");
  });

  test("a secret comes from a regular file, also through a link; a pipe, a device and a folder are rejected immediately", () => {
    const pipe = join(folder, "pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const read = (secret: string) =>
      readFile(
        file("refers.yaml", `ninefold: 1\nchannels:\n  a: { kind: slack, url: { file: "${secret}" } }\n`),
        kindsOf(server.server.app.http.routes),
      );
    for (const secret of [pipe, "/dev/zero", folder])
      expect(() => read(secret)).toThrow(`file: ${secret} is not a regular file.`);
    symlinkSync(file("slack.secret", "https://hooks.example.com/secret\n"), join(folder, "link"));
    expect(read("link")[0]?.resources[0]?.values["url"]).toBe("https://hooks.example.com/secret");
  });

  test("usage: 1 for plan and apply, where 2 means changes", async () => {
    for (const args of [["plan"], ["apply", "--nothing"]]) expect((await run(args)).code).toBe(1);
    expect((await run(["export", "stray"])).code).toBe(2);
    expect((await run(["plan", join(folder, "missing.yaml")])).code).toBe(1);
    const unknown = await run(["export", "--project", "nowhere"]);
    expect([unknown.code, unknown.error]).toEqual([
      1,
      "ninefold: There is no project with the slug nowhere.\n",
    ]);
  });
});

test("a server applies a file before its first request; a mistake ends its start", async () => {
  const apply = file("start.yaml", "ninefold: 1\nflags:\n  at-start: { enabled: true }\n");
  const command = NINEFOLD_COMMAND as unknown as readonly [string, ...string[]];
  await using instance = await startNinefold({ apply, command });
  const flags = await instance.client.flags.list().toArray();
  expect(flags).toEqual(["at-start"]);
  const wrong = file("wrong.yaml", "ninefold: 1\nflag: {}\n");
  expect(startNinefold({ apply: wrong, command })).rejects.toThrow(
    "wrong.yaml:2:1: there is no section flag.",
  );
  const keys = file("with-keys.yaml", "ninefold: 1\nkeys:\n  web: { prefix: acme, scopes: [a] }\n");
  expect(startNinefold({ apply: keys, command })).rejects.toThrow("creates keys");
});

test("config schema prints a JSON Schema with every section", async () => {
  const { out, code } = await run(["config", "schema"]);
  expect(code).toBe(0);
  const { properties } = JSON.parse(out);
  const sections = [
    "roles",
    "keys",
    "notary",
    "flags",
    "channels",
    "event_types",
    "endpoints",
    "buckets",
    "monitors",
    "status_pages",
    "schedules",
  ];
  expect(Object.keys(properties)).toEqual(expect.arrayContaining(["ninefold", "project", ...sections]));
  const { url, channels } = properties.monitors.additionalProperties.properties;
  expect(url.anyOf[0].type).toBe("string");
  expect(channels.type ?? channels.anyOf).toBeDefined();
  // Secrets are references only.
  expect(JSON.stringify(properties.endpoints.additionalProperties.properties.secret)).not.toContain(
    "maxLength",
  );
});
