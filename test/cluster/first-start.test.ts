import { afterAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OfflineDatabase } from "../../src/kernel/storage/offline.ts";
import { startEtcd } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { buildSyncedDisk, missingForSyncedDisk, SyncedDisk } from "../support/synced-disk.ts";

const TIMEOUT_MS = 120_000;

const cleanup = new Cleanup();
const folder = mkdtempSync(join(tmpdir(), "ninefold-first-start-"));
afterAll(async () => {
  await cleanup.run();
  rmSync(folder, { recursive: true });
}, TIMEOUT_MS);

test.skipIf(missingForSyncedDisk() !== null)(
  "what the first leader's start writes, which no entry of the log has, outlasts a power cut",
  async () => {
    const engine = await startEtcd(cleanup, 1);
    const disk = new SyncedDisk(buildSyncedDisk(folder));
    try {
      await disk.start("--commit-log", engine.url, "--cell", "first");
      const path = join(folder, "ninefold.db");
      for (const suffix of ["", "-wal"])
        if (existsSync(join(disk.synced, `ninefold.db${suffix}`)))
          copyFileSync(join(disk.synced, `ninefold.db${suffix}`), path + suffix);
      using db = OfflineDatabase.readWithLog(path);
      expect(db.all("SELECT name FROM settings")).not.toBeEmpty();
    } finally {
      await disk.remove();
    }
  },
  TIMEOUT_MS,
);
