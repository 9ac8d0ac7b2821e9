import { errorText } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Writer } from "../storage/writer.ts";
import { realDelay } from "../time/clock.ts";
import type { JobPosition, JobStore } from "./job-store.ts";

/** Jobs read in one unit of work: a millisecond or two of the writer's time. */
export const SET_BACK_SLICE = 500;

/** Wait before a retry when the table cannot be read or written. Real time, since the disk is the cause. */
const RETRY_MS = 1_000;

/** What {@link ClockSetBack} is built on. */
export interface ClockSetBackDeps {
  readonly store: JobStore;
  readonly writer: Writer;
  readonly log: Logger;
  readonly now: () => number;
  /** The kinds whose jobs wait for time to pass, not for a time of day. */
  readonly kinds: () => readonly string[];
  /** Called when a job of this kind is due earlier than before. */
  readonly moved: (kind: string, dueAt: number) => void;
}

/**
 * Keeps jobs from waiting longer when the wall clock is set back: sets their due times back with it, in slices, the
 * earliest first. Jobs from before the clock had been set forward keep their due times.
 */
export class ClockSetBack {
  private wanted = false;
  private stopped = false;
  private work: Promise<void> | null = null;

  constructor(private readonly deps: ClockSetBackDeps) {}

  /** Begins, or begins again when it is running. Resolves when it is done. */
  begin(): Promise<void> {
    this.wanted = true;
    this.stopped = false;
    this.work ??= this.run().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** Ends after the slice that is running. */
  stop(): void {
    this.stopped = true;
  }

  private async run(): Promise<void> {
    while (this.wanted && !this.stopped) {
      this.wanted = false;
      try {
        for (const kind of this.deps.kinds()) await this.walk(kind);
      } catch (error) {
        if (this.stopped) return;
        this.deps.log.error("jobs wait as much longer as the clock was set back", {
          error: errorText(error),
        });
        this.wanted = true;
        await realDelay(RETRY_MS);
      }
    }
  }

  /** Jobs that are already due are left as they are. */
  private async walk(kind: string): Promise<void> {
    let after: JobPosition | null = { dueAt: this.deps.now(), lane: "", id: -1 };
    while (after !== null && !this.wanted && !this.stopped) after = await this.slice(kind, after);
  }

  /** Returns where the next slice begins, or null when this was the last one. */
  private slice(kind: string, after: JobPosition): Promise<JobPosition | null> {
    const { store, writer, moved } = this.deps;
    return writer.submit((tx) => {
      const found = store.positions(kind, after, Number.MAX_SAFE_INTEGER, SET_BACK_SLICE);
      const earliest = store.setBack(tx, found);
      if (earliest !== null) tx.afterCommit(() => moved(kind, earliest));
      return found.length < SET_BACK_SLICE ? null : (found.at(-1) ?? null);
    });
  }
}
