import type { AuditChange } from "../audit/change.ts";

/** Takes down what a unit of work has changed for a request. */
export interface Auditor {
  note(tx: Tx, change: AuditChange | null): void;
}

/**
 * A unit of work, as the work itself sees it. It is synchronous from its first line to its last: an `await`
 * inside would let the batch commit without it.
 */
export interface Tx {
  /** The time of the whole batch, epoch milliseconds. */
  readonly now: number;
  /** Registers how to undo a change made in memory, should the unit or its batch not be committed. */
  onRollback(undo: () => void): void;
  /** Registers what may happen only once the change is durable: arming a timer, waking a waiter. */
  afterCommit(run: () => void): void;
  /**
   * Runs a part of the unit that may fail alone: what it changed, in SQL and in memory, is rolled back when it
   * throws, while what the unit did before it stays.
   */
  attempt<T>(work: () => T): T;
  /** Says what the unit has changed, for the audit log; null when it changed nothing. Heard where the operation is audited. */
  audit(change: AuditChange | null): void;
  /** Who hears that; null: nobody. */
  auditor: Auditor | null;
  /** Called by every command before it writes. */
  willWrite(): void;
  /**
   * Called by a command that the storage failed (a full disk, an I/O error). SQLite may have rolled back the whole
   * batch by then, so from here on the unit writes nothing, whatever the work makes of the error.
   */
  storageFailed(error: unknown): void;
}

/** Thrown (and remembered) when a failing part has written already and the batch must be run again with savepoints. */
class RerunCarefully extends Error {}

/** The two savepoint statements, prepared by the writer. */
export interface Savepoints {
  readonly open: () => void;
  readonly release: () => void;
  readonly rollback: () => void;
}

/**
 * The unit of work of the writer. Undo steps are stored as a stack. Without savepoints (the fast way) a part
 * that fails before it wrote anything is undone in memory alone; one that had written needs the careful way.
 */
export class UnitTx implements Tx {
  wrote = false;
  needsCare = false;
  /** Why the storage failed, once it has. */
  failure: unknown = null;
  auditor: Auditor | null = null;
  protected undos: (() => void)[] | null = null;
  private afters: (() => void)[] | null = null;

  constructor(
    readonly now: number,
    private readonly savepoints: Savepoints | null,
  ) {}

  onRollback(undo: () => void): void {
    this.undos ??= [];
    this.undos.push(undo);
  }

  afterCommit(run: () => void): void {
    this.afters ??= [];
    this.afters.push(run);
  }

  audit(change: AuditChange | null): void {
    this.auditor?.note(this, change);
  }

  willWrite(): void {
    if (this.failure !== null) throw this.failure;
    this.wrote = true;
  }

  storageFailed(error: unknown): void {
    this.failure = error;
  }

  attempt<T>(work: () => T): T {
    const undoMark = this.undos?.length ?? 0;
    const afterMark = this.afters?.length ?? 0;
    const wroteBefore = this.wrote;
    this.wrote = false;
    this.savepoints?.open();
    try {
      const value = work();
      this.savepoints?.release();
      return value;
    } catch (error) {
      this.undoTo(undoMark);
      if (this.afters !== null) this.afters.length = afterMark;
      this.rollBackPart();
      throw error;
    } finally {
      this.wrote ||= wroteBefore;
    }
  }

  private rollBackPart(): void {
    // The savepoints may be gone with the transaction; the batch is rolled back as a whole.
    if (this.failure !== null) return;
    if (this.savepoints !== null) {
      this.savepoints.rollback();
      this.savepoints.release();
    } else if (this.wrote) {
      this.needsCare = true;
      throw new RerunCarefully();
    }
  }

  /** Undoes every change in memory, the latest first. */
  undo(): void {
    this.undoTo(0);
    this.afters = null;
  }

  /** Runs what waited for the commit. */
  committed(onError: (error: unknown) => void): void {
    if (this.afters === null) return;
    for (const run of this.afters) {
      try {
        run();
      } catch (error) {
        onError(error);
      }
    }
  }

  private undoTo(mark: number): void {
    if (this.undos === null) return;
    while (this.undos.length > mark) this.undos.pop()?.();
  }
}

/** Work between two batches, which changes nothing but what is in memory. */
export class MemoryTx extends UnitTx {
  constructor(now: number) {
    super(now, null);
  }

  /** Whether anything was changed in memory, even if it was rolled back. */
  get touched(): boolean {
    return this.undos !== null;
  }

  /** @throws Error always: outside a batch a command would be a transaction of its own. */
  override willWrite(): never {
    throw new Error("work that is to change nothing has written");
  }
}
