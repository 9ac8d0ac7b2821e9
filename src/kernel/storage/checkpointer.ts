import type { Logger } from "../log.ts";
import { type Cancel, monotonicMs, realTimeout } from "../time/clock.ts";
import { AT_WORK, type CheckpointReply, type CheckpointRequest, CLOSING, HOLDS } from "./checkpoint.ts";
import type { Database } from "./database.ts";
import { FRAME_HEADER_BYTES } from "./log-scan.ts";
import { SyncFailure } from "./storage-failures.ts";
import type { Writer } from "./writer.ts";

/**
 * Above this size the WAL is restarted: no batch begins while the worker moves what is left, and the next one begins the
 * WAL anew. Twice this is not reached, unless a single commit is that large, or a reader in another process (a backup)
 * holds the WAL.
 */
export const WAL_RESTART_BYTES = 32 * 1024 * 1024;
/** Changes wait for no more than this at a restart: few enough pages for some milliseconds. */
const RESTART_UNMOVED_BYTES = 2 * 1024 * 1024;
/** Above this size it is not waited any longer until little is left: writing must not outrun the worker for good. */
const WAL_FORCED_RESTART_BYTES = 48 * 1024 * 1024;
/** Longest wait for the worker's pass when the process ends: some ten MiB, written and synced. */
const WORKER_WAIT_MS = 2_000;
/** How long a WAL may grow that a reader holds, or after a failure, before the next attempt to restart it. */
const HELD_PAUSE_MS = 5_000;
/** Unmoved bytes that start a pass immediately. */
const CHECKPOINT_AFTER_BYTES = 4 * 1024 * 1024;
/**
 * With fewer unmoved bytes no pass is started: recovery reads them in milliseconds, and a server with little to do needs no
 * worker, which is a second JavaScript engine with its own memory and timers.
 */
export const CHECKPOINT_FROM_BYTES = 1024 * 1024;
/** Interval of the worker's passes between the two. */
const CHECKPOINT_INTERVAL_MS = 200;
/** How often when its last pass could move nothing. */
const STUCK_INTERVAL_MS = 1_000;
/** SQLite's default page size, which every Ninefold file has, plus the frame's header. */
const WAL_FRAME_BYTES = 4096 + FRAME_HEADER_BYTES;
/**
 * Above this size, space is preallocated after the end of the WAL. A server with little to write never gets there: it
 * reuses the beginning of the WAL, whose space exists.
 */
const PREALLOCATE_FROM_BYTES = CHECKPOINT_FROM_BYTES;
/** Preallocated bytes: what is written during some passes of the worker. */
const PREALLOCATED_BYTES = 8 * 1024 * 1024;
/** End of the preallocated space: a WAL is rarely written beyond it, since it is restarted. */
const PREALLOCATION_END_BYTES = WAL_RESTART_BYTES + PREALLOCATED_BYTES;

/** What a checkpointer needs of the writer. */
export type Pausable = Pick<Writer, "onCommitted" | "pause" | "onSyncFailure">;

/**
 * Keeps the WAL small without holding up the event loop: a worker moves pages while requests run; only for the restart, when
 * nearly everything has been moved, batches wait. The worker also preallocates space in the WAL before it is written, so that
 * a server that has just started commits as fast as later, when its WAL has been written once. It begins when there is
 * something to move, and stays: beginning it again would take descriptors, which others may have used up, and the runtime
 * ends the process where it gets none.
 *
 * The worker syncs the WAL before it moves a page, so only what is on the disk gets into the file. With a commit log
 * (`movesConfirmedOnly`) nothing may get there that the log has not confirmed: a pass begins when nothing is unconfirmed,
 * and holds later commits back by a transaction.
 */
export class Checkpointer {
  /** Size of the WAL after the last commit, in bytes. */
  walBytes = 0;
  private worker: Worker | null = null;
  /** Shared memory: the end of the process waits for the worker without the event loop. */
  private readonly state = new Int32Array(new SharedArrayBuffer(8));
  private cancelTimer: Cancel | null = null;
  private busy = false;
  private closed = false;
  private movedPages = 0;
  /** Whether the worker's last pass could move nothing: then it is not started again immediately. */
  private stuck = false;
  private failing: string | null = null;
  /** The worker's own: see {@link Database.openLog}. Null where nothing is synced. */
  private logFile: ReturnType<Database["openLog"]> | null;
  /** Lets batches begin again; null: they may. */
  private resume: (() => void) | null = null;
  /** Whether the pass is one for a restart, and the next commit shows whether it came about. */
  private restarts = false;
  /** Whether a reader was in the way of the last restart, and when the next one may be tried. */
  private held = false;
  private heldUntil = 0;

  constructor(
    private readonly db: Database,
    private readonly writer: Pausable,
    private readonly log: Logger,
    private readonly movesConfirmedOnly = false,
  ) {
    this.logFile = db.durability === "none" ? null : db.openLog();
    writer.onCommitted(() => this.afterCommit());
  }

  /** Whether the worker runs. */
  get hasWorker(): boolean {
    return this.worker !== null;
  }

  /** Ends the worker. The final checkpoint is the database's own, at its closing. */
  close(): void {
    this.closed = true;
    this.cancelTimer?.();
    Atomics.store(this.state, CLOSING, 1);
    // SQLite immediately rejects a second concurrent checkpoint, whatever the busy time-out.
    Atomics.wait(this.state, AT_WORK, 1, WORKER_WAIT_MS);
    this.worker?.terminate();
    // Not while a pass that took too long may still use it: the end of the process closes it.
    if (Atomics.load(this.state, AT_WORK) === 0) this.logFile?.[Symbol.dispose]();
    this.logFile = null;
  }

  private afterCommit(): void {
    if (this.closed) return;
    const unmovedBytes = this.measure();
    if (this.busy) {
      // Until the end of the pass, which a restart follows.
      if (this.isPressing(unmovedBytes)) this.pauseBatches(() => undefined);
      return;
    }
    if (this.restarts) this.noteRestart();
    this.proceed(unmovedBytes);
  }

  /** Whether writing outruns the worker. A WAL that a reader holds is large whatever is done: then what is left to move counts. */
  private isPressing(unmovedBytes: number): boolean {
    const bytes = this.held ? unmovedBytes : this.walBytes;
    return bytes >= WAL_FORCED_RESTART_BYTES && monotonicMs() >= this.heldUntil;
  }

  /** Sets the WAL's size and returns how much of it has not been moved. */
  private measure(): number {
    const { log, moved } = this.db.logPages();
    this.walBytes = log * WAL_FRAME_BYTES;
    this.movedPages = moved;
    return (log - moved) * WAL_FRAME_BYTES;
  }

  /** The next step while the worker is idle. */
  private proceed(unmovedBytes: number): void {
    const isLarge = this.walBytes >= WAL_RESTART_BYTES && !this.restarts;
    const isDue = isLarge && monotonicMs() >= this.heldUntil;
    if (isDue && (unmovedBytes <= RESTART_UNMOVED_BYTES || this.isPressing(unmovedBytes)))
      this.startPass(true);
    else if (unmovedBytes >= CHECKPOINT_AFTER_BYTES && !this.stuck) this.startPass();
    else if (unmovedBytes >= CHECKPOINT_FROM_BYTES || isDue || this.failing !== null) this.arm();
  }

  /** SQLite restarts the WAL by itself, unless a reader is in the way. It is not waited for: a backup takes its time. */
  private noteRestart(): void {
    this.restarts = false;
    const isHeld = this.walBytes >= WAL_RESTART_BYTES;
    if (isHeld) this.heldUntil = monotonicMs() + HELD_PAUSE_MS;
    if (isHeld && !this.held)
      this.log.info("the write-ahead log grows: a reader in another process needs it, such as a backup");
    this.held = isHeld;
  }

  private arm(): void {
    this.cancelTimer ??= realTimeout(this.stuck ? STUCK_INTERVAL_MS : CHECKPOINT_INTERVAL_MS, () => {
      this.cancelTimer = null;
      if (!this.busy && !this.closed) this.startPass();
    });
  }

  /**
   * Lets the worker move what is in the WAL. With `restarts` no batch begins until everything is moved: then the next one
   * restarts the WAL.
   */
  private startPass(restarts = false): void {
    this.busy = true;
    this.restarts = restarts;
    if (!restarts && !this.movesConfirmedOnly) {
      this.request();
      return;
    }
    this.pauseBatches(() => this.request());
  }

  private pauseBatches(paused: () => void): void {
    void this.writer.pause().then((resume) => {
      this.resume = resume;
      if (this.closed || !this.busy) this.letBatchesBegin();
      else paused();
    });
  }

  private letBatchesBegin(): void {
    this.resume?.();
    this.resume = null;
  }

  private request(): void {
    this.worker ??= this.startWorker();
    Atomics.store(this.state, AT_WORK, 1);
    const request: CheckpointRequest = {
      path: this.db.path,
      movedPages: this.movedPages,
      logPath: this.db.logPath,
      logFile: this.logFile?.fd ?? null,
      // Not while batches wait.
      logBytes: this.resume === null ? this.preallocationEnd() : 0,
      holdsLaterCommits: this.movesConfirmedOnly,
      state: this.state,
    };
    this.worker.postMessage(request);
  }

  /** How long the WAL's file should be. Only where each commit is synced does it matter where its frames are written. */
  private preallocationEnd(): number {
    if (this.db.durability !== "full" || this.walBytes < PREALLOCATE_FROM_BYTES) return 0;
    return Math.min(this.walBytes + PREALLOCATED_BYTES, PREALLOCATION_END_BYTES);
  }

  private startWorker(): Worker {
    const worker = new Worker(new URL("./checkpoint-worker.ts", import.meta.url));
    worker.onmessage = ({ data }: MessageEvent<CheckpointReply | typeof HOLDS>) => {
      if (data !== HOLDS) this.done(data);
      else if (!this.restarts) this.letBatchesBegin();
    };
    worker.onerror = (event) => {
      this.worker = null;
      Atomics.store(this.state, AT_WORK, 0);
      this.done({ stuck: true, failure: event.message, failedSync: null });
    };
    worker.unref();
    return worker;
  }

  /** Runs in a turn of its own, so never inside a batch. */
  private done({ stuck, failure, failedSync }: CheckpointReply): void {
    this.busy = false;
    this.stuck = stuck;
    if (failedSync !== null) this.writer.onSyncFailure(new SyncFailure(failedSync, failure ?? ""));
    if (failure !== null) {
      this.restarts = false;
      this.heldUntil = monotonicMs() + HELD_PAUSE_MS;
    }
    this.letBatchesBegin();
    if (this.closed) return;
    if (failure !== null && this.failing === null) {
      this.log.error("the write-ahead log cannot be moved into the database", { error: failure });
    }
    this.failing = failure;
    const unmovedBytes = this.measure();
    this.proceed(unmovedBytes);
  }
}
