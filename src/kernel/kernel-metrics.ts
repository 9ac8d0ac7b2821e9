import { statSync } from "node:fs";
import { version } from "../../package.json" with { type: "json" };
import type { Kernel } from "./kernel.ts";
import { Histogram } from "./metrics/instruments.ts";
import type { Family, Sample } from "./metrics/metrics.ts";
import type { JobsNow } from "./scheduler/due-jobs.ts";

/** What the kernel cannot know by itself. */
export interface MetricDeps {
  /** Requests in progress. */
  readonly requestsInFlight: () => number;
  /** When the last backup was made, epoch milliseconds; null: none is known of. */
  readonly lastBackupAt: () => number | null;
}

/** Upper limits of the counted lags of the event loop, in seconds. */
const LAG_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Declares the lag of the event loop, and returns a function that records each delay, in milliseconds. */
export function declareEventLoopLag({ metrics }: Pick<Kernel, "metrics">): (lateMs: number) => void {
  const lag = new Histogram(LAG_BUCKETS);
  const help =
    "How late a timer came that measures the event loop ten times a second, once a second while nothing is going on.";
  metrics.histogram("ninefold_event_loop_lag_seconds", help, lag);
  return (lateMs) => lag.observe(lateMs / 1000);
}

/** Declares the metrics of the kernel and of the process. All values are read when they are requested. */
export function declareKernelMetrics(kernel: Kernel, deps: MetricDeps): void {
  const { metrics, clock } = kernel;
  declareStorage(kernel);
  declareJobs(kernel);
  // The metrics of a process have the names that every Prometheus client library gives them.
  const startedAt = clock.now() - process.uptime() * 1000;
  const numbers: readonly NumberMetric[] = [
    ["ninefold_http_requests_in_flight", "Requests in progress, including this one.", deps.requestsInFlight],
    [
      "ninefold_last_backup_timestamp_seconds",
      "Time of the last backup, in Unix seconds.",
      () => inSeconds(deps.lastBackupAt()),
    ],
    [
      "ninefold_clock_trusted",
      "1 if the clock is trusted; 0 after a jump of more than a day, until it has run steadily for an hour. While it is 0, nothing expired is deleted.",
      () => (kernel.scheduler.clockTrust.isTrusted ? 1 : 0),
    ],
    ["process_start_time_seconds", "Start time of the process, in Unix seconds.", () => inSeconds(startedAt)],
    [
      "process_resident_memory_bytes",
      "Resident memory of the process, in bytes.",
      () => process.memoryUsage.rss(),
    ],
    ["process_cpu_seconds_total", "Processor time of all threads, in seconds.", cpuSeconds],
  ];
  for (const number of numbers) metrics.number(...number);
  const labels = { version, bun_version: Bun.version };
  metrics.declare({
    name: "ninefold_build_info",
    type: "gauge",
    help: "Always 1; the labels are the versions of Ninefold and Bun.",
    labels: Object.keys(labels),
    samples: () => [{ labels, value: 1 }],
  });
}

type NumberMetric = Parameters<Kernel["metrics"]["number"]>;

function declareStorage({ metrics, writer, checkpointer, db }: Kernel): void {
  const { stats } = writer;
  const size = (): number | null => statSync(db.path, { throwIfNoEntry: false })?.size ?? null;
  const unconfirmed = "Age of the oldest batch that is committed and not confirmed; 0 without one.";
  const failing = "1 if the last batch could not be committed, otherwise 0.";
  const numbers: readonly NumberMetric[] = [
    ["ninefold_commits_total", "Batches of changes committed.", () => stats.commits],
    ["ninefold_commit_failures_total", "Batches that could not be committed.", () => stats.failures],
    ["ninefold_commit_failing", failing, () => (stats.failing === null ? 0 : 1)],
    ["ninefold_commit_unconfirmed_seconds", unconfirmed, () => writer.unconfirmedMs / 1000],
    ["ninefold_writer_queue_units", "Units of work that are queued for a batch.", () => writer.queued],
    ["ninefold_wal_bytes", "Size of the write-ahead log after the last commit.", () => checkpointer.walBytes],
    ["ninefold_database_bytes", "Size of the database file.", size],
  ];
  for (const number of numbers) metrics.number(...number);
  metrics.histogram("ninefold_commit_units", "Units of work in each committed batch.", writer.batchUnits);
  const took = "Duration of each committed batch, including the work of its units.";
  metrics.histogram("ninefold_commit_duration_seconds", took, writer.commitSeconds);
}

function declareJobs({ metrics, scheduler }: Kernel): void {
  const declare = (
    type: Family["type"],
    name: string,
    help: string,
    read: (jobs: JobsNow) => Sample["value"] | null,
  ): void => {
    const samples = (): Sample[] =>
      scheduler.jobs().flatMap((jobs) => {
        const value = read(jobs);
        return value === null ? [] : [{ labels: { kind: jobs.kind }, value }];
      });
    metrics.declare({ name, help, type, labels: ["kind"], samples });
  };
  const overdue = "Age of the oldest overdue job, in seconds; 0 if none is overdue.";
  const due = "Jobs that are due and not running, counted to 10,000.";
  const late = "Time from a job's due time to its start.";
  declare(
    "gauge",
    "ninefold_jobs_waiting",
    "Jobs that are not running, due now or later.",
    ({ waiting }) => waiting,
  );
  declare("gauge", "ninefold_jobs_due", due, (jobs) => jobs.due());
  declare("gauge", "ninefold_jobs_running", "Running jobs.", ({ running }) => running);
  declare("gauge", "ninefold_jobs_overdue_seconds", overdue, (jobs) => jobs.overdueSeconds());
  declare("histogram", "ninefold_job_lateness_seconds", late, ({ counts }) => counts?.lateness ?? null);
  metrics.declare({
    name: "ninefold_job_runs_total",
    type: "counter",
    help: "Runs of jobs by outcome: done, to be retried, or failed because of a server error.",
    labels: ["kind", "outcome"],
    samples: () =>
      scheduler.jobs().flatMap(({ kind, counts }) =>
        Object.entries(counts?.runs ?? {}).map(([outcome, { value }]) => ({
          labels: { kind, outcome },
          value,
        })),
      ),
  });
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
}

function inSeconds(epochMs: number | null): number | null {
  return epochMs === null ? null : epochMs / 1000;
}
