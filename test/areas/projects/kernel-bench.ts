import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { type Kernel, openKernel } from "../../../src/kernel/kernel.ts";
import { ManualClock } from "../../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../../support/server.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** A kernel on a folder of its own, for services without their server. */
export class KernelBench {
  readonly clock = new ManualClock(TEST_START_MS);
  readonly kernel: Kernel;
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-bench-"));

  constructor() {
    this.kernel = openKernel({
      databasePath: join(this.folder, "ninefold.db"),
      masterKeyPath: join(this.folder, "master.key"),
      masterKey: null,
      durability: "normal",
      migrations: MIGRATIONS,
      clock: this.clock,
      log: SILENT,
    });
  }

  close(): void {
    this.kernel.writer.close();
    this.kernel.checkpointer.close();
    this.kernel.db.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
