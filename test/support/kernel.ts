import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import { closeKernel, type Kernel, openKernel } from "../../src/kernel/kernel.ts";
import { ManualClock } from "../../src/kernel/time/clock.ts";

/** A kernel without a server, on a folder of its own. */
export class TestKernel {
  readonly kernel: Kernel;
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-kernel-"));

  constructor() {
    this.kernel = openKernel({
      databasePath: join(this.folder, "ninefold.db"),
      masterKeyPath: join(this.folder, "master.key"),
      masterKey: null,
      durability: "normal",
      migrations: MIGRATIONS,
      clock: new ManualClock(),
      log: { debug() {}, info() {}, warn() {}, error() {} },
    });
  }

  /** Closes it and removes the folder. */
  close(): void {
    closeKernel(this.kernel);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
