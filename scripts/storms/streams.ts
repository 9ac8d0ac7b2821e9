import { join } from "node:path";
import { Connection } from "../processes/connection.ts";
import { type EventSocket, openEventSockets } from "../processes/event-socket.ts";
import { residentMiB } from "../processes/memory.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";

/** How many listen to changes of flags. */
export interface StreamLoad {
  readonly command: Command;
  /** A folder of its own; the data folder is made in it. */
  readonly folder: string;
  readonly streams: number;
}

/** What so many streams came to. */
export interface StreamLoadResult {
  readonly streams: number;
  /** What they take of the server's memory; null where the system does not tell. */
  readonly mib: number | null;
  /** From a change to the last one who heard of it. */
  readonly allHeardMs: number;
  /** How long a ping took meanwhile, in 99 of 100 cases. */
  readonly pingMs: number;
  readonly problems: readonly string[];
}

/** What is asked of the server with 10,000 streams. */
const MIB_MAX = 200;
const ALL_HEARD_MS_MAX = 5_000;
const PING_MS_MAX = 50;
/** Streams of one key, as a server limits them. */
const PER_KEY = 1_000;
/** Streams of one account: a quarter of those of a server. */
const PER_ACCOUNT = 2_500;
const PING_EVERY_MS = 5;
/** What a server has done in vain is collected by then. */
const SETTLE_MS = 2_000;

/** Opens streams, changes a flag, and looks at when all have heard. */
export async function runStreamLoad({ command, folder, streams }: StreamLoad): Promise<StreamLoadResult> {
  const args = ["--port", "0", "--data", join(folder, "data"), "--log-level", "warn"];
  const server = await ServerProcess.start({ command, args });
  const open: EventSocket[] = [];
  try {
    const accounts = await Promise.all(
      Array.from({ length: Math.ceil(streams / PER_ACCOUNT) }, (_, at) => newAccount(server, at)),
    );
    const change = (enabled: boolean) =>
      Promise.all(accounts.map((key) => ask(server, key, "/v1/gate", { flag_key: "loaded", enabled })));
    await change(true);
    const before = residentMiB(server.pid);
    while (open.length < streams) {
      const count = Math.min(PER_KEY, PER_ACCOUNT - (open.length % PER_ACCOUNT), streams - open.length);
      const stream = await newStream(server, accounts[Math.floor(open.length / PER_ACCOUNT)] ?? null);
      open.push(...(await openEventSockets(server.url, stream, count)));
    }
    await Bun.sleep(SETTLE_MS);
    const after = residentMiB(server.pid);
    const pings = new Pings(await Connection.open(server.url));
    const begun = performance.now();
    await change(false);
    const heard = await Promise.all(open.map((one) => one.heard));
    const pingMs = await pings.end();
    const allHeardMs = Math.max(...heard) - begun;
    const mib = before === null || after === null ? null : after - before;
    return { streams, mib, allHeardMs, pingMs, problems: problemsOf({ mib, allHeardMs, pingMs }) };
  } finally {
    for (const stream of open) stream.close();
    await server.stop();
  }
}

async function ask<T>({ url }: ServerProcess, key: string | null, path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** The key of a new account without rate limits. */
async function newAccount(server: ServerProcess, at: number): Promise<string> {
  const account = { email: `streams-${at}@example.com`, tier: "unlimited" };
  return (await ask<{ api_key: string }>(server, server.key, "/v1/admin/accounts", account)).api_key;
}

/** Where a new key of an account listens. */
async function newStream(server: ServerProcess, accountKey: string | null): Promise<string> {
  const terms = { prefix: "sm", name: "browsers", scopes: ["ofrep:read"] };
  const { secret } = await ask<{ secret: string }>(server, accountKey, "/v1/keys", terms);
  const all = await ask<Evaluations>(server, secret, "/ofrep/v1/evaluate/flags", {});
  const path = all.eventStreams[0]?.endpoint.requestUri;
  if (path === undefined) throw new Error("no stream was named");
  return path;
}

interface Evaluations {
  readonly eventStreams: readonly { readonly endpoint: { readonly requestUri: string } }[];
}

/** Asks for nothing again and again, and notes how long that takes. */
class Pings {
  private readonly times: number[] = [];
  private isOver = false;
  private readonly ended: Promise<void>;

  constructor(private readonly connection: Connection) {
    this.ended = this.run();
  }

  /** Ends it. Resolves to what 99 of 100 took at most, in milliseconds. */
  async end(): Promise<number> {
    this.isOver = true;
    await this.ended;
    this.connection.close();
    return this.times.sort((a, b) => a - b)[Math.floor(this.times.length * 0.99)] ?? 0;
  }

  private async run(): Promise<void> {
    while (!this.isOver) {
      const begun = performance.now();
      await this.connection.request({ method: "GET", path: "/v1/ping", headers: {} });
      this.times.push(performance.now() - begun);
      await Bun.sleep(PING_EVERY_MS);
    }
  }
}

function problemsOf(found: Pick<StreamLoadResult, "mib" | "allHeardMs" | "pingMs">): string[] {
  const { mib, allHeardMs, pingMs } = found;
  return [
    ...(mib !== null && mib > MIB_MAX
      ? [`the streams take ${mib.toFixed(0)} MiB, more than ${MIB_MAX}`]
      : []),
    ...(allHeardMs > ALL_HEARD_MS_MAX ? [`the last one heard after ${allHeardMs.toFixed(0)} ms`] : []),
    ...(pingMs > PING_MS_MAX ? [`pings took ${pingMs.toFixed(1)} ms meanwhile`] : []),
  ];
}

/** What was found, as a few lines. */
export function describeStreamLoad(result: StreamLoadResult): string {
  const { streams, mib, allHeardMs, pingMs, problems } = result;
  const memory = mib === null ? "" : ` in ${mib.toFixed(0)} MiB`;
  return [
    `${streams} streams${memory}; a change reached all within ${allHeardMs.toFixed(0)} ms; p99 of pings meanwhile ${pingMs.toFixed(1)} ms`,
    ...problems,
  ].join("\n");
}
