import type { Random } from "./random.ts";
import { createAccount, RecordedOfAccount, type Target, type Workload } from "./workload.ts";

const HEARTBEATS = 4;
const DAY_MS = 86_400_000;
/** Pings that are stored of each heartbeat. */
const PINGS_STORED = 100;
/** One ping in this many is a failure: it writes every row, with the state in memory. */
const FAILURE_ONE_IN = 50;

interface Heartbeat {
  readonly id: string;
  readonly path: string;
  acknowledged: number;
  /** Pings without a response since the last verification, which can have happened. */
  inDoubt: number;
}

interface Check {
  readonly checked_at: number;
  readonly status: string;
}

/**
 * Plain successes, whose states are written later. Each acknowledged one is a check in the history, none
 * twice, and the monitor's state follows from its last checks.
 */
export class SteadyPingWorkload extends RecordedOfAccount implements Workload {
  readonly name = "steady pings";
  readonly weight = 1;
  private readonly heartbeats: Heartbeat[] = [];

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "steady@example.com", "unlimited");
    const terms = { type: "heartbeat", period_ms: DAY_MS, consecutive_threshold: 3 };
    for (let count = 0; count < HEARTBEATS; count += 1) {
      const { id, ping_url } = await this.ask(target, "POST", "/v1/pulse", terms);
      const path = new URL(String(ping_url)).pathname;
      this.heartbeats.push({ id: String(id), path, acknowledged: 0, inDoubt: 0 });
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const heartbeat = random.pick(this.heartbeats);
    const path = heartbeat.path + (random.below(FAILURE_ONE_IN) === 0 ? "/fail" : "");
    const response = await target.send({ method: "GET", path, key: null });
    if (response?.status === 200) {
      this.counts.acknowledged += 1;
      heartbeat.acknowledged += 1;
    } else if (response === null) {
      this.counts.inDoubt += 1;
      heartbeat.inDoubt += 1;
    }
  }

  async verify(target: Target): Promise<string[]> {
    const problems: string[] = [];
    for (const heartbeat of this.heartbeats) problems.push(...(await this.problemsOf(target, heartbeat)));
    return problems;
  }

  private async problemsOf(target: Target, heartbeat: Heartbeat): Promise<string[]> {
    const { id, acknowledged, inDoubt } = heartbeat;
    const problems: string[] = [];
    const note = (text: string): unknown => problems.push(`steady pings: ${id} ${text}`);
    const checks = await this.checksOf(target, id);
    const most = acknowledged + inDoubt;
    if (checks.length < acknowledged || checks.length > most)
      note(`has ${checks.length} checks, not ${acknowledged} to ${most}`);
    this.counts.happened += Math.max(0, checks.length - acknowledged);
    heartbeat.acknowledged = checks.length;
    heartbeat.inDoubt = 0;
    const view = await this.ask(target, "GET", `/v1/pulse/${id}`);
    const firstUp = checks.findIndex(({ status }) => status === "up");
    const failures = firstUp < 0 ? checks.length : firstUp;
    if (view["consecutive_failures"] !== failures)
      note(`counts ${view["consecutive_failures"]} failures in a row, not ${failures}`);
    if ((view["last_checked_at"] ?? undefined) !== checks[0]?.checked_at)
      note(`was last checked at ${view["last_checked_at"]}, not ${checks[0]?.checked_at}`);
    const { pings } = (await this.ask(target, "GET", `/v1/pulse/${id}/pings`)) as {
      pings: { at: string; kind: string; ip: string | null }[];
    };
    const shown = pings.map(({ at, kind }) => `${Math.floor(Date.parse(at) / 1_000)} ${kind}`);
    const made = checks
      .slice(0, PINGS_STORED)
      .map(({ checked_at, status }) => `${checked_at} ${status === "up" ? "success" : "fail"}`);
    if (shown.join() !== made.join()) note(`shows other pings than its last ${made.length} checks`);
    if (pings.some(({ ip }) => ip === null)) note("has pings without an address");
    return problems;
  }

  private async checksOf(target: Target, id: string): Promise<Check[]> {
    const all: Check[] = [];
    for (let query = "limit=100"; query !== ""; ) {
      const page = await this.ask(target, "GET", `/v1/pulse/${id}/history?${query}`);
      all.push(...(page["checks"] as Check[]));
      const { cursor } = page;
      query = cursor === undefined ? "" : `limit=100&cursor=${encodeURIComponent(String(cursor))}`;
    }
    return all;
  }
}
