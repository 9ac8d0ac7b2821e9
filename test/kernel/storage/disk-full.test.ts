import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../../src/config.ts";
import { type Server, startServer } from "../../../src/server.ts";
import { type Answer, Client } from "../../support/client.ts";
import { memoryDisk } from "../../support/memory-disk.ts";
import vectors from "../../vectors/keys-and-signatures.json" with { type: "json" };
import { KeptLog } from "../support.ts";

/** A place for a data folder that can be full and then have space again. */
interface Disk {
  readonly folder: string;
  fill(server: Server): void;
  /** `server` is null when it has been stopped. */
  freeSpace(server: Server | null): void;
  remove(): void;
}

const OPERATOR_KEY = vectors.keys[0]?.key ?? "";

/** Any folder, with a file that SQLite may not let grow: it says SQLITE_FULL as on a full disk. */
function pageLimit(): Disk {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-disk-"));
  return {
    folder,
    // A limit below the present size acts as the present size.
    fill: ({ kernel }) => kernel.db.execute("PRAGMA max_page_count = 1"),
    freeSpace: (server) => server?.kernel.db.execute("PRAGMA max_page_count = 1073741823"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const memory = memoryDisk();
const disks: [string, Disk][] = [["a file that may not grow", pageLimit()]];
if (memory !== null) disks.push(["a file system without room", memory]);
afterAll(() => {
  for (const [, disk] of disks) disk.remove();
});

/** Refills a meter one by one, ten concurrently, until one is rejected; counts the acknowledged ones. */
async function refillUntilRefused(client: Client): Promise<{ acknowledged: number; refused: Answer }> {
  let acknowledged = 0;
  for (let round = 0; round < 1_000; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => client.post("/v1/meter/full/refill", { amount: 1 })),
    );
    acknowledged += answers.filter(({ status }) => status === 200).length;
    const refused = answers.find(({ status }) => status !== 200);
    if (refused !== undefined) return { acknowledged, refused };
  }
  throw new Error("10,000 changes, and the disk is still not full");
}

describe.each(disks)("a full disk: %s", (_, disk) => {
  test("rejects writes with 503, serves reads, resumes by itself, and loses no acknowledged change", async () => {
    const log = new KeptLog();
    const config = loadConfig(["--port", "0", "--durability", "normal"], {
      NINEFOLD_OPERATOR_KEY: OPERATOR_KEY,
    });
    let server = await startServer(disk.folder, config, { log });
    const created = await new Client(server.url, OPERATOR_KEY).post("/v1/admin/accounts", {
      email: "full@example.com",
      tier: "pro",
      balance: 100_000,
    });
    const customerKey = String(created.body["api_key"]);
    let customer = new Client(server.url, customerKey);
    // The operator has no rate limit; meters of different accounts share the disk.
    const operator = new Client(server.url, OPERATOR_KEY);
    expect((await customer.post("/v1/meter/mine/refill", { amount: 5 })).status).toBe(200);

    disk.fill(server);
    const { acknowledged, refused } = await refillUntilRefused(operator);
    expect(refused.status).toBe(503);
    expect(refused.body["code"]).toBe("read_only");
    expect(refused.headers.get("retry-after")).toBe("1");
    // Not `failing`: an update that needs no new page may have succeeded since.
    expect(server.kernel.writer.stats.failures).toBeGreaterThan(0);

    const balance = async (client: Client, path: string) => (await client.get(path)).body["balance"];
    expect(await balance(operator, "/v1/meter/full/balance")).toBe(acknowledged);
    // Rejected repeatedly, and never charged for.
    const charged = 100_000 - Number(await balance(customer, "/v1/meter/balance"));
    const refusals = await Promise.all(
      Array.from({ length: 5 }, () => customer.post("/v1/meter/mine/refill", { amount: 1_000_000 })),
    );
    const got = refusals.filter(({ status }) => status === 200).length;
    expect(refusals.filter(({ status }) => status === 503).length).toBe(5 - got);
    expect(await balance(customer, "/v1/meter/mine/balance")).toBe(5 + got * 1_000_000);
    expect(await balance(customer, "/v1/meter/balance")).toBe(100_000 - charged - got);
    expect((await operator.get("/v1/ping")).status).toBe(200);

    disk.freeSpace(server);
    const resumed = await operator.post("/v1/meter/full/refill", { amount: 1 });
    expect(resumed.body).toEqual({ balance: acknowledged + 1, meter_id: "full" });
    expect(server.kernel.writer.stats.failing).toBeNull();
    expect(log.messages("info")).toContain("the database can be written again");

    await server.stop();
    server = await startServer(disk.folder, config, { log });
    customer = new Client(server.url, customerKey);
    expect(await balance(new Client(server.url, OPERATOR_KEY), "/v1/meter/full/balance")).toBe(
      acknowledged + 1,
    );
    expect(await balance(customer, "/v1/meter/mine/balance")).toBe(5 + got * 1_000_000);
    expect(await balance(customer, "/v1/meter/balance")).toBe(100_000 - charged - got);
    await server.stop();
  });

  test("stops in order meanwhile; the next start has everything", async () => {
    const log = new KeptLog();
    const config = loadConfig(["--port", "0", "--durability", "normal"], {
      NINEFOLD_OPERATOR_KEY: OPERATOR_KEY,
    });
    let server = await startServer(disk.folder, config, { log });
    const before = await new Client(server.url, OPERATOR_KEY).get("/v1/meter/full/balance");
    disk.fill(server);
    const { acknowledged } = await refillUntilRefused(new Client(server.url, OPERATOR_KEY));
    await server.stop();
    disk.freeSpace(null);
    server = await startServer(disk.folder, config, { log });
    const after = await new Client(server.url, OPERATOR_KEY).get("/v1/meter/full/balance");
    expect(after.body["balance"]).toBe(Number(before.body["balance"]) + acknowledged);
    await server.stop();
  });
});
