import { ApiError } from "../errors.ts";
import type { Change, Database } from "../storage/database.ts";
import { identityOf } from "../storage/log-file.ts";
import { NOBODY } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import { monotonicMs, realTimeout } from "../time/clock.ts";

/** How long the outcome of a probe is reused: the disk is written once a second, however many clients check. */
export const PROBE_HOLDS_MS = 1_000;
/** Longest wait for a probe: below the second that Kubernetes gives a probe of its own, so that it reads why. */
export const PROBE_TIMEOUT_MS = 900;
/** `Retry-After`, in seconds. */
const RETRY_AFTER_SECONDS = 1;

/** Why the server is not ready, for programs. */
export type NotReadyReason = "starting" | "shutting_down" | "unwritable";

/** The times of probes, in milliseconds. */
interface ProbeTimes {
  readonly holds: number;
  readonly timeout: number;
}

/** The sources of readiness. */
interface ReadinessDeps {
  /** Writes a probe. Resolves to null, or to the reason of the failure. */
  readonly probe: () => Promise<string | null>;
  /** The state of the last commit: requests may fail between two probes. */
  readonly commits: Pick<Writer["stats"], "failing">;
  /** Aborted when the server starts to stop. */
  readonly shutdown: AbortSignal;
}

/** Knows whether requests can be sent here: the server has started, is not ending, and can write. */
export class Readiness {
  private started = false;
  private outcome: Promise<string | null> | null = null;
  private holdsUntil = 0;

  constructor(
    private readonly deps: ReadinessDeps,
    private readonly times: ProbeTimes = { holds: PROBE_HOLDS_MS, timeout: PROBE_TIMEOUT_MS },
  ) {}

  /** Everything that belongs to a start is done. */
  begin(): void {
    this.started = true;
  }

  /** @throws ApiError `service_unavailable` that says why the server is not ready. */
  async assertReady(): Promise<void> {
    if (!this.started) throw notReady("starting", "The server is starting.");
    this.assertNotEnding();
    const problem = await this.probe();
    this.assertNotEnding();
    if (problem !== null) throw notReady("unwritable", problem);
    const { failing } = this.deps.commits;
    if (failing !== null) throw notReady("unwritable", unwritable(failing));
  }

  private assertNotEnding(): void {
    if (this.deps.shutdown.aborted) throw notReady("shutting_down", "The server is shutting down.");
  }

  /** The outcome of the last probe, or of a new one, which concurrent callers share. Real time, since it measures the disk. */
  private probe(): Promise<string | null> {
    if (this.outcome === null || monotonicMs() >= this.holdsUntil) {
      // While a probe hangs there is no second one, and nobody waits for it again: its time-out is the outcome.
      this.holdsUntil = Number.POSITIVE_INFINITY;
      this.outcome = this.begunProbe();
    }
    return this.outcome;
  }

  private begunProbe(): Promise<string | null> {
    const { timeout, holds } = this.times;
    const late = Promise.withResolvers<string>();
    const why = `A change has not been written within ${timeout} ms.`;
    const cancel = realTimeout(timeout, () => late.resolve(why));
    const probe = this.deps.probe().finally(() => {
      this.holdsUntil = monotonicMs() + holds;
    });
    return Promise.race([probe, late.promise]).finally(cancel);
  }
}

function notReady(reason: NotReadyReason, why: string): ApiError {
  return new ApiError("service_unavailable", why, {
    extras: { reason },
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

/** The row that a probe overwrites. */
const PROBE_ROW = "write_probe";
/** What it writes there: more than most changes, so that a disk which is about to be full counts as full. */
export const PROBE_BYTES = 64 * 1024;

/** Says to callers that a commit has failed, and why. What is no trouble of the disk is for the log alone. */
function unwritable(failing: string): string {
  const why = /^SQLiteError: (.+)$/.exec(failing)?.[1] ?? "the log says why";
  return `The database cannot be written now: ${why}.`;
}

/** Finds out whether the database can be written, by writing to it. */
export class WriteProbe {
  private readonly write: Change<[string, number]>;
  /** The files that were opened. Should others stand in their place, nobody will find what is written. */
  private readonly opened: string;
  private openedLog: string | null;

  constructor(
    private readonly db: Database,
    private readonly writer: Writer,
  ) {
    // Random: SQLite leaves pages alone that would not change.
    this.write = db.change("INSERT OR REPLACE INTO settings (name, value) VALUES (?, randomblob(?))");
    this.opened = identityOf(db.path) ?? "";
    this.openedLog = identityOf(logOf(db));
  }

  /** Commits a change, in the writer's next batch. Resolves to null, or to why that is not possible now. */
  async run(): Promise<string | null> {
    try {
      await this.writer.submit((tx) => {
        tx.affects = NOBODY;
        return this.write(tx, PROBE_ROW, PROBE_BYTES);
      });
    } catch (error) {
      const { failing } = this.writer.stats;
      if (failing !== null) return unwritable(failing);
      return error instanceof Error ? error.message : String(error);
    }
    return this.isInPlace() ? null : "The database's files are no longer in the data folder.";
  }

  /** Files that were removed or replaced can be written still, and are gone at the end of the process. */
  private isInPlace(): boolean {
    const log = identityOf(logOf(this.db));
    // The log comes into being with the first change at the latest, and stays.
    this.openedLog ??= log;
    return log !== null && log === this.openedLog && identityOf(this.db.path) === this.opened;
  }
}

function logOf({ path }: Database): string {
  return `${path}-wal`;
}
