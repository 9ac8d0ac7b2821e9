import { readFileSync } from "node:fs";
import { createRandom, type Random } from "../crash/random.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Minutes between pings. Each heartbeat has one of these periods, and a grace that fits. */
const PERIODS = [30, 60, 120] as const;
const GRACES = [5, 10, 30] as const;
/** Share of the runs that are missing, and of those that are late but within the grace. */
const MISSING = 0.05;
const LATE = 0.3;
/** Longest time between a missed ping and the check that reports it. */
const FOUND_WITHIN_MS = 2 * SECOND;
/** Concurrent requests. */
const CONNECTIONS = 32;
/** The interval of the other monitors, which request a URL. */
const INTERVAL_MS = 300_000;
/** Share of the run after which memory must not grow, and the shortest time until then: every heartbeat was pinged. */
const WARM = 1 / 3;
const WARM_MS_MIN = Math.max(...PERIODS) * MINUTE;

/** Settings of a simulation. */
export interface DayPlan {
  readonly command: Command;
  /** Half of them heartbeats. */
  readonly monitors: number;
  readonly hours: number;
  readonly seed: number;
}

/** Result of a simulation. */
export interface DayResult {
  readonly pings: number;
  readonly missed: number;
  readonly problems: readonly string[];
  /** Memory in MiB once warm, and at the end; null for a run that ends before it is warm. */
  readonly memory: readonly [warm: number, end: number] | null;
}

interface Heartbeat {
  readonly id: string;
  readonly path: string;
  readonly periodMs: number;
  readonly graceMs: number;
  /** Time of its next ping. The first is due within a period, so that no heartbeat is overdue before it. */
  nextAt: number;
  /** Time of its last ping; null before the first. */
  lastAt: number | null;
  /** Times of missed pings. */
  readonly missing: number[];
}

/** Simulates heartbeats with and without pings, and monitors that are checked, for some hours of a test clock. */
export async function simulateDay(plan: DayPlan): Promise<DayResult> {
  const { command, monitors, hours, seed } = plan;
  using target = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") });
  const args = ["--port", "0", "--ephemeral", "--test-clock", "--log-level", "error"];
  const more = ["--allow-private-targets", "127.0.0.1"];
  const server = await ServerProcess.start({ command, args: [...args, ...more] });
  try {
    const day = new Day(server, createRandom(seed));
    await day.prepare(monitors, target.url.href);
    return await day.run(hours);
  } finally {
    await server.stop();
  }
}

class Day {
  private readonly heartbeats: Heartbeat[] = [];
  private readonly problems: string[] = [];
  private now = 0;
  private pings = 0;

  constructor(
    private readonly server: ServerProcess,
    private readonly random: Random,
  ) {}

  async prepare(monitors: number, url: string): Promise<void> {
    await this.advance(SECOND);
    const half = Math.floor(monitors / 2);
    await inTurn(half, async () => {
      await this.ask("POST", "/v1/pulse", { url, interval: INTERVAL_MS });
    });
    await inTurn(monitors - half, async () => {
      const periodMs = this.random.pick(PERIODS) * MINUTE;
      const graceMs = this.random.pick(GRACES) * MINUTE;
      const terms = { type: "heartbeat", period_ms: periodMs, grace_ms: graceMs };
      const created = await this.ask("POST", "/v1/pulse", terms);
      const { pathname: path } = new URL(String(created["ping_url"]));
      const nextAt = this.now + this.random.below(periodMs / MINUTE) * MINUTE;
      const of = { id: String(created["id"]), path, periodMs, graceMs };
      this.heartbeats.push({ ...of, nextAt, lastAt: null, missing: [] });
    });
  }

  async run(hours: number): Promise<DayResult> {
    const end = this.now + hours * HOUR;
    const warmAt = this.now + Math.max(hours * HOUR * WARM, WARM_MS_MIN);
    let warm: number | null = null;
    while (this.now < end) {
      const due = this.heartbeats.filter(({ nextAt }) => nextAt <= this.now);
      await inTurn(due.length, (at) => this.ping(due[at] as Heartbeat));
      await this.advance(MINUTE);
      if (warm === null && this.now >= warmAt) warm = this.memory();
    }
    const memory = warm === null ? null : ([warm, this.memory()] as const);
    let missed = 0;
    await inTurn(this.heartbeats.length, async (at) => {
      const times = await this.judge(this.heartbeats[at] as Heartbeat);
      missed += times;
    });
    return { pings: this.pings, missed, problems: this.problems, memory };
  }

  /** Sends a ping or skips it, and sets the time of the next run. */
  private async ping(beat: Heartbeat): Promise<void> {
    const { periodMs, graceMs, path } = beat;
    const comes = beat.lastAt === null || !this.random.chance(MISSING);
    if (comes) {
      const missingAt = deadlineOf(beat);
      // Deadlines in this minute were already checked, since the clock is not running.
      if (missingAt <= this.now) beat.missing.push(missingAt);
      beat.lastAt = this.now;
      this.pings += 1;
      const response = await fetch(this.server.url + path);
      if ((await response.text()) !== "OK") this.problems.push(`a ping returned ${response.status}`);
    }
    const late = this.random.chance(LATE) ? this.random.below(graceMs / MINUTE) * MINUTE : 0;
    beat.nextAt = this.now + periodMs + late;
  }

  /** Compares missed pings with reported ones. Returns the number of missed pings. */
  private async judge(beat: Heartbeat): Promise<number> {
    const { id, missing } = beat;
    const deadline = deadlineOf(beat);
    const expected = [...missing, ...(deadline <= this.now ? [deadline] : [])];
    const { checks } = await this.ask("GET", `/v1/pulse/${id}/history?limit=100`);
    const found = (checks as { checked_at: number; status: string }[])
      .filter(({ status }) => status === "down")
      .map(({ checked_at }) => checked_at * SECOND)
      .reverse();
    if (found.length !== expected.length)
      this.problems.push(
        `${id}: pings were missing ${expected.length} times, and found ${found.length} times`,
      );
    expected.forEach((at, number) => {
      const late = (found[number] ?? Number.POSITIVE_INFINITY) - at;
      // The history has whole seconds.
      if (late > FOUND_WITHIN_MS || late <= -SECOND)
        this.problems.push(`${id}: found ${late} ms after its time`);
    });
    return expected.length;
  }

  private async advance(ms: number): Promise<void> {
    this.now = Number((await this.ask("POST", "/v1/admin/clock", { advance_ms: ms }))["now"]);
  }

  private async ask(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const headers = { Authorization: `Bearer ${this.server.key}`, "Content-Type": "application/json" };
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    const response = await fetch(this.server.url + path, init);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  }

  /** Memory of the server in MiB. */
  private memory(): number {
    const [, kilobytes] =
      /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${this.server.pid}/status`, "utf8")) ?? [];
    return Math.round(Number(kilobytes) / 1024);
  }
}

/** Time at which a heartbeat is reported as missed; never before its first ping. */
function deadlineOf({ lastAt, periodMs, graceMs }: Heartbeat): number {
  return lastAt === null ? Number.POSITIVE_INFINITY : lastAt + periodMs + graceMs;
}

/** Calls `work` `times` times, with {@link CONNECTIONS} concurrent calls. */
async function inTurn(times: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < times) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS, times) }, worker));
}
