import { type LogIdentity, openLog, syncLog } from "./log-file.ts";
import { SyncFailure } from "./storage-failures.ts";

/** Index in the shared state: what the thread is to do, which is nothing, to sync once, or to end. */
export const REQUESTED = 0;
export const IDLE = 0;
export const SYNC = 1;
export const CLOSE = 2;

/** Index in the shared state: whether the event loop waits for the end of the sync, has seen it, or receives a message. */
export const END = 1;
export const AWAITED = 0;
export const ENDED = 1;
const BY_MESSAGE = 2;

/** Index in the shared state: how long the last sync took, in microseconds. */
export const TOOK_US = 2;

/** Longest that the event loop waits for a sync: a disk that stalls holds it for as long as some requests do. */
const WAIT_MS_MAX = 0.25;
/** It waits where syncs take less on average: to sleep, and to receive a message, takes about as long. */
const WAITED_FOR_MS_MAX = 0.1;
/** A longer sync counts as one of this duration, so one that stalls does not decide; so does a disk before its first sync. */
const COUNTED_MS_MAX = 0.5;
/** Weight of the last sync in the average of their durations. */
const LAST_PART = 0.125;

/** What the thread receives once. It closes the log at its end. */
export interface SyncThreadStart {
  readonly path: string;
  readonly fd: number;
  readonly state: Int32Array;
}

/** The end of a sync: why it failed, or null. */
export type SyncEnd = string | null;

/**
 * Syncs the write-ahead log on a thread of its own, one sync at a time, so that the event loop does not wait for the disk: for
 * a fast one {@link WAIT_MS_MAX} at most, which takes less of its time than a message from the thread. On the runtime's
 * threads, a sync would wait for compressions and for files that hang.
 */
export class LogSync {
  /** Called when a sync has failed: what it was for is never confirmed. */
  onFailure: (failure: SyncFailure) => void = () => undefined;
  private readonly state = new Int32Array(new SharedArrayBuffer(12));
  /** Average duration of a sync. */
  private averageMs = COUNTED_MS_MAX;
  private thread: Worker | null = null;
  private done: () => void = () => undefined;

  private readonly path: string;
  /** Open from the start on: a log that was removed since is still the one that SQLite writes. */
  private readonly file: ReturnType<typeof openLog>;

  /** @throws Error if the log is not the file that SQLite has open. */
  constructor(log: LogIdentity) {
    this.path = log.path;
    this.file = openLog(log);
  }

  /**
   * Resolves when everything is on the disk that was committed before this call; null: it is already. Call again only after
   * that.
   */
  begin(): Promise<void> | null {
    const waits = this.averageMs < WAITED_FOR_MS_MAX;
    this.thread ??= this.start();
    Atomics.store(this.state, END, waits ? AWAITED : BY_MESSAGE);
    this.request(SYNC);
    if (waits && this.hasEnded()) return null;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.done = resolve;
    return promise;
  }

  /** Waits for the sync. False: a message will come. */
  private hasEnded(): boolean {
    Atomics.wait(this.state, END, AWAITED, WAIT_MS_MAX);
    if (Atomics.compareExchange(this.state, END, AWAITED, BY_MESSAGE) === AWAITED) return false;
    this.noteDuration();
    return true;
  }

  private noteDuration(): void {
    const ms = Math.min(COUNTED_MS_MAX, Atomics.load(this.state, TOOK_US) / 1_000);
    this.averageMs += (ms - this.averageMs) * LAST_PART;
  }

  /** Syncs on this thread: at a start and at the end nothing else waits for the event loop. False: it has failed. */
  now(): boolean {
    try {
      syncLog(this.file.fd, this.path);
      return true;
    } catch (error) {
      if (!(error instanceof SyncFailure)) throw error;
      this.onFailure(error);
      return false;
    }
  }

  /** Ends the thread. */
  close(): void {
    this.request(CLOSE);
    if (this.thread === null) this.file[Symbol.dispose]();
    this.thread = null;
  }

  private request(what: number): void {
    Atomics.store(this.state, REQUESTED, what);
    Atomics.notify(this.state, REQUESTED);
  }

  private start(): Worker {
    const thread = new Worker(new URL("./log-sync-worker.ts", import.meta.url));
    thread.onmessage = ({ data }: MessageEvent<SyncEnd>) => this.ended(data);
    thread.onerror = ({ message }) => this.ended(message);
    thread.unref();
    thread.postMessage({ path: this.path, fd: this.file.fd, state: this.state } satisfies SyncThreadStart);
    return thread;
  }

  private ended(failure: SyncEnd): void {
    if (failure !== null) {
      this.onFailure(new SyncFailure(this.path, failure));
      return;
    }
    this.noteDuration();
    this.done();
  }
}
