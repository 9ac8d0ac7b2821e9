import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND, ServerProcess } from "../harness/processes/server-process.ts";

/** Why there is no such disk here; null where there can be one. */
export function missingForSyncedDisk(): string | null {
  if (process.platform !== "linux") return "it needs Linux";
  return Bun.which("gcc") === null ? "it needs gcc" : null;
}

/** What a sync can be made to do. */
export type SyncFault = `${"fail" | "hold"}-${"db" | "wal"}` | `fail-${"db" | "wal"}-once`;

/** Compiles what stands between a server and its files, into a folder. Returns its path. */
export function buildSyncedDisk(folder: string): string {
  const source = join(import.meta.dir, "synced-disk", "shim.c");
  const library = join(folder, "shim.so");
  const flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, source];
  const { exitCode, stderr } = Bun.spawnSync(["gcc", ...flags, "-ldl", "-lpthread"]);
  if (exitCode !== 0) throw new Error(`the shim cannot be compiled:\n${stderr.toString()}`);
  return library;
}

/** A data folder on a disk that keeps what was synced and loses the rest: see shim.c. */
export class SyncedDisk {
  readonly folder = mkdtempSync(join(tmpdir(), "ninefold-synced-"));
  /** As the system shows it: with what stands in its memory alone. */
  readonly data = join(this.folder, "data");
  /** What it would hold after a power cut. */
  readonly synced = join(this.folder, "disk");
  private readonly servers: ServerProcess[] = [];
  private images = 0;

  /** `library`: what {@link buildSyncedDisk} has made. */
  constructor(private readonly library: string) {
    mkdirSync(this.synced);
  }

  /** Starts a server on the folder, whose syncs this disk sees. */
  start(...args: string[]): Promise<ServerProcess> {
    return this.run(["--data", this.data, ...args], { SYNCED_DISK: this.synced, LD_PRELOAD: this.library });
  }

  /** Starts a server on what the disk would hold after a power cut at this moment. */
  startAfterPowerCut(): Promise<ServerProcess> {
    this.images += 1;
    const image = join(this.folder, `image-${this.images}`);
    mkdirSync(image, { mode: 0o700 });
    for (const name of ["ninefold.db", "ninefold.db-wal"])
      if (existsSync(join(this.synced, name))) copyFileSync(join(this.synced, name), join(image, name));
    copyFileSync(join(this.data, "master.key"), join(image, "master.key"));
    return this.run(["--data", image], {});
  }

  fault(name: SyncFault): void {
    writeFileSync(join(this.synced, name), "");
  }

  heal(name: SyncFault): void {
    rmSync(join(this.synced, name), { force: true });
  }

  async remove(): Promise<void> {
    for (const server of this.servers) if (!server.ended) await server.stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async run(args: readonly string[], environment: Record<string, string>): Promise<ServerProcess> {
    const server = await ServerProcess.start({
      command: NINEFOLD_COMMAND,
      args: ["--port", "0", ...args],
      environment,
    });
    this.servers.push(server);
    return server;
  }
}
