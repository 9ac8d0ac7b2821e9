import { statSync } from "node:fs";
import { version } from "../../../package.json" with { type: "json" };
import type { Kernel } from "../kernel.ts";
import { type JobsNow, RUN_OUTCOMES } from "../scheduler/due-jobs.ts";
import { Histogram } from "./instruments.ts";
import type { Family, Sample } from "./metrics.ts";

/** What the kernel cannot know by itself. */
export interface MetricPorts {
  /** Requests that are being answered. */
  readonly requestsInFlight: () => number;
  /** When the last backup was made, epoch milliseconds; null: none is known of. */
  readonly lastBackupAt: () => number | null;
}

/** Upper bounds of the counted lags of the event loop, in seconds. */
const LAG_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Declares how late the event loop comes to its work, and returns what is to be told of each delay (milliseconds). */
export function declareEventLoopLag({ metrics }: Pick<Kernel, "metrics">): (lateMs: number) => void {
  const lag = new Histogram(LAG_BOUNDS);
  const name = "ninefold_event_loop_lag_seconds";
  metrics.histogram(
    { name, help: "How late a timer came that measures the event loop ten times a second." },
    lag,
  );
  return (lateMs) => lag.observe(lateMs / 1000);
}

/** Declares what is known of the kernel's parts and of the process. All of it is read when it is asked for. */
export function declareKernelMetrics(kernel: Kernel, ports: MetricPorts): void {
  declareStorage(kernel);
  declareJobs(kernel);
  const { metrics } = kernel;
  metrics.gauge(
    { name: "ninefold_http_requests_in_flight", help: "Requests being answered, this one included." },
    ports.requestsInFlight,
  );
  metrics.gauge(
    { name: "ninefold_last_backup_timestamp_seconds", help: "When the last backup was made, Unix time." },
    () => inSeconds(ports.lastBackupAt()),
  );
  declareProcess(kernel);
}

function declareStorage({ metrics, writer, checkpointer, db }: Kernel): void {
  const { stats } = writer;
  const commits = "Batches of changes committed.";
  metrics.counter({ name: "ninefold_commits_total", help: commits }, () => stats.commits);
  const failures = "Batches that could not be committed.";
  metrics.counter({ name: "ninefold_commit_failures_total", help: failures }, () => stats.failures);
  const units = "Units of work in each committed batch.";
  metrics.histogram({ name: "ninefold_commit_units", help: units }, writer.batchUnits);
  const seconds = "Time that each committed batch took, its units' work included.";
  metrics.histogram({ name: "ninefold_commit_duration_seconds", help: seconds }, writer.commitSeconds);
  const failing = "1 while the last batch could not be committed, else 0.";
  metrics.gauge({ name: "ninefold_commit_failing", help: failing }, () => (stats.failing === null ? 0 : 1));
  const queue = "Units of work that wait for their batch.";
  metrics.gauge({ name: "ninefold_writer_queue_units", help: queue }, () => writer.queued);
  const wal = "Size of the write-ahead log after the last commit.";
  metrics.gauge({ name: "ninefold_wal_bytes", help: wal }, () => checkpointer.walBytes);
  metrics.gauge({ name: "ninefold_database_bytes", help: "Size of the database file." }, () => {
    return statSync(db.path, { throwIfNoEntry: false })?.size ?? null;
  });
}

function declareJobs({ metrics, scheduler }: Kernel): void {
  const declare = (
    family: Pick<Family, "name" | "help" | "type">,
    read: (jobs: JobsNow) => Sample[],
    labels: readonly string[] = ["kind"],
  ): void => metrics.declare({ ...family, labels, samples: () => scheduler.jobs().flatMap(read) });
  const gauge = (name: string, help: string, value: (jobs: JobsNow) => number): void =>
    declare({ name, help, type: "gauge" }, (jobs) => [{ labels: { kind: jobs.kind }, value: value(jobs) }]);
  gauge("ninefold_jobs_waiting", "Jobs not under way, due now or later.", ({ waiting }) => waiting);
  gauge("ninefold_jobs_due", "Jobs that are due and not under way, counted to 10,000.", (jobs) => jobs.due());
  gauge("ninefold_jobs_running", "Jobs under way.", ({ running }) => running);
  const overdue = "How long the job has waited that is overdue for longest; 0 when none is.";
  gauge("ninefold_jobs_overdue_seconds", overdue, (jobs) => jobs.overdueSeconds());
  const lateness = "Time from a job's due time to its start.";
  declare({ name: "ninefold_job_lateness_seconds", help: lateness, type: "histogram" }, ({ kind, counts }) =>
    counts === null ? [] : [{ labels: { kind }, value: counts.lateness }],
  );
  const runs = "Runs of jobs: done, to be run again, or failed by a defect of the server.";
  declare(
    { name: "ninefold_job_runs_total", help: runs, type: "counter" },
    ({ kind, counts }) =>
      counts === null
        ? []
        : RUN_OUTCOMES.map((outcome) => ({ labels: { kind, outcome }, value: counts.runs[outcome].value })),
    ["kind", "outcome"],
  );
}

/** The metrics of a process have the names that every Prometheus client library gives them. */
function declareProcess({ metrics, clock }: Kernel): void {
  metrics.declare({
    name: "ninefold_build_info",
    type: "gauge",
    help: "Always 1; the labels say which version of Ninefold and of Bun runs.",
    labels: ["version", "bun_version"],
    samples: () => [{ labels: { version, bun_version: Bun.version }, value: 1 }],
  });
  const startedAt = clock.now() - process.uptime() * 1000;
  const start = { name: "process_start_time_seconds", help: "When the process was started, Unix time." };
  metrics.gauge(start, () => inSeconds(startedAt));
  const memory = { name: "process_resident_memory_bytes", help: "Memory that the process occupies." };
  metrics.gauge(memory, () => process.memoryUsage.rss());
  const cpu = { name: "process_cpu_seconds_total", help: "Processor time used, of all threads." };
  metrics.counter(cpu, cpuSeconds);
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
}

function inSeconds(epochMs: number | null): number | null {
  return epochMs === null ? null : epochMs / 1000;
}
