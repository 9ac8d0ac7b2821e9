import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Stands in the place of the `ping` of the system, for what loopback cannot show: lost packets, and a machine without it. */
export class StubPing {
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-ping-"));
  private readonly before = process.env["PATH"] ?? "";

  /** Replaces the command by a script of the shell. */
  runs(script: string): void {
    const file = join(this.folder, "ping");
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
    process.env["PATH"] = `${this.folder}:${this.before}`;
  }

  /** Prints the summary that iputils prints. */
  counts(sent: number, received: number): void {
    const times = received === 0 ? "" : "rtt min/avg/max/mdev = 10.125/20.250/30.500/4.000 ms";
    this.runs(
      `echo '${sent} packets transmitted, ${received} received, time 404ms'; echo '${times}'; exit ${received === 0 ? 1 : 0}`,
    );
  }

  /** The machine has no such command. */
  isMissing(): void {
    const empty = join(this.folder, "empty");
    mkdirSync(empty, { recursive: true });
    process.env["PATH"] = empty;
  }

  /** The command is that of the system again. */
  restore(): void {
    process.env["PATH"] = this.before;
  }

  /** Removes its files. */
  remove(): void {
    this.restore();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
