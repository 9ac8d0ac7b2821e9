import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "../../support/client.ts";
import { expectConsistent, readLedger } from "../../support/ledger.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");
const METERS = 300;

describe("an orderly restart", () => {
  let server: TestServer;
  afterEach(() => server.stop());

  test("preserves balances, ledgers and the chain of entries, and writes every row", async () => {
    server = await startTestServer({ manualClock: true, durable: true });
    const account = await server.account({ balance: 10_000 });
    const change = (client: Client): Promise<unknown> =>
      Promise.all(
        Array.from({ length: METERS }, (_, index) =>
          client.post(`/v1/meter/m${index}/refill`, { amount: index + 1 }),
        ),
      );
    await change(account);
    await server.restart();
    const backlog = server.server.kernel.db.one<{ n: number }>(
      "SELECT count(*) AS n FROM meters WHERE last_sequence <> (SELECT max(sequence) FROM meter_entries WHERE meter_ref = ref) OR balance = 0",
    )();
    expect(backlog?.n).toBe(0);
    const after = server.client(account.key);
    await change(after);
    for (const index of [0, 1, METERS - 1]) {
      const expected = 2 * (index + 1);
      expect((await after.get(`/v1/meter/m${index}/balance`)).body.balance).toBe(expected);
      expectConsistent(await readLedger(after, `/v1/meter/m${index}/history`), expected);
    }
    expect((await after.get("/v1/meter/balance")).body.balance).toBe(10_000 - 2 * METERS);
  });
});

describe("kill -9", () => {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-killed-"));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Starts the server as a separate process; its first line of output has its address. */
  async function spawn(): Promise<{ url: string; key: string | undefined; kill: () => Promise<void> }> {
    const child = Bun.spawn([process.execPath, MAIN, "serve", "--json", "--port", "0", "--data", folder], {
      env: { PATH: process.env.PATH ?? "" },
      stdout: "pipe",
      stderr: "ignore",
    });
    const reader = child.stdout.getReader();
    let line = "";
    while (!line.includes("\n")) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the server ended before it was ready");
      line += new TextDecoder().decode(value);
    }
    const { url, api_key } = JSON.parse(line) as { url: string; api_key?: string };
    const kill = async (): Promise<void> => {
      child.kill("SIGKILL");
      await child.exited;
    };
    return { url, key: api_key, kill };
  }

  test("loses no acknowledged change: entries after the last flush are restored", async () => {
    const first = await spawn();
    const key = first.key ?? "no key";
    const client = new Client(first.url, key);
    const settledBefore = await Promise.all(
      Array.from({ length: METERS }, (_, index) =>
        client.post(`/v1/meter/m${index}/refill`, { amount: 10 + index }),
      ),
    );
    const deducted = await Promise.all(
      Array.from({ length: METERS }, (_, index) => client.post(`/v1/meter/m${index}/deduct`, { amount: 3 })),
    );
    const headers = { "idempotency-key": "before-the-crash" };
    const own = await client.post("/v1/meter/refill", { amount: 77 }, { headers });
    await first.kill();
    for (const { status } of [...settledBefore, ...deducted, own]) expect(status).toBe(200);

    const second = await spawn();
    try {
      expect(second.key).toBeUndefined();
      const again = new Client(second.url, key);
      for (let index = 0; index < METERS; index += 37) {
        const path = `/v1/meter/m${index}`;
        expect((await again.get(`${path}/balance`)).body.balance).toBe(7 + index);
        expect((await again.post(`${path}/refill`, { amount: 1 })).body.balance).toBe(8 + index);
        const entries = await readLedger(again, `${path}/history`);
        expect(entries.map(({ kind }) => kind)).toEqual(["refill", "deduct", "refill"]);
        expectConsistent(entries, 8 + index);
      }
      const replayed = await again.post("/v1/meter/refill", { amount: 77 }, { headers });
      expect(replayed.text).toBe(own.text);
      expect((await again.get("/v1/meter/balance")).body.balance).toBe(77);
    } finally {
      await second.kill();
    }
  });
});
