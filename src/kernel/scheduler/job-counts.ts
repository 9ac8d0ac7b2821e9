import { Counter, Histogram } from "../metrics/instruments.ts";

/** How a run of a job can end: it is done with, it is to be run again, or its handler failed. */
export const RUN_OUTCOMES = ["done", "again", "defect"] as const;

/** How a run of a job has ended. */
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** Upper bounds of the counted lateness of jobs, in seconds. */
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
  /** Null for a kind that nobody runs here: its jobs wait for a start that knows it. */
  readonly counts: JobCounts | null;
  /** Jobs that are not under way, those due included. */
  readonly waiting: number;
  readonly running: number;
  /** Of those waiting, jobs that are due, counted no further than {@link DUE_COUNTED_MAX}. */
  due(): number;
  /** How long the job that is overdue for longest has waited, in seconds; 0 when none is. */
  overdueSeconds(): number;
}

/** Due jobs counted of each kind: some hundred microseconds. */
export const DUE_COUNTED_MAX = 10_000;
