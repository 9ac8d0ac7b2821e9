import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../../src/config.ts";
import { createIds } from "../../../src/kernel/ids.ts";
import { isBearerKey, mintKey } from "../../../src/kernel/secrets/key-format.ts";
import { startServer } from "../../../src/server.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const GIVEN_KEY = mintKey(
  "sm",
  createIds(() => Date.now()),
);
const HOUR_MS = 60 * 60 * 1000;

let server: TestServer;
afterEach(() => server.stop());

describe("the first start", () => {
  test("creates the operator's account and prints its key once", async () => {
    server = await startTestServer({ manualClock: true });
    const { operator } = server.server;
    expect(isBearerKey(operator?.key ?? "")).toBe(true);
    const { body } = await server.operator.get("/v1/admin/accounts");
    expect(body.accounts).toEqual([
      {
        user_id: operator.userId,
        email: "operator@localhost",
        tier: "unlimited",
        balance: 0,
        suspended: false,
        created_at: "2026-03-10T12:00:00.000Z",
      },
    ] as never);
    await server.restart();
    expect(server.server.operator.key).toBeNull();
    expect((await server.operator.get("/v1/admin/accounts")).body.accounts).toHaveLength(1);
  });

  test("sets the operator's configured e-mail address, as every later start does", async () => {
    server = await startTestServer({ manualClock: true, args: ["--operator-email", "ops@example.com"] });
    const addresses = async (of: TestServer) => {
      const { body } = await of.operator.get("/v1/admin/accounts");
      return (body["accounts"] as { email: string }[]).map(({ email }) => email);
    };
    expect(await addresses(server)).toEqual(["ops@example.com"]);
    const { userId } = server.server.operator;
    await server.operator.patch(`/v1/admin/accounts/${userId}`, { email: "other@example.com" });
    expect(await addresses(server)).toEqual(["other@example.com"]);
    await server.restart();
    expect(await addresses(server)).toEqual(["ops@example.com"]);
  });

  test("fails if another account has the operator's configured e-mail address", async () => {
    server = await startTestServer({ manualClock: true });
    await server.account({ email: "ada@example.com" });
    await server.server.stop();
    const config = loadConfig(
      ["--port", "0", "--data", server.folder, "--operator-email", "ADA@example.com"],
      {},
    );
    await expect(startServer(server.folder, config)).rejects.toThrow(
      "operator_email: another account has the address ADA@example.com. Configure a different one.",
    );
    await server.start();
  });

  test("that stops before printing the key leaves it to the next start", async () => {
    server = await startTestServer({ manualClock: true, untold: true });
    const { operator } = server.server;
    await server.restart();
    expect(server.server.operator).toEqual(operator);
    await server.server.app.accounts.markOperatorAnnounced();
    await server.restart();
    expect(server.server.operator).toEqual({ userId: operator.userId, key: null });
  });

  test("creates the database and the master key with access for this user only", async () => {
    server = await startTestServer({ manualClock: true });
    const { mode } = statSync(join(server.folder, "master.key"));
    expect(mode & 0o777).toBe(0o600);
    expect(existsSync(join(server.folder, "ninefold.db"))).toBe(true);
  });

  test("uses a given operator's key instead of creating one", async () => {
    server = await startTestServer({ manualClock: true, environment: { NINEFOLD_OPERATOR_KEY: GIVEN_KEY } });
    expect(server.server.operator.key).toBeNull();
    expect((await server.client(GIVEN_KEY).get("/v1/admin/accounts")).status).toBe(200);
  });

  test("reads a given key from a file", async () => {
    server = await startTestServer({ manualClock: true });
    const path = join(server.folder, "operator-key");
    writeFileSync(path, `${GIVEN_KEY}\n`);
    expect(loadConfig([], { NINEFOLD_OPERATOR_KEY_FILE: path }).operatorKey).toBe(GIVEN_KEY);
  });

  test("ignores a given key once there is an operator", async () => {
    server = await startTestServer({ manualClock: true });
    const first = server.key;
    await server.server.stop();
    const config = loadConfig(["--port", "0"], { NINEFOLD_OPERATOR_KEY: GIVEN_KEY });
    server.server = await startServer(server.folder, config);
    expect(server.server.operator.key).toBeNull();
    expectError(await server.client(GIVEN_KEY).get("/v1/admin/accounts"), "unauthorized");
    expect((await server.client(first).get("/v1/admin/accounts")).status).toBe(200);
  });

  test.each(["", "sm_short", `${GIVEN_KEY}x`, `xx${GIVEN_KEY.slice(2)}`])(
    "an invalid given key %p is rejected, an empty one ignored",
    async (key) => {
      server = await startTestServer({ manualClock: true });
      const load = () => loadConfig([], { NINEFOLD_OPERATOR_KEY: key });
      if (key === "") expect(load().operatorKey).toBeNull();
      else expect(load).toThrow("NINEFOLD_OPERATOR_KEY is not a well-formed platform key");
    },
  );

  test("a database with a missing or wrong master key is not opened", async () => {
    server = await startTestServer({ manualClock: true });
    await server.server.stop();
    const path = join(server.folder, "master.key");
    const right = readFileSync(path, "utf8");
    rmSync(path);
    await expect(server.start()).rejects.toThrow("its master key");
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, "00".repeat(32));
    await expect(server.start()).rejects.toThrow("The master key is not the key of this database");
    writeFileSync(path, right);
    await server.start();
    expect((await server.operator.get("/v1/admin/accounts")).status).toBe(200);
  });
});

describe("no secret", () => {
  /** Creates and rotates keys of several accounts, and returns all of them. */
  async function liveALittle(): Promise<string[]> {
    const keys = [server.key];
    const account = await server.account({ tier: "free" });
    keys.push(String(account.key));
    const headers = { "idempotency-key": "kept" };
    const rotated = await account.post("/v1/keys/rotate", undefined, { headers });
    keys.push(String(rotated.body.key));
    const created = await server.operator.post(
      "/v1/admin/accounts",
      { email: "kept@example.com", tier: "pro" },
      { headers },
    );
    keys.push(String(created.body.api_key));
    const signup = { email: "self@example.com", tier: "free" };
    keys.push(String((await server.client(null).post("/v1/signup", signup)).body.api_key));
    await server.client(`${account.key}x`).get("/v1/meter/balance");
    await account.post("/v1/meter/m/refill", { amount: 5 });
    await server.operator.post("/v1/keys/rotate").then(({ body }) => keys.push(String(body.key)));
    await server.clock.advance(HOUR_MS);
    expect(keys.every(isBearerKey)).toBe(true);
    return keys;
  }

  /** Every file of the data folder except the master key, as bytes in text. */
  function filesOf(folder: string): [name: string, text: string][] {
    const names = readdirSync(folder).filter((name) => name !== "master.key");
    return names.map((name) => [name, readFileSync(join(folder, name)).toString("latin1")]);
  }

  test("is in the database, its WAL or the log in plain text", async () => {
    server = await startTestServer({ manualClock: true, args: ["--signup", "open"] });
    const keys = await liveALittle();
    const masterKey = readFileSync(join(server.folder, "master.key"), "utf8").trim();
    const spellings = keys.flatMap((key) => {
      const entropy = key.slice(3, 46);
      return [
        entropy,
        Buffer.from(entropy).toString("hex"),
        Buffer.from(entropy).toString("base64").slice(4, 40),
      ];
    });
    const raw = Buffer.from(masterKey, "hex").toString("latin1");
    const files = filesOf(server.folder);
    expect(files.map(([name]) => name)).toContain("ninefold.db-wal");
    await server.server.stop();
    files.push(...filesOf(server.folder), ["log", JSON.stringify(server.logs)]);
    for (const [name, text] of files) {
      const found = [...spellings, masterKey, raw].filter((secret) => text.includes(secret));
      expect({ name, found }).toEqual({ name, found: [] });
    }
    // The scan works: it finds an e-mail address, which is stored in plain text.
    expect(files.some(([name, text]) => name === "ninefold.db" && text.includes("self@example.com"))).toBe(
      true,
    );
    await server.start();
  });
});
