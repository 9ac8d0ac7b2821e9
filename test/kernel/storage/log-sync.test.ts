import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFile } from "../../../src/kernel/storage/log-file.ts";
import { LogSync } from "../../../src/kernel/storage/log-sync.ts";
import { buildShim, missingForShim } from "../../harness/powercut/build-shim.ts";

test("confirms each sync once, one after another, and ends its thread while none runs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-sync-"));
  const database = join(folder, "db");
  writeFileSync(database, "");
  writeFileSync(`${database}-wal`, "");
  const sync = new LogSync(new LogFile(database, 4096));
  try {
    const ended: number[] = [];
    for (let count = 0; count < 500; count += 1) {
      const one = Promise.resolve(sync.begin()).then(() => ended.push(count));
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

const missing = missingForShim();
if (missing !== null) console.log(`skipped: waiting for syncs (${missing})`);

describe.skipIf(missing !== null)("the event loop", () => {
  /** How many of 200 syncs have ended when `begin` returns, each of which takes so long. */
  function endedImmediately(syncMs: number): number {
    const folder = mkdtempSync(join(tmpdir(), "ninefold-sync-"));
    try {
      const { stdout, exitCode } = Bun.spawnSync(
        [process.execPath, join(import.meta.dir, "log-sync-process.ts"), join(folder, "db"), "200"],
        { env: { ...process.env, LD_PRELOAD: buildShim(folder), POWERCUT_SYNC_US: `${syncMs * 1_000}` } },
      );
      expect(exitCode).toBe(0);
      return Number(stdout.toString());
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test("waits for the syncs of a fast disk, once it has shown that it is one", () => {
    const ended = endedImmediately(0);
    expect(ended).toBeGreaterThan(0);
    expect(ended).toBeLessThan(200);
  });

  test("waits for no sync of a slow disk", () => {
    expect(endedImmediately(2)).toBe(0);
  });
});
