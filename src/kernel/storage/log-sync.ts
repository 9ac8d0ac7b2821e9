import { type LogIdentity, openLog, syncLog } from "./log-file.ts";
import { SyncFailure } from "./storage-failures.ts";

/** Index in the shared state: what the thread is to do, which is nothing, to sync once, or to end. */
export const REQUESTED = 0;
export const IDLE = 0;
export const SYNC = 1;
export const CLOSE = 2;

/** What the thread receives once. It closes the log at its end. */
export interface SyncThreadStart {
  readonly path: string;
  readonly fd: number;
  readonly state: Int32Array;
}

/** The end of a sync: why it failed, or null. */
export type SyncEnd = string | null;

/**
 * Syncs the write-ahead log on a thread of its own, one sync at a time, so that the event loop never waits for the disk. On
 * the runtime's threads, a sync would wait for compressions and for files that hang.
 */
export class LogSync {
  /** Called when a sync has failed: what it was for is never confirmed. */
  onFailure: (failure: SyncFailure) => void = () => undefined;
  private readonly state = new Int32Array(new SharedArrayBuffer(4));
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

  /** Resolves when everything is on the disk that was committed before this call. Not before the last one has resolved. */
  begin(): Promise<void> {
    this.thread ??= this.start();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.done = resolve;
    this.request(SYNC);
    return promise;
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
    if (failure === null) this.done();
    else this.onFailure(new SyncFailure(this.path, failure));
  }
}
