import { type Cancel, realTimeout } from "../clock.ts";
import { errorText } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { CheckpointReply, CheckpointRequest } from "./checkpoint.ts";
import type { Database } from "./database.ts";
import type { Writer } from "./writer.ts";

/** Above this size the WAL is started anew at the next pause between two batches. Twice this is never reached. */
export const WAL_RESTART_BYTES = 32 * 1024 * 1024;
/** How often the worker is asked while there are commits: short enough that the WAL grows little in between. */
const CHECKPOINT_INTERVAL_MS = 200;
/** SQLite's default page size, which every Ninefold file has, plus the frame's header. */
const WAL_FRAME_BYTES = 4096 + 24;

/**
 * Keeps the WAL small without holding up the event loop: a worker moves pages while requests run; only the
 * short restart, when everything has been moved, happens between two batches.
 */
export class Checkpointer {
  /** Size of the WAL at the last look, in bytes. */
  walBytes = 0;
  private readonly db: Database;
  private readonly log: Logger;
  private readonly restart: () => void;
  private worker: Worker | null = null;
  private cancelTimer: Cancel | null = null;
  private busy = false;
  private closed = false;

  constructor(db: Database, writer: Writer, log: Logger) {
    this.db = db;
    this.log = log;
    this.restart = db.control("PRAGMA wal_checkpoint(RESTART)");
    writer.onCommitted(() => this.arm());
  }

  /** Ends the worker. The final checkpoint is the database's own, at its closing. */
  close(): void {
    this.closed = true;
    this.cancelTimer?.();
    this.worker?.terminate();
  }

  private arm(): void {
    if (this.cancelTimer !== null || this.busy || this.closed) return;
    this.cancelTimer = realTimeout(CHECKPOINT_INTERVAL_MS, () => {
      this.cancelTimer = null;
      this.ask();
    });
  }

  private ask(): void {
    if (this.closed) return;
    this.busy = true;
    this.worker ??= this.startWorker();
    const request: CheckpointRequest = { path: this.db.path };
    this.worker.postMessage(request);
  }

  private startWorker(): Worker {
    const worker = new Worker(new URL("./checkpoint-worker.ts", import.meta.url));
    worker.onmessage = (event: MessageEvent<CheckpointReply>) => this.done(event.data);
    worker.onerror = (event) => {
      this.log.error("the checkpoint worker failed", { error: event.message });
      this.worker = null;
      this.done({ walPages: Number.POSITIVE_INFINITY, movedPages: 0 });
    };
    worker.unref();
    return worker;
  }

  /** Runs in a turn of its own, so never inside a batch; the worker is idle, so nothing is waited for. */
  private done(reply: CheckpointReply): void {
    this.busy = false;
    if (this.closed) return;
    this.walBytes = reply.walPages * WAL_FRAME_BYTES;
    if (this.walBytes < WAL_RESTART_BYTES) return;
    try {
      this.restart();
      this.walBytes = 0;
    } catch (error) {
      // A reader in another process (a backup) can hold the WAL: it is tried again after the next commit.
      this.log.warn("the write-ahead log could not be restarted", { error: errorText(error) });
    }
  }
}
