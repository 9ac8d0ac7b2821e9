import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UNREACHABLE_MS } from "../../../src/areas/notary/restores.ts";
import { ninefold } from "../../cli/run.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { S3Server } from "../../support/s3-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let s3: S3Server;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());
beforeEach(async () => {
  s3 = await new S3Server().start();
});
afterEach(() => s3.stop());

const NOTE = JSON.stringify({ file: "copy.db", backup_created_at: "2026-03-10T11:00:00Z", restored_at: "x" });
const ACCEPT = "/v1/witness/accept-fork";
const NEWEST = "(SELECT max(ref) FROM chains)";

/** A chain of three receipts with a checkpoint; with a storage, they are in it. */
async function chainOf(account: AccountClient, storage: boolean) {
  const { chain_id } = (await account.post("/v1/witness/sys/init")).body;
  if (storage) await account.post("/v1/witness/config", s3.config());
  for (const n of [1, 2, 3]) await account.post("/v1/witness/log", { log: { n } });
  const lost = (await account.get("/v1/witness/checkpoint")).text;
  return { chainId: String(chain_id), lost };
}

/**
 * Puts the newest chain into the state after a restore of a backup from its second receipt, and starts the server on
 * it.
 */
const restore = (): Promise<void> => restoreChain(NEWEST);

/** The same for the chain with an id. */
const restoreOf = (chainId: string): Promise<void> =>
  restoreChain(`(SELECT ref FROM chains WHERE chain_id = '${chainId}')`);

async function restoreChain(chain: string): Promise<void> {
  const { db, writer } = server.server.kernel;
  const statements = [
    ...["receipts", "receipt_leaves", "receipt_copies"].map(
      (table) => `DELETE FROM ${table} WHERE chain_ref = ${chain} AND sequence > 2`,
    ),
    `DELETE FROM notary_checkpoints WHERE chain_ref = ${chain} AND size > 2`,
    "DELETE FROM jobs WHERE kind LIKE 'notary.%'",
    `UPDATE chains SET epoch = epoch + 1, fork = NULL, restored = '${NOTE}' WHERE ref = ${chain}`,
  ].map((sql) => db.change(sql));
  await writer.submit((tx) => {
    for (const run of statements) run(tx);
  });
  await server.restart();
  await server.clock.advance(0);
}

const log = (client: Client, n: number) => client.post("/v1/witness/log", { log: { n } });

function declared(chainId: string) {
  return {
    sequence_id: "3",
    log: {
      ninefold: "restored",
      backup_made_at: "2026-03-10T11:00:00Z",
      previous_origin: `ninefold/${chainId}`,
      size: 2,
    },
  };
}

describe("a restored chain", () => {
  test("declares the restore, and its checkpoints get another origin, so that verify says where the histories part", async () => {
    const account = await server.account();
    const { chainId, lost } = await chainOf(account, false);
    await restore();
    const client = server.client(account.key);
    expect((await client.get("/v1/witness/receipts/3")).body).toMatchObject(declared(chainId));
    expect((await log(client, 4)).body["sequence_id"]).toBe("4");
    const checkpoint = (await client.get("/v1/witness/checkpoint")).text;
    expect(checkpoint).toStartWith(`ninefold/${chainId}/e1\n4\n`);
    const files = ["chain", "lost", "new"].map((name) => join(tmpdir(), `ninefold-${chainId}-${name}`));
    const [chain = "", old = "", present = ""] = files;
    try {
      writeFileSync(chain, (await client.get("/v1/witness/export")).text);
      writeFileSync(old, lost);
      writeFileSync(present, checkpoint);
      expect((await ninefold(["verify", chain, "--checkpoint", present])).code).toBe(0);
      expect(await ninefold(["verify", chain, "--checkpoint", present, "--checkpoint", old])).toEqual({
        code: 1,
        out: `not valid: The chain was restored from a backup: it parts from the checkpoint of ninefold/${chainId} after receipt 2. The checkpoint covers 3.\n`,
        error: "",
      });
    } finally {
      for (const file of files) rmSync(file, { force: true });
    }
  });

  test("signs nothing while its storage has seen more, until the fork is accepted", async () => {
    const account = await server.account();
    const { chainId } = await chainOf(account, true);
    await restore();
    const client = server.client(account.key);
    for (const answer of [await log(client, 4), await client.get("/v1/witness/checkpoint")]) {
      expectError(answer, "notary.fork_detected");
      expect(answer.text).toContain("has 2 receipts, but the storage has 3");
      expect(answer.text).toContain(`ninefold notary accept-fork ${chainId}`);
    }
    const { balance } = (await client.get("/v1/meter/balance")).body;
    const environment = { NINEFOLD_API_KEY: String(account.key), NINEFOLD_URL: server.url };
    const accepted = await ninefold(["notary", "accept-fork", chainId], { environment });
    expect([accepted.code, accepted.error]).toEqual([0, ""]);
    expect((await client.get("/v1/meter/balance")).body["balance"]).toBe(balance as number);
    expect((await client.get("/v1/witness/receipts/3")).body).toMatchObject(declared(chainId));
    expect((await log(client, 4)).body["sequence_id"]).toBe("4");
    expect((await client.get("/v1/witness/checkpoint")).text).toStartWith(`ninefold/${chainId}/e1\n`);
    expectError(await client.post(ACCEPT, { chain_id: chainId }), "conflict");
  });

  test("stays forked after another start", async () => {
    const account = await server.account();
    await chainOf(account, true);
    await restore();
    await server.restart();
    expectError(await log(server.client(account.key), 4), "notary.fork_detected");
  });

  test("continues immediately if its storage has no more than the backup", async () => {
    const account = await server.account();
    const { chainId } = await chainOf(account, true);
    await account.post("/v1/witness/config", { ...s3.config(), prefix: "other" });
    await restore();
    expect((await server.client(account.key).get("/v1/witness/receipts/3")).body).toMatchObject(
      declared(chainId),
    );
  });

  test.each([
    ["an empty object", ""],
    ["something else", "hello"],
    ["a receipt of another position", "2.json"],
    ["a receipt of another chain", "other"],
    ["a receipt with a changed signature", "changed"],
  ])("continues if its storage has %s in place of the next receipt", async (_, placed) => {
    const account = await server.account();
    const { chainId } = await chainOf(account, true);
    const next = "witness/receipts/3.json";
    const third = (await s3.object(next)) ?? "";
    let text = placed;
    if (placed === "2.json") text = (await s3.object("witness/receipts/2.json")) ?? "";
    if (placed === "changed")
      text = third.replace(/"signature":"(.)/, (_all, digit) => `"signature":"${digit === "0" ? "1" : "0"}`);
    if (placed === "other") {
      const other = await server.account();
      await other.post("/v1/witness/sys/init");
      for (const n of [1, 2]) await other.post("/v1/witness/log", { log: { n } });
      text = JSON.stringify((await other.post("/v1/witness/log", { log: { n: 3 } })).body);
    }
    expect(text).not.toBe(third);
    await s3.place(next, text);
    // The range of an empty object, for which the server of the tests has no response.
    if (text === "") s3.before = ({ method, path }) => (method === "GET" && path.endsWith(next) ? 416 : null);
    await restoreOf(chainId);
    const client = server.client(account.key);
    expect((await client.get("/v1/witness/receipts/3")).body).toMatchObject(declared(chainId));
    expect((await log(client, 4)).status).toBeLessThan(300);
  });

  test("waits for a storage that does not respond, for a day", async () => {
    const account = await server.account();
    await chainOf(account, true);
    s3.mode = "down";
    await restore();
    const client = server.client(account.key);
    const waiting = await log(client, 4);
    expectError(waiting, "service_unavailable");
    expect(waiting.headers.get("retry-after")).toBe("1");
    expectError(await client.get("/v1/witness/checkpoint"), "service_unavailable");
    await server.clock.advance(UNREACHABLE_MS / 2);
    expect((await log(client, 4)).status).toBe(503);
    await server.clock.advance(UNREACHABLE_MS / 2 + 10 * 60_000);
    expect((await log(client, 4)).body["sequence_id"]).toBe("4");
  });

  test("can be continued manually while its storage does not respond", async () => {
    const account = await server.account();
    const { chainId } = await chainOf(account, true);
    s3.mode = "down";
    await restore();
    const client = server.client(account.key);
    expect((await client.post(ACCEPT, { chain_id: chainId })).body).toEqual({
      chain_id: chainId,
      sequence_id: "3",
    });
  });

  test("gets another epoch with each restore", async () => {
    const account = await server.account();
    const { chainId } = await chainOf(account, false);
    await restore();
    await server.client(account.key).get("/v1/witness/checkpoint");
    await restore();
    const { text } = await server.client(account.key).get("/v1/witness/checkpoint");
    expect(text).toStartWith(`ninefold/${chainId}/e2\n`);
    const { log: entry } = (await server.client(account.key).get("/v1/witness/receipts/3")).body;
    expect(entry).toMatchObject({ previous_origin: `ninefold/${chainId}/e1` });
  });
});

describe(`POST ${ACCEPT}`, () => {
  test("400 no chain, 401 no key, 404 an unknown chain", async () => {
    const account = await server.account();
    expectError(await account.post(ACCEPT, {}), "validation_error");
    expectError(await server.client(null).post(ACCEPT, { chain_id: "wc_x" }), "unauthorized");
    expectError(await account.post(ACCEPT, { chain_id: "wc_x" }), "not_found");
  });

  test("409 a chain without a fork, for its account and for the operator; 404 for everybody else", async () => {
    const [account, other] = [await server.account(), await server.account()];
    const { chain_id } = (await account.post("/v1/witness/sys/init")).body;
    expectError(await account.post(ACCEPT, { chain_id }), "conflict");
    expectError(await server.operator.post(ACCEPT, { chain_id }), "conflict");
    expectError(await other.post(ACCEPT, { chain_id }), "not_found");
  });

  test("404 a chain of another project, for a key of one project", async () => {
    const account = await server.account();
    const { chain_id } = (await account.post("/v1/witness/sys/init")).body;
    const { body: project } = await account.post("/v1/projects", { name: "Other" });
    const created = await account.post(`/v1/projects/${project["id"]}/keys`, {
      prefix: "sm",
      name: "k",
      scopes: ["*"],
    });
    const key = String(created.body["secret"]);
    expectError(await server.client(key).post(ACCEPT, { chain_id }), "not_found");
  });
});
