import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ninefold } from "../cli/run.ts";
import { FULL_ACCOUNT_ARGS, makeFullAccount } from "../support/full-account.ts";
import { type AccountClient, startTestServer, TestServer } from "../support/server.ts";

/** A server on the restored folder. */
class RestoredServer extends TestServer {
  constructor(folder: string, startMs: number) {
    super({ manualClock: { startMs }, args: FULL_ACCOUNT_ARGS });
    this.folder = folder;
  }
}

const EMAIL = "jane@example.com";
let folder: string;
let backup: string;
let restored: RestoredServer;
let account: AccountClient;
let operatorKey: string;
let probeToken: string;
let masterKey: string;
let receipts: unknown[];
let report: string;
let target: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-no-key-"));
  backup = join(folder, "backup.db");
  target = join(folder, "data");
  const server = await startTestServer({ manualClock: true, args: FULL_ACCOUNT_ARGS });
  ({ account } = await makeFullAccount(server, EMAIL));
  receipts = (await account.get("/v1/witness/receipts")).body["receipts"] as unknown[];
  operatorKey = server.key;
  probeToken = String((await account.post("/v1/pulse/probes", { name: "backed-up" })).body["token"]);
  const now = server.clock.now();
  await server.halt();
  masterKey = readFileSync(join(server.folder, "master.key"), "utf8");
  expect((await ninefold(["backup", backup, "--verify", "--data", server.folder])).code).toBe(0);
  await server.stop();
  const outcome = await ninefold(["restore", backup, "--without-master-key", "--data", target]);
  expect([outcome.code, outcome.error]).toEqual([0, ""]);
  report = outcome.out;
  restored = new RestoredServer(target, now);
  await restored.start();
  account = Object.assign(restored.client(account.key), { userId: account.userId, email: EMAIL });
}, 60_000);
afterAll(async () => {
  await restored?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function list(path: string, name: string): Promise<Record<string, unknown>[]> {
  const { status, body, text } = await account.get(path);
  expect(status, text).toBe(200);
  return body[name] as Record<string, unknown>[];
}

test("the report lists what has to be set again, with its account", () => {
  for (const part of [
    "signing secrets of endpoints: new ones are created",
    "headers of endpoints, which are paused",
    "headers of schedules, which are paused",
    "headers and client certificates of monitors, which are paused",
    "notification channels, which are deleted",
    "signing secrets and settings of buckets, which are paused",
    "signing keys of chains",
    "credentials of receipt storages",
    "the texts of ping keys",
    `"webhook Hook" of ${EMAIL}`,
    "the database has the master key of this folder now",
  ])
    expect(report).toContain(part);
  expect(report).toMatch(new RegExp(`chain wc_\\S+ "Default" of ${EMAIL}`));
});

test("a new master key is created, and nothing can be opened with the old one", () => {
  const created = readFileSync(join(target, "master.key"), "utf8");
  expect(created).toMatch(/^[0-9a-f]{64}\n$/);
  expect(created).not.toBe(masterKey);
});

describe("the server on the restored folder", () => {
  test("keys and tokens of probes still work, the operator's key too", async () => {
    expect((await account.get("/v1/meter/balance")).status).toBe(200);
    expect((await restored.client(operatorKey).get("/v1/admin/accounts")).status).toBe(200);
    expect((await restored.client(probeToken).get("/v1/probe/work?wait_ms=0")).status).toBe(200);
    expect((await account.post("/v1/keys/rotate", {})).status).toBe(200);
  });

  test("every list and resource can be read", async () => {
    for (const path of [
      "/v1/pulse",
      "/v1/pulse/channels",
      "/v1/relay",
      "/v1/relay/endpoints",
      "/v1/relay/schedules",
      "/v1/catch/buckets",
      "/v1/witness/receipts",
      "/v1/witness/config",
      "/v1/overview",
    ])
      expect([path, (await account.get(path)).status]).toEqual([path, 200]);
    const monitors = await list("/v1/pulse", "monitors");
    expect(monitors.length).toBeGreaterThan(3);
    for (const { monitor_id } of monitors)
      expect((await account.get(`/v1/pulse/${monitor_id}`)).status).toBe(200);
    for (const { id } of await list("/v1/catch/buckets", "buckets"))
      expect((await account.get(`/v1/catch/${id}/events`)).status).toBe(200);
  });

  test("what was sent with secrets is paused", async () => {
    const buckets = await list("/v1/catch/buckets", "buckets");
    expect(buckets.filter(({ provider }) => provider === "stripe")).toMatchObject([
      { has_signing_secret: false, state: "paused" },
    ]);
    const monitors = await list("/v1/pulse", "monitors");
    const paused = monitors.filter(({ active }) => active === false);
    expect(paused.map(({ url }) => url)).toEqual([
      "https://127.0.0.1:9/secured",
      "https://127.0.0.1:9/child",
    ]);
    expect(await list("/v1/pulse/channels", "channels")).toEqual([]);
    const schedules = await list("/v1/relay/schedules", "schedules");
    expect(schedules.map(({ state }) => state).sort()).toContain("paused");
    const failed = await list("/v1/relay?status=failed", "deliveries");
    expect(failed.map(({ error }) => error)).toContain(
      "its headers were lost in a restore without the master key",
    );
  });

  test("endpoints get new signing secrets", async () => {
    const [endpoint] = await list("/v1/relay/endpoints", "endpoints");
    const secret = await account.post(`/v1/relay/endpoints/${endpoint?.["endpoint_id"]}/secret/rotate`, {});
    expect(String(secret.body["secret"])).toStartWith("whsec_");
  });

  test("receipts still verify, and the chain accepts no more", async () => {
    expect((await account.get("/v1/witness/receipts")).body["receipts"]).toEqual(receipts as never);
    for (const receipt of receipts)
      expect((await account.post("/v1/witness/verify", { receipt })).body).toMatchObject({ valid: true });
    const added = await account.post("/v1/witness/log", { log: { event: "after" } });
    expect([added.status, added.body["code"]]).toEqual([409, "conflict"]);
    expect(added.text).toContain("The signing key of this chain was lost");
  });

  test("due work runs without an error", async () => {
    await restored.clock.advance(3 * 3_600_000);
    expect(restored.logs.filter(({ level }) => level === "error")).toEqual([]);
  }, 60_000);

  test("commands work on the stopped folder", async () => {
    await restored.halt();
    const { code, out } = await ninefold(["account", "list", "--data", target]);
    expect([code, out.includes(EMAIL)]).toEqual([0, true]);
    expect((await ninefold(["backup", join(folder, "again.db"), "--verify", "--data", target])).code).toBe(0);
  }, 60_000);
});

test("with the master key of the backup, nothing is removed", async () => {
  const other = join(folder, "other");
  const environment = { NINEFOLD_MASTER_KEY: masterKey.trim() };
  const line = ["restore", backup, "--without-master-key", "--data", other];
  const { code, error } = await ninefold(line, { environment });
  expect([code, error]).toEqual([
    1,
    "ninefold: The master key of this backup is available, so nothing needs to be removed. Omit --without-master-key. Nothing was changed.\n",
  ]);
  expect(existsSync(join(other, "ninefold.db"))).toBe(false);
});

test("a configured key becomes the key of the database", async () => {
  const other = join(folder, "configured");
  const key = "ab".repeat(32);
  const environment = { NINEFOLD_MASTER_KEY: key };
  const line = ["restore", backup, "--without-master-key", "--data", other];
  expect((await ninefold(line, { environment })).code).toBe(0);
  expect(existsSync(join(other, "master.key"))).toBe(false);
  expect((await ninefold(["account", "list", "--data", other], { environment })).code).toBe(0);
  writeFileSync(join(other, "master.key"), `${"cd".repeat(32)}\n`);
  expect((await ninefold(["account", "list", "--data", other])).code).toBe(1);
});
