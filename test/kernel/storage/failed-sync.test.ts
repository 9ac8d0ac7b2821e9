import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServerProcess } from "../../harness/processes/server-process.ts";
import { Client } from "../../support/client.ts";
import { until } from "../../support/eventually.ts";
import { buildSyncedDisk, missingForSyncedDisk, SyncedDisk } from "../../support/synced-disk.ts";

const TIMEOUT_MS = 60_000;
const missing = missingForSyncedDisk();
if (missing !== null) console.log(`skipped: what failed syncs leave behind (${missing})`);

const folder = mkdtempSync(join(tmpdir(), "ninefold-shim-"));
let library = "";
beforeAll(() => {
  if (missing === null) library = buildSyncedDisk(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let disk: SyncedDisk;
let key = "";
afterEach(() => disk.remove());

/** A server with a meter of balance 5. */
async function started(...args: string[]): Promise<ServerProcess> {
  disk = new SyncedDisk(library);
  const server = await disk.start(...args);
  key = server.key ?? "";
  expect(await refill(server, 5)).toBe(200);
  return server;
}

async function refill(server: ServerProcess, amount: number): Promise<number> {
  return (await new Client(server.url, key).post("/v1/meter/m/refill", { amount })).status;
}

async function balance(server: ServerProcess): Promise<unknown> {
  return (await new Client(server.url, key).get("/v1/meter/m/balance")).body["balance"];
}

/** The exit code of a server that a failed sync has ended, after a look at its only line. */
async function endOf(server: ServerProcess, file: string): Promise<number> {
  const code = await server.exited;
  const lines = server.log.split("\n").filter((line) => line.includes('"level":"error"'));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`"file":"${join(disk.data, file)}"`);
  expect(lines[0]).toContain('"error":"');
  return code;
}

describe.skipIf(missing !== null)("a sync of the log that fails", () => {
  test(
    "ends the server without a response to what is unconfirmed; a restart makes durable what it shows",
    async () => {
      const server = await started();
      disk.fault("fail-wal-once");
      expect(await refill(server, 100).catch(() => 0)).toBe(0);
      expect(await endOf(server, "ninefold.db-wal")).toBe(74);
      // The system still has it, and counts it as written.
      expect(await balance(await disk.startAfterPowerCut())).toBe(5);
      const restarted = await disk.start();
      const seen = await balance(restarted);
      expect(seen).toBe(105);
      expect(await balance(await disk.startAfterPowerCut())).toBe(seen);
      expect(await refill(restarted, 1)).toBe(200);
      expect(await balance(await disk.startAfterPowerCut())).toBe(106);
    },
    TIMEOUT_MS,
  );

  test(
    "during a start leaves the file as it was: what the log lacks on the disk must not be there",
    async () => {
      const server = await started();
      disk.fault("fail-wal-once");
      expect(await refill(server, 100).catch(() => 0)).toBe(0);
      expect(await server.exited).toBe(74);
      const file = join(disk.data, "ninefold.db");
      const before = readFileSync(file);
      disk.fault("fail-wal-once");
      expect(await disk.start().catch(String)).toContain(`${file}-wal could not be synced: `);
      expect(readFileSync(file).equals(before)).toBe(true);
      expect(await balance(await disk.start())).toBe(105);
    },
    TIMEOUT_MS,
  );

  test(
    "ends it also during a start, and its restart, until the disk confirms",
    async () => {
      const server = await started();
      disk.fault("fail-wal");
      expect(await refill(server, 100).catch(() => 0)).toBe(0);
      expect(await endOf(server, "ninefold.db-wal")).toBe(74);
      expect(await disk.start().catch(String)).toContain("ninefold.db");
      disk.heal("fail-wal");
      expect([5, 105]).toContain((await balance(await disk.start())) as number);
    },
    TIMEOUT_MS,
  );
});

describe.skipIf(missing !== null)("while the disk confirms nothing", () => {
  /** A flag of another account, and its key. */
  async function otherAccount(server: ServerProcess): Promise<Client> {
    const operator = new Client(server.url, key);
    const account = await operator.post("/v1/admin/accounts", { email: "other@example.com", tier: "pro" });
    const other = new Client(server.url, String(account.body["api_key"]));
    expect((await other.post("/v1/gate", { flag_key: "f", enabled: true })).status).toBe(201);
    return other;
  }

  test(
    "reads of other accounts are served, those of the account wait for the change, and charges delay nobody",
    async () => {
      const server = await started();
      const other = await otherAccount(server);
      disk.fault("hold-wal");
      const before = framesIn();
      // Charged in memory, and written by a batch of its own within a second.
      expect((await other.get("/v1/gate/f")).status).toBe(200);
      await until(() => !framesIn().equals(before));
      expect((await other.get("/v1/gate/f")).status).toBe(200);
      expect(await balance(server)).toBe(5);
      disk.heal("hold-wal");
      expect(await refill(server, 1)).toBe(200);
      disk.fault("hold-wal");
      const earlier = framesIn();
      const order: string[] = [];
      const change = refill(server, 10).then((status) => order.push(`change ${status}`));
      await until(() => !framesIn().equals(earlier));
      const read = balance(server).then((value) => order.push(`read ${value}`));
      for (let count = 0; count < 20; count += 1) expect((await other.get("/v1/gate/f")).status).toBe(200);
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
      expect(order).toEqual([]);
      // The operator is told why changes wait.
      await until(() => server.log.includes('"unconfirmed_ms":'));
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      expect(Number(/^ninefold_commit_unconfirmed_seconds (.+)$/m.exec(metrics)?.[1])).toBeGreaterThan(0.9);
      disk.heal("hold-wal");
      await Promise.all([change, read]);
      expect(order.toSorted()).toEqual(["change 200", "read 16"]);
    },
    TIMEOUT_MS,
  );

  test(
    "what is written later, and is not confirmed yet, is not shown twice",
    async () => {
      const first = await started();
      const heartbeat = { type: "heartbeat", period_ms: 86_400_000 };
      const { body } = await new Client(first.url, key).post("/v1/pulse", heartbeat);
      // Nothing else is left to write.
      await first.stop();
      const server = await disk.start();
      const { pathname } = new URL(String(body["ping_url"]));
      for (let count = 0; count < 3; count += 1)
        expect((await fetch(server.url + pathname)).status).toBe(200);
      disk.fault("hold-wal");
      // The first ping has written its row, those after it get theirs now.
      await until(() => numberInFiles("SELECT count(*) AS n FROM heartbeat_pings") === 3);
      const shown = await new Client(server.url, key).get(`/v1/pulse/${body["id"]}/pings`);
      expect((shown.body["pings"] as object[]).length).toBe(3);
      disk.heal("hold-wal");
    },
    TIMEOUT_MS,
  );

  test(
    "nothing is sent that an unconfirmed change has caused",
    async () => {
      const arrived: string[] = [];
      using target = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: async (request) => {
          arrived.push(await request.text());
          return new Response("ok");
        },
      });
      const server = await started("--allow-private-targets", "loopback");
      const other = await otherAccount(server);
      disk.fault("hold-wal");
      const before = framesIn();
      const client = new Client(server.url, key);
      const relay = { target_url: target.url.href, method: "POST", delay: "0s", payload: { order: 1 } };
      const sent = client.post("/v1/relay", relay);
      await until(() => !framesIn().equals(before));
      for (let count = 0; count < 20; count += 1) await other.get("/v1/gate/f");
      expect(arrived).toEqual([]);
      disk.heal("hold-wal");
      expect((await sent).status).toBeLessThan(300);
      await until(() => arrived.length > 0);
    },
    TIMEOUT_MS,
  );
});

/** The content of the log without preallocated space. Its size need not grow: it may have been restarted. */
function framesIn(): Buffer {
  const log = readFileSync(join(disk.data, "ninefold.db-wal"));
  let end = log.length;
  while (end > 0 && log[end - 1] === 0) end -= 1;
  return log.subarray(0, end);
}

/** A number that a process would read from the files as they are now: a change whose frames are not all there does not count. */
function numberInFiles(query: string): number | null {
  const copy = mkdtempSync(join(folder, "copy-"));
  for (const name of ["ninefold.db", "ninefold.db-wal"])
    copyFileSync(join(disk.data, name), join(copy, name));
  using database = new Database(join(copy, "ninefold.db"));
  return database.query<{ readonly n: number }, []>(query).get()?.n ?? null;
}

/** The balance of the meter in the files. */
function balanceInFiles(): number | null {
  return numberInFiles("SELECT balance_after AS n FROM meter_entries ORDER BY sequence DESC LIMIT 1");
}

/** A server that is killed when a change is completely in the log, and not yet on the disk. */
async function killedBeforeSync(): Promise<void> {
  const server = await started();
  disk.fault("hold-wal");
  const unanswered = refill(server, 100).catch(() => 0);
  await until(() => balanceInFiles() === 105);
  await server.stop("SIGKILL");
  expect(await unanswered).toBe(0);
  disk.heal("hold-wal");
}

describe.skipIf(missing !== null)("after a kill between writing and syncing", () => {
  test(
    "the responses of the next start survive a power cut",
    async () => {
      await killedBeforeSync();
      const server = await disk.start();
      // Only the start may sync: neither a request's charge, nor a checkpoint.
      disk.fault("hold-wal");
      disk.fault("hold-db");
      const seen = await balance(server);
      expect(await balance(await disk.startAfterPowerCut())).toBe(seen);
      expect(seen).toBe(105);
    },
    TIMEOUT_MS,
  );

  test(
    "also while another process reads the log",
    async () => {
      await killedBeforeSync();
      const reader = new Database(join(disk.data, "ninefold.db"), { readwrite: true });
      reader.run("BEGIN");
      reader.query("SELECT count(*) FROM settings").get();
      const server = await disk.start();
      disk.fault("hold-wal");
      disk.fault("hold-db");
      expect(await balance(server)).toBe(105);
      expect(await balance(await disk.startAfterPowerCut())).toBe(105);
      expect(server.log).toContain("another process, such as a backup, reads the log");
      reader.close();
    },
    TIMEOUT_MS,
  );

  test(
    "a disk that confirms nothing fails the start with the name of the file",
    async () => {
      await killedBeforeSync();
      disk.fault("fail-wal");
      const error = await disk.start().catch(String);
      const file = join(disk.data, "ninefold.db");
      expect(error).toContain(`${file} cannot be opened (${file}-wal could not be synced: `);
    },
    TIMEOUT_MS,
  );
});

test.skipIf(missing !== null)(
  "a failed sync of the database ends the server, too, and the next one moves every page again",
  async () => {
    const server = await started();
    disk.fault("fail-db");
    let acknowledged = 5;
    // Until a pass of the checkpointer has something to move.
    while (!server.ended && (await refill(server, 1).catch(() => 0)) === 200) acknowledged += 1;
    expect(await endOf(server, "ninefold.db")).toBe(74);
    const log = statSync(join(disk.data, "ninefold.db-wal")).size;
    expect(log).toBeGreaterThan(0);
    disk.heal("fail-db");
    const restarted = (await balance(await disk.start())) as number;
    expect([acknowledged, acknowledged + 1]).toContain(restarted);
    expect(await balance(await disk.startAfterPowerCut())).toBe(restarted);
  },
  TIMEOUT_MS,
);
