import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import { Connection, type HttpResponse } from "../test/harness/processes/connection.ts";
import { plainEnvironment, type ServerProcess } from "../test/harness/processes/server-process.ts";
import type { Finding, WrkRequest } from "./benchmark.ts";
import { median } from "./results.ts";
import type { Stage } from "./stage.ts";

const DUE = 20_000;
const DUE_SECONDS = 10;
const LATENESS_MS_MAX = 250;
/** Long enough that the last delivery is scheduled before the first one is due. */
const DELAY_SECONDS = 20;
const WAITING = 1_000_000;
const WAITING_MB_MAX = 100;
const WAITING_READY_MS_MAX = 1_000;
const STARTS = 5;
const MONITORS = 10_000;
const MONITOR_INTERVAL_MS = 15_000;
const MONITOR_SECONDS = 60;
const API_MS_MAX = 20;
const API_PAUSE_MS = 10;
const CLIENTS = 32;
/** Loopback addresses of the targets: deliveries are spread over hosts. */
const HOSTS = 50;

/** Names that select these measurements. */
export const RELAYS_DUE = "20,000 relays over 10 s";
export const RELAYS_WAITING = "1,000,000 relays waiting";
export const MONITORS_CHECKED = "10,000 monitors at 15 s";

/** Endpoints of a message. */
const ENDPOINTS = 10;

/** Creates the endpoints of messages. */
export async function prepareEndpoints(stage: Stage): Promise<void> {
  for (let number = 0; number < ENDPOINTS; number += 1)
    await stage.post("/v1/relay/endpoints", { url: `https://hooks${number}.example.com/in` });
}

/** Sends a message that is delivered in an hour: ten deliveries in one commit. */
export function messageRequest(stage: Stage): WrkRequest {
  return {
    method: "POST",
    path: "/v1/relay/messages",
    headers: { Authorization: `Bearer ${stage.key}` },
    body: JSON.stringify({
      event_type: "invoice.paid",
      delay: "1h",
      payload: { invoice: "in_1042", amount: 120 },
    }),
  };
}

/** Schedules a delivery in an hour. */
export function scheduleRequest(stage: Stage): WrkRequest {
  return {
    method: "POST",
    path: "/v1/relay",
    headers: { Authorization: `Bearer ${stage.key}` },
    body: JSON.stringify({
      target_url: "https://hooks.example.com/in",
      method: "POST",
      delay: "1h",
      payload: { id: "evt_1", amount: 4200 },
      headers: {},
    }),
  };
}

/** Many deliveries become due within seconds. Measures how late they arrive. */
export async function measureDue(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say(`scheduling ${DUE} deliveries, waiting until they have arrived`);
  return onServer(stage, "relays-due", async (server, key, receiver) => {
    const due = new Map<string, number>();
    const begun = performance.now();
    await asClients(server, key, DUE, async (ask, number) => {
      const wait = begun + (number * DUE_SECONDS * 1_000) / DUE - performance.now();
      if (wait > 1) await Bun.sleep(wait);
      const response = await ask("POST", "/v1/relay", {
        target_url: `${receiver.hostUrl(number)}/`,
        method: "POST",
        delay: `${DELAY_SECONDS}s`,
        payload: { id: `evt_${number}`, amount: 4200 },
        headers: {},
      });
      const { relay_id, scheduled_for } = JSON.parse(response.text);
      due.set(relay_id, scheduled_for);
    });
    await Bun.sleep(begun + (DELAY_SECONDS + DUE_SECONDS + 2) * 1_000 - performance.now());
    const arrivals = await receiver.take();
    const late = arrivals.map(([id, at]) => at - (due.get(id) ?? Number.NaN));
    const arrived = new Set(arrivals.map(([id]) => id)).size;
    return [
      finding(`${RELAYS_DUE}: lateness, p99`, percentile(late, 0.99), LATENESS_MS_MAX),
      {
        what: `${RELAYS_DUE}: arrived`,
        measured: `${arrived}, ${arrivals.length - arrived} of them twice`,
        required: `${DUE}, none twice`,
        ok: arrived === DUE && arrivals.length === DUE,
      },
    ];
  });
}

/** A million pending deliveries: memory compared to an idle server's, and the time of a start until it is ready. */
export async function measureWaiting(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say(`scheduling ${WAITING} deliveries`);
  const data = stage.subfolder("relays-waiting");
  const first = await stage.startNinefold(data);
  const idle = rssMB(first.pid);
  await asClients(first, first.key ?? "", WAITING, async (ask, number) => {
    const target_url = `https://host-${number % 1_000}.example.com/in`;
    const delay = `${60 + (number % 40_000)}m`;
    await ask("POST", "/v1/relay", { target_url, method: "POST", delay, payload: { number }, headers: {} });
  });
  const grown = rssMB(first.pid) - idle;
  await first.stop();
  const readyMs: number[] = [];
  const restarted: number[] = [];
  for (let start = 0; start < STARTS; start += 1) {
    const server = await stage.startNinefold(data);
    readyMs.push(server.readyMs);
    restarted.push(rssMB(server.pid) - idle);
    await server.stop();
  }
  return [
    finding(`${RELAYS_WAITING}: memory above an idle server's (RSS)`, grown, WAITING_MB_MAX, "MB"),
    finding(`${RELAYS_WAITING}: the same after a restart`, median(restarted), WAITING_MB_MAX, "MB"),
    finding(`${RELAYS_WAITING}: ready after the start`, median(readyMs), WAITING_READY_MS_MAX),
  ];
}

/** Many monitors: each must be checked once per interval and on time, while the API stays fast. */
export async function measureMonitors(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say(`making ${MONITORS} monitors, watching them for ${MONITOR_SECONDS} s`);
  return onServer(stage, "monitors", async (server, key, receiver) => {
    await asClients(server, key, MONITORS, (ask, number) =>
      ask("POST", "/v1/pulse", {
        url: `${receiver.hostUrl(number)}/monitor/${number}`,
        interval: MONITOR_INTERVAL_MS,
      }),
    );
    // From the second check on, each monitor has a fixed time within the interval.
    await Bun.sleep(2 * MONITOR_INTERVAL_MS);
    await receiver.take();
    const api = await readWhile(server, key, MONITOR_SECONDS);
    const last = new Map<string, number>();
    const late: number[] = [];
    for (const [path, at] of await receiver.take()) {
      const before = last.get(path);
      if (before !== undefined) late.push(Math.abs(at - before - MONITOR_INTERVAL_MS));
      last.set(path, at);
    }
    const expected = (MONITOR_SECONDS * 1_000) / MONITOR_INTERVAL_MS - 1;
    return [
      finding(`${MONITORS_CHECKED}: off schedule, p99`, percentile(late, 0.99), LATENESS_MS_MAX),
      finding(`${MONITORS_CHECKED}: API meanwhile, p99`, percentile(api, 0.99), API_MS_MAX),
      {
        what: `${MONITORS_CHECKED}: checked once an interval`,
        measured: `${last.size} monitors, ${(late.length / MONITORS).toFixed(2)} repeats each`,
        required: `${MONITORS} monitors, ${expected} repeats each`,
        ok: last.size === MONITORS && Math.abs(late.length / MONITORS - expected) < 0.01,
      },
    ];
  });
}

/** Changes a meter repeatedly. Returns the latency of each change. */
async function readWhile(server: ServerProcess, key: string, seconds: number): Promise<number[]> {
  const latencies: number[] = [];
  const end = performance.now() + seconds * 1_000;
  await asClients(server, key, 1, async (ask) => {
    while (performance.now() < end) {
      const sent = performance.now();
      await ask("POST", "/v1/meter/bench/refill", { amount: 1 });
      latencies.push(performance.now() - sent);
      await Bun.sleep(API_PAUSE_MS);
    }
  });
  return latencies;
}

type Ask = (method: string, path: string, body: object) => Promise<HttpResponse>;

/** Calls `work` `times` times over a few connections. @throws Error for any response but 2xx. */
export async function asClients(
  server: ServerProcess,
  key: string,
  times: number,
  work: (ask: Ask, number: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const client = async (): Promise<void> => {
    const connection = await Connection.open(server.url);
    const ask: Ask = async (method, path, body) => {
      const response = await connection.request({ method, path, headers, body: JSON.stringify(body) });
      if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
      return response;
    };
    for (let number = next++; number < times; number = next++) await work(ask, number);
    connection.close();
  };
  await Promise.all(Array.from({ length: Math.min(times, CLIENTS) }, client));
}

/** A process that receives the server's requests. */
export interface Receiver {
  readonly port: number;
  /** URL of one of many hosts that resolve to it. */
  hostUrl(number: number): string;
  /** The requests received since the last call. */
  take(): Promise<[key: string, at: number][]>;
}

async function onServer(
  stage: Stage,
  name: string,
  measure: (server: ServerProcess, key: string, receiver: Receiver) => Promise<Finding[]>,
): Promise<Finding[]> {
  await using receiver = await startReceiver();
  const server = await stage.startNinefold(stage.subfolder(name), PRIVATE);
  try {
    return await measure(server, server.key ?? "", receiver);
  } finally {
    await server.stop("SIGKILL");
  }
}

/** Arguments that allow a server to send to the receiver. */
export const PRIVATE = ["--allow-private-targets", "127.0.0.0/8"] as const;

/** URL of one of many hosts that resolve to a receiver's port. */
export function hostUrl(number: number, port: number): string {
  return `http://127.0.0.${1 + (number % HOSTS)}:${port}`;
}

/** Starts a receiver, which ends with the caller's block. */
export async function startReceiver(): Promise<Receiver & AsyncDisposable> {
  const script = join(import.meta.dir, "receiver.ts");
  const child = endsWithUs(
    Bun.spawn([process.execPath, "--no-env-file", script], {
      env: plainEnvironment({ NODE_ENV: "production" }),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    }),
  );
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  return {
    port,
    hostUrl: (number) => hostUrl(number, port),
    take: async () =>
      (await fetch(`http://127.0.0.1:${port}/arrivals`)).json() as Promise<[string, number][]>,
    [Symbol.asyncDispose]: async () => child.kill("SIGKILL"),
  };
}

/** The quantile of the values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** A measurement and its maximum. */
export function finding(what: string, value: number, most: number, unit = "ms"): Finding {
  return { what, measured: `${value.toFixed(1)} ${unit}`, required: `≤ ${most} ${unit}`, ok: value <= most };
}

/** Resident memory of a process in MB (10^6 bytes). */
function rssMB(pid: number): number {
  const { stdout } = Bun.spawnSync(["ps", "-o", "rss=", "-p", `${pid}`]);
  return (Number(stdout.toString().trim()) * 1024) / 1_000_000;
}
