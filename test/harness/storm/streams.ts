import { join } from "node:path";
import { type EventSocket, openEventSockets } from "../processes/event-socket.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";
import { residentMiB } from "../processes/usage.ts";
import { Pings } from "./pings.ts";

/** Settings of a run. */
export interface StreamLoad {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  readonly streams: number;
}

/** Measurements of a run. */
export interface StreamLoadResult {
  readonly streams: number;
  /** Memory of the server that the streams use; null where the system does not report it. */
  readonly mib: number | null;
  /** Time from the change until the last stream received it. */
  readonly lastReceivedMs: number;
  /** 99th percentile of the latency of pings in that time. */
  readonly pingMs: number;
  readonly problems: readonly string[];
}

/** Limits for 10,000 streams. */
const MIB_MAX = 200;
const LAST_RECEIVED_MS_MAX = 5_000;
const PING_MS_MAX = 50;
/** The server's limit of streams per key. */
const PER_KEY = 1_000;
/** The server's limit of streams per account: a quarter of all. */
const PER_ACCOUNT = 2_500;
/** Time for the garbage collector before memory is measured. */
const SETTLE_MS = 2_000;

/** Opens streams, changes a flag, and measures until every stream has received the change. */
export async function runStreamLoad({ command, folder, streams }: StreamLoad): Promise<StreamLoadResult> {
  const args = ["--port", "0", "--data", join(folder, "data"), "--log-level", "warn"];
  const server = await ServerProcess.start({ command, args });
  const open: EventSocket[] = [];
  try {
    const accounts = await Promise.all(
      Array.from({ length: Math.ceil(streams / PER_ACCOUNT) }, (_, at) => newAccount(server, at)),
    );
    const change = (enabled: boolean) =>
      Promise.all(accounts.map((key) => post(server, key, "/v1/gate", { flag_key: "loaded", enabled })));
    await change(true);
    const before = residentMiB(server.pid);
    while (open.length < streams) {
      const count = Math.min(PER_KEY, PER_ACCOUNT - (open.length % PER_ACCOUNT), streams - open.length);
      const stream = await newStream(server, accounts[Math.floor(open.length / PER_ACCOUNT)] ?? null);
      open.push(...(await openEventSockets(server.url, stream, count)));
    }
    await Bun.sleep(SETTLE_MS);
    const after = residentMiB(server.pid);
    const pings = await Pings.start(server.url);
    const start = performance.now();
    await change(false);
    const received = await Promise.all(open.map((stream) => stream.heard));
    const { p99Ms: pingMs } = await pings.stop();
    const lastReceivedMs = Math.max(...received) - start;
    const mib = before === null || after === null ? null : after - before;
    return { streams, mib, lastReceivedMs, pingMs, problems: problemsOf({ mib, lastReceivedMs, pingMs }) };
  } finally {
    for (const stream of open) stream.close();
    await server.stop();
  }
}

async function post<T>({ url }: ServerProcess, key: string | null, path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

/** The key of a new account without rate limits. */
async function newAccount(server: ServerProcess, at: number): Promise<string> {
  const account = { email: `streams-${at}@example.com`, tier: "unlimited" };
  return (await post<{ api_key: string }>(server, server.key, "/v1/admin/accounts", account)).api_key;
}

/** The path of the event stream of a new key. */
async function newStream(server: ServerProcess, accountKey: string | null): Promise<string> {
  const body = { prefix: "sm", name: "browsers", scopes: ["ofrep:read"] };
  const { secret } = await post<{ secret: string }>(server, accountKey, "/v1/keys", body);
  const all = await post<Evaluations>(server, secret, "/ofrep/v1/evaluate/flags", {});
  const path = all.eventStreams[0]?.endpoint.requestUri;
  if (path === undefined) throw new Error("the response names no event stream");
  return path;
}

interface Evaluations {
  readonly eventStreams: readonly { readonly endpoint: { readonly requestUri: string } }[];
}

function problemsOf(measured: Pick<StreamLoadResult, "mib" | "lastReceivedMs" | "pingMs">): string[] {
  const { mib, lastReceivedMs, pingMs } = measured;
  return [
    ...(mib !== null && mib > MIB_MAX
      ? [`the streams take ${mib.toFixed(0)} MiB, more than ${MIB_MAX}`]
      : []),
    ...(lastReceivedMs > LAST_RECEIVED_MS_MAX
      ? [`the last stream received the change after ${lastReceivedMs.toFixed(0)} ms`]
      : []),
    ...(pingMs > PING_MS_MAX ? [`p99 of pings was ${pingMs.toFixed(1)} ms`] : []),
  ];
}

/** The measurements as a few lines of text. */
export function describeStreamLoad(result: StreamLoadResult): string {
  const { streams, mib, lastReceivedMs, pingMs, problems } = result;
  const memory = mib === null ? "" : ` in ${mib.toFixed(0)} MiB`;
  return [
    `${streams} streams${memory}; a change reached all within ${lastReceivedMs.toFixed(0)} ms; p99 of pings ${pingMs.toFixed(1)} ms`,
    ...problems,
  ].join("\n");
}
