import { ApiError, errorText } from "../errors.ts";
import type { Logger } from "../log.ts";
import { Histogram } from "../metrics/instruments.ts";
import { ThrottledWarning } from "../throttled-warning.ts";
import { type Cancel, type Clock, monotonicMs, realTimeout } from "../time/clock.ts";
import { CommitDelay } from "./commit-delay.ts";
import type { Database } from "./database.ts";
import type { LogPages } from "./log-index.ts";
import type { LogSync } from "./log-sync.ts";
import { isStorageFailure, SyncFailure, syncFailureOf } from "./storage-failures.ts";
import { type Affected, ANYONE, MemoryTx, NOBODY, type Savepoints, type Tx, UnitTx } from "./tx.ts";

/** Units of work of a lane in one commit: limits how long the event loop is held, and how much one failure takes along. */
export const UNITS_PER_BATCH_MAX = 1_000;
/**
 * Longest work of the units in one commit, in milliseconds; the unit that exceeds it is the last one. The others stay
 * first in their queue, and requests and responses get the event loop in between. Several fsyncs of a fast disk: the
 * commit is still shared by hundreds of usual units.
 */
export const BATCH_MS_MAX = 4;
/**
 * Longest work of background units in one commit, in milliseconds, in addition to that of the requests: background work
 * continues however many requests come, and a request waits for little of it.
 */
export const BACKGROUND_MS_MAX = 2;
/** Units of a lane waiting for a commit: beyond this the disk is not keeping up, and rejecting is kinder than queueing. */
export const UNITS_QUEUED_MAX = 20_000;
/**
 * Longest that changes in memory wait for their commit: what a crash forgives. The clock of the first one limits it, so
 * that a timer which is late forgives no more.
 */
export const IN_MEMORY_MS_MAX = 1_000;
/** When they get a batch of their own if none has come by itself: leaves a tenth of the time for the batch. */
const OWN_BATCH_AFTER_MS = 900;

/** Upper limits of the counted batch sizes. */
const BATCH_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500, UNITS_PER_BATCH_MAX];
/** Upper limits of the counted commit times, in seconds: from memory alone to a disk that hangs. */
const COMMIT_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** A commit that takes longer is logged: the disk is slow, or something else uses it. */
const SLOW_COMMIT_MS = 1_000;
/** The message, also while the disk does not confirm one. */
export const SLOW_DISK = "the disk is slow: a commit takes more than a second";

type NotPromise<T> = T extends PromiseLike<unknown> ? never : T;

/** What the writer has done so far, for metrics and readiness. */
export interface WriterStats {
  commits: number;
  units: number;
  failures: number;
  /** Why the last commit failed, until one succeeds again. */
  failing: string | null;
}

/** Follows every batch, to store and to capture what archives and replicas need. */
export interface BatchFollower {
  /** Before BEGIN. A batch is rejected with what this throws. */
  beforeBatch(): void;
  /** At the end of a batch that has written, inside its transaction. */
  beforeCommit(tx: Tx): void;
  /** After a successful COMMIT, before anything that follows from it. Must not throw. */
  afterCommit(): void;
  /** After {@link afterCommit}: settles when the batch is confirmed by others; rejects when it never is. Null: by the disk. */
  readonly confirmation: Promise<void> | null;
}

/** A batch that is committed. */
interface Committed {
  readonly units: readonly Unit[];
  /** The unit of work of the hooks. */
  readonly hookTx: UnitTx | null;
  /** When it began, and its COMMIT (monotonic). */
  readonly beganAt: number;
  readonly commitAt: number;
  /** Whose data it has changed. */
  readonly affected: ReadonlySet<Affected>;
  /** Settles when a commit log has confirmed it; null: the disk does. */
  readonly byOthers: Promise<void> | null;
  /** The log before it, if a commit log confirms it. */
  readonly before: LogPages | null;
  /** Resolves after everything that follows from it. */
  readonly settled: PromiseWithResolvers<void>;
}

/** Units that wait for a batch. */
interface Lane {
  /** Longest work of its units in one batch, in milliseconds; the unit that exceeds it is the last one. */
  readonly msMax: number;
  queue: Unit[];
}

interface Unit {
  readonly lane: Lane;
  readonly work: (tx: Tx) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  tx: UnitTx | null;
  value: unknown;
  error: unknown;
  failed: boolean;
}

/**
 * Group commit. Units of work run one after another in one transaction, with those that come soon (see {@link CommitDelay}).
 * After its COMMIT the batch is confirmed: by a thread that syncs the log ({@link LogSync}), by a commit log
 * ({@link BatchFollower.confirmation}), or trivially, where nothing is synced. Only then it is told to anybody: its
 * effects run and its promises settle. The next batch begins after that, so at most one is unconfirmed, and many requests
 * share one sync. What is read meanwhile waits for {@link confirmationFor}.
 *
 * Batches run without savepoints first. Only when a unit fails after it has written is the batch undone and
 * run again with a savepoint around every unit; units therefore leave no trace outside the database but
 * through `onRollback` and `afterCommit`.
 */
export class Writer {
  readonly stats: WriterStats = { commits: 0, units: 0, failures: 0, failing: null };
  /** Units of each committed batch. */
  readonly batchUnits = new Histogram(BATCH_BUCKETS);
  /** Seconds that each committed batch took: its units' work, the COMMIT and its confirmation. */
  readonly commitSeconds = new Histogram(COMMIT_BUCKETS);
  private readonly begin: () => void;
  private readonly commit: () => void;
  private readonly rollback: () => void;
  private readonly savepoints: Savepoints;
  private readonly hooks: ((tx: Tx) => void)[] = [];
  private readonly observers: (() => void)[] = [];
  private readonly delay = new CommitDelay();
  private readonly slowDisk: ThrottledWarning;
  private readonly sync: LogSync | null;
  private follower: BatchFollower | null = null;
  /** In each batch, the units of requests run first. */
  private readonly requests: Lane = { msMax: BATCH_MS_MAX, queue: [] };
  private readonly background: Lane = { msMax: BACKGROUND_MS_MAX, queue: [] };
  private scheduled = false;
  /** Ends the wait for more units; null: the next batch does not wait. */
  private cancelWait: Cancel | null = null;
  private closed = false;
  /** Several only when the process ends. The next batch waits for them. */
  private readonly unconfirmed: Committed[] = [];
  /** The log before the first batch that a commit log has rejected; null: it has rejected none. */
  private neverConfirmed: LogPages | null = null;
  private isPaused = false;
  /** Ends the watch of unconfirmed batches; null: none is watched. */
  private cancelWatch: Cancel | null = null;
  /** When the last COMMIT began (monotonic). */
  private commitAt = 0;
  /** When the first change in memory was made that no commit has followed (monotonic); null when there is none. */
  private inMemorySince: number | null = null;
  private cancelLook: Cancel | null = null;
  /** Whether a COMMIT has failed, and what it may have left in the log is still there. */
  private unsettled = false;
  /** Called when a sync has failed: this process must end, and nothing that is not confirmed may leave it. */
  onSyncFailure: (failure: SyncFailure) => void = () => undefined;

  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {
    this.slowDisk = new ThrottledWarning(log, SLOW_DISK, clock);
    this.sync = db.logSync;
    if (this.sync !== null) this.sync.onFailure = (failure) => this.onSyncFailure(failure);
    this.begin = db.control("BEGIN IMMEDIATE");
    this.commit = db.control("COMMIT");
    this.rollback = db.control("ROLLBACK");
    this.savepoints = {
      open: db.control("SAVEPOINT part"),
      release: db.control("RELEASE part"),
      rollback: db.control("ROLLBACK TO part"),
    };
  }

  /**
   * Runs `work` in the next batch; the promise settles with its outcome after the COMMIT.
   *
   * @throws ApiError `read_only` when the batch could not be committed (nothing was changed), `service_unavailable` when
   *   too many units wait, or after {@link close}.
   */
  submit<T>(work: (tx: Tx) => NotPromise<T>): Promise<T> {
    return this.enqueue(this.requests, work);
  }

  /**
   * The same for work that no request waits for, such as the outcome of a job: it runs after the units of requests, also
   * those that were submitted later, and for at most {@link BACKGROUND_MS_MAX} in each batch.
   */
  submitInBackground<T>(work: (tx: Tx) => NotPromise<T>): Promise<T> {
    return this.enqueue(this.background, work);
  }

  private enqueue<T>(lane: Lane, work: (tx: Tx) => NotPromise<T>): Promise<T> {
    if (this.closed) return Promise.reject(unavailable("The server is shutting down."));
    if (lane.queue.length >= UNITS_QUEUED_MAX) {
      return Promise.reject(unavailable("Too many changes are queued for the disk. Retry later."));
    }
    const promise = new Promise<T>((resolve, reject) => {
      lane.queue.push({
        lane,
        work,
        resolve: resolve as (value: unknown) => void,
        reject,
        tx: null,
        value: undefined,
        error: undefined,
        failed: false,
      });
    });
    this.schedule();
    return promise;
  }

  /**
   * Whether {@link runInMemory} may be used: not while the disk fails, nor when what was changed in memory has not
   * been written for as long as it may wait. Then the same work is to be submitted.
   */
  get takesInMemory(): boolean {
    if (this.closed || this.stats.failing !== null) return false;
    return this.inMemorySince === null || monotonicMs() - this.inMemorySince < IN_MEMORY_MS_MAX;
  }

  /**
   * Runs work that writes nothing to the database, immediately, between two batches. What it changes in memory is for the
   * hooks to write: with the next batch, which comes after {@link IN_MEMORY_MS_MAX} at the latest. When `work` throws,
   * its changes are rolled back.
   */
  runInMemory<T>(work: (tx: Tx) => T): T {
    const tx = new MemoryTx(this.clock.now());
    try {
      const value = work(tx);
      tx.committed((error) => this.defect("after work in memory", error));
      return value;
    } catch (error) {
      tx.undo();
      throw error;
    } finally {
      // Also where it was rolled back: until a commit, hooks hold on to what was touched.
      if (tx.hasChanged) this.writeSoon();
    }
  }

  /** Queues a batch for the hooks alone. Why it failed stands in the log; the disk gets its pause. */
  writeMemory(): void {
    this.submit(() => undefined).catch(() => this.lookIn(OWN_BATCH_AFTER_MS));
  }

  /** Runs `hook` at the end of every batch, inside its transaction: the place to write what was added up. */
  beforeCommit(hook: (tx: Tx) => void): void {
    this.hooks.push(hook);
  }

  /** Runs `observer` after every confirmed commit, between two batches. */
  onCommitted(observer: () => void): void {
    this.observers.push(observer);
  }

  /** Sets what follows every batch; at most one does. */
  follow(follower: BatchFollower): void {
    this.follower = follower;
  }

  /** Units that wait for their batch. */
  get queued(): number {
    return this.requests.queue.length + this.background.queue.length;
  }

  /**
   * Commits what is queued or was changed in memory, and rejects everything after it. The disk has confirmed it afterwards; a
   * commit log has after {@link confirmed}.
   */
  close(): void {
    if (this.inMemorySince !== null) this.writeMemory();
    this.closed = true;
    this.cancelLook?.();
    this.cancelWatch?.();
    while (this.queued > 0) this.flush();
    const last = this.unconfirmed.at(-1);
    if (last?.byOthers === null && this.sync?.now() === true) this.settleThrough(last);
  }

  /** Arms one timer, which runs on while batches come and go: setting one for each would cost more. */
  private writeSoon(): void {
    this.inMemorySince ??= monotonicMs();
    if (this.cancelLook === null) this.lookIn(OWN_BATCH_AFTER_MS);
  }

  private lookIn(delayMs: number): void {
    if (this.closed) return;
    this.cancelLook = realTimeout(delayMs, () => {
      this.cancelLook = null;
      if (this.inMemorySince === null) return;
      const waitedMs = monotonicMs() - this.inMemorySince;
      if (waitedMs < OWN_BATCH_AFTER_MS) this.lookIn(OWN_BATCH_AFTER_MS - waitedMs);
      else this.writeMemory();
    });
  }

  /**
   * Undoes in the log what a commit log has not confirmed. Only when the process ends: memory and the connection still have
   * it.
   */
  abandonUnconfirmed(): void {
    const before = this.neverConfirmed ?? this.unconfirmed[0]?.before ?? null;
    if (before !== null) this.db.abandonSince(before);
  }

  /** Resolves when no batch is unconfirmed. */
  async confirmed(): Promise<void> {
    for (let batch = this.unconfirmed[0]; batch !== undefined; batch = this.unconfirmed[0])
      await batch.settled.promise;
  }

  /**
   * What a response has to wait for that may show data of an account, or of {@link ANYONE}: until then the data has changes
   * that a crash may undo. Null, mostly: nothing.
   */
  confirmationFor(account: Affected): Promise<void> | null {
    const last = this.unconfirmed.findLast(
      ({ affected }) =>
        affected.has(account) || affected.has(ANYONE) || (account === ANYONE && affected.size > 0),
    );
    return last?.settled.promise ?? null;
  }

  /** Resolves when nothing is unconfirmed, and begins no batch from then on until the returned function is called. */
  async pause(): Promise<() => void> {
    this.isPaused = true;
    await this.confirmed();
    return () => {
      this.isPaused = false;
      if (this.queued > 0) this.schedule();
    };
  }

  private schedule(): void {
    if (this.scheduled || this.isPaused || this.unconfirmed.length > 0) return;
    const waitMs = this.delay.waitMs(this.queued);
    if (waitMs > 0) {
      this.cancelWait ??= realTimeout(waitMs, () => this.flushNext());
      return;
    }
    this.scheduled = true;
    // After what else has come in this turn of the event loop.
    setImmediate(() => this.flushNext());
  }

  private flushNext(): void {
    this.scheduled = false;
    this.cancelWait?.();
    this.cancelWait = null;
    if (this.queued > 0 && !this.isPaused && this.unconfirmed.length === 0) this.flush();
    if (this.queued > 0) this.schedule();
  }

  private flush(): void {
    const units = this.takeBatch();
    const now = this.clock.now();
    const beganAt = monotonicMs();
    const before = this.follower === null ? null : this.db.logPages();
    let hookTx: UnitTx | null;
    try {
      this.settle();
      hookTx = this.runBatch(units, now, null) ?? this.runBatch(units, now, this.savepoints);
    } catch (error) {
      const failure = syncFailureOf(error, this.db.path);
      if (failure !== null) this.onSyncFailure(failure);
      this.reject(units, error);
      return;
    }
    this.inMemorySince = null;
    this.stats.commits += 1;
    this.stats.units += units.length;
    this.batchUnits.observe(units.length);
    if (this.stats.failing !== null) this.log.info("the database can be written again");
    this.stats.failing = null;
    const byOthers = this.follower?.confirmation ?? null;
    this.confirm({
      units,
      hookTx,
      beganAt,
      commitAt: this.commitAt,
      affected: affectedBy(units),
      byOthers,
      before: byOthers === null ? null : before,
      settled: Promise.withResolvers(),
    });
  }

  /** Settles a batch once it is confirmed. */
  private confirm(batch: Committed): void {
    const { units, hookTx, byOthers } = batch;
    const earlier = this.unconfirmed.at(-1);
    this.unconfirmed.push(batch);
    if (!this.closed) this.cancelWatch ??= this.watchAfter(SLOW_COMMIT_MS);
    const settle = (): void => this.settleThrough(batch);
    if (byOthers !== null) byOthers.then(settle, (error: unknown) => this.settleThrough(batch, error));
    else if (this.sync !== null && hasWritten(units, hookTx)) this.syncThrough(batch, this.sync);
    else if (earlier === undefined) settle();
    // It has changed nothing, but may show what the earlier ones have.
    else void earlier.settled.promise.then(settle);
  }

  /** How long the oldest unconfirmed batch has waited, in milliseconds; 0 without one. */
  get unconfirmedMs(): number {
    const [oldest] = this.unconfirmed;
    return oldest === undefined ? 0 : monotonicMs() - oldest.commitAt;
  }

  /** Logs that the disk confirms nothing, each time that it has taken twice as long. One timer, which batches share. */
  private watchAfter(delayMs: number): Cancel {
    return realTimeout(delayMs, () => {
      this.cancelWatch = null;
      const [oldest] = this.unconfirmed;
      if (oldest === undefined) return;
      const ms = Math.round(this.unconfirmedMs);
      const isLate = ms >= SLOW_COMMIT_MS;
      if (isLate && oldest.byOthers === null)
        this.slowDisk.note("unconfirmed", { unconfirmed_ms: ms, queued: this.queued });
      this.cancelWatch = this.watchAfter(isLate ? ms : SLOW_COMMIT_MS - ms);
    });
  }

  private syncThrough(batch: Committed, sync: LogSync): void {
    // One sync is for everything that is left then.
    if (this.closed) return;
    void sync.begin().then(() => this.settleThrough(batch));
  }

  /** Settles the batches up to this one: as confirmed, or with the error of the commit log. */
  private settleThrough(last: Committed, error?: unknown): void {
    while (this.unconfirmed.includes(last)) {
      const batch = this.unconfirmed.shift() ?? last;
      if (error === undefined) this.finish(batch);
      else this.abandon(batch, error);
      batch.settled.resolve();
    }
    if (this.queued > 0) this.schedule();
  }

  /** A commit log does not confirm it. */
  private abandon({ units, before }: Committed, error: unknown): void {
    this.neverConfirmed ??= before;
    for (const unit of units) unit.reject(error);
  }

  /** Everything that follows from a confirmed commit. */
  private finish({ units, hookTx, beganAt, commitAt }: Committed): void {
    const now = monotonicMs();
    this.commitSeconds.observe((now - beganAt) / 1_000);
    if (now - beganAt > SLOW_COMMIT_MS)
      this.slowDisk.note("commit", { ms: Math.round(now - beganAt), units: units.length });
    this.delay.confirmed(units.length, this.queued, now - commitAt);
    hookTx?.committed((error) => this.defect("after a commit", error));
    for (const unit of units) unit.tx?.committed((error) => this.defect("after a commit", error));
    for (const unit of units) {
      if (unit.failed) unit.reject(unit.error);
      else unit.resolve(unit.value);
    }
    for (const observe of this.observers) observe();
  }

  private takeBatch(): Unit[] {
    return [...takeUnits(this.requests), ...takeUnits(this.background)];
  }

  /** Returns the units from `index` to the end of their lane, which have not run, to the front of its queue. */
  private postpone(batch: Unit[], index: number, lane: Lane): void {
    const next = batch.findIndex((unit, at) => at > index && unit.lane !== lane);
    lane.queue = [...batch.splice(index, (next < 0 ? batch.length : next) - index), ...lane.queue];
  }

  /**
   * Runs and commits a batch, or as much of it as the time of its lanes allows. Returns the unit of work of the hooks; null:
   * the batch was rolled back and must run again with savepoints.
   */
  private runBatch(batch: Unit[], now: number, savepoints: Savepoints | null): UnitTx | null {
    const hookTx = new UnitTx(now, savepoints);
    this.follower?.beforeBatch();
    this.begin();
    try {
      if (!this.runUnits(batch, now, savepoints)) {
        this.rollBack(batch, hookTx);
        return null;
      }
      for (const hook of this.hooks) hook(hookTx);
      if (this.follower !== null && hasWritten(batch, hookTx)) this.follower.beforeCommit(hookTx);
      this.unsettled = true;
      this.commitAt = monotonicMs();
      this.commit();
      this.unsettled = false;
    } catch (error) {
      this.rollBack(batch, hookTx);
      // Before any rejection: a change with a 503 stays undone.
      this.trySettling();
      throw error;
    }
    this.follower?.afterCommit();
    return hookTx;
  }

  /** Runs the units of a batch, and postpones those for which their lane has no time left. False: see {@link runUnit}. */
  private runUnits(batch: Unit[], now: number, savepoints: Savepoints | null): boolean {
    let lane: Lane | null = null;
    let end = 0;
    for (let index = 0; index < batch.length; index += 1) {
      if (batch[index]?.lane === lane && this.clock.monotonic() >= end) this.postpone(batch, index, lane);
      const unit = batch[index];
      if (unit === undefined) break;
      if (unit.lane !== lane) {
        lane = unit.lane;
        end = this.clock.monotonic() + lane.msMax;
      }
      if (!this.runUnit(unit, now, savepoints)) return false;
    }
    return true;
  }

  /** Runs one unit. False: it failed after writing, and there was no savepoint to go back to. */
  private runUnit(unit: Unit, now: number, savepoints: Savepoints | null): boolean {
    const tx = new UnitTx(now, savepoints);
    unit.tx = tx;
    unit.failed = false;
    try {
      savepoints?.open();
      unit.value = unit.work(tx);
      if (tx.failure !== null) throw tx.failure;
      if (isThenable(unit.value))
        throw new Error("a unit of work returned a promise: it must be synchronous");
      savepoints?.release();
      return !tx.needsCare;
    } catch (error) {
      if (tx.failure !== null) throw tx.failure;
      if (isStorageFailure(error)) throw error;
      if (savepoints === null && (tx.wrote || tx.needsCare)) return false;
      unit.failed = true;
      unit.error = error;
      tx.undo();
      savepoints?.rollback();
      savepoints?.release();
      return true;
    }
  }

  private rollBack(batch: Unit[], hookTx: UnitTx): void {
    hookTx.undo();
    for (let index = batch.length - 1; index >= 0; index -= 1) batch[index]?.tx?.undo();
    // After a full disk or an I/O error SQLite may have rolled back by itself.
    if (this.db.inTransaction) this.rollback();
  }

  /**
   * Takes out of the log what a COMMIT that failed has left there. When a sync fails, all of its frames stand in the log
   * with their mark: a start after a kill would take them for committed. And since the next batch begins where the log
   * ends, everything that it is built on has been synced before.
   *
   * @throws Error while the disk does not confirm it.
   */
  private settle(): void {
    if (!this.unsettled) return;
    this.db.cutLog();
    this.unsettled = false;
  }

  private trySettling(): void {
    try {
      this.settle();
    } catch (error) {
      if (error instanceof SyncFailure) throw error;
      // The next batch retries it, and is rejected as long as it fails.
      this.log.warn("the log could not be cleaned after a failed commit", {
        error: errorText(error),
      });
    }
  }

  private reject(batch: Unit[], error: unknown): void {
    this.stats.failures += 1;
    const storage = isStorageFailure(error);
    if (!storage) this.defect("in a batch", error);
    else if (this.stats.failing === null)
      this.log.error("the database cannot be written", { error: errorText(error) });
    this.stats.failing = errorText(error);
    const refusal = storage ? readOnly() : error;
    for (const unit of batch) unit.reject(refusal);
  }

  private defect(where: string, error: unknown): void {
    this.log.error(`defect ${where}`, {
      error: errorText(error),
      stack: error instanceof Error ? error.stack : undefined,
    });
  }
}

/** Takes the next units of a lane for a batch. */
function takeUnits(lane: Lane): Unit[] {
  if (lane.queue.length > UNITS_PER_BATCH_MAX) return lane.queue.splice(0, UNITS_PER_BATCH_MAX);
  const all = lane.queue;
  lane.queue = [];
  return all;
}

/** Whether a unit or a hook may have written. A batch that has not must stay empty, and needs no sync. */
function hasWritten(batch: readonly Unit[], hookTx: UnitTx | null): boolean {
  return hookTx?.wrote === true || batch.some(({ tx }) => tx?.wrote === true);
}

/** Whose data the units of a batch have changed. What the hooks write was in memory before, and is forgiven by a crash. */
function affectedBy(batch: readonly Unit[]): Set<Affected> {
  const affected = new Set<Affected>();
  for (const { tx } of batch) if (tx?.hasChanged === true && tx.affects !== NOBODY) affected.add(tx.affects);
  return affected;
}

function readOnly(): ApiError {
  return new ApiError(
    "read_only",
    "The database cannot be written now. Nothing was changed. Retry in a second.",
    {
      retryAfterSeconds: 1,
    },
  );
}

function unavailable(why: string): ApiError {
  return new ApiError("service_unavailable", `${why} Nothing was changed. Retry in a second.`, {
    retryAfterSeconds: 1,
  });
}

function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
