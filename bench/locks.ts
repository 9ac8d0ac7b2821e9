import { Connection, type HttpResponse } from "../test/harness/processes/connection.ts";
import type { ServerProcess } from "../test/harness/processes/server-process.ts";
import type { Finding, WrkScript } from "./benchmark.ts";
import { median } from "./results.ts";
import type { Stage } from "./stage.ts";

/**
 * Number of requests between an acquire and its release. It exceeds the requests in flight, so that the lock is held by
 * then.
 */
const RELEASE_LAG = 128;

const WAITERS = 1_000;
const HAND_OVER_MS_MAX = 5;
const DEAD_WAITERS = 200;
const DEAD_WAITER_MS_MAX = 50;
const HELD = 100_000;
const HELD_MB_MAX = 120;
const HELD_READY_MS_MAX = 1_000;
const LONG_WAIT_MS = 30_000;
const STARTS = 5;
const ACQUIRERS = 64;
const LONGEST_MS = 900_000;

/** Names that select these measurements. */
export const LOCK_HAND_OVER = "lock hand-over";
export const LOCK_LONG_WAIT = "lock wait of 30 s";
export const LOCKS_HELD = "100,000 locks held";

/**
 * Acquire and release in turn, each of a lock without contention. wrk cannot distinguish its connections, so the two
 * requests of a cycle use different ones; the caller's token connects them.
 */
export function lockCycle(stage: Stage): WrkScript {
  return {
    lua: `
local head = " HTTP/1.1\\r\\nHost: ${new URL(stage.url).host}\\r\\nAuthorization: Bearer ${stage.key}\\r\\nContent-Type: application/json\\r\\n"
local body = '{"token":"6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10"}'
local tail = head .. "Content-Length: " .. #body .. "\\r\\n\\r\\n" .. body
function init(args)
  acquired = ${Date.now() % 1_000_000_000} * 1000000
  -- wrk calls request() once beforehand and does not send the result.
  released = acquired + 1
  number = 0
end
function request()
  number = number + 1
  if number <= ${RELEASE_LAG} or number % 2 == 0 then
    acquired = acquired + 1
    return "POST /v1/latch/bench:" .. string.format("%.0f", acquired) .. "/acquire" .. tail
  end
  released = released + 1
  return "POST /v1/latch/bench:" .. string.format("%.0f", released) .. "/release" .. tail
end
`,
  };
}

/** A client of the measured server. */
class LockClient {
  private readonly connection: Connection;
  private readonly authorization: string;

  private constructor(connection: Connection, key: string) {
    this.connection = connection;
    this.authorization = `Bearer ${key}`;
  }

  static async open(url: string, key: string): Promise<LockClient> {
    return new LockClient(await Connection.open(url), key);
  }

  acquire(lock: string, body: object): Promise<HttpResponse> {
    return this.ask("POST", `/v1/latch/${lock}/acquire`, body);
  }

  release(lock: string, token: string): Promise<HttpResponse> {
    return this.ask("POST", `/v1/latch/${lock}/release`, { token });
  }

  async depth(lock: string): Promise<number> {
    const response = await this.ask("GET", `/v1/latch/${lock}`);
    return Number((JSON.parse(response.text) as { queue_depth: number }).queue_depth);
  }

  /** Returns when `wanted` clients are waiting. */
  async untilDepth(lock: string, wanted: number): Promise<void> {
    while ((await this.depth(lock)) !== wanted) await Bun.sleep(1);
  }

  close(): void {
    this.connection.close();
  }

  private ask(method: string, path: string, body?: object): Promise<HttpResponse> {
    const headers = { authorization: this.authorization, "content-type": "application/json" };
    return this.connection.request({
      method,
      path,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }
}

/**
 * A thousand clients wait for one lock. Measures the time from a release to the next client's response, and checks
 * their order.
 */
export async function measureHandOver(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say("a thousand waiters");
  return onServer(stage, "hand-over", async (server, key) => {
    const observer = await LockClient.open(server.url, key);
    const lock = "bench:queue";
    let token = tokenOf(await observer.acquire(lock, { ttl: LONGEST_MS }));
    const granted: number[] = [];
    const respondedAt: number[] = [];
    const responses: Promise<HttpResponse>[] = [];
    const clients: LockClient[] = [];
    for (let index = 0; index < WAITERS; index += 1) {
      const client = await LockClient.open(server.url, key);
      const response = client.acquire(lock, { ttl: LONGEST_MS, timeout: LONGEST_MS });
      responses.push(response);
      clients.push(client);
      void response.then(() => {
        granted.push(index);
        respondedAt[index] = performance.now();
      });
      // One after another, so that the expected order is known.
      await observer.untilDepth(lock, index + 1);
    }
    const latencies: number[] = [];
    for (let index = 0; index < WAITERS; index += 1) {
      const sent = performance.now();
      const released = observer.release(lock, token);
      token = tokenOf((await responses[index]) as HttpResponse);
      latencies.push((respondedAt[index] ?? Number.NaN) - sent);
      await released;
    }
    for (const client of clients) client.close();
    const inOrder = granted.length === WAITERS && granted.every((client, turn) => client === turn);
    return [
      finding(
        `${LOCK_HAND_OVER}: release to next grant, ${WAITERS} waiters, p99`,
        percentile(latencies, 0.99),
        HAND_OVER_MS_MAX,
      ),
      {
        what: `${LOCK_HAND_OVER}: granted in the order of the requests`,
        measured: inOrder ? "all" : "not all",
        required: "all",
        ok: inOrder,
      },
      await deadWaiters(server, key, observer),
    ];
  });
}

/** Time from the end of a waiter's connection until it has left the queue. */
async function deadWaiters(server: ServerProcess, key: string, observer: LockClient): Promise<Finding> {
  const lock = "bench:dead";
  await observer.acquire(lock, { ttl: LONGEST_MS });
  const latencies: number[] = [];
  for (let index = 0; index < DEAD_WAITERS; index += 1) {
    const client = await LockClient.open(server.url, key);
    client.acquire(lock, { timeout: LONGEST_MS }).catch(() => {});
    await observer.untilDepth(lock, 1);
    const closed = performance.now();
    client.close();
    while ((await observer.depth(lock)) !== 0);
    latencies.push(performance.now() - closed);
  }
  return finding(
    `${LOCK_HAND_OVER}: closed waiter out of the queue, slowest`,
    Math.max(...latencies),
    DEAD_WAITER_MS_MAX,
  );
}

/** A wait in real time that is longer than usual timeouts, without a byte on the connection. */
export async function measureLongWait(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say("waiting for 30 s");
  return onServer(stage, "long-wait", async (server, key) => {
    const holder = await LockClient.open(server.url, key);
    const waiter = await LockClient.open(server.url, key);
    const lock = "bench:long";
    await holder.acquire(lock, { ttl: LONG_WAIT_MS });
    const begun = performance.now();
    const response = await waiter.acquire(lock, { timeout: 2 * LONG_WAIT_MS });
    const waitedMs = performance.now() - begun;
    const ok = response.status === 200 && Math.abs(waitedMs - LONG_WAIT_MS) < 1_000;
    return [
      {
        what: `${LOCK_LONG_WAIT}: until the holder's lease ends`,
        measured: `${response.status} after ${(waitedMs / 1000).toFixed(2)} s`,
        required: "200 after 30 s",
        ok,
      },
    ];
  });
}

/** A hundred thousand held locks: memory compared to an idle server's, and the time of a start until it is ready. */
export async function measureHeld(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say("holding 100,000 locks");
  const data = stage.subfolder("locks-held");
  const first = await stage.startNinefold(data);
  const key = first.key ?? "";
  const idle = rssMB(first.pid);
  await holdMany(first.url, key);
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
    finding(`${LOCKS_HELD}: memory above an idle server's (RSS)`, grown, HELD_MB_MAX, "MB"),
    finding(`${LOCKS_HELD}: the same after a restart`, median(restarted), HELD_MB_MAX, "MB"),
    finding(`${LOCKS_HELD}: ready after the start`, median(readyMs), HELD_READY_MS_MAX),
  ];
}

async function holdMany(url: string, key: string): Promise<void> {
  let next = 0;
  const acquirer = async (): Promise<void> => {
    const client = await LockClient.open(url, key);
    for (let index = next++; index < HELD; index = next++) {
      tokenOf(await client.acquire(`bench:held:${index}`, { ttl: LONGEST_MS }));
    }
    client.close();
  };
  await Promise.all(Array.from({ length: ACQUIRERS }, acquirer));
}

async function onServer(
  stage: Stage,
  name: string,
  measure: (server: ServerProcess, key: string) => Promise<Finding[]>,
): Promise<Finding[]> {
  const server = await stage.startNinefold(stage.subfolder(name));
  try {
    return await measure(server, server.key ?? "");
  } finally {
    await server.stop("SIGKILL");
  }
}

function tokenOf(response: HttpResponse): string {
  if (response.status !== 200) throw new Error(`an acquire returned ${response.status} ${response.text}`);
  return (JSON.parse(response.text) as { token: string }).token;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function finding(what: string, value: number, most: number, unit = "ms"): Finding {
  return { what, measured: `${value.toFixed(1)} ${unit}`, required: `≤ ${most} ${unit}`, ok: value <= most };
}

/** Resident memory of a process in MB (10^6 bytes). */
function rssMB(pid: number): number {
  const { stdout } = Bun.spawnSync(["ps", "-o", "rss=", "-p", `${pid}`]);
  return (Number(stdout.toString().trim()) * 1024) / 1_000_000;
}
