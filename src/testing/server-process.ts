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

/** What the server says of itself when it is ready. */
interface ReadyLine {
  readonly url: string;
  readonly api_key?: string;
  readonly user_id: string;
  readonly pid: number;
}

/** Time for an orderly end: what is thrown away needs no more. */
const STOP_TIMEOUT_MS = 3_000;
/** Between the last connection of a process and the news of its end lies a moment. */
const END_NEWS_MS = 500;
/** The end of the log tells most; the bound keeps a chatty server from filling memory. */
const LOG_CHARACTERS_MAX = 256 * 1024;

/**
 * A server in a process of its own that ends with this process, whatever ends that: the server stops when its
 * standard input does, and only this process holds the other end. Nothing here keeps this process alive.
 */
export class ServerProcess {
  private stopping: Promise<void> | undefined;

  private constructor(
    private readonly child: SpawnedServer,
    readonly ready: ReadyLine,
  ) {}

  /** Starts a server and waits until it is ready. @throws Error with what the server says when it does not start. */
  static async start(launch: Launch): Promise<ServerProcess> {
    const child = new SpawnedServer(launch);
    try {
      const line = await child.firstLine(launch.readyTimeoutMs);
      const server = new ServerProcess(child, readReadyLine(line, launch.command));
      child.letGo();
      return server;
    } catch (error) {
      await child.end();
      throw error;
    }
  }

  /** What the server has logged so far; the last of it when it is much. */
  get log(): string {
    return this.child.log;
  }

  /** How the server has ended; undefined while it runs. Waits a little: connections break before an end is told. */
  endingSoon(): Promise<string | undefined> {
    return this.child.endingSoon();
  }

  /** Ends the server and waits until nothing is left of it. Further calls wait for the same end. */
  stop(): Promise<void> {
    this.stopping ??= this.child.end(this.ready.pid);
    return this.stopping;
  }
}

class SpawnedServer {
  log = "";
  private ending: string | undefined;
  private readonly process: ChildProcess;
  private readonly ended: Promise<void>;
  private output = "";
  private noteOutput: () => void = () => {};

  constructor(private readonly launch: Launch) {
    const [program, ...args] = launch.command;
    this.process = spawn(program, [...args, ...launch.args], {
      env: launch.environment,
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    this.ended = new Promise((resolve) => {
      this.process.once("error", (error) => {
        this.ending = `it could not be run (${error.message})`;
        resolve();
      });
      // "close" comes after the last of its output, unlike "exit".
      this.process.once("close", (code, signal) => {
        this.ending ??= signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
        resolve();
      });
    });
    // A server that has ended does not read: its end is noticed above.
    this.process.stdin?.on("error", () => {});
    collect(this.process.stderr, (text) => {
      this.log = (this.log + text).slice(-LOG_CHARACTERS_MAX);
    });
    collect(this.process.stdout, (text) => {
      if (this.output.includes("\n")) return;
      this.output += text;
      this.noteOutput();
    });
  }

  /** The first line on standard output. @throws Error when the server ends before, or takes too long. */
  async firstLine(timeoutMs: number): Promise<string> {
    let late: ReturnType<typeof setTimeout> | undefined;
    const problem = await Promise.race([
      new Promise<undefined>((resolve) => {
        this.noteOutput = () => this.output.includes("\n") && resolve(undefined);
        this.noteOutput();
      }),
      this.ended.then(() => this.ending),
      new Promise<string>((resolve) => {
        late = setTimeout(() => resolve(`it was not ready within ${timeoutMs} ms`), timeoutMs);
      }),
    ]);
    clearTimeout(late);
    if (problem !== undefined) throw new Error(startFailure(this.launch.command, problem, this.log));
    return this.output.slice(0, this.output.indexOf("\n"));
  }

  async endingSoon(): Promise<string | undefined> {
    let late: ReturnType<typeof setTimeout> | undefined;
    const patience = new Promise<void>((resolve) => {
      late = setTimeout(resolve, END_NEWS_MS);
    });
    await Promise.race([this.ended, patience]);
    clearTimeout(late);
    return this.ending;
  }

  /** A program that it has started itself, such as that of a script, may hold the other ends: they are not waited for. */
  private kill(): void {
    const { stdout, stderr } = this.process;
    this.process.kill("SIGKILL");
    stdout?.destroy();
    stderr?.destroy();
  }

  /** From here on the process is no reason for this one to stay. */
  letGo(): void {
    const { stdin, stdout, stderr } = this.process;
    for (const held of [this.process, stdin, stdout, stderr]) (held as Partial<Referenced> | null)?.unref?.();
  }

  /** Ends the process, by force if need be, and removes its folder if it could not do so itself. */
  async end(pid: number | undefined = this.process.pid): Promise<void> {
    const { stdin, stdout, stderr } = this.process;
    if (this.ending === undefined) {
      for (const held of [this.process, stdin, stdout, stderr]) (held as Partial<Referenced> | null)?.ref?.();
      stdin?.end();
      const force = setTimeout(() => this.kill(), STOP_TIMEOUT_MS);
      await this.ended;
      clearTimeout(force);
    }
    if (pid !== undefined) removeFolderOf(pid, this.launch.environment);
  }
}

/** What may keep the event loop alive. */
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
    // Told below, with the line itself.
  }
  throw new Error(
    `${program} is no Ninefold server of this version: it printed ${JSON.stringify(line)} when started.`,
  );
}

/** What the command line says itself begins with this. */
const OWN_LINE = "ninefold: ";

/** The server's own line where it gave one: it says what is wrong and what would be right. */
function startFailure([program]: Command, problem: string, log: string): string {
  const own = log.split("\n").find((line) => line.startsWith(OWN_LINE));
  if (own !== undefined) return `Ninefold did not start: ${own.slice(OWN_LINE.length)}`;
  return `Ninefold did not start: ${problem}. The program was ${program}.${log === "" ? "" : `\n${log}`}`;
}

/** The temporary folder of a server carries its process id; one that was killed has left it behind. */
function removeFolderOf(pid: number, environment: Readonly<Record<string, string>>): void {
  const parent = environment["TMPDIR"] ?? tmpdir();
  for (const name of existsSync(parent) ? readdirSync(parent) : []) {
    if (!name.startsWith(`ninefold-${pid}-`)) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // Another user's, who had a process of this id: not ours to remove.
    }
  }
}
