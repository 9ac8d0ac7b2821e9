// Servers from source need the built console and the template of a new database too.
import "../../../scripts/prepare.ts";
import { join } from "node:path";
import { SLOW_DISK } from "../../../src/kernel/storage/writer.ts";
import { endsWithUs } from "./children.ts";

/** How to run Ninefold: the program and its first arguments. */
export type Command = readonly string[];

/** Options of a started server. */
export interface Launch {
  readonly command: Command;
  /** Arguments of `serve`, in addition `--json`. */
  readonly args: readonly string[];
  /** Set in addition to the plain environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Timeout for the ready line; generous, since machines can be busy. */
  readonly readyTimeoutMs?: number;
  /** Called with the process id before it is ready. */
  readonly onSpawn?: (pid: number) => void;
}

const READY_TIMEOUT_MS = 30_000;
/** Variables that a child inherits. Any other one could change its behaviour. */
const PASSED_ON = ["PATH", "HOME", "TMPDIR", "LANG", "TZ"];

/** The repository's root. */
export const ROOT = join(import.meta.dir, "..", "..", "..");

/** Ninefold from source, as `scripts/serve` runs it. */
export const SOURCE_COMMAND: Command = [
  process.execPath,
  "--no-env-file",
  "--no-install",
  `--config=${join(ROOT, "bunfig.toml")}`,
  join(ROOT, "src", "main.ts"),
];

/** The executable that `scripts/build` creates. */
export const BINARY_COMMAND: Command = [join(ROOT, "dist", "ninefold")];

/** Ninefold as the tests start it: the executable in `NINEFOLD_BINARY`, which starts faster, otherwise the sources. */
export const NINEFOLD_COMMAND: Command =
  process.env["NINEFOLD_BINARY"] === undefined ? SOURCE_COMMAND : [process.env["NINEFOLD_BINARY"]];

/** The environment of a child: what a program needs to run, and nothing that configures Ninefold. */
export function plainEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return { ...environment, ...more };
}

/** The line that `--json` prints. */
interface ReadyLine {
  readonly url: string;
  readonly api_key?: string;
  readonly user_id?: string;
  readonly pid: number;
}

/** A Ninefold server in a separate process. The caller stops or kills it. */
export class ServerProcess {
  readonly url: string;
  readonly pid: number;
  /** The operator's key, if this start created it. */
  readonly key: string | null;
  /** Time from the start of the process to its ready line. */
  readonly readyMs: number;
  private readonly child: SpawnedServer;

  private constructor(child: SpawnedServer, ready: ReadyLine, readyMs: number) {
    this.child = child;
    this.url = ready.url;
    this.pid = child.process.pid;
    this.key = ready.api_key ?? null;
    this.readyMs = readyMs;
  }

  /** Starts a server and waits until it is ready. @throws Error with its log if it ends before. */
  static async start(launch: Launch): Promise<ServerProcess> {
    const begun = performance.now();
    const child = spawnServer(launch);
    launch.onSpawn?.(child.process.pid);
    const line = await firstLine(child, launch.readyTimeoutMs ?? READY_TIMEOUT_MS);
    const readyMs = performance.now() - begun;
    return new ServerProcess(child, JSON.parse(line) as ReadyLine, readyMs);
  }

  /** Its log up to now. */
  get log(): string {
    return this.child.log();
  }

  /** The lines of its log that are warnings or errors, without one that only says how busy the machine is. */
  get warnings(): string {
    const isWarning = (line: string) => line !== "" && !line.includes('"level":"info"');
    const lines = this.log.split("\n").filter((line) => isWarning(line) && !line.includes(SLOW_DISK));
    return lines.join("\n");
  }

  /** Resolves to the exit code when the process has ended; 128 and more for a signal. */
  get exited(): Promise<number> {
    return this.child.process.exited;
  }

  /** Whether the process has ended. */
  get ended(): boolean {
    return this.child.process.exitCode !== null || this.child.process.signalCode !== null;
  }

  /** Processor time that it has used, in milliseconds; undefined before its end. */
  get processorMs(): number | undefined {
    const cpuTime = this.child.process.resourceUsage()?.cpuTime;
    return cpuTime && Number(cpuTime.total) / 1_000;
  }

  /** Sends a signal without waiting. */
  signal(name: NodeJS.Signals): void {
    this.child.process.kill(name);
  }

  /** Sends a signal and waits for the end. Resolves to the exit code. */
  async stop(name: NodeJS.Signals = "SIGTERM"): Promise<number> {
    this.child.process.kill(name);
    return this.exited;
  }
}

/** A process that was just started, before anything is known of it. */
interface SpawnedServer {
  readonly process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly log: () => string;
}

/** Starts the process of a server without waiting for it to be ready. */
export function spawnServer(launch: Launch): SpawnedServer {
  const child = Bun.spawn([...launch.command, "serve", "--json", ...launch.args], {
    // From source, Elysia takes its mode from NODE_ENV as scripts/serve sets it; the executable brings its own.
    env: plainEnvironment({
      ...(launch.command === SOURCE_COMMAND ? { NODE_ENV: "production" } : {}),
      ...launch.environment,
    }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  endsWithUs(child);
  let log = "";
  void collect(child.stderr, (text) => {
    // The end of a log is more useful than its beginning; the limit protects the memory from a verbose server.
    log = (log + text).slice(-LOG_CHARACTERS_MAX);
  });
  return { process: child, log: () => log };
}

const LOG_CHARACTERS_MAX = 1_000_000;

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}

async function firstLine(child: SpawnedServer, timeoutMs: number): Promise<string> {
  let text = "";
  const line = new Promise<string>((resolve) => {
    void collect(child.process.stdout, (more) => {
      text += more;
      const end = text.indexOf("\n");
      if (end >= 0) resolve(text.slice(0, end));
    });
  });
  const ended = child.process.exited.then(() => null);
  const late = Bun.sleep(timeoutMs).then(() => null);
  const first = await Promise.race([line, ended, late]);
  if (first !== null) return first;
  child.process.kill("SIGKILL");
  await child.process.exited;
  // The rest of the log is read shortly after the process has ended.
  await Bun.sleep(10);
  throw new Error(`the server did not become ready:\n${text}${child.log()}`);
}
