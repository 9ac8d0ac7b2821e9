import { Cron } from "croner";

/**
 * The first moment after `afterMs` (epoch milliseconds) that a cron expression names, in UTC. croner calculates;
 * waiting is the scheduler's.
 *
 * @throws Error when the expression is malformed or never comes true.
 */
export function nextOccurrence(expression: string, afterMs: number): number {
  const next = new Cron(expression, { timezone: "UTC", paused: true }).nextRun(new Date(afterMs));
  if (next === null) throw new Error(`the cron expression "${expression}" never comes true`);
  return next.getTime();
}
