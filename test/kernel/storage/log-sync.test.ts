import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFile } from "../../../src/kernel/storage/log-file.ts";
import { LogSync, SYNC_NUMBER_MAX } from "../../../src/kernel/storage/log-sync.ts";

test("syncs more often than the thread's numbers reach, since servers run for months", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-sync-"));
  const database = join(folder, "db");
  writeFileSync(database, "");
  writeFileSync(`${database}-wal`, "");
  const sync = new LogSync(new LogFile(database, 4096), SYNC_NUMBER_MAX - 1);
  try {
    for (let count = 0; count < 4; count += 1) await sync.begin();
  } finally {
    sync.close();
    rmSync(folder, { recursive: true });
  }
  expect(SYNC_NUMBER_MAX).toBe(2 ** 31 - 1);
});
