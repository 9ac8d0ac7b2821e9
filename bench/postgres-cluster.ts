import { join } from "node:path";
import { findBin, otherUser } from "../scripts/steps/debian.ts";
import { run } from "../test/harness/processes/children.ts";
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
