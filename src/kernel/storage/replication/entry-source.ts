import { errorText } from "../../errors.ts";
import type { Clock } from "../../time/clock.ts";
import type { Database } from "../database.ts";
import { StorageFailure } from "../storage-failures.ts";
import type { Tx } from "../tx.ts";
import type { BatchFollower } from "../writer.ts";
import { Capture } from "./capture.ts";
import type { Entry } from "./entry.ts";
import { epochAbove, type LogPosition, type Position, PositionRow, type StoredPosition } from "./position.ts";

/** The payload is valid until it returns. */
type Sink = (entry: Entry) => void;

/**
 * Makes an entry of each batch of the writer: stores the position in the batch's own transaction, and captures its pages
 * after the COMMIT. Only with an archive or a commit log.
 */
export class EntrySource implements BatchFollower {
  private readonly row: PositionRow;
  private readonly capture: Capture;
  /** What was captured before the first batch that somebody receives. */
  private readonly early: Entry[] = [];
  private readonly sinks: Sink[] = [];
  private current: StoredPosition;
  /** The position that the transaction in progress stores. */
  private next: StoredPosition | null = null;
  private failed: StorageFailure | null = null;
  /** Called once with the reason when entries can no longer be made. The server must stop. */
  onFailure: (reason: string) => void = () => undefined;
  /** The position that the file had before this start; null without one: no archive and no log contains its content. */
  readonly origin: StoredPosition | null;

  /**
   * The entry at the origin, if the log still has it: a process that was killed while it synced a commit has not delivered it.
   */
  readonly originEntry: Entry | null;

  /** Before what an earlier process left in the log is moved into the file, and before the migrations of a start. */
  constructor(
    db: Database,
    private readonly clock: Clock,
  ) {
    this.row = new PositionRow(db);
    this.origin = this.row.read();
    this.current = this.origin ?? { epoch: epochAbove(0, clock.now()), seq: 0, at: clock.now(), log: null };
    this.capture = new Capture(db);
    const left = this.origin === null ? null : this.capture.lastCommit();
    this.originEntry = this.origin && left && { ...this.origin, ...left, isSeal: false };
  }

  /** Position of the last batch that was committed; seq 0: of none yet. */
  get position(): Position {
    return this.current;
  }

  /**
   * Receives every entry, in order and synchronously after its COMMIT, also those that the start has made. Several receive each
   * entry in the order of their calls, which all precede the first batch.
   */
  onEntry(sink: Sink): void {
    this.sinks.push(sink);
    for (const entry of this.early) sink(entry);
  }

  /**
   * The next batch begins a new epoch, for which a new base is needed: `epoch`, or one from the time, which is higher than all
   * that this file has had. Returns the epoch.
   */
  beginEpoch(epoch = epochAbove(this.current.epoch, this.clock.now())): number {
    this.current = { ...this.current, epoch };
    return epoch;
  }

  /** The next batch follows this position of a commit log, which the file itself does not name yet. */
  continueFrom({ log, epoch, seq }: LogPosition): void {
    this.current = { ...this.current, log, epoch, seq };
  }

  /** Once everything that an earlier process left in the log is durable. */
  begin(): void {
    this.capture.markCaptured();
  }

  /**
   * For what a start changes, in its transaction. A new file stores no position before its first batch: until then nothing
   * claims to have its content.
   */
  noteStart(): void {
    if (this.origin === null) return;
    this.next = this.following(this.clock.now());
    this.row.setAtStart(this.next);
  }

  /** After the transaction of {@link noteStart}, or without one. */
  startCommitted(): void {
    const pages = this.next === null ? null : this.capture.take();
    if (pages === null) this.capture.markCaptured();
    else this.deliver(pages);
  }

  /** From here on every batch is rejected: what would be committed could not be confirmed to anybody. */
  rejectBatches(reason: string): void {
    this.failed ??= new StorageFailure(reason);
  }

  beforeBatch(): void {
    this.confirmation = null;
    if (this.sinks.length > 0) this.early.length = 0;
    if (this.failed !== null) throw this.failed;
    try {
      this.capture.assertUnchanged();
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  beforeCommit(tx: Tx): void {
    this.next = this.following(tx.now);
    this.row.set(tx, this.next);
  }

  /** Never throws: the batch is committed. */
  afterCommit(): void {
    try {
      const pages = this.capture.take();
      if (pages === null) return;
      if (this.next === null) throw new Error("a batch has changed pages without its position");
      this.deliver(pages);
    } catch (error) {
      this.fail(error);
    } finally {
      this.next = null;
    }
  }

  /** Settles when the last batch may be told to others: the sink sets it. Null: at once. */
  confirmation: Promise<void> | null = null;

  close(): void {
    this.capture.close();
  }

  private following(at: number): StoredPosition {
    const { log, epoch, seq } = this.current;
    return { log, epoch, seq: seq + 1, at };
  }

  private deliver(pages: Pick<Entry, "filePages" | "payload">): void {
    if (this.next === null) return;
    const entry = { ...this.next, isSeal: false, ...pages };
    this.current = this.next;
    this.next = null;
    if (this.sinks.length === 0) this.early.push({ ...entry, payload: new Uint8Array(entry.payload) });
    for (const sink of this.sinks) sink(entry);
  }

  private fail(error: unknown): void {
    if (this.failed !== null) return;
    this.failed = error instanceof StorageFailure ? error : new StorageFailure(errorText(error));
    this.onFailure(errorText(error));
  }
}
