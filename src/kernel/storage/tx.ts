/** What an operation has changed, as passed to the audit log, which removes the secrets in it. */
export interface AuditChange {
  /** One line for people. */
  readonly summary: string;
  readonly target: AuditTarget;
  /** The fields as they were; null for what has just been made. */
  readonly before: Fields | null;
  /** The fields as they are; null for what is gone. */
  readonly after: Fields | null;
  /** The id of the project that it belongs to: the caller's where the operation changes that, unless said otherwise. */
  readonly projectId?: string | null;
  /** Whether each side may have as many bytes as the largest definition, so that an earlier one can be restored. */
  readonly isDefinition?: boolean;
  /** The account that was acted on, where that is not the caller's. */
  readonly subjectRef?: number;
}

/** What was changed. */
export interface AuditTarget {
  readonly type: string;
  readonly id: string;
}

/** Fields of a thing, by name. */
export type Fields = Readonly<Record<string, unknown>>;

/** Receives what a unit of work changes for a request. */
export interface Auditor {
  note(tx: Tx, change: AuditChange | null): void;
}

/**
 * Whose data a unit of work changes, as others can read it: that of an account (its reference), of {@link ANYONE}, or of
 * {@link NOBODY}, since what it writes follows from what was confirmed before.
 */
export type Affected = number | typeof ANYONE | typeof NOBODY;
export const ANYONE = "anyone";
export const NOBODY = "nobody";

/**
 * A unit of work, as its code sees it. The code is synchronous: after an `await` the batch would already be
 * committed.
 */
export interface Tx {
  /** The time of the whole batch, in epoch milliseconds. */
  readonly now: number;
  /** Registers how to undo a change in memory if the unit or its batch is not committed. */
  onRollback(undo: () => void): void;
  /** Registers an effect that requires a confirmed change, such as setting a timer or notifying somebody. */
  afterCommit(run: () => void): void;
  /**
   * Runs a part of the unit that may fail on its own: if it throws, its changes in SQL and in memory are rolled back, and
   * earlier changes of the unit stay.
   */
  savepoint<T>(work: () => T): T;
  /** Reports the change of the unit for the audit log; null if it changed nothing. Ignored if the operation is not audited. */
  audit(change: AuditChange | null): void;
  /** Receives these reports; null if the operation is not audited. */
  auditor: Auditor | null;
  /** Whose data this changes: responses that may show that wait until the change is confirmed. Anyone's, unless it is set. */
  affects: Affected;
  /** Called by every command before it writes. */
  willWrite(): void;
  /**
   * Called by a command that failed because of the storage (a full disk, an I/O error). SQLite may have rolled back the
   * whole batch, so from here on the unit writes nothing, even if its code catches the error.
   */
  storageFailed(error: unknown): void;
}

/** Thrown (and recorded) if a failing part has already written, so that the batch must run again with savepoints. */
class RerunCarefully extends Error {}

/** The two savepoint statements, prepared by the writer. */
export interface Savepoints {
  readonly open: () => void;
  readonly release: () => void;
  readonly rollback: () => void;
}

/**
 * The unit of work of the writer. Undo steps are a stack. Without savepoints (the fast path), a part that fails before it
 * writes is only undone in memory; one that has written requires a rerun with savepoints.
 */
export class UnitTx implements Tx {
  wrote = false;
  needsCare = false;
  /** The error of the storage, if it failed. */
  failure: unknown = null;
  auditor: Auditor | null = null;
  affects: Affected = ANYONE;
  private undos: (() => void)[] | null = null;
  private afters: (() => void)[] | null = null;

  constructor(
    readonly now: number,
    private readonly savepoints: Savepoints | null,
  ) {}

  /** Whether it has changed the database or memory. */
  get hasChanged(): boolean {
    return this.wrote || this.undos !== null;
  }

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

  savepoint<T>(work: () => T): T {
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
    // The savepoints may have ended with the transaction; the whole batch is rolled back.
    if (this.failure !== null) return;
    if (this.savepoints !== null) {
      this.savepoints.rollback();
      this.savepoints.release();
    } else if (this.wrote) {
      this.needsCare = true;
      throw new RerunCarefully();
    }
  }

  /** Undoes every change in memory, in reverse order. */
  undo(): void {
    this.undoTo(0);
    this.afters = null;
  }

  /** Runs the registered effects after the commit. */
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

/** Work between two batches that changes only memory. */
export class MemoryTx extends UnitTx {
  constructor(now: number) {
    super(now, null);
  }

  /** @throws Error always: outside a batch, a command would be a separate transaction. */
  override willWrite(): never {
    throw new Error("work that must not change the database has written");
  }
}
