import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Command } from "./executable.ts";

/** How to start a server. */
export interface Launch {
  readonly command: Command;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly readyTimeoutMs: number;
}

/** The line that the server prints when it is ready. */
interface ReadyLine {
  readonly url: string;
  readonly api_key?: string;
  readonly user_id: string;
  readonly pid: number;
}

/** Time for a graceful stop: throw-away data needs no more. */
const STOP_TIMEOUT_MS = 3_000;
/** A connection breaks slightly before the exit of its process is reported. */
const END_NEWS_MS = 500;
/** The end of the log is the most useful; the limit keeps a chatty server from filling memory. */
const LOG_CHARACTERS_MAX = 256 * 1024;

/**
 * A server process that ends with this process, however that ends: the server stops when its standard input closes,
 * and only this process holds the other end. Nothing here keeps this process alive.
 */
export class ServerProcess {
  /** The server's log, at most its last part. */
  log = "";
  private ending: string | undefined;
  private readonly process: ChildProcess;
  private readonly ended: Promise<undefined>;
  private readonly firstLine: Promise<string>;
  private stopping: Promise<void> | undefined;

  private constructor(private readonly launch: Launch) {
    const [program, ...args] = launch.command;
    this.process = spawn(program, [...args, ...launch.args], {
      env: launch.environment,
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    this.ended = new Promise((resolve) => {
      this.process.once("error", (error) => {
        this.ending = `it could not be run (${error.message})`;
        resolve(undefined);
      });
      // "close" comes after the last output, unlike "exit".
      this.process.once("close", (code, signal) => {
        this.ending ??= signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
        resolve(undefined);
      });
    });
    // A server that has ended does not read; its end is handled above.
    this.process.stdin?.on("error", () => {});
    collect(this.process.stderr, (text) => {
      this.log = (this.log + text).slice(-LOG_CHARACTERS_MAX);
    });
    this.firstLine = new Promise((resolve) => {
      let output = "";
      collect(this.process.stdout, (text) => {
        if (output.includes("\n")) return;
        output += text;
        if (output.includes("\n")) resolve(output.slice(0, output.indexOf("\n")));
      });
    });
  }

  /** Starts a server and waits until it is ready. @throws Error with the server's message when it does not start. */
  static async start(launch: Launch): Promise<{ server: ServerProcess; ready: ReadyLine }> {
    const server = new ServerProcess(launch);
    try {
      const ready = readReadyLine(await server.lineWithin(launch.readyTimeoutMs), launch.command);
      for (const held of server.held()) held.unref?.();
      return { server, ready };
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /**
   * How the server has ended; undefined while it runs. Waits briefly, since connections break before the exit is
   * reported.
   */
  async endingSoon(): Promise<string | undefined> {
    await within(END_NEWS_MS, this.ended);
    return this.ending;
  }

  /** Stops the server and waits until its process and folder are gone. Further calls wait for the same stop. */
  stop(pid = this.process.pid): Promise<void> {
    this.stopping ??= this.end(pid);
    return this.stopping;
  }

  /** The first line on standard output. @throws Error when the server ends before, or takes too long. */
  private async lineWithin(timeoutMs: number): Promise<string> {
    const line = await within(timeoutMs, Promise.race([this.firstLine, this.ended]));
    if (line !== undefined) return line;
    const problem = this.ending ?? `it was not ready within ${timeoutMs} ms`;
    throw new Error(startFailure(this.launch.command, problem, this.log));
  }

  /** Stops the process, with SIGKILL if necessary, and removes its folder if the process could not. */
  private async end(pid: number | undefined): Promise<void> {
    if (this.ending === undefined) {
      for (const held of this.held()) held.ref?.();
      const { stdin, stdout, stderr } = this.process;
      stdin?.end();
      const force = setTimeout(() => {
        this.process.kill("SIGKILL");
        // Processes that it started may hold the pipes open; they are not waited for.
        stdout?.destroy();
        stderr?.destroy();
      }, STOP_TIMEOUT_MS);
      await this.ended;
      clearTimeout(force);
    }
    if (pid !== undefined) removeFolderOf(pid, this.launch.environment);
  }

  /** Handles that could keep this process alive. */
  private held(): Partial<Referenced>[] {
    const { stdin, stdout, stderr } = this.process;
    return [this.process, stdin, stdout, stderr].filter(
      (referenced) => referenced !== null,
    ) as Partial<Referenced>[];
  }
}

/** The value of a promise; undefined after a timeout. */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T | undefined> {
  let late: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    late = setTimeout(() => resolve(undefined), timeoutMs);
  });
  const result = await Promise.race([promise, timeout]);
  clearTimeout(late);
  return result;
}

/** Handles that may keep the event loop alive. */
interface Referenced {
  ref(): void;
  unref(): void;
}

function collect(stream: Readable | null, take: (text: string) => void): void {
  stream?.setEncoding("utf8").on("data", take);
}

function readReadyLine(line: string, [program]: Command): ReadyLine {
  try {
    const ready = JSON.parse(line) as ReadyLine;
    if (typeof ready.url === "string" && typeof ready.pid === "number") return ready;
  } catch {
    // Reported below with the line itself.
  }
  throw new Error(
    `${program} is not a Ninefold server of this version: it printed ${JSON.stringify(line)} at its start.`,
  );
}

/** Prefix of messages of the command line. */
const OWN_LINE = "ninefold: ";

/** The server's own message if there is one. */
function startFailure([program]: Command, problem: string, log: string): string {
  const message = log.split("\n").find((line) => line.startsWith(OWN_LINE));
  if (message !== undefined) return `Ninefold did not start: ${message.slice(OWN_LINE.length)}`;
  return `Ninefold did not start: ${problem}. The program was ${program}.${log === "" ? "" : `\n${log}`}`;
}

/** The temporary folder of a server contains its process id; a killed server leaves it behind. */
function removeFolderOf(pid: number, environment: Readonly<Record<string, string>>): void {
  const parent = environment["TMPDIR"] ?? tmpdir();
  for (const name of existsSync(parent) ? readdirSync(parent) : []) {
    if (!name.startsWith(`ninefold-${pid}-`)) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // Belongs to another user's process with this id.
    }
  }
}
