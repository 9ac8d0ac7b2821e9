import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import type { Competitor, Measurement } from "./benchmark.ts";
import { METERS, type Stage } from "./stage.ts";

const CLIENTS = 32;
const READY_TRIES = 200;
const READY_PAUSE_MS = 25;
/** Initial estimate of the rate, to choose the number of requests that fill the time. */
const PROBE_REQUESTS = 2_000;

const FILL = `for number = 0, ${METERS - 1} do redis.call('SET', string.format('meter:%012d', number), 1000000000) end`;

const DEDUCT = `
local balance = tonumber(redis.call('GET', KEYS[1]) or '0')
local amount = tonumber(ARGV[1])
if balance < amount then return -1 end
return redis.call('DECRBY', KEYS[1], amount)`;

/**
 * A deduct in Redis by a Lua script, without a ledger, with every write synced, on a separate instance on a Unix
 * socket.
 */
export class RedisDeduct implements Competitor {
  readonly name = "Redis deduct";
  private socket = "";
  private digest = "";

  missing(): string | null {
    for (const program of ["redis-server", "redis-benchmark", "redis-cli"]) {
      if (Bun.which(program) === null)
        return "Redis is not installed: apt-get install redis-server redis-tools";
    }
    return null;
  }

  async prepare(stage: Stage): Promise<void> {
    this.socket = await startRedis(stage, "redis");
    await askRedis(this.socket, "EVAL", FILL, "0");
    this.digest = await askRedis(this.socket, "SCRIPT", "LOAD", DEDUCT);
  }

  async measure(seconds: number): Promise<Measurement> {
    const guess = await this.load(PROBE_REQUESTS);
    return this.load(Math.ceil(guess.perSecond * seconds));
  }

  private async load(requests: number): Promise<Measurement> {
    const child = Bun.spawn(
      [
        ...[
          "redis-benchmark",
          "-s",
          this.socket,
          "-c",
          `${CLIENTS}`,
          "-n",
          `${requests}`,
          "-r",
          `${METERS}`,
          "--csv",
        ],
        ...["EVALSHA", this.digest, "1", "meter:__rand_int__", "1"],
      ],
      { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    );
    endsWithUs(child);
    const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    // "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms",…
    const line = out.trim().split("\n").at(-1) ?? "";
    const fields = [...line.matchAll(/"([^"]*)"/g)].map((field) => field[1]);
    const [perSecond = Number.NaN, , , p50Ms = Number.NaN, , p99Ms = Number.NaN] = fields
      .slice(-7)
      .map(Number);
    if (code !== 0 || !(perSecond > 0)) throw new Error(`redis-benchmark failed (${code}): ${out}${error}`);
    return { perSecond, p50Ms, p99Ms };
  }
}

/** Starts a Redis that syncs every write, on a Unix socket in its own folder. Returns the socket. */
export async function startRedis(stage: Stage, name: string): Promise<string> {
  const folder = stage.subfolder(name);
  const socket = join(folder, "socket");
  const place = ["--port", "0", "--unixsocket", socket, "--dir", folder];
  const durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
  const server = Bun.spawn(["redis-server", ...place, ...durable], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  endsWithUs(server);
  stage.atEnd(async () => {
    server.kill("SIGKILL");
    await server.exited;
  });
  for (let tries = 0; tries < READY_TRIES; tries += 1) {
    if ((await askRedis(socket, "PING").catch(() => "")) === "PONG") return socket;
    await Bun.sleep(READY_PAUSE_MS);
  }
  throw new Error("Redis did not become ready");
}

async function askRedis(socket: string, ...command: readonly string[]): Promise<string> {
  const child = Bun.spawn(["redis-cli", "-s", socket, ...command], { stdout: "pipe", stderr: "pipe" });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  const text = out.trim();
  if (code !== 0 || /^(\(error\)|ERR)/.test(text)) throw new Error(`redis-cli: ${text}${error}`);
  return text;
}
