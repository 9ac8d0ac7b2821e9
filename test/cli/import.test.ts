import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHANNELS, CHECKS } from "../configuration/import/healthchecks-fixture.ts";
import { COMPONENTS } from "../configuration/import/statuspage-fixture.ts";
import { useTestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

/** A command takes a second; busy machines take longer. */
setDefaultTimeout(60_000);

const KEY = "k".repeat(32);
const READ_ONLY_KEY = "r".repeat(32);

/** Responds as Healthchecks does. */
const healthchecks = Bun.serve({
  port: 0,
  fetch(request) {
    const key = request.headers.get("x-api-key") ?? "";
    const path = new URL(request.url).pathname;
    if (path.startsWith("/moved/")) return Response.redirect("https://example.com/", 302);
    if (key.length !== 32) return Response.json({ error: "missing api key" }, { status: 401 });
    if (key === READ_ONLY_KEY && path === "/api/v3/checks/") return Response.json({ checks: [] });
    if (key !== KEY) return Response.json({ error: "wrong api key" }, { status: 401 });
    if (path === "/api/v3/checks/") return Response.json(CHECKS);
    return path === "/api/v3/channels/" ? Response.json(CHANNELS) : new Response("", { status: 404 });
  },
});
const URL_OF_IT = `http://127.0.0.1:${healthchecks.port}`;

const server = useTestServer();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-import-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await healthchecks.stop(true);
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("import, plan, apply, plan", async () => {
  const key = file("key", `${KEY}\n`);
  const imported = await ninefold(["import", "healthchecks", URL_OF_IT, "--api-key-file", key]);
  expect([imported.code, imported.out.split("\n", 2)]).toEqual([0, ["ninefold: 1", "channels:"]]);
  expect(imported.error).toContain("integration sms: kind: sms is not supported\n");
  expect(imported.error).toContain("set the environment variable CHANNELS_OPS_URL to it\n");
  const account = await server.account({ tier: "unlimited" });
  const path = file("ninefold.yaml", imported.out);
  const environment = {
    NINEFOLD_URL: server.url,
    NINEFOLD_API_KEY: account.key ?? "",
    CHANNELS_OPS_URL: "https://hooks.example.com/a",
    CHANNELS_ON_CALL_TOKEN: "1:a",
    CHANNELS_ON_CALL_CHAT_ID: "-100",
  };
  expect((await ninefold(["plan", path], { environment })).code).toBe(2);
  const applied = await ninefold(["apply", path, "--yes"], { environment });
  expect([applied.error, applied.code]).toEqual(["", 0]);
  const planned = await ninefold(["plan", path], { environment });
  expect([planned.out, planned.code]).toEqual(["No changes.\n", 0]);
});

test("--env-out writes the variables to a new file, which only its owner can read", async () => {
  const key = file("env-key", `${KEY}\n`);
  const out = join(folder, "ninefold.env");
  const command = [
    "import",
    "healthchecks",
    URL_OF_IT,
    "--api-key-file",
    key,
    "--keep-ids",
    "--env-out",
    out,
  ];
  const imported = await ninefold(command);
  expect(imported.error).toEndWith(
    `${out} has 3 environment variables, 3 of them without a value, which the source does not contain.\n`,
  );
  expect(imported.out).toContain(`ping_id: ${CHECKS.checks[0].uuid}\n`);
  expect(readFileSync(out, "utf8")).toBe(
    [
      ...["# integration Ops: url", "CHANNELS_OPS_URL="],
      ...["# integration On call: token", "CHANNELS_ON_CALL_TOKEN="],
      ...["# integration On call: chat_id", "CHANNELS_ON_CALL_CHAT_ID=", ""],
    ].join("\n"),
  );
  expect(statSync(out).mode & 0o777).toBe(0o600);
  const again = await ninefold(command);
  expect([again.code, again.out, again.error]).toEqual([
    1,
    "",
    `ninefold: --env-out: ${out} exists. Choose another path, or delete it first.\n`,
  ]);
});

test("a read-only key, from the environment, and a URL with the path of the API", async () => {
  const environment = { HEALTHCHECKS_API_KEY: READ_ONLY_KEY };
  const { code, out } = await ninefold(["import", "healthchecks", `${URL_OF_IT}/api/v1/checks/`], {
    environment,
  });
  expect([code, out]).toEqual([0, "ninefold: 1\n"]);
});

describe("errors", () => {
  test.each([
    ["without a key", URL_OF_IT, {}, "Set HEALTHCHECKS_API_KEY, or name a file"],
    ["a wrong key", URL_OF_IT, { HEALTHCHECKS_API_KEY: "w".repeat(32) }, "status 401. Check the API key."],
    ["a redirect", `${URL_OF_IT}/moved`, { HEALTHCHECKS_API_KEY: KEY }, "could not be loaded"],
  ])("%s", async (_, url, environment, message) => {
    const { code, out, error } = await ninefold(["import", "healthchecks", url], { environment });
    expect([code, out]).toEqual([1, ""]);
    expect(error).toContain(message);
  });

  test("a missing file is an error, a key as an argument one of usage", async () => {
    expect((await ninefold(["import", "kuma", join(folder, "none")])).code).toBe(1);
    expect((await ninefold(["import", "healthchecks", URL_OF_IT, "--api-key", KEY])).code).toBe(2);
  });
});

test("a page of Statuspage is imported, and its subscribers", async () => {
  const components = file("components.json", JSON.stringify(COMPONENTS));
  const incidents = file(
    "incidents.csv",
    "name,impact,started_at,resolved_at,components,message\nAPI down,major,2026-01-10 12:00,2026-01-10 13:00,API,Fixed.\n",
  );
  const imported = await ninefold(["import", "statuspage", components, incidents]);
  expect([imported.code, imported.out.split("\n", 2)]).toEqual([0, ["ninefold: 1", "monitors:"]]);
  const account = await server.account({ tier: "unlimited" });
  const environment = { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: account.key ?? "" };
  const path = file("statuspage.yaml", imported.out.replace("  status:\n", "  imported-page:\n"));
  const applied = await ninefold(["apply", path, "--yes"], { environment });
  expect([applied.error, applied.code]).toEqual(["", 0]);
  const [again, exported] = [
    await ninefold(["plan", path], { environment }),
    await ninefold(["export"], { environment }),
  ];
  expect([again.out, again.code]).toEqual(["No changes.\n", 0]);
  expect(exported.out).toContain("type: manual");
  expect(exported.out).not.toContain("incidents:");
  const list = file(
    "subscribers.csv",
    "email,ann@example.com,yes\nsms,5551234,US\nemail,not an address@,yes\n",
  );
  const run = (slug: string) => ninefold(["page", "subscribers", "import", slug, list], { environment });
  const result = await run("imported-page");
  expect([result.code, result.out, result.error]).toEqual([
    1,
    "1 imported, 0 had subscribed already.\n",
    "1 skipped: sms in place of e-mail.\nnot an address@ is no e-mail address.\n",
  ]);
  const wrong = file("wrong.csv", Array.from({ length: 25 }, (_, index) => `a${index}@\n`).join(""));
  const many = await ninefold(["page", "subscribers", "import", "imported-page", wrong], { environment });
  expect(many.error.split("\n").slice(19)).toEqual([
    "a19@ is no e-mail address.",
    "5 others were rejected: --json lists all.",
    "",
  ]);
  const unknown = await run("no-page");
  expect([unknown.code, unknown.error]).toEqual([
    1,
    "ninefold: There is no status page with the slug no-page in the project.\n",
  ]);
});
