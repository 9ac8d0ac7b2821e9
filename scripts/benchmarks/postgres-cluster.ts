import { readdirSync } from "node:fs";
import { join } from "node:path";
import { endsWithUs } from "../processes/children.ts";
import type { Stage } from "./stage.ts";

const READY_TRIES = 200;
const READY_PAUSE_MS = 50;

/**
 * As durable as a cluster is by default. During the short run no checkpoint or vacuum competes with the deducts, in
 * PostgreSQL's favour.
 */
const SETTINGS = [
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "listen_addresses=",
  "max_connections=100",
  "shared_buffers=256MB",
  "autovacuum=off",
  "checkpoint_timeout=1h",
  "max_wal_size=8GB",
];

/** A separate PostgreSQL cluster in a temporary folder, reached over a Unix socket there. */
export class PostgresCluster {
  readonly folder: string;
  private readonly bin: string;

  private constructor(folder: string, bin: string) {
    this.folder = folder;
    this.bin = bin;
  }

  /** What is missing on this machine; null when a cluster can be started. */
  static missing(): string | null {
    if (findBin() === null) return "PostgreSQL is not installed: apt-get install postgresql";
    if (process.getuid?.() === 0 && Bun.which("runuser") === null) {
      return "PostgreSQL does not run as root, and there is no runuser: apt-get install util-linux";
    }
    return null;
  }

  /** Starts a cluster that ends with the stage. `name` distinguishes it from others. */
  static async start(stage: Stage, name: string): Promise<PostgresCluster> {
    const cluster = new PostgresCluster(stage.separateFolder(name), findBin() ?? "");
    await cluster.run(stage, name);
    return cluster;
  }

  /** The command line of a client program. */
  client(program: string): string[] {
    return [join(this.bin, program), "-h", this.folder, "-U", "bench", "-d", "postgres"];
  }

  private async run(stage: Stage, name: string): Promise<void> {
    const user = otherUser();
    if (user !== null) await run(["chown", user, this.folder]);
    const cluster = join(this.folder, "cluster");
    const initdb = ["initdb", "-D", cluster, "-U", "bench", "--auth=trust", "--no-locale", "-E", "UTF8"];
    await run(this.asUser(user, initdb), this.folder);
    const settings = [...SETTINGS, `unix_socket_directories=${this.folder}`].flatMap((text) => ["-c", text]);
    const server = Bun.spawn(this.asUser(user, ["postgres", "-D", cluster, ...settings]), {
      cwd: this.folder,
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(join(stage.folder, `${name}.log`)),
    });
    // Stopped by pg_ctl, it ends with all its children. A signal to runuser would leave them running.
    stage.atEnd(async () => {
      await run(this.asUser(user, ["pg_ctl", "-D", cluster, "-m", "immediate", "stop"]), this.folder);
      await server.exited;
    });
    await this.waitUntilReady();
  }

  private async waitUntilReady(): Promise<void> {
    for (let tries = 0; tries < READY_TRIES; tries += 1) {
      const probe = Bun.spawn(this.client("pg_isready"), { stdout: "ignore", stderr: "ignore" });
      if ((await probe.exited) === 0) return;
      await Bun.sleep(READY_PAUSE_MS);
    }
    throw new Error("PostgreSQL did not become ready");
  }

  private asUser(user: string | null, command: readonly string[]): string[] {
    const [program = "", ...rest] = command;
    const full = [join(this.bin, program), ...rest];
    return user === null ? full : ["runuser", "-u", user, "--", ...full];
  }
}

/** Debian installs the server's programs outside of PATH, one folder per version. The newest is used. */
export function findBin(): string | null {
  const root = "/usr/lib/postgresql";
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
    for (const version of versions) {
      const bin = join(root, version, "bin");
      if (readdirSync(bin).includes("initdb") && readdirSync(bin).includes("pgbench")) return bin;
    }
  } catch {
    // Other systems have them in PATH.
  }
  const initdb = Bun.which("initdb");
  return initdb !== null && Bun.which("pgbench") !== null ? join(initdb, "..") : null;
}

/** PostgreSQL does not run as root. In that case it runs as this user. */
export function otherUser(): string | null {
  if (process.getuid?.() !== 0) return null;
  const { success } = Bun.spawnSync(["id", "postgres"], { stdout: "ignore", stderr: "ignore" });
  return success ? "postgres" : "nobody";
}

/** Runs a program to its end and returns its output. @throws Error with its whole output if it fails. */
export async function run(command: readonly string[], cwd?: string): Promise<string> {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    ...(cwd === undefined ? {} : { cwd }),
  });
  endsWithUs(child);
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")} failed (${code}): ${out}${error}`);
  return out;
}
