/**
 * `ninefold/testing`: a throw-away Ninefold for test suites, with time in the test's own hands. Works in every
 * test runner on Bun and on Node.js 20 and newer, and needs no other package.
 */
import { Agent, request as send } from "node:http";
import { text } from "node:stream/consumers";
import { Ninefold } from "../client/index.ts";
import { type Duration, durationMs } from "./duration.ts";
import { type Command, findCommand, surroundingsOf } from "./executable.ts";
import { ServerProcess } from "./server-process.ts";
import { type OpenSink, openSink, type ReceivedWebhook, type WebhookSink } from "./webhook-sink.ts";

export type { Duration, ReceivedWebhook, WebhookSink };

/** What an instance differs in from a plain one. */
export interface StartOptions {
  /**
   * `test` (the default): time stands still and moves by {@link NinefoldInstance.advance}. `real`: time runs by itself.
   */
  readonly clock?: "test" | "real";
  /** Further arguments of `ninefold serve`, such as `["--signup", "free", "--config", "test/ninefold.toml"]`. */
  readonly args?: readonly string[];
  /** Set in the server's environment, where no `NINEFOLD_…` of this process goes by itself. */
  readonly env?: Readonly<Record<string, string>>;
  /** The program to run, with its first arguments, instead of the one that is found. */
  readonly command?: string | readonly [string, ...string[]];
  /** How long the start may take (30,000). */
  readonly startTimeoutMs?: number;
}

/** What a new account is to be. */
export interface AccountOptions {
  /** `scale` unless said otherwise. */
  readonly tier?: "free" | "starter" | "pro" | "scale" | "unlimited";
  /** Credits; the tier's monthly ones unless said otherwise. */
  readonly balance?: number;
  /** An address of its own unless said otherwise. */
  readonly email?: string;
}

/** An account that a test has made. */
export interface TestAccount {
  readonly userId: string;
  /** Its platform key, which has every scope. */
  readonly apiKey: string;
  readonly email: string;
}

/** A running instance. */
export interface NinefoldInstance {
  /** Where it listens, such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The operator's platform key: every scope, no rate limit, no credit costs. */
  readonly apiKey: string;
  /** A client with that key; `client.withKey(apiKey)` is one of another account. */
  readonly client: Ninefold;
  /** The operator's account. */
  readonly userId: string;
  /** The process id of the server. */
  readonly pid: number;
  /**
   * Moves the test clock, and resolves to the new time (epoch ms) once everything that fell due has been run in
   * order and its deliveries have been attempted.
   *
   * @throws RangeError for what is no duration; Error on a real clock, or when the server has ended.
   */
  advance(by: Duration): Promise<number>;
  /** The server's time (epoch ms). @throws Error when the server has ended. */
  now(): Promise<number>;
  /** Makes an account of its own, which has limits and costs as customers have them. @throws Error when refused. */
  account(options?: AccountOptions): Promise<TestAccount>;
  /** Opens a receiver of webhooks in this process; it is closed by {@link stop}. */
  webhookSink(): Promise<WebhookSink>;
  /** What the server has logged so far. */
  log(): string;
  /** Ends the server and resolves when neither process nor folder is left. May be called more than once. */
  stop(): Promise<void>;
  /** The same as {@link stop}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Generous, since machines that run tests can be busy. */
const START_TIMEOUT_MS = 30_000;
/** What configures Ninefold or its runtime does not pass to the server by itself: it would change what tests see. */
const NOT_PASSED_ON = /^(NINEFOLD|NODE|BUN)_/i;

/**
 * Starts a throw-away instance on a free port of loopback. It ends with this process at the latest, whatever ends
 * that; an instance that was forgotten keeps no process alive.
 *
 * @throws Error with the server's own line when it does not start, or when there is no Ninefold to start.
 */
export async function startNinefold(options: StartOptions = {}): Promise<NinefoldInstance> {
  const environment = environmentOf(options);
  const isReal = options.clock === "real";
  const { server, ready } = await ServerProcess.start({
    command: commandOf(options),
    args: [
      ...["serve", "--ephemeral", "--json", "--stop-with-stdin"],
      ...(isReal ? [] : ["--test-clock"]),
      ...(options.args ?? []),
    ],
    environment,
    readyTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
  });
  const { url, user_id: userId, pid } = ready;
  const apiKey = ready.api_key ?? environment["NINEFOLD_OPERATOR_KEY"] ?? "";
  const sinks: OpenSink[] = [];
  const ask = (status: number, path: string, body: unknown): Promise<JsonObject> =>
    askOperator(server, { url, apiKey }, status, path, body);

  async function advance(by: Duration): Promise<number> {
    const advanceMs = durationMs(by);
    if (isReal) {
      throw new Error('Time runs by itself here: start the instance without clock: "real" to advance it.');
    }
    const { now } = await ask(200, "/v1/admin/clock", { advance_ms: advanceMs });
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
    // On the real clock both processes read the same one.
    now: () => (isReal ? Promise.resolve(Date.now()) : advance(0)),
    account: async ({ email = `user-${crypto.randomUUID()}@example.com`, tier = "scale", balance } = {}) => {
      const terms = { email, tier, ...(balance === undefined ? {} : { balance }) };
      const made = await ask(201, "/v1/admin/accounts", terms);
      return { userId: String(made["user_id"]), apiKey: String(made["api_key"]), email };
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

/** Posts as the operator. @throws Error unless the answer has the status; it says how the server has ended, if it has. */
async function askOperator(
  server: ServerProcess,
  { url, apiKey }: Pick<NinefoldInstance, "url" | "apiKey">,
  status: number,
  path: string,
  body: unknown,
): Promise<JsonObject> {
  const answer = await post(`${url}${path}`, apiKey, body).catch(async (error: unknown) => {
    const ending = await server.endingSoon();
    if (ending === undefined) throw error;
    throw new Error(`The Ninefold server is gone: ${ending}.\n${server.log}`.trimEnd(), { cause: error });
  });
  if (answer.status === status) return answer.body;
  const { message } = (answer.body["error"] ?? {}) as { message?: string };
  throw new Error(`POST ${path} was answered with ${answer.status}: ${message ?? "no reason given"}`);
}

function commandOf({ command }: StartOptions): Command {
  if (command !== undefined) return typeof command === "string" ? [command] : command;
  return findCommand(surroundingsOf(import.meta.url));
}

function environmentOf(options: StartOptions): Record<string, string> {
  const passed = Object.entries(process.env).filter(([name]) => !NOT_PASSED_ON.test(name));
  // Only the sources need it: the executable brings its own.
  return { ...Object.fromEntries(passed), NODE_ENV: "production", ...options.env };
}

/** An answer of the server. */
interface Answer {
  readonly status: number;
  readonly body: JsonObject;
}

/**
 * Posts JSON with a key. Not by fetch, which gives up after minutes: an advance of the clock takes as long as what
 * falls due takes. The connection is closed with the answer, so it keeps no process alive.
 *
 * @throws Error of the connection.
 */
function post(url: string, key: string, body: unknown): Promise<Answer> {
  const sent = JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(sent),
  };
  return new Promise((resolve, reject) => {
    const outgoing = send(
      url,
      { method: "POST", headers, agent: new Agent({ keepAlive: false }) },
      (incoming) => {
        const read = (received: string): Answer => ({
          status: incoming.statusCode ?? 0,
          body: parse(received),
        });
        text(incoming).then(read).then(resolve, reject);
      },
    );
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
