import { daysLeft } from "../certificate.ts";
import { factsOf } from "../facts.ts";
import { daysUntil } from "../registration.ts";
import type { CheckStore, MonitorRow } from "../store.ts";
import type { Days } from "./days.ts";
import { hoursAfter } from "./standing.ts";

/** A monitor with its history as other areas see it. */
export function historyFactsOf(
  { checks, days }: { readonly checks: Pick<CheckStore, "hoursSince">; readonly days: Pick<Days, "since"> },
  monitor: MonitorRow,
) {
  const { certificate, domain } = monitor;
  return Object.assign(factsOf(monitor), {
    /** Whole days until its certificate expires, negative after that; null without one. */
    certificateDays: (now: number): number | null =>
      certificate === null ? null : daysLeft(certificate, now),
    /** Whole days until the registration of its domain ends, negative after that; null for other monitors. */
    domainDays: (now: number): number | null => (domain === null ? null : daysUntil(domain, now)),
    /** Counts by the start of the day in UTC, from a day until now, today included. */
    days: (from: number, now: number) => days.since(monitor, from, now),
    /** Counts of the hours that began after a time, until now. */
    hours: (after: number, now: number) => hoursAfter(checks, monitor, after, now),
  });
}
