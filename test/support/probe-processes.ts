import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND, plainEnvironment } from "../harness/processes/server-process.ts";

/** Processes of `ninefold probe`. */
export class ProbeProcesses {
  /** For files of the test. */
  readonly folder = mkdtempSync(join(tmpdir(), "ninefold-probe-"));
  private readonly running = new Set<Bun.Subprocess>();

  /** Starts one. */
  start(
    url: string,
    token: string,
    more: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) {
    const file = join(this.folder, crypto.randomUUID());
    writeFileSync(file, `${token}\n`);
    const child = Bun.spawn([...NINEFOLD_COMMAND, "probe", "--url", url, "--token-file", file, ...more], {
      env: { ...plainEnvironment({}), ...env },
      stdout: "ignore",
      stderr: "pipe",
    });
    this.running.add(child);
    return child;
  }

  /** Kills those that run. */
  kill(): void {
    for (const child of this.running) child.kill("SIGKILL");
    this.running.clear();
  }

  /** Removes the files. */
  remove(): void {
    this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
