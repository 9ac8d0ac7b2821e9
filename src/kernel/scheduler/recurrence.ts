import { nextOccurrence } from "./calendar.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** When work recurs, in UTC. */
export interface Recurrence {
  /** As a cron expression. It is stored with the job, whose next time is calculated anew when it changes. */
  readonly expression: string;
  /** The first time after another one, both in epoch milliseconds. @throws Error when none comes. */
  readonly after: (epochMs: number) => number;
}

/** At the times of a cron expression. */
export function cron(expression: string): Recurrence {
  return { expression, after: (epochMs) => nextOccurrence(expression, epochMs) };
}

// What every server does recurs at times that need no library of cron expressions: a start does not load it.

/** Each hour, at a minute. */
export function hourly(minute: number): Recurrence {
  return every(HOUR_MS, minute * MINUTE_MS, `${minute} * * * *`);
}

/** Each day, at a minute of an hour. */
export function daily(hour: number, minute: number): Recurrence {
  return every(DAY_MS, hour * HOUR_MS + minute * MINUTE_MS, `${minute} ${hour} * * *`);
}

/** When a month begins. */
export const MONTHLY: Recurrence = {
  expression: "0 0 1 * *",
  after(epochMs) {
    const date = new Date(epochMs);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  },
};

function every(periodMs: number, offsetMs: number, expression: string): Recurrence {
  const after = (epochMs: number): number =>
    (Math.floor((epochMs - offsetMs) / periodMs) + 1) * periodMs + offsetMs;
  return { expression, after };
}
