import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "../../support/client.ts";
import { S3Server } from "../../support/s3-server.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");

let folder: string;
let s3: S3Server;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-notary-"));
  s3 = await new S3Server().start();
});
afterEach(async () => {
  await s3.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the server as a process of its own. */
async function spawn(): Promise<{ url: string; key: string | undefined; kill: () => Promise<unknown> }> {
  const args = ["serve", "--json", "--port", "0", "--data", folder, "--allow-private-targets", "127.0.0.0/8"];
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    env: { PATH: process.env.PATH ?? "" },
    stdout: "pipe",
    stderr: "ignore",
  });
  let line = "";
  for await (const piece of child.stdout) {
    line += new TextDecoder().decode(piece);
    if (line.includes("\n")) break;
  }
  const { url, api_key } = JSON.parse(line);
  const kill = (): Promise<unknown> => {
    child.kill("SIGKILL");
    return child.exited;
  };
  return { url, key: api_key, kill };
}

test("killed between the commit and the delivery: the receipt is there once, its answer too, and it is delivered", async () => {
  const first = await spawn();
  const key = String(first.key);
  const before = new Client(first.url, key);
  await before.post("/v1/witness/sys/init");
  await before.post("/v1/witness/config", s3.config());
  s3.mode = "hanging";
  const keyed = { headers: { "idempotency-key": "once" } };
  const lost = before.post("/v1/witness/log", { log: { n: 1 } }, keyed).catch(() => "lost");
  while (s3.requests.length === 0) await Bun.sleep(5);
  await first.kill();
  expect(await lost).toBe("lost");

  s3.mode = "up";
  const second = await spawn();
  const after = new Client(second.url, key);
  const repeat = await after.post("/v1/witness/log", { log: { n: 1 } }, keyed);
  expect(repeat.headers.get("idempotent-replayed")).toBe("true");
  expect({ status: repeat.status, body: repeat.body }).toMatchObject({
    status: 202,
    body: { sequence_id: "1", storage_status: "buffered" },
  });
  const { storage_status, ...receipt } = repeat.body;
  while ((await s3.object("witness/receipts/1.json")) === null) await Bun.sleep(50);
  expect(await s3.object("witness/receipts/1.json")).toBe(JSON.stringify(receipt));
  expect((await after.post("/v1/witness/log", { log: { n: 2 } })).body).toMatchObject({
    sequence_id: "2",
    prev_hash: String(receipt.chain_hash),
    storage_status: "delivered",
  });
  await second.kill();
}, 20_000);
