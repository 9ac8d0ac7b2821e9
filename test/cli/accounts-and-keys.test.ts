import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import type { Ended } from "../support/ended.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { ninefold, type RunOptions, runToEnd } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-cli-"));
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command against the server, by default with the operator's key. */
function call(line: string, options: RunOptions = {}): Promise<Ended> {
  const environment = { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: server.key, ...options.environment };
  return ninefold(line.split(" "), { ...options, environment });
}

/** Like {@link call} with `--json`; returns the parsed output. */
async function json(line: string, options?: RunOptions): Promise<Record<string, unknown>> {
  const { code, out, error } = await call(`${line} --json`, options);
  expect([code, error]).toEqual([0, ""]);
  return JSON.parse(out);
}

/** Names and values, one pair a line. */
function fields(text: string): Record<string, string> {
  const pairs = text
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/) as [string, string]);
  return Object.fromEntries(pairs);
}

describe("account", () => {
  test("create prints aligned text with a working key", async () => {
    const { code, out, error } = await call("account create ada@example.com --tier pro --balance 5");
    expect([code, error]).toEqual([0, ""]);
    const account = fields(out);
    expect(Object.keys(account)).toEqual(["user_id", "email", "tier", "balance", "api_key"]);
    expect(account).toMatchObject({ email: "ada@example.com", tier: "pro", balance: "5" });
    // All values begin in the same column.
    for (const line of out.trimEnd().split("\n")) expect(line.search(/\S+$/)).toBe("user_id  ".length);
    const balance = await server.client(account["api_key"] ?? "").get("/v1/meter/balance");
    expect(balance.body).toEqual({ balance: 5, user_id: account["user_id"] });
  });

  test("create uses the tier free with its credits by default", async () => {
    expect(await json("account create bob@example.com")).toEqual({
      user_id: expect.stringMatching(/^usr_/),
      api_key: expect.stringMatching(/^sm_/),
      email: "bob@example.com",
      tier: "free",
      balance: 10_000,
    });
  });

  test("set finds an account by id or e-mail address in any case, and keeps omitted fields", async () => {
    const made = await json("account create carol@example.com");
    expect(await json(`account set ${made["user_id"]} --tier scale`)).toEqual({
      user_id: made["user_id"],
      email: "carol@example.com",
      tier: "scale",
      balance: 10_000,
      suspended: false,
      created_at: expect.any(String),
    });
    const suspended = fields((await call("account set CAROL@example.com --suspended true --balance 0")).out);
    expect(suspended).toMatchObject({
      email: "carol@example.com",
      tier: "scale",
      balance: "0",
      suspended: "true",
    });
    expect((await server.client(String(made["api_key"])).get("/v1/meter/balance")).status).toBe(403);
    await call("account set carol@example.com --suspended false");
    const moved = await json("account set carol@example.com --email Carol@example.org");
    expect(moved).toMatchObject({ user_id: made["user_id"], email: "Carol@example.org", tier: "scale" });
    expect((await server.client(String(made["api_key"])).get("/v1/meter/balance")).status).toBe(200);
  });

  test("reset-key by id and by e-mail address revokes earlier keys and prints a working one", async () => {
    const account = await server.account({ email: "rita@example.com" });
    const reset = fields((await call("account reset-key RITA@example.com")).out);
    expect(Object.keys(reset)).toEqual(["user_id", "api_key", "reset_at"]);
    expect(reset["user_id"]).toBe(account.userId);
    expect((await account.get("/v1/meter/balance")).status).toBe(401);
    const again = await json(`account reset-key ${account.userId}`);
    expect((await server.client(reset["api_key"] ?? "").get("/v1/meter/balance")).status).toBe(401);
    expect((await server.client(String(again["api_key"])).get("/v1/meter/balance")).status).toBe(200);
  });

  test("export prints everything of an account as JSON lines", async () => {
    const account = await server.account({ email: "expo@example.com" });
    await account.post("/v1/gate", { flag_key: "exported", enabled: true });
    const { code, out, error } = await call("account export EXPO@example.com");
    expect([code, error]).toEqual([0, ""]);
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["export", "account", "flag", "end"]),
    );
    expect(lines.at(-1)).toEqual({ type: "end", user_id: account.userId, records: lines.length - 2 });
  });

  test.if(existsSync("/dev/full"))("output that cannot be written is its own error", async () => {
    const account = await server.account();
    for (const command of [`account export ${account.userId}`, "account list", "openapi"]) {
      const shell = ["sh", "-c", `exec "$@" > /dev/full`, "sh", ...NINEFOLD_COMMAND, ...command.split(" ")];
      const { code, error } = await runToEnd(shell, {
        environment: { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: server.key },
      });
      expect(code).toBe(1);
      expect(error).toMatch(
        /^ninefold: Standard output cannot be written \(.*no space left on device.*\)\.\n$/,
      );
    }
  });

  test("an export that is cut off is an error", async () => {
    const other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () =>
        new Response('{"type":"export"}\n', { headers: { "content-type": "application/x-ndjson" } }),
    });
    const { code, error } = await call(`account export usr_x --url http://127.0.0.1:${other.port}`);
    expect([code, error]).toEqual([
      1,
      "ninefold: The export is incomplete: its last line is missing. Try again.\n",
    ]);
    await other.stop(true);
  });

  test("delete needs --yes and deletes by e-mail address", async () => {
    const account = await server.account({ email: "dora@example.com" });
    expect(await call("account delete dora@example.com")).toEqual({
      code: 2,
      out: "",
      error:
        "ninefold: account delete removes everything of the account and cannot be undone. Confirm it with --yes.\n",
    });
    expect((await account.get("/v1/meter/balance")).status).toBe(200);
    const deleted = fields((await call("account delete DORA@example.com --yes")).out);
    expect(deleted).toEqual({ user_id: account.userId, deleted_at: expect.stringMatching(/Z$/) });
    expect((await account.get("/v1/meter/balance")).status).toBe(401);
  });

  test("list prints all pages, newest first", async () => {
    for (let index = 0; index < 120; index += 1) await server.account({ email: `many-${index}@example.com` });
    const { out } = await call("account list");
    const rows = out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(rows[0]).toEqual(["user_id", "email", "tier", "balance", "suspended", "created_at"]);
    expect(rows[1]?.slice(1, 5)).toEqual(["many-119@example.com", "scale", "10000000", "false"]);
    expect(rows.at(-1)?.[1]).toBe("operator@localhost");
    const { accounts } = await json("account list");
    expect((accounts as readonly { email: string }[]).map(({ email }) => email)).toEqual(
      rows.slice(1).map((row) => row[1] ?? ""),
    );
    expect(rows.length).toBeGreaterThan(121);
    expect(new Set(rows.map((row) => row[0])).size).toBe(rows.length);
  }, 60_000);

  test.each([
    ["account create ada@example.com", 409, "An account with this e-mail address already exists."],
    ["account create nonsense", 400, "email must be an e-mail address"],
    ["account set usr_nobody --tier pro", 404, "There is no account with this user_id."],
    ["account export usr_nobody", 404, "There is no account with this user_id."],
    ["account delete usr_nobody --yes", 404, "There is no account with this user_id."],
    [
      "account delete operator@localhost --yes",
      409,
      "This is the operator's account, which cannot be deleted.",
    ],
    ["account reset-key usr_nobody", 404, "There is no account with this user_id."],
    [
      "account set operator@localhost --suspended true",
      400,
      "This is your own account. Suspending it or changing its tier would lock you out. Use the key of another operator.",
    ],
  ])("%s is rejected with the server's message", async (line, status, message) => {
    const error = `ninefold: The server rejected the request (${status}): ${message}\n`;
    expect(await call(line)).toEqual({ code: 1, out: "", error });
  });

  test("rejects an e-mail address without an account", async () => {
    expect((await call("account set nobody@example.com --tier pro")).error).toBe(
      "ninefold: There is no account with the e-mail address nobody@example.com.\n",
    );
  });

  test("rejects a key of another account and an unknown key", async () => {
    const { key } = await server.account();
    const asTenant = { environment: { NINEFOLD_API_KEY: key ?? "" } };
    expect((await call("account list", asTenant)).error).toMatch(
      /^ninefold: The server rejected the request \(403\): [^\n]+\n$/,
    );
    const unknown = { environment: { NINEFOLD_API_KEY: UNKNOWN_KEY } };
    const refused = await call("account list", unknown);
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.error).toMatch(
      /^ninefold: The server rejected the request \(401\): [^\n]+ Check NINEFOLD_API_KEY\.\n$/,
    );
    expect(refused.error).not.toContain(UNKNOWN_KEY);
  });
});

/** A well-formed key that does not exist. */
const UNKNOWN_KEY = "sm_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_e6bdfcc9";

describe("key", () => {
  test("create without options makes a key of the account with all scopes", async () => {
    const key = fields((await call("key create")).out);
    expect(key).toMatchObject({ name: "command line", scopes: "*", project_id: "-", expires_at: "-" });
    expect((await server.client(key["secret"] ?? "").get("/v1/admin/accounts?limit=1")).status).toBe(200);
  });

  test("create accepts all options, for one project", async () => {
    const project = (await server.operator.post("/v1/projects", { name: "Shop" })).body["id"];
    const line = `key create --project ${project} --name ci --prefix acme --scope a:b --scope c:d --environment live --expires-at 2999-01-01T00:00:00Z`;
    expect(await json(line)).toMatchObject({
      secret: expect.stringMatching(/^acme_/),
      name: "ci",
      scopes: ["a:b", "c:d"],
      environment: "live",
      project_id: project,
      expires_at: "2999-01-01T00:00:00.000Z",
    });
  });

  test("list escapes control characters in names of keys", async () => {
    const account = await server.account();
    const options = { environment: { NINEFOLD_API_KEY: account.key ?? "" } };
    const name = "a\u001b]0;b\u0007\nc\u202ed\u0085";
    const shown = "a\\u001b]0;b\\u0007\\u000ac\\u202ed\\u0085";
    expect((await account.post("/v1/keys", { prefix: "acme", name, scopes: ["a:b"] })).status).toBe(201);
    const lines = (await call("key list", options)).out.trimEnd().split("\n");
    expect(lines.map((line) => line.split(/ {2,}/)[1])).toEqual(["name", shown]);
    expect((await json("key list", options))["keys"]).toMatchObject([{ name }]);
    const result = await ninefold(["key", "create", "--name", name], {
      environment: { NINEFOLD_URL: server.url, ...options.environment },
    });
    expect(fields(result.out)["name"]).toBe(shown);
  });

  test("list and revoke work for any account", async () => {
    const account = await server.account();
    const options = { environment: { NINEFOLD_API_KEY: account.key ?? "" } };
    for (let index = 0; index < 101; index += 1) {
      const body = { prefix: "acme", name: `key ${index}`, scopes: ["a:b"] };
      expect((await account.post("/v1/keys", body)).status).toBe(201);
    }
    const { keys } = (await json("key list", options)) as { keys: readonly { id: string; name: string }[] };
    expect(keys.map(({ name }) => name)).toEqual(
      Array.from({ length: 101 }, (_, index) => `key ${100 - index}`),
    );
    const { id } = keys[0] ?? { id: "" };
    const revoked = fields((await call(`key revoke ${id}`, options)).out);
    expect(revoked).toEqual({ key_id: id, status: "revoked", revoked_at: expect.stringMatching(/Z$/) });
    const rows = (await call("key list", options)).out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(rows[0]?.slice(0, 3)).toEqual(["id", "name", "prefix"]);
    expect(rows[1]).toEqual([
      id,
      "key 100",
      "acme",
      expect.any(String),
      "a:b",
      "-",
      expect.any(String),
      "-",
      revoked["revoked_at"] ?? "",
    ]);
    expect(rows[2]?.at(-1)).toBe("-");
    expect((await call(`key revoke ${crypto.randomUUID()}`, options)).error).toContain(
      "rejected the request (404)",
    );
  }, 60_000);

  test("reads the key from a file", async () => {
    const path = join(folder, "key");
    writeFileSync(path, `${server.key}\n`);
    const environment = { NINEFOLD_API_KEY: "", NINEFOLD_API_KEY_FILE: path };
    expect((await call("key list", { environment })).code).toBe(0);
  });
});

describe("channel", () => {
  test("list prints the last result of each channel", async () => {
    const create = (name: string, url: string) =>
      server.operator.post("/v1/pulse/channels", { name, kind: "webhook", config: { url } });
    const made = [
      await create("quiet", "https://example.com/a"),
      await create("broken", "https://b.invalid/"),
    ];
    expect(made.map(({ status }) => status)).toEqual([201, 201]);
    const tested = await server.operator.post(`/v1/pulse/channels/${made[1]?.body["id"]}/test`, {});
    const error = String(tested.body["error"]);
    expect(error).toStartWith("dns: ");
    const rows = (await call("channel list")).out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(rows).toEqual([
      ["id", "name", "kind", "default", "last_sent_at", "last_error"],
      [String(made[1]?.body["id"]), "broken", "webhook", "true", "-", error],
      [String(made[0]?.body["id"]), "quiet", "webhook", "true", "-", "-"],
    ]);
    const { channels } = await json("channel list");
    expect(channels).toMatchObject([{ last_error: error }, { last_error: null }]);
  });
});

describe("other servers", () => {
  test("reports a server that is not Ninefold", async () => {
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("<html>") });
    const url = `http://127.0.0.1:${other.port}`;
    expect(await call(`key list --url ${url}`)).toEqual({
      code: 1,
      out: "",
      error: `ninefold: ${url} is not a Ninefold server: it returned 200 without JSON.\n`,
    });
    await other.stop(true);
  });

  test("does not follow redirects, so the key is sent to no other host", async () => {
    let asked = 0;
    const target = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => {
        asked += 1;
        return Response.json({});
      },
    });
    const other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.redirect(`http://127.0.0.1:${target.port}/`, 307),
    });
    expect((await call(`key list --url http://127.0.0.1:${other.port}`)).code).toBe(1);
    expect(asked).toBe(0);
    await Promise.all([target.stop(true), other.stop(true)]);
  });

  test("ignores proxies of the environment", async () => {
    const environment = { HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" };
    expect((await call("key list", { environment })).code).toBe(0);
  });

  test("accepts any certificate of a server on this machine", async () => {
    const authority = new CertificateAuthority();
    const { cert, key } = authority.issue("elsewhere.example", "DNS:elsewhere.example");
    authority.remove();
    const [certPath, keyPath] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(certPath, cert);
    writeFileSync(keyPath, key);
    const secure = await startTestServer({ args: ["--tls-cert", certPath, "--tls-key", keyPath] });
    const environment = { NINEFOLD_URL: secure.url, NINEFOLD_API_KEY: secure.key };
    expect((await call("key list", { environment })).code).toBe(0);
    await secure.stop();
  });
});
