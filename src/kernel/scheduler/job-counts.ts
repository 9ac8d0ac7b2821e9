import { Counter, Histogram } from "../metrics/instruments.ts";

/** How a run of a job can end: it is done, it will run again, or its handler failed. */
export const RUN_OUTCOMES = ["done", "again", "defect"] as const;

/** How a run of a job has ended. */
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** Upper bounds of the lateness histogram, in seconds. */
const LATENESS_BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];

/** What is counted of the jobs of a kind. */
export class JobCounts {
  /** Seconds from a job's due time to its start. */
  readonly lateness = new Histogram(LATENESS_BOUNDS);
  /** Runs whose outcome has been recorded. */
  readonly runs: Readonly<Record<RunOutcome, Counter>> = {
    done: new Counter(),
    again: new Counter(),
    defect: new Counter(),
  };
}

/** The jobs of a kind at a moment. */
export interface JobsNow {
  readonly kind: string;
  /** Null for a kind that is not registered: its jobs wait for a start that knows it. */
  readonly counts: JobCounts | null;
  /** Jobs that are not running, due or not. */
  readonly waiting: number;
  readonly running: number;
  /** Waiting jobs that are due, {@link DUE_COUNTED_MAX} at most. */
  due(): number;
  /** How long the most overdue job has waited, in seconds; 0 when none is overdue. */
  overdueSeconds(): number;
}

/** Largest count of due jobs of each kind: it takes some hundred microseconds. */
export const DUE_COUNTED_MAX = 10_000;
