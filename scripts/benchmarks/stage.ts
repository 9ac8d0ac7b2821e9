import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endsWithUs } from "../processes/children.ts";
import type { Cleanup } from "../processes/cleanup.ts";
import { type Command, plainEnvironment, ServerProcess } from "../processes/server-process.ts";

/** Managed keys in the file: the verified ones are spread over them. */
export const KEYS = 1_000_000;
/** Meters that the deduct rows are spread over. */
export const METERS = 100_000;
/** Figures that no benchmark reaches, but which are counted and checked with every request. */
const REQUESTS_PER_MINUTE = 1_000_000_000;
const CREDITS = 1_000_000_000_000_000;
const EMAIL = "bench@example.com";
const WAL_POLL_MS = 100;

/** The keys of a data folder that was filled. */
interface Filled {
  /** Of its account. */
  readonly key: string;
  readonly operatorKey: string;
}

/** The servers under measurement, and an account to measure with. */
export class Stage {
  /** The Ninefold server. */
  url = "";
  /** Platform key of an account of tier scale: metered and rate-limited like a customer's. */
  key = "";
  operatorKey = "";
  bareUrl = "";
  /** A folder for scripts and the like. */
  readonly folder: string;
  private readonly cleanup: Cleanup;
  private readonly command: Command;
  private server: ServerProcess | null = null;
  private bare: Bun.Subprocess | null = null;
  private walBytes = 0;

  constructor(cleanup: Cleanup, command: Command) {
    this.cleanup = cleanup;
    this.command = command;
    this.folder = cleanup.folder("bench");
    cleanup.add(() => this.stop());
  }

  /** Starts the bare server, and Ninefold on a folder with {@link METERS} meters and {@link KEYS} managed keys. */
  async start(): Promise<void> {
    const data = join(this.folder, "data");
    const { key, operatorKey } = await this.fill(data, METERS);
    await runScript("fill-keys.ts", [data, EMAIL, `${KEYS}`]);
    this.key = key;
    this.operatorKey = operatorKey;
    this.server = await this.startNinefold(data);
    this.url = this.server.url;
    await this.startBare();
    this.pause("bare");
    this.pause("ninefold");
  }

  /** Starts another Ninefold server on a data folder. Whoever starts it stops it. */
  startNinefold(
    data: string,
    more: readonly string[] = [],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<ServerProcess> {
    const config = join(this.folder, "ninefold.toml");
    const tier = `requests_per_minute = ${REQUESTS_PER_MINUTE}\nmonthly_credits = ${CREDITS}\ncatch_per_minute = ${REQUESTS_PER_MINUTE}\n`;
    writeFileSync(config, `[tiers.scale]\n${tier}monitor_requests_per_minute = ${REQUESTS_PER_MINUTE}\n`);
    const args = ["--port", "0", "--data", data, "--config", config, "--durability", "full", ...more];
    return ServerProcess.start({ command: this.command, args, environment });
  }

  /** Makes a data folder with an account and its meters `meter-000000`, `meter-000001`, … */
  fill(data: string, meters: number): Promise<Filled> {
    return this.fillBy("fill-meters.ts", data, [`${meters}`]);
  }

  /** Makes a data folder with an account, its meters as above, and so much more that the file has so many bytes. */
  async fillLarge(data: string, meters: number, bytes: number): Promise<Filled> {
    const filled = await this.fill(data, meters);
    await runScript("fill-large.ts", [data, EMAIL, `${bytes}`]);
    return filled;
  }

  /** Makes a data folder with an account and its managed keys (see key-secrets.ts). */
  fillKeys(data: string, keys: number): Promise<Filled> {
    return this.fillBy("fill-keys.ts", data, [`${keys}`]);
  }

  /** Makes a data folder with an account and its chain of receipts, and a file with these as JSON lines. */
  fillReceipts(data: string, receipts: number, lines: string): Promise<Filled> {
    return this.fillBy("fill-receipts.ts", data, [`${receipts}`, lines]);
  }

  private async fillBy(script: string, data: string, args: readonly string[]): Promise<Filled> {
    const server = await this.startNinefold(data);
    const operatorKey = server.key ?? "";
    const account = await post(server.url, operatorKey, "/v1/admin/accounts", {
      email: EMAIL,
      tier: "scale",
    });
    await server.stop();
    await runScript(script, [data, EMAIL, ...args]);
    return { key: String(account["api_key"]), operatorKey };
  }

  /** Sends a POST with the account's key, for preparing. @throws Error for any answer but 2xx. */
  post(
    path: string,
    body: object,
    key: string = this.key,
    url: string = this.url,
  ): Promise<Record<string, unknown>> {
    return post(url, key, path, body);
  }

  /**
   * Lets one server run and the others stand still, so that what a server does in the background after its
   * measurement (settling, checkpoints) is counted against itself.
   */
  async alone<T>(who: "bare" | "ninefold" | "nobody", work: () => Promise<T>): Promise<T> {
    if (who === "nobody") return work();
    this.signal(who, "SIGCONT");
    const poll = setInterval(() => this.sampleWal(), WAL_POLL_MS);
    try {
      return await work();
    } finally {
      clearInterval(poll);
      this.sampleWal();
      this.pause(who);
    }
  }

  /** The largest write-ahead log seen so far, in MiB. */
  get walMiB(): number {
    return this.walBytes / 1024 / 1024;
  }

  /** Lets Ninefold run on, for preparations. */
  resume(): void {
    this.signal("ninefold", "SIGCONT");
  }

  /** Stops a server's clock. */
  pause(who: "bare" | "ninefold"): void {
    this.signal(who, "SIGSTOP");
  }

  /** Ends the servers. */
  async stop(): Promise<void> {
    this.bare?.kill("SIGKILL");
    await this.bare?.exited;
    await this.server?.stop("SIGKILL");
    this.bare = null;
    this.server = null;
  }

  /** A subfolder of its own. */
  subfolder(name: string): string {
    const path = join(this.folder, name);
    mkdirSync(path);
    return path;
  }

  /** A temporary folder outside of ours, which nobody else may enter: for a program that runs as another user. */
  separateFolder(name: string): string {
    return this.cleanup.folder(`bench-${name}`);
  }

  /** Notes what has to be done at the end. */
  atEnd(task: () => Promise<unknown> | unknown): void {
    this.cleanup.add(task);
  }

  private async startBare(): Promise<void> {
    const script = join(import.meta.dir, "bare-server.ts");
    const child = Bun.spawn([process.execPath, "--no-env-file", script], {
      env: plainEnvironment({ NODE_ENV: "production" }),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.bare = endsWithUs(child);
    const { value } = await child.stdout.getReader().read();
    this.bareUrl = new TextDecoder().decode(value).trim();
  }

  private signal(who: "bare" | "ninefold", name: NodeJS.Signals): void {
    if (who === "bare") this.bare?.kill(name);
    else this.server?.signal(name);
  }

  private sampleWal(): void {
    const path = join(this.folder, "data", "ninefold.db-wal");
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    this.walBytes = Math.max(this.walBytes, size);
  }
}

/** Runs one of our scripts to its end. @throws Error when it fails. */
async function runScript(name: string, args: readonly string[]): Promise<void> {
  const script = join(import.meta.dir, name);
  const child = Bun.spawn([process.execPath, "--no-env-file", script, ...args], {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  endsWithUs(child);
  if ((await child.exited) !== 0) throw new Error(`${name} failed`);
}

async function post(url: string, key: string, path: string, body: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}
