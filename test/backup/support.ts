import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, NINEFOLD_COMMAND, ServerProcess } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { type Ended, endOf } from "../support/ended.ts";

/** Timeout for a test that starts a few processes: ten times what the longest one takes on a quiet machine. */
export const TIMEOUT_MS = 300_000;

/**
 * Runs `ninefold` from source to its end, in a separate process: when a process closes a file, the system releases all
 * locks of that process on it, so a copy must never be made in the process of the server.
 */
export function ninefold(args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
  return runToEnd([...NINEFOLD_COMMAND, ...args], environment);
}

/** Runs any command to its end. */
export function runToEnd(command: Command, environment: Record<string, string> = {}): Promise<Ended> {
  return endOf(command, { environment, timeoutMs: TIMEOUT_MS / 2 });
}

/** A folder for data and backups, and the servers on it. */
export class BackupStage {
  readonly folder = mkdtempSync(join(tmpdir(), "ninefold-backup-test-"));
  private readonly servers: ServerProcess[] = [];
  /** The operator's key, of the first start. */
  key = "";

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Starts a server in a separate process. */
  async start(data = "data", args: readonly string[] = []): Promise<ServerProcess> {
    const server = await ServerProcess.start({
      command: NINEFOLD_COMMAND,
      args: ["--port", "0", "--data", this.path(data), ...args],
    });
    this.servers.push(server);
    if (server.key !== null) this.key = server.key;
    return server;
  }

  client(server: ServerProcess): Client {
    return new Client(server.url, this.key);
  }

  async close(): Promise<void> {
    for (const server of this.servers) if (!server.ended) await server.stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
