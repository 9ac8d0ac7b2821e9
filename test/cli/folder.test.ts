import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fingerprint } from "../binary/support.ts";
import { NINEFOLD_COMMAND, ServerProcess } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { ninefold } from "./run.ts";

const scratch = mkdtempSync(join(tmpdir(), "ninefold-cli-folder-"));
const data = join(scratch, "data");
let operatorKey = "";

function start(): Promise<ServerProcess> {
  return ServerProcess.start({ command: NINEFOLD_COMMAND, args: ["--port", "0", "--data", data] });
}

beforeAll(async () => {
  const server = await start();
  operatorKey = server.key ?? "";
  await server.stop();
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

async function json(args: readonly string[], environment = {}): Promise<Record<string, unknown>> {
  const { code, out, error } = await ninefold([...args, "--json"], { environment });
  expect([code, error]).toEqual([0, ""]);
  return JSON.parse(out);
}

test("key create restores access for an operator who lost the key", async () => {
  // The command needs no key.
  const { secret, key_id: id } = await json(["key", "create", "--data", data, "--name", "way back in"]);
  const server = await start();
  const operator = new Client(server.url, String(secret));
  const { body } = await operator.get("/v1/admin/accounts");
  expect((body["accounts"] as readonly { email: string }[]).map(({ email }) => email)).toEqual([
    "operator@localhost",
  ]);
  // The lost key still works, and can now be rotated.
  expect((await new Client(server.url, operatorKey).post("/v1/keys/rotate")).status).toBe(200);
  await server.stop();
  const { keys } = (await json(["key", "list", "--data", data])) as {
    keys: readonly { id: string; name: string }[];
  };
  expect(keys.map((key) => [key.id, key.name])).toEqual([[String(id), "way back in"]]);
  expect(await json(["key", "revoke", String(id), "--data", data])).toMatchObject({
    key_id: id,
    status: "revoked",
  });
});

test("account reset-key revokes leaked keys without a valid key, the operator's too", async () => {
  const made = await json(["account", "create", "leaked@example.com", "--data", data]);
  const tenant = await json(["account", "reset-key", "leaked@example.com", "--data", data]);
  const own = await json(["account", "reset-key", "operator@localhost", "--data", data]);
  // A reset of the operator's account replaces the key of the previous reset.
  const twice = await json(["account", "reset-key", "operator@localhost", "--data", data]);
  const server = await start();
  const status = async (key: unknown) =>
    (await new Client(server.url, String(key)).get("/v1/meter/balance")).status;
  expect(await Promise.all([made, tenant, own, twice].map((one) => status(one["api_key"])))).toEqual([
    401, 200, 401, 200,
  ]);
  expect(await status(operatorKey)).toBe(401);
  operatorKey = String(twice["api_key"]);
  expect((await new Client(server.url, operatorKey).get("/v1/admin/accounts")).status).toBe(200);
  await server.stop();
});

test("account set changes the operator's e-mail address", async () => {
  const set = await json([
    "account",
    "set",
    "operator@localhost",
    "--email",
    "ops@example.com",
    "--data",
    data,
  ]);
  expect(set).toMatchObject({ email: "ops@example.com", tier: "unlimited" });
  const back = ["account", "set", "ops@example.com", "--email", "operator@localhost", "--data", data];
  expect(await json(back)).toMatchObject({ email: "operator@localhost" });
});

test("creates, lists and changes accounts that the next start uses", async () => {
  const config = join(scratch, "n.toml");
  writeFileSync(config, "[tiers.starter]\nmonthly_credits = 77\n");
  const made = await json([
    "account",
    "create",
    "ada@example.com",
    "--tier",
    "starter",
    "--data",
    data,
    "--config",
    config,
  ]);
  expect(made).toMatchObject({ tier: "starter", balance: 77 });
  expect(await json(["account", "set", "ada@example.com", "--balance", "5", "--data", data])).toMatchObject({
    balance: 5,
  });
  const { accounts } = (await json(["account", "list", "--data", data])) as {
    accounts: readonly { email: string }[];
  };
  expect(accounts.map(({ email }) => email)).toEqual([
    "ada@example.com",
    "leaked@example.com",
    "operator@localhost",
  ]);
  const server = await start();
  const balance = await new Client(server.url, String(made["api_key"])).get("/v1/meter/balance");
  expect(balance.body["balance"]).toBe(5);
  await server.stop();
});

test("prints the errors that a server would return", async () => {
  expect(await ninefold(["account", "create", "operator@LOCALHOST", "--data", data])).toEqual({
    code: 1,
    out: "",
    error:
      "ninefold: The server rejected the request (409): An account with this e-mail address already exists.\n",
  });
});

test("leaves the folder like a stopped server", () => {
  expect(readdirSync(data).sort()).toEqual(["master.key", "ninefold.db", "ninefold.lock"]);
});

describe("changes nothing", () => {
  test("while a server runs on the folder", async () => {
    const server = await start();
    const refused = await ninefold(["key", "create", "--data", data]);
    expect(refused).toEqual({
      code: 1,
      out: "",
      error: `ninefold: A running server uses ${data}. Omit --data and use --url, or stop the server first.\n`,
    });
    const client = new Client(server.url, operatorKey);
    expect((await client.get("/v1/keys")).body["keys"]).toHaveLength(1);
    await server.stop();
  });

  test.each([
    [
      "another master key",
      { NINEFOLD_MASTER_KEY: "ab".repeat(32) },
      "The master key is not the key of this database. Nothing was changed.",
    ],
    ["a wrong setting", { NINEFOLD_PORT: "http" }, "NINEFOLD_PORT must be a port from 0 to 65535."],
  ])("with %s", async (_, environment, message) => {
    const before = fingerprint(data);
    const refused = await ninefold(["key", "create", "--data", data], { environment });
    expect(refused).toEqual({ code: 1, out: "", error: `ninefold: ${message}\n` });
    expect(fingerprint(data)).toEqual(before);
  });

  test("in a folder without a Ninefold database", async () => {
    const other = mkdtempSync(join(scratch, "other-"));
    writeFileSync(join(other, "ninefold.db"), "Dear diary, ".repeat(500));
    const refused = await ninefold(["account", "list", "--data", other]);
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.error).toMatch(/^ninefold: [^\n]+ninefold\.db cannot be read as a database[^\n]+\n$/);
  });
});
