import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND, ServerProcess } from "../../harness/processes/server-process.ts";
import { Client } from "../../support/client.ts";
import { S3Server } from "../../support/s3-server.ts";

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

function start(): Promise<ServerProcess> {
  const args = ["--port", "0", "--data", folder, "--allow-private-targets", "127.0.0.0/8"];
  return ServerProcess.start({ command: NINEFOLD_COMMAND, args });
}

test("after a kill between commit and delivery the receipt exists once, its response is stored, and its copy is delivered", async () => {
  const first = await start();
  const key = String(first.key);
  const before = new Client(first.url, key);
  await before.post("/v1/witness/sys/init");
  await before.post("/v1/witness/config", s3.config());
  s3.mode = "hanging";
  const keyed = { headers: { "idempotency-key": "once" } };
  const lost = before.post("/v1/witness/log", { log: { n: 1 } }, keyed).catch(() => "lost");
  while (s3.requests.length === 0) await Bun.sleep(5);
  await first.stop("SIGKILL");
  expect(await lost).toBe("lost");

  s3.mode = "up";
  const second = await start();
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
  await second.stop("SIGKILL");
}, 60_000);
