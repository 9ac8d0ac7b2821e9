import { Cron } from "croner";

/**
 * The first moment after `afterMs` (epoch milliseconds) that a cron expression names, in UTC. croner calculates;
 * waiting is the scheduler's.
 *
 * @throws Error when the expression is malformed or never comes true.
 */
export function nextOccurrence(expression: string, afterMs: number): number {
  // An offset of 0 rather than a time zone of that name: for zones croner asks Intl, whose tables take 10 ms to load.
  const next = new Cron(expression, { utcOffset: 0, paused: true }).nextRun(new Date(afterMs));
  if (next === null) throw new Error(`the cron expression "${expression}" never comes true`);
  return next.getTime();
}
