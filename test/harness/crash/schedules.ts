import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  type Target,
  type TargetRequest,
  type Workload,
} from "./workload.ts";

const CREDITS = 1_000_000;
/** A closed port: the outcome of deliveries is another workload's subject. */
const TARGET_URL = "http://127.0.0.1:9/";
/** Each runs every minute, and when it is run manually. */
const SCHEDULES = 10;
const PATH = "/v1/relay/schedules";

interface Schedule {
  readonly schedule_id: string;
  readonly state: "live" | "paused";
  readonly next_run_at: number | null;
  readonly runs: number;
}

interface Run {
  readonly relay_id: string;
  readonly scheduled_for: number;
}

/**
 * Schedules that run every minute and manually, and are paused and resumed. A run is counted exactly if its delivery
 * exists, each due time has at most one run, and a live schedule has a next run.
 */
export class ScheduleWorkload extends RecordedOfAccount implements Workload {
  readonly name = "schedules";
  readonly weight = 1;
  private ids: string[] = [];
  private inDoubt: TargetRequest[] = [];
  /** Deliveries of acknowledged manual runs. */
  private readonly manualRuns = new Set<string>();
  private requested = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "schedules@example.com", CREDITS);
    for (let count = 0; count < SCHEDULES; count += 1) {
      const body = { cron: "* * * * *", target_url: TARGET_URL, retry_schedule: [] };
      const created = await this.ask(target, "POST", PATH, body);
      this.ids.push(String(created["schedule_id"]));
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const path = `${PATH}/${random.pick(this.ids)}`;
    this.requested += 1;
    const about = { key: this.key, idempotencyKey: `schedule-${this.requested}` } as const;
    const state = random.chance(0.5) ? "live" : "paused";
    const request: TargetRequest = random.chance(0.7)
      ? { ...about, method: "POST", path: `${path}/run` }
      : { ...about, method: "PATCH", path, body: { state } };
    const response = await target.send(request);
    if (response !== null) return this.acknowledge(response);
    this.counts.inDoubt += 1;
    this.inDoubt.push(request);
  }

  async verify(target: Target): Promise<string[]> {
    // A repeat with its key is safe.
    for (const request of this.inDoubt.splice(0)) {
      const response = await target.ask(request);
      if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
      this.acknowledge(response);
    }
    const problems: string[] = [];
    const missing = new Set(this.manualRuns);
    for (const id of this.ids) {
      const runs = await this.runsOf(target, id);
      for (const { relay_id } of runs) missing.delete(relay_id);
      const schedule = await this.read(target, id);
      problems.push(...problemsOf(schedule, runs, this.manualRuns));
    }
    return [...problems, ...[...missing].map((id) => `schedules: run ${id} was acknowledged and is lost`)];
  }

  private acknowledge(response: HttpResponse): void {
    if (response.status !== 200 && response.status !== 201) return;
    this.counts.acknowledged += 1;
    if (response.status === 201) this.manualRuns.add(String(bodyOf(response)["relay_id"]));
  }

  private async read(target: Target, id: string): Promise<Schedule> {
    return (await this.ask(target, "GET", `${PATH}/${id}`)) as never;
  }

  /** All runs of a schedule, read again until none was added meanwhile. */
  private async runsOf(target: Target, id: string): Promise<readonly Run[]> {
    for (;;) {
      const before = await this.read(target, id);
      const runs: Run[] = [];
      for (let cursor = ""; ; ) {
        const path = `/v1/relay?limit=100&schedule_id=${id}${cursor}`;
        const page = await this.ask(target, "GET", path);
        runs.push(...(page["deliveries"] as Run[]));
        if (page["cursor"] === undefined) break;
        cursor = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
      }
      if ((await this.read(target, id)).runs === before.runs) return runs;
    }
  }
}

function problemsOf(schedule: Schedule, runs: readonly Run[], manualRuns: ReadonlySet<string>): string[] {
  const { schedule_id, state, next_run_at } = schedule;
  const problems: string[] = [];
  if (runs.length !== schedule.runs)
    problems.push(
      `schedules: ${schedule_id} counts ${schedule.runs} runs where ${runs.length} deliveries are`,
    );
  const times = runs.filter(({ relay_id }) => !manualRuns.has(relay_id)).map((run) => run.scheduled_for);
  const due = times.filter((time) => time % 60_000 === 0);
  if (new Set(due).size !== due.length) problems.push(`schedules: ${schedule_id} ran twice for one time`);
  if ((state === "live") !== (next_run_at !== null))
    problems.push(`schedules: ${schedule_id} is ${state}, and its next run ${next_run_at}`);
  return problems;
}
