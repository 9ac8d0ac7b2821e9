import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Stands in the place of the `ping` of the system, for what loopback cannot show: lost packets, and a machine without it. */
export class StubPing {
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-ping-"));
  private found: "script" | "system" | null = "system";

  /** Path of a command by its name, for the client of outbound requests. */
  readonly commandNamed = (name: string): string | null =>
    this.found === "script" ? join(this.folder, "ping") : this.found && Bun.which(name);

  /** Replaces the command by a script of the shell. */
  runs(script: string): void {
    const file = join(this.folder, "ping");
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
    this.found = "script";
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
    this.found = null;
  }

  /** The command is that of the system again. */
  restore(): void {
    this.found = "system";
  }

  /** Removes its files. */
  remove(): void {
    this.restore();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
