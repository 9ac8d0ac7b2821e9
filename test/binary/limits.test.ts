import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES, scanLog } from "../../src/kernel/storage/log-scan.ts";
import { ServerProcess } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { eventually } from "../support/eventually.ts";
import { memoryGroup } from "../support/limits.ts";
import { memoryDisk } from "../support/memory-disk.ts";
import { Binaries, executable, runToEnd, TIMEOUT_MS } from "./support.ts";

const MIB = 1024 * 1024;
/** What a small container has. */
const MEMORY_BYTES = 140 * MIB;
/** Far fewer than any system gives: the server itself holds some thirty. */
const DESCRIPTORS = 64;
/** As few as a shell may give; half of the idle connections are too many. */
const FEW_DESCRIPTORS = 256;
/** SQLite's own, which every Ninefold file has. */
const PAGE_BYTES = 4096;
/** A payload that takes a dozen pages of the database. */
const LARGE_PAYLOAD = { text: "x".repeat(50_000) };

/** Keys of the operator and of a customer. */
interface Keys {
  readonly key: string;
  readonly account: string;
}

/** A target that never answers. */
let silentAsked = 0;
const silent = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch: () => {
    silentAsked += 1;
    return new Promise<Response>(() => {});
  },
});

const binaries = new Binaries();
const disk = memoryDisk();
const group = memoryGroup(MEMORY_BYTES);
if (disk === null) console.log("skipped: a start on a full disk (no file system may be mounted here)");
if (group === null) console.log("skipped: a start in 140 MiB (no memory group may be made here)");
afterAll(async () => {
  await binaries.close();
  await silent.stop(true);
  disk?.remove();
  group?.remove();
});

/** Runs the executable in a shell that first does this. */
function startedBy(shell: string, data: string): Promise<ServerProcess> {
  const command = ["sh", "-c", `${shell} && exec "$0" "$@"`, executable()];
  return ServerProcess.start({ command, args: ["--port", "0", "--data", data] });
}

const refill = (client: Client) => client.post("/v1/meter/m/refill", { amount: 1 });
const credits = async (url: string, key: string) =>
  (await new Client(url, key).get("/v1/meter/balance")).body["balance"];
const balance = async (client: Client) => (await client.get("/v1/meter/m/balance")).body["balance"];

describe.skipIf(disk === null)("a second start on a full disk", () => {
  /** A server that was killed with a log that the database must grow for. */
  async function killed(data: string): Promise<Keys> {
    const first = await binaries.start(["--data", data]);
    await first.stop();
    const key = first.key ?? "";
    const server = await binaries.start(["--data", data, "--allow-private-targets", "127.0.0.0/8"]);
    const operator = new Client(server.url, key);
    expect((await refill(operator)).status).toBe(200);
    const account = await checking(operator, server.url);
    // What is newer than a reader is not moved into the file.
    const reader = new Database(join(data, "ninefold.db"));
    reader.run("BEGIN; SELECT count(*) FROM settings");
    const before = statSync(join(data, "ninefold.db")).size;
    for (let number = 0; number < 5; number += 1) {
      const relay = {
        target_url: "https://example.com/",
        method: "POST",
        delay: "1d",
        payload: LARGE_PAYLOAD,
        headers: {},
      };
      expect((await operator.post("/v1/relay", relay)).status).toBe(201);
    }
    reader.close();
    await server.stop("SIGKILL");
    expect(statSync(join(data, "ninefold.db")).size - before).toBeLessThan(200_000);
    const log = join(data, "ninefold.db-wal");
    expect(statSync(log).size).toBeGreaterThan(250_000);
    // Frames of an earlier turn of the log behind those that count would be room for changes.
    truncateSync(log, LOG_HEADER_BYTES + (scanLog(log)?.frames ?? 0) * (FRAME_HEADER_BYTES + PAGE_BYTES));
    return { key, account };
  }

  /** The key of an account of 1,000 credits, of which a monitor has cost one, and its check, which goes on, another one. */
  async function checking(operator: Client, url: string): Promise<string> {
    const terms = { email: `${crypto.randomUUID()}@example.com`, tier: "starter", balance: 1_000 };
    const { body } = await operator.post("/v1/admin/accounts", terms);
    const account = new Client(url, String(body["api_key"]));
    const created = await account.post("/v1/pulse", { url: silent.url.href, interval: 300_000 });
    const check = `/v1/pulse/${created.body["id"]}/check`;
    const asked = silentAsked;
    account.post(check, {}, { headers: { "idempotency-key": "check" } }).catch(() => {});
    while (silentAsked === asked) await Bun.sleep(5);
    return account.key ?? "";
  }

  test(
    "with a log that has to be made durable: reads are served, changes refused, nothing is lost",
    async () => {
      if (disk === null) return;
      const data = join(disk.folder, "data");
      const { key, account } = await killed(data);
      disk.fill();
      for (const signal of ["SIGKILL", "SIGTERM"] as const) {
        const server = await binaries.start(["--data", data]);
        const operator = new Client(server.url, key);
        expect(await balance(operator)).toBe(1);
        expect((await operator.get("/v1/relay")).body["deliveries"]).toHaveLength(5);
        expect(server.log).toContain(
          "the disk is full: reads are served, changes are rejected until there is space",
        );
        expect((await refill(operator)).status).toBe(503);
        expect(await credits(server.url, account)).toBe(998);
        await server.stop(signal);
      }
      disk.freeSpace();
      const server = await binaries.start(["--data", data]);
      const operator = new Client(server.url, key);
      expect(await balance(operator)).toBe(1);
      expect((await operator.get("/v1/relay")).body["deliveries"]).toHaveLength(5);
      expect((await refill(operator)).status).toBe(200);
      // The check that the kill has cut off.
      expect(await credits(server.url, account)).toBe(999);
      expect(await server.stop()).toBe(0);
      expect(server.warnings).toBe("");
      rmSync(data, { recursive: true });
    },
    TIMEOUT_MS,
  );

  test(
    "without room even to read the log: one line that names the file",
    async () => {
      if (disk === null) return;
      const data = join(disk.folder, "other");
      const { key } = await killed(data);
      rmSync(join(data, "ninefold.db-shm"));
      disk.fill();
      const ended = await runToEnd(["serve", "--port", "0", "--data", data]);
      expect(ended.code).toBe(1);
      expect(ended.error).toMatch(/^ninefold: [^\n]+\n$/);
      expect(ended.error).toContain(data);
      expect(ended.error).not.toContain("SQLiteError");
      disk.freeSpace();
      const server = await binaries.start(["--data", data]);
      expect(await balance(new Client(server.url, key))).toBe(1);
      await server.stop();
    },
    TIMEOUT_MS,
  );
});

test.skipIf(group === null)(
  "in a container with 140 MiB a first and a second start serve, after a kill too",
  async () => {
    if (group === null) return;
    const data = binaries.data();
    let key = "";
    for (let round = 1; round <= 2; round += 1) {
      const server = await startedBy(group.enter, data);
      if (round === 1) key = server.key ?? "";
      const operator = new Client(server.url, key);
      for (let burst = 0; burst < 20; burst += 1) {
        const answers = await Promise.all(Array.from({ length: 25 }, () => refill(operator)));
        expect(answers.every(({ status }) => status === 200)).toBe(true);
      }
      expect(await balance(operator)).toBe(round * 500);
      expect(server.ended).toBe(false);
      await server.stop("SIGKILL");
    }
    expect(Number(readFileSync(group.peakFile, "utf8"))).toBeLessThanOrEqual(MEMORY_BYTES);
  },
  TIMEOUT_MS,
);

test(
  "with 64 descriptors a first and a second start serve",
  async () => {
    const data = binaries.data();
    let key = "";
    for (let round = 1; round <= 2; round += 1) {
      const server = await startedBy(`ulimit -n ${DESCRIPTORS}`, data);
      if (round === 1) key = server.key ?? "";
      const operator = new Client(server.url, key);
      await Promise.allSettled(Array.from({ length: DESCRIPTORS / 4 }, () => operator.get("/v1/ping")));
      for (let change = 0; change < 20; change += 1) expect((await refill(operator)).status).toBe(200);
      expect(await balance(operator)).toBe(round * 20);
      await server.stop("SIGKILL");
    }
  },
  TIMEOUT_MS,
);

test.skipIf(process.platform !== "linux")(
  "idle connections of strangers leave descriptors for requests, and for the first checkpoint",
  async () => {
    const server = await startedBy(`ulimit -n ${FEW_DESCRIPTORS}`, binaries.data());
    const { hostname, port } = new URL(server.url);
    let closed = 0;
    const idle = Array.from({ length: 2 * FEW_DESCRIPTORS }, () =>
      connect(Number(port), hostname)
        .on("error", () => undefined)
        .on("close", () => {
          closed += 1;
        }),
    );
    try {
      await eventually(() => expect(closed).toBeGreaterThan(FEW_DESCRIPTORS / 2));
      const operator = new Client(server.url, server.key ?? "");
      // More than the log holds without a checkpoint.
      for (let change = 0; change < 40; change += 1) {
        const flag = { flag_key: `f${change}`, enabled: true };
        expect((await operator.post("/v1/gate", flag)).status).toBe(201);
        const sent = {
          target_url: "http://127.0.0.1:9/",
          method: "POST",
          delay: "1h",
          payload: LARGE_PAYLOAD,
        };
        await operator.post("/v1/relay", sent);
      }
      expect(server.log).toContain("connections were closed");
      expect((await operator.get("/v1/gate/f0")).status).toBe(200);
    } finally {
      for (const socket of idle) socket.destroy();
      await server.stop("SIGKILL");
    }
  },
  TIMEOUT_MS,
);
