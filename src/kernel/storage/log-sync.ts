import { type LogIdentity, openLog, syncLog } from "./log-file.ts";
import { SyncFailure } from "./storage-failures.ts";

/** Index in the shared state: the number of the last sync that was requested, or {@link CLOSE}. */
export const REQUESTED = 0;
/** Ends the thread. */
export const CLOSE = -1;
/** The last number of a sync, what the shared state can hold; the next one is 1. A busy server gets there in some days. */
export const SYNC_NUMBER_MAX = 2 ** 31 - 1;

/** What the thread receives once. It closes the log at its end. */
export interface SyncThreadParts {
  readonly path: string;
  readonly fd: number;
  readonly state: Int32Array;
}

/** The end of a sync: its number, and why it failed. */
export interface SyncEnd {
  readonly number: number;
  readonly failure: string | null;
}

/**
 * Syncs the write-ahead log on a thread of its own, so that the event loop never waits for the disk. On the runtime's
 * threads, a sync would wait for compressions and for files that hang.
 */
export class LogSync {
  /** Called when a sync has failed: what it was for is never confirmed. */
  onFailure: (failure: SyncFailure) => void = () => undefined;
  private readonly state = new Int32Array(new SharedArrayBuffer(4));
  private thread: Worker | null = null;
  private waiter: PromiseWithResolvers<void> | null = null;

  private readonly path: string;
  /**
   * Open from the start on: a log that was removed since is still the one that SQLite writes. The thread has one of its own,
   * because a failure is reported to each only once.
   */
  private readonly file: ReturnType<typeof openLog>;
  private readonly threadFile: ReturnType<typeof openLog>;

  /** `number`: of the last sync. @throws Error if the log is not the file that SQLite has open. */
  constructor(
    log: LogIdentity,
    private number = 0,
  ) {
    this.path = log.path;
    this.file = openLog(log);
    this.threadFile = openLog(log);
  }

  /** Resolves when everything is on the disk that was committed before this call. */
  begin(): Promise<void> {
    this.waiter ??= Promise.withResolvers<void>();
    this.thread ??= this.start();
    this.number = (this.number % SYNC_NUMBER_MAX) + 1;
    Atomics.store(this.state, REQUESTED, this.number);
    Atomics.notify(this.state, REQUESTED);
    return this.waiter.promise;
  }

  /** Syncs on this thread: at a start and at the end nothing else waits for the event loop. False: it has failed. */
  now(): boolean {
    try {
      syncLog(this.file.fd, this.path);
    } catch (error) {
      if (!(error instanceof SyncFailure)) throw error;
      this.onFailure(error);
      return false;
    }
    this.ended({ number: this.number, failure: null });
    return true;
  }

  /** Ends the thread. */
  close(): void {
    Atomics.store(this.state, REQUESTED, CLOSE);
    Atomics.notify(this.state, REQUESTED);
    this.file[Symbol.dispose]();
    if (this.thread === null) this.threadFile[Symbol.dispose]();
    this.thread = null;
  }

  private start(): Worker {
    const thread = new Worker(new URL("./log-sync-worker.ts", import.meta.url));
    thread.onmessage = ({ data }: MessageEvent<SyncEnd>) => this.ended(data);
    thread.onerror = ({ message }) => this.ended({ number: this.number, failure: message });
    thread.unref();
    thread.postMessage({
      path: this.path,
      fd: this.threadFile.fd,
      state: this.state,
    } satisfies SyncThreadParts);
    return thread;
  }

  private ended({ number, failure }: SyncEnd): void {
    if (failure !== null) {
      this.onFailure(new SyncFailure(this.path, failure));
      return;
    }
    // An earlier one does not cover the last commit.
    if (number !== this.number) return;
    const { waiter } = this;
    this.waiter = null;
    waiter?.resolve();
  }
}
