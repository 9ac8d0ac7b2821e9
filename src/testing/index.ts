// `Symbol.asyncDispose`, which the types of ES2022 lack.
/// <reference lib="esnext.disposable" preserve="true" />
/**
 * `ninefold/testing`: throw-away Ninefold instances for test suites, with a clock that the test controls. Works in
 * every test runner on Bun and on Node.js 20 and newer, without other packages.
 */
import { Agent, request as send } from "node:http";
import { text } from "node:stream/consumers";
import { Ninefold } from "../client/index.ts";
import { type Duration, durationMs } from "./duration.ts";
import { type Command, findCommand, surroundingsOf } from "./executable.ts";
import { ServerProcess } from "./server-process.ts";
import { type OpenSink, openSink, type ReceivedWebhook, type WebhookSink } from "./webhook-sink.ts";

export type { Duration, ReceivedWebhook, WebhookSink };

/** Options of an instance. */
export interface StartOptions {
  /** `test` (default): time moves only with {@link NinefoldInstance.advance}. `real`: the system clock. */
  readonly clock?: "test" | "real";
  /** More arguments of `ninefold serve`, such as `["--signup", "free", "--config", "test/ninefold.toml"]`. */
  readonly args?: readonly string[];
  /** Configuration file with resources, which the server applies before its first request. */
  readonly apply?: string;
  /** Environment variables of the server. `NINEFOLD_…` variables of this process are not passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** The program to run with its first arguments, instead of the one that is found. */
  readonly command?: string | readonly [string, ...string[]];
  /** Timeout of the start in milliseconds (default 30,000). */
  readonly startTimeoutMs?: number;
}

/** Settings of a new account. */
export interface AccountOptions {
  /** `scale` by default. */
  readonly tier?: "free" | "starter" | "pro" | "scale" | "unlimited";
  /** Credits; by default the monthly credits of the tier. */
  readonly balance?: number;
  /** By default a unique address. */
  readonly email?: string;
}

/** An account that a test has created. */
export interface TestAccount {
  readonly userId: string;
  /** Its platform key, with every scope. */
  readonly apiKey: string;
  readonly email: string;
}

/** A running instance. */
export interface NinefoldInstance {
  /** Base URL, such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The operator's platform key: every scope, no rate limit, no credit costs. */
  readonly apiKey: string;
  /** A client with that key; `client.withKey(apiKey)` is a client of another account. */
  readonly client: Ninefold;
  /** The operator's account. */
  readonly userId: string;
  /** Process id of the server. */
  readonly pid: number;
  /**
   * Advances the test clock. Resolves to the new time in epoch milliseconds after everything that fell due has run
   * in order and its deliveries have been attempted.
   *
   * @throws RangeError for an invalid duration; Error on a real clock, or when the server has ended.
   */
  advance(by: Duration): Promise<number>;
  /**
   * The server's time in epoch milliseconds, also while {@link advance} is running.
   * @throws Error if the server has ended.
   */
  now(): Promise<number>;
  /** Creates an account with the limits and costs of a customer. @throws Error if it is rejected. */
  account(options?: AccountOptions): Promise<TestAccount>;
  /** Opens a webhook receiver in this process; {@link stop} closes it. */
  webhookSink(): Promise<WebhookSink>;
  /** The server's log. */
  log(): string;
  /**
   * Stops the server. Resolves when its process has ended and its folder is removed. Can be called more than once.
   */
  stop(): Promise<void>;
  /** The same as {@link stop}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Generous, since machines that run tests can be busy. */
const START_TIMEOUT_MS = 30_000;
/** Variables that configure Ninefold or its runtime are not passed on: they would change what tests see. */
const NOT_PASSED_ON = /^(NINEFOLD|NODE|BUN)_/i;

/**
 * Starts a throw-away instance on a free loopback port. It ends no later than this process, however that ends; an
 * instance that is not stopped keeps no process alive.
 *
 * @throws Error with the server's message when it does not start, or when no Ninefold is found.
 */
export async function startNinefold(options: StartOptions = {}): Promise<NinefoldInstance> {
  const environment = environmentOf(options);
  const isReal = options.clock === "real";
  const { server, ready } = await ServerProcess.start({
    command: commandOf(options),
    args: [
      ...["serve", "--ephemeral", "--json", "--stop-with-stdin"],
      ...(isReal ? [] : ["--test-clock"]),
      ...(options.apply === undefined ? [] : ["--apply", options.apply]),
      ...(options.args ?? []),
    ],
    environment,
    readyTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
  });
  const { url, user_id: userId, pid } = ready;
  const apiKey = ready.api_key ?? environment["NINEFOLD_OPERATOR_KEY"] ?? "";
  const sinks: OpenSink[] = [];
  const ask = (method: Method, status: number, path: string, body?: unknown): Promise<JsonObject> =>
    askOperator(server, { url, apiKey }, method, status, path, body);

  async function advance(by: Duration): Promise<number> {
    const advanceMs = durationMs(by);
    if (isReal) {
      throw new Error('This instance uses the real clock: start it without clock: "real" to advance it.');
    }
    const { now } = await ask("POST", 200, "/v1/admin/clock", { advance_ms: advanceMs });
    return Number(now);
  }
  async function stop(): Promise<void> {
    await server.stop(pid);
    await Promise.all(sinks.splice(0).map((open) => open.close()));
  }
  return {
    url,
    apiKey,
    userId,
    pid,
    advance,
    stop,
    client: new Ninefold({ url, apiKey: apiKey === "" ? null : apiKey }),
    // With the real clock both processes share it.
    now: async () => (isReal ? Date.now() : Number((await ask("GET", 200, "/v1/admin/clock"))["now"])),
    account: async ({ email = `user-${crypto.randomUUID()}@example.com`, tier = "scale", balance } = {}) => {
      const terms = { email, tier, ...(balance === undefined ? {} : { balance }) };
      const account = await ask("POST", 201, "/v1/admin/accounts", terms);
      return { userId: String(account["user_id"]), apiKey: String(account["api_key"]), email };
    },
    webhookSink: async () => {
      const open = await openSink();
      sinks.push(open);
      return open.sink;
    },
    log: () => server.log,
    [Symbol.asyncDispose]: stop,
  };
}

type JsonObject = Readonly<Record<string, unknown>>;

type Method = "GET" | "POST";

/** Sends a request as the operator. @throws Error for any other status, or with the reason why the server has ended. */
async function askOperator(
  server: ServerProcess,
  { url, apiKey }: Pick<NinefoldInstance, "url" | "apiKey">,
  method: Method,
  status: number,
  path: string,
  body: unknown,
): Promise<JsonObject> {
  const answer = await request(method, `${url}${path}`, apiKey, body).catch(async (error: unknown) => {
    const ending = await server.endingSoon();
    if (ending === undefined) throw error;
    throw new Error(`The Ninefold server has ended: ${ending}.\n${server.log}`.trimEnd(), { cause: error });
  });
  if (answer.status === status) return answer.body;
  const { message } = (answer.body["error"] ?? {}) as { message?: string };
  throw new Error(`${method} ${path} returned ${answer.status}: ${message ?? "no reason given"}`);
}

function commandOf({ command }: StartOptions): Command {
  if (command !== undefined) return typeof command === "string" ? [command] : command;
  return findCommand(surroundingsOf(import.meta.url));
}

function environmentOf(options: StartOptions): Record<string, string> {
  const passed = Object.entries(process.env).filter(([name]) => !NOT_PASSED_ON.test(name));
  // Only the sources need it: the executable has its own default.
  return { ...Object.fromEntries(passed), NODE_ENV: "production", ...options.env };
}

/** A response of the server. */
interface Answer {
  readonly status: number;
  readonly body: JsonObject;
}

/**
 * Sends a request with JSON. Not with fetch, which times out after minutes: advancing the clock takes as long as the
 * jobs. The connection is closed after the response, so it keeps no process alive.
 *
 * @throws Error of the connection.
 */
function request(method: Method, url: string, key: string, body: unknown): Promise<Answer> {
  const sent = body === undefined ? "" : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(sent),
  };
  return new Promise((resolve, reject) => {
    const outgoing = send(url, { method, headers, agent: new Agent({ keepAlive: false }) }, (incoming) => {
      const read = (received: string): Answer => ({
        status: incoming.statusCode ?? 0,
        body: parse(received),
      });
      text(incoming).then(read).then(resolve, reject);
    });
    outgoing.on("error", reject).end(sent);
  });
}

function parse(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return { error: { message: text } };
  }
}
