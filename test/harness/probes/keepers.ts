import { endsWithUs } from "../processes/children.ts";
import { type Command, type Launch, plainEnvironment, ServerProcess } from "../processes/server-process.ts";
import type { Life } from "./record.ts";

/** A process that is started again whenever it is killed. */
export abstract class Keeper {
  readonly lives: Life[] = [];
  private current: { readonly from: number; readyAt: number | null } | null = null;
  private started: Promise<unknown> = Promise.resolve();

  constructor(readonly name: string) {}

  /** Starts it, and resolves when it is ready. @throws Error if it ends before, though nobody has killed it */
  async start(): Promise<void> {
    const life = { from: Date.now(), readyAt: null as number | null };
    this.current = life;
    const ready = this.spawn();
    this.started = ready.catch(() => undefined);
    await ready.catch((error: unknown) => {
      // It was killed meanwhile.
      if (this.current === life) throw error;
    });
    life.readyAt = Date.now();
  }

  /** Kills it. Resolves when it has ended. */
  async kill(): Promise<void> {
    const life = this.current;
    if (life === null) return;
    this.current = null;
    const to = Date.now();
    // A process that gets ready while it is killed was not.
    const { readyAt } = life;
    await this.end();
    await this.started;
    this.lives.push({ from: life.from, to, readyAt });
  }

  /** Its lives up to now. */
  allLives(): Life[] {
    return [...this.lives, ...(this.current === null ? [] : [{ ...this.current, to: Date.now() }])];
  }

  /** Starts the process, and resolves when it is ready. */
  protected abstract spawn(): Promise<unknown>;
  protected abstract end(): Promise<unknown>;
}

/** The server. */
export class ServerKeeper extends Keeper {
  /** Lines of its log that are warnings or errors. */
  readonly warnings: string[] = [];
  private pid = 0;
  private server: ServerProcess | null = null;

  constructor(
    name: string,
    private readonly launch: Launch,
  ) {
    super(name);
  }

  /** The running server. */
  get process(): ServerProcess {
    if (this.server === null) throw new Error("the server is not running");
    return this.server;
  }

  protected override async spawn(): Promise<void> {
    this.server = null;
    const onSpawn = (pid: number) => {
      this.pid = pid;
    };
    this.server = await ServerProcess.start({ ...this.launch, onSpawn });
  }

  protected override async end(): Promise<void> {
    if (this.server === null) {
      process.kill(this.pid, "SIGKILL");
      return;
    }
    await this.server.stop("SIGKILL");
    if (this.server.warnings !== "") this.warnings.push(this.server.warnings);
  }
}

/** A probe. */
export class ProbeKeeper extends Keeper {
  private child: Bun.Subprocess | null = null;

  /** `url`: the server as it reaches it. */
  constructor(
    name: string,
    private readonly command: Command,
    private readonly url: string,
    private readonly tokenFile: string,
  ) {
    super(name);
  }

  /** Resolves when it has its list of monitors. */
  protected override async spawn(): Promise<void> {
    const more = ["--allow-private-targets", "loopback"];
    const args = ["probe", "--url", this.url, "--token-file", this.tokenFile, ...more];
    const child = Bun.spawn([...this.command, ...args], {
      env: plainEnvironment(),
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    this.child = endsWithUs(child);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    void read(child.stderr, (text) => {
      if (text.includes("Checking ")) resolve();
    }).then((text) => reject(new Error(`the probe ${this.name} has ended: ${text}`)));
    await promise;
  }

  protected override async end(): Promise<void> {
    this.child?.kill("SIGKILL");
    await this.child?.exited;
  }
}

/** Reads a stream to its end. `take` sees what arrived so far, up to a limit. Resolves to that. */
async function read(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text = (text + decoder.decode(chunk, { stream: true })).slice(0, LOG_LENGTH_MAX);
    take(text);
  }
  return text;
}

const LOG_LENGTH_MAX = 10_000;
