import { afterAll, beforeAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, loadConfig } from "../../src/config.ts";
import type { LogFields, Logger } from "../../src/kernel/log.ts";
import { SLOW_DISK } from "../../src/kernel/storage/writer.ts";
import { ManualClock } from "../../src/kernel/time/clock.ts";
import { type Server, type ServerDeps, startServer } from "../../src/server.ts";
import { Client } from "./client.ts";

/** A log line that a test can look at. */
export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** What a test's server differs in from a plain one. */
export interface TestServerOptions {
  /** Whether requests are logged. */
  readonly debugLog?: boolean;
  /** Flags of `ninefold serve`, such as `["--signup", "open"]`. */
  readonly args?: readonly string[];
  /** Environment of the configuration; the process's own is never read. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Overrides of the resolved configuration. */
  readonly config?: Partial<Config>;
  /** Runs on a manual clock, which starts at {@link TEST_START_MS} unless at another moment. */
  readonly manualClock?: boolean | { readonly startMs: number };
  readonly deps?: ServerDeps;
  /** Commits wait for the disk, as they do by default: for tests of just that. Elsewhere no power is cut. */
  readonly durable?: boolean;
  /** Leaves the operator's key untold, as a start does that ends before it has printed it. */
  readonly untold?: boolean;
}

/** Where the manual clock of tests starts: 2026-03-10T12:00:00Z, far from the edges of a month. */
export const TEST_START_MS = Date.UTC(2026, 2, 10, 12);

/**
 * What servers resolve names with, unless a test gives them a resolver: a machine's name servers may respond late or never, and
 * the manual clock waits for an attempt in real time.
 */
const NO_NAMES = { resolve: () => Promise.reject(new Error("tests know no names")) };

/** A real server in this process, on a real socket and a folder of its own. */
export class TestServer {
  /** Made at the first start. */
  folder = "";
  readonly logs: LogLine[] = [];
  /** The operator's key. */
  key = "";
  server!: Server;
  private readonly options: TestServerOptions;
  private clockInUse: ManualClock | null = null;
  private running = false;

  constructor(options: TestServerOptions) {
    this.options = options;
  }

  get url(): string {
    return this.server.url;
  }

  /** The manual clock. */
  get clock(): ManualClock {
    if (this.clockInUse === null) throw new Error("start the server with manualClock: true");
    return this.clockInUse;
  }

  /** A client with the operator's key. */
  get operator(): Client {
    return new Client(this.url, this.key);
  }

  /** A client with another key, or none. */
  client(key: string | null): Client {
    return new Client(this.url, key);
  }

  /** Makes an account and returns a client with its key. */
  async account(terms: { tier?: string; balance?: number; email?: string } = {}): Promise<AccountClient> {
    const email = terms.email ?? `user-${crypto.randomUUID()}@example.com`;
    const body = {
      email,
      tier: terms.tier ?? "scale",
      ...(terms.balance === undefined ? {} : { balance: terms.balance }),
    };
    const answer = await this.operator.post("/v1/admin/accounts", body);
    if (answer.status !== 201) throw new Error(`no account: ${answer.text}`);
    return new AccountClient(this.url, String(answer.body["api_key"]), String(answer.body["user_id"]), email);
  }

  async start(): Promise<this> {
    this.makeFolder();
    const durability = this.options.durable === true ? "full" : "normal";
    const config = loadConfig(
      ["--port", "0", "--data", this.folder, "--durability", durability, ...(this.options.args ?? [])],
      this.options.environment ?? {},
    );
    const { manualClock = false } = this.options;
    if (manualClock !== false)
      this.clockInUse ??= new ManualClock(manualClock === true ? TEST_START_MS : manualClock.startMs);
    this.server = await startServer(
      this.folder,
      { ...config, ...this.options.config },
      {
        log: this.logger(),
        ...(this.clockInUse === null ? {} : { clock: this.clockInUse }),
        ...this.options.deps,
        outbound: { resolver: NO_NAMES, ...this.options.deps?.outbound },
      },
    );
    this.running = true;
    const { key } = this.server.operator;
    this.key = key ?? this.options.environment?.NINEFOLD_OPERATOR_KEY ?? this.key;
    // As the command line does once it has printed the key.
    if (key !== null && this.options.untold !== true) await this.server.app.accounts.markOperatorAnnounced();
    return this;
  }

  /** Makes its folder, for what is to be there before the first start. */
  makeFolder(): string {
    this.folder ||= mkdtempSync(join(tmpdir(), "ninefold-test-"));
    return this.folder;
  }

  /** Stops in order and starts anew on the same folder. */
  async restart(): Promise<void> {
    await this.halt();
    await this.start();
  }

  /** Stops in order, unless it is stopped. The folder stays. */
  async halt(): Promise<void> {
    if (this.running) await this.server.stop();
    this.running = false;
  }

  /** Stops and removes the folder. */
  async stop(): Promise<void> {
    await this.halt();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private logger(): Logger {
    const at =
      (level: string) =>
      (message: string, fields: LogFields = {}): void => {
        // It only says how busy the machine is.
        if (message !== SLOW_DISK) this.logs.push({ level, message, fields });
      };
    const { debugLog: isDebug = false } = this.options;
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isDebug };
  }
}

/** A client of an account that a test made. */
export class AccountClient extends Client {
  readonly userId: string;
  readonly email: string;

  constructor(url: string, key: string, userId: string, email: string) {
    super(url, key);
    this.userId = userId;
    this.email = email;
  }
}

/** Starts a server. Stop it in `afterAll` or `finally`. */
export function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  return new TestServer(options).start();
}

/** A server for all tests here, in a file or a group of them: it starts before the first and stops after the last. */
export function useTestServer(options: TestServerOptions = {}): TestServer {
  const server = new TestServer(options);
  beforeAll(async () => {
    await server.start();
  });
  afterAll(() => server.stop());
  return server;
}

/** Address of the console of a server with the public URL `https://ninefold.example`, in the default project of an account. */
export async function consoleOf(account: Pick<Client, "get">): Promise<string> {
  const { body } = await account.get("/v1/projects?limit=1");
  const [project] = body["projects"] as { id: string }[];
  return `https://ninefold.example/dashboard/#/${project?.id}`;
}
