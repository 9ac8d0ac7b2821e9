import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { Connection } from "../harness/processes/connection.ts";
import { ServerProcess } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { type Ended, endOf } from "../support/ended.ts";

/** Time for a test that starts the executable a few times on a machine that is busy with other things. */
export const TIMEOUT_MS = 180_000;

/** The executable under test. @throws Error that says how to get one. */
export function executable(): string {
  const path = process.env["NINEFOLD_BINARY"];
  if (path === undefined || path === "") {
    throw new Error(
      "Set NINEFOLD_BINARY to the executable's absolute path, or run: scripts/test test/binary",
    );
  }
  if (!isAbsolute(path) || !existsSync(path)) {
    throw new Error(`NINEFOLD_BINARY is ${path}, which is no absolute path of a file. Run: scripts/build`);
  }
  return path;
}

/** Servers and folders of one test file; {@link close} takes all of them away. */
export class Binaries {
  readonly folder = mkdtempSync(join(tmpdir(), "ninefold-binary-test-"));
  private readonly servers: ServerProcess[] = [];

  /** A path for a data folder that does not exist yet. */
  data(): string {
    return join(mkdtempSync(join(this.folder, "run-")), "data");
  }

  /** Starts the executable with `--json` on a free port and waits until it is ready. */
  async start(args: readonly string[], environment: Record<string, string> = {}): Promise<ServerProcess> {
    const server = await ServerProcess.start({
      command: [executable()],
      args: ["--port", "0", ...args],
      environment,
    });
    this.servers.push(server);
    return server;
  }

  async close(): Promise<void> {
    for (const server of this.servers) if (!server.ended) await server.stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A client with the key that a first start has printed. */
export function operatorOf(server: ServerProcess): Client {
  if (server.key === null) throw new Error("this start has printed no key");
  return new Client(server.url, server.key);
}

/** Runs the executable to its end. */
export function runToEnd(args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
  return endOf([executable(), ...args], { environment, timeoutMs: TIMEOUT_MS / 2 });
}

/** Every file below a folder with its mode and the hash of its bytes: equal when nothing was touched. */
export function fingerprint(folder: string): Record<string, string> {
  if (!existsSync(folder)) return {};
  const found: Record<string, string> = { ".": modeOf(folder) };
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    const path = join(folder, name);
    const hash = statSync(path).isFile()
      ? createHash("sha256").update(readFileSync(path)).digest("hex")
      : "folder";
    found[name] = `${modeOf(path)} ${hash}`;
  }
  return found;
}

/** The permissions of a file or folder, such as "700". */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

/** Opens a bare connection, for requests that arrive in pieces. */
export function connect(server: ServerProcess): Promise<Connection> {
  return Connection.open(server.url);
}
