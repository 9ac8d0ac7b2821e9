import { statSync } from "node:fs";
import { dirname } from "node:path";
import { version } from "../../../package.json" with { type: "json" };
import { ApiError } from "../../kernel/errors.ts";
import { pageOf, pageStart } from "../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { MAIL_JOB, type Outbox } from "../../kernel/mail/outbox.ts";
import { Histogram } from "../../kernel/metrics/instruments.ts";
import type { Family } from "../../kernel/metrics/metrics.ts";
import type { RecentLoad } from "../../kernel/metrics/recent-load.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { freeBytes } from "./minutes.ts";
import type {
  ArchiveState,
  BackupAttempt,
  Backups,
  ClusterState,
  OptionValue,
  StorableOptions,
} from "./ports.ts";
import type { BackupBegun, BackupPage, MailTest, ServerOptions, ServerStatus } from "./schema.ts";

const TEST_SUBJECT = "Test e-mail of Ninefold";
const TEST_TEXT = "The mail server of Ninefold works: this is the test that its operator has requested.\n";

export interface ServerDeps {
  readonly kernel: Kernel;
  readonly load: RecentLoad;
  /** Null for a server without a backup folder. */
  readonly backups: () => Backups | null;
  /** Null for a server without an archive. */
  readonly archive: ArchiveState | null;
  /** Null for a server without a commit log. */
  readonly cluster: ClusterState | null;
  readonly outbox: Pick<Outbox, "available" | "health" | "trial">;
  readonly options: StorableOptions;
  /** Number of requests in flight. */
  readonly requestsInFlight: () => number;
}

/** The use cases of the operator's view of the server itself. */
export class ServerService {
  private readonly startedAt: number;

  constructor(private readonly deps: ServerDeps) {
    this.startedAt = deps.kernel.clock.now();
  }

  /** A page of the existing backups, newest first. @throws ApiError `validation_error` */
  async listBackups(limit: number, cursor: string | undefined): Promise<BackupPage> {
    const backups = this.deps.backups();
    const before = pageStart(cursor);
    const found = (await backups?.list(before, limit + 1)) ?? [];
    const { items, ...next } = pageOf(found, limit, ({ at }) => [at]);
    const failure = backups?.failure ?? null;
    return {
      plan: backups && {
        ...backups.plan,
        next_at: isoTime(backups.nextAt),
        overdue: backups.isOverdue,
      },
      running: backups?.running ? attemptView(backups.running) : null,
      failure: failure && { ...attemptView(failure), message: failure.message },
      backups: items.map(({ name, bytes, at }) => ({ name, size: bytes, created_at: isoTime(at) })),
      ...next,
    };
  }

  /** Requests a backup. @throws ApiError `invalid_request` without a backup folder, `conflict` while one is running. */
  startBackup(tx: Tx): BackupBegun {
    const backups = this.deps.backups();
    if (backups === null) {
      throw new ApiError(
        "invalid_request",
        "This server has no backup folder. Set one in the settings, or start the server with --backup-dir FOLDER.",
      );
    }
    const attempt = attemptView(backups.ask(tx));
    tx.audit({
      summary: "Backup requested",
      target: { type: "backup", id: attempt.name },
      before: null,
      after: { folder: backups.plan.folder },
    });
    return attempt;
  }

  async status(): Promise<ServerStatus> {
    const { kernel, load, requestsInFlight } = this.deps;
    const { db, checkpointer, metrics } = kernel;
    const folder = dirname(db.path);
    return {
      version,
      started_at: isoTime(this.startedAt),
      data_folder: folder,
      database_bytes: statSync(db.path, { throwIfNoEntry: false })?.size ?? 0,
      wal_bytes: checkpointer.walBytes,
      disk_free_bytes: await freeBytes(folder),
      rss_bytes: process.memoryUsage.rss(),
      event_loop_lag_p99_ms: rounded(load.lagP99Ms),
      requests_per_second: rounded(load.requestsPerSecond),
      requests_in_flight: requestsInFlight(),
      jobs: jobsOf(kernel),
      mail: this.mail(),
      archive: this.archive(),
      cluster: this.cluster(),
      gauges: totalsOf(
        metrics.families.filter(({ type, labels }) => type === "gauge" && labels.length === 0),
      ),
      counters: totalsOf(metrics.families.filter(({ type }) => type === "counter")),
    };
  }

  private mail(): ServerStatus["mail"] {
    const { kernel, outbox } = this.deps;
    const { sent, failures, failingSince, lastError } = outbox.health;
    return {
      configured: outbox.available,
      queued: kernel.scheduler.jobs().find(({ kind }) => kind === MAIL_JOB)?.waiting ?? 0,
      sent,
      failures,
      failing_since: isoTimeOrNull(failingSince),
      last_error: lastError,
    };
  }

  /** Sends a test e-mail once. */
  async testMail(to: string): Promise<MailTest> {
    const message = { to, subject: TEST_SUBJECT, text: TEST_TEXT };
    const { status, response, error } = await this.deps.outbox.trial(message);
    return { delivered: error === null, status, response, error };
  }

  private cluster(): ServerStatus["cluster"] {
    const { cluster } = this.deps;
    if (cluster === null) return null;
    const { cell, log, epoch, seq, isTrusted, space, nodes } = cluster.status;
    return {
      cell,
      role: "leader",
      confirmed: isTrusted,
      epoch,
      entry: seq,
      log_id: log,
      log_bytes: space?.used ?? null,
      log_bytes_max: space?.quota ?? null,
      nodes: nodes.map(({ id, advertise, synced, at }) => ({
        node_id: id,
        advertise,
        lag: Math.max(0, seq - synced),
        reported_at: isoTime(at),
      })),
    };
  }

  private archive(): ServerStatus["archive"] {
    const { archive } = this.deps;
    if (archive === null) return null;
    const { url, lagSeconds, bytesWaiting, archivedAt, baseAt, lastError } = archive.status;
    return {
      url,
      lag_seconds: rounded(lagSeconds),
      bytes_waiting: bytesWaiting,
      archived_at: isoTimeOrNull(archivedAt),
      base_at: isoTimeOrNull(baseAt),
      last_error: lastError,
    };
  }

  /** Every option, including the limits of the tiers; secrets are masked. */
  options(): ServerOptions {
    return { options: this.deps.options.current.map(optionView) };
  }
}

function attemptView({ name, at }: BackupAttempt): BackupBegun {
  return { name, begun_at: isoTime(at) };
}

function optionView({ name, value, source }: OptionValue): ServerOptions["options"][number] {
  return { name, value: Array.isArray(value) ? [...value] : (value as string), source };
}

function jobsOf({ scheduler }: Kernel): ServerStatus["jobs"] {
  const sum = { waiting: 0, due: 0, running: 0, overdue_seconds: 0 };
  for (const jobs of scheduler.jobs()) {
    sum.waiting += jobs.waiting;
    sum.due += jobs.due();
    sum.running += jobs.running;
    sum.overdue_seconds = Math.max(sum.overdue_seconds, jobs.overdueSeconds());
  }
  return sum;
}

/** The sum of each metric's samples; omits metrics without a sample. */
function totalsOf(families: readonly Family[]): Record<string, number> {
  const totals: Record<string, number> = {};
  for (const { name, samples } of families) {
    for (const { value } of samples()) {
      if (!(value instanceof Histogram)) totals[name] = (totals[name] ?? 0) + value;
    }
  }
  return totals;
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
