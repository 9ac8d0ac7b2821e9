import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFile } from "../../../src/kernel/storage/log-file.ts";
import { LogSync } from "../../../src/kernel/storage/log-sync.ts";

test("confirms each sync once, one after another, and ends its thread while none runs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-sync-"));
  const database = join(folder, "db");
  writeFileSync(database, "");
  writeFileSync(`${database}-wal`, "");
  const sync = new LogSync(new LogFile(database, 4096));
  try {
    const ended: number[] = [];
    for (let count = 0; count < 500; count += 1) {
      const one = sync.begin().then(() => ended.push(count));
      // Without a wait between them, the thread also meets requests while it is still awake.
      if (count % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
      await one;
    }
    expect(ended).toEqual(Array.from({ length: 500 }, (_, count) => count));
    expect(sync.now()).toBe(true);
  } finally {
    sync.close();
    rmSync(folder, { recursive: true });
  }
});
