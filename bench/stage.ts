import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import type { Cleanup } from "../test/harness/processes/cleanup.ts";
import { type Command, plainEnvironment, ServerProcess } from "../test/harness/processes/server-process.ts";
import type { Rival } from "./responses.ts";

/** Managed keys in the file. The verified ones are spread over them. */
export const KEYS = 1_000_000;
/** Meters that the deducts are spread over. */
export const METERS = 100_000;
/** Limits that no benchmark reaches, but which are counted and checked with every request. */
const REQUESTS_PER_MINUTE = 1_000_000_000;
const CREDITS = 1_000_000_000_000_000;
const EMAIL = "bench@example.com";
const WAL_POLL_MS = 100;

/** The measured server: Ninefold, or one that it is compared with. */
export type Player = "ninefold" | Rival;

/** The keys of a filled data folder. */
interface Filled {
  /** Platform key of its account. */
  readonly key: string;
  readonly operatorKey: string;
}

/** The measured servers, and an account for the measurements. */
export class Stage {
  /** The measured server. */
  url = "";
  /** Platform key of an account of tier scale: metered and rate-limited like a customer's. */
  key = "";
  operatorKey = "";
  /** A folder for scripts and other temporary files. */
  readonly folder: string;
  private readonly cleanup: Cleanup;
  private readonly command: Command;
  private server: ServerProcess | null = null;
  private rival: Bun.Subprocess | null = null;
  private readonly data: string;
  private walBytes = 0;

  constructor(cleanup: Cleanup, command: Command) {
    this.cleanup = cleanup;
    this.command = command;
    this.folder = cleanup.folder("bench");
    this.data = join(this.folder, "data");
    cleanup.add(() => this.stop());
  }

  /** Creates a data folder with {@link METERS} meters and `keys` managed keys. */
  async fillOwn(keys: number): Promise<void> {
    const { key, operatorKey } = await this.fill(this.data, METERS);
    if (keys > 0) await runScript("fill-keys.ts", [this.data, EMAIL, `${keys}`]);
    this.key = key;
    this.operatorKey = operatorKey;
  }

  /** Starts another Ninefold server on a data folder. The caller stops it. */
  startNinefold(
    data: string,
    more: readonly string[] = [],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<ServerProcess> {
    const config = join(this.folder, "ninefold.toml");
    const tier = `requests_per_minute = ${REQUESTS_PER_MINUTE}\nmonthly_credits = ${CREDITS}\ncatch_per_minute = ${REQUESTS_PER_MINUTE}\nkeys = ${2 * KEYS}\n`;
    writeFileSync(config, `[tiers.scale]\n${tier}monitor_requests_per_minute = ${REQUESTS_PER_MINUTE}\n`);
    const args = ["--port", "0", "--data", data, "--config", config, "--durability", "full", ...more];
    return ServerProcess.start({ command: this.command, args, environment });
  }

  /** Creates a data folder with an account and its meters `meter-000000`, `meter-000001`, … */
  fill(data: string, meters: number): Promise<Filled> {
    return this.fillBy("fill-meters.ts", data, [`${meters}`]);
  }

  /** Creates a data folder with an account, its meters as above, and enough receipts for a file of the given size. */
  async fillLarge(data: string, meters: number, bytes: number): Promise<Filled> {
    const filled = await this.fill(data, meters);
    await runScript("fill-large.ts", [data, EMAIL, `${bytes}`]);
    return filled;
  }

  /** Creates a data folder with an account and its managed keys (see key-secrets.ts). */
  fillKeys(data: string, keys: number): Promise<Filled> {
    return this.fillBy("fill-keys.ts", data, [`${keys}`]);
  }

  /** Creates a data folder with an account and its chain of receipts, and a file with these as JSON lines. */
  fillReceipts(data: string, receipts: number, lines: string): Promise<Filled> {
    return this.fillBy("fill-receipts.ts", data, [`${receipts}`, lines]);
  }

  /** Creates a data folder with a script. */
  async fillBy(script: string, data: string, args: readonly string[]): Promise<Filled> {
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

  /** Sends a POST with the account's key, for preparation. @throws Error for any response but 2xx. */
  post(
    path: string,
    body: object,
    key: string = this.key,
    url: string = this.url,
  ): Promise<Record<string, unknown>> {
    return post(url, key, path, body);
  }

  /**
   * Starts a server, runs the measurement, and stops the server. Each measurement uses a new server, as clients meet
   * one after a deployment, and the background work of a server counts against itself.
   */
  async fresh<T>(who: Player, work: () => Promise<T>): Promise<T> {
    this.url = who === "ninefold" ? await this.startOwn() : await this.startOther(who);
    const poll = setInterval(() => this.sampleWal(), WAL_POLL_MS);
    try {
      return await work();
    } finally {
      clearInterval(poll);
      this.sampleWal();
      await this.stop();
    }
  }

  /** Process id of the measured Ninefold server. @throws Error while none runs. */
  get pid(): number {
    if (this.server === null) throw new Error("no server of Ninefold is being measured");
    return this.server.pid;
  }

  /** The largest write-ahead log seen so far, in MiB. */
  get walMiB(): number {
    return this.walBytes / 1024 / 1024;
  }

  /** Stops the measured server, Ninefold with SIGTERM, so that the next start has no log to read. */
  async stop(): Promise<void> {
    this.rival?.kill("SIGKILL");
    await this.rival?.exited;
    await this.server?.stop();
    this.rival = null;
    this.server = null;
  }

  /** A new subfolder. */
  subfolder(name: string): string {
    const path = join(this.folder, name);
    mkdirSync(path);
    return path;
  }

  /** A temporary folder outside of this one that only its owner may enter: for a program that runs as another user. */
  separateFolder(name: string): string {
    return this.cleanup.folder(`bench-${name}`);
  }

  /** Registers a task for the end. */
  atEnd(task: () => Promise<unknown> | unknown): void {
    this.cleanup.add(task);
  }

  private async startOwn(): Promise<string> {
    this.server = await this.startNinefold(this.data);
    return this.server.url;
  }

  private async startOther(who: Rival): Promise<string> {
    const { child, url } = await startRival(who, join(this.folder, "ceiling"), this.key);
    this.rival = child;
    return url;
  }

  private sampleWal(): void {
    if (this.server === null) return;
    const path = join(this.data, "ninefold.db-wal");
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    this.walBytes = Math.max(this.walBytes, size);
  }
}

/** Starts a server to compare with. The ceiling writes to `folder` and accepts `key`. */
export async function startRival(
  who: Rival,
  folder: string,
  key: string,
): Promise<{ readonly child: Bun.Subprocess; readonly url: string }> {
  const script = join(import.meta.dir, `${who}-server.ts`);
  const child = Bun.spawn([process.execPath, "--no-env-file", script, folder, key], {
    env: plainEnvironment({ NODE_ENV: "production" }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  return { child: endsWithUs(child), url: new TextDecoder().decode(value).trim() };
}

/** Runs a script of this folder to its end. @throws Error when it fails. */
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
