import { localTime } from "../../../kernel/time/readable.ts";
import type { CheckEffects, HealthNotification } from "../alerting.ts";
import { daysLeft } from "../certificate.ts";
import { factsOf } from "../facts.ts";
import { daysUntil } from "../registration.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import type { FinalEffect } from "../suppression/suppression.ts";

/** The time zone of texts of a project. */
type TimeZones = (projectRef: number) => string;

/** What a check causes after suppression. */
export function effectsOf(
  before: MonitorRow,
  after: MonitorRow,
  check: CompletedCheck,
  { state, event, suppressedBy, isSilenced }: FinalEffect,
  timeZoneOf: TimeZones,
): CheckEffects {
  // An outage is not over because nothing is known of it.
  const isSame = state.status === "unknown" || (event === null && state.status === before.status);
  return {
    monitor: factsOf(after),
    outcome: isSame
      ? null
      : { before: factsOf(before), after: state, check, event, suppressedBy, isSilenced },
    health: healthNotifications(before, after, check, timeZoneOf),
  };
}

/** Notifications of a check about latency and certificate. A manual check causes none. */
function healthNotifications(
  before: MonitorRow,
  after: MonitorRow,
  check: CompletedCheck,
  timeZoneOf: TimeZones,
): HealthNotification[] {
  if (check.manual) return [];
  return [
    unknownNotification(before, after, check),
    latencyNotification(before, after, check),
    certificateNotification(before, after, check, timeZoneOf),
    domainNotification(before, after, check, timeZoneOf),
  ].filter((notice) => notice !== null);
}

/** A check could not be made: from now on nothing is known of the target. */
function unknownNotification(
  before: MonitorRow,
  after: MonitorRow,
  { error }: CompletedCheck,
): HealthNotification | null {
  if (after.status !== "unknown" || before.status === "unknown") return null;
  const facts = { status: "unknown", previous_status: before.status, error };
  return { event: "monitor.unknown", text: `its status is unknown: ${error}`, facts };
}

function latencyNotification(
  before: MonitorRow,
  after: MonitorRow,
  { latencyMs, at }: CompletedCheck,
): HealthNotification | null {
  const { notify_degraded: isEnabled, degraded_ms } = after.settings;
  const isChanged = before.degraded !== after.degraded && after.status === "up";
  if (!isEnabled || degraded_ms === null || !isChanged) return null;
  const facts = { latency_ms: latencyMs, degraded_ms, checked_at: Math.floor(at / 1_000) };
  return after.degraded
    ? { event: "monitor.degraded", text: `responds in ${latencyMs} ms, more than ${degraded_ms} ms`, facts }
    : { event: "monitor.recovered", text: `responds in ${latencyMs} ms again`, facts };
}

function certificateNotification(
  before: MonitorRow,
  after: MonitorRow,
  { at }: CompletedCheck,
  timeZoneOf: TimeZones,
): HealthNotification | null {
  const { certificate } = after;
  if (certificate === null || certificate.told === (before.certificate?.told ?? null)) return null;
  const { notAfter, issuer, intermediate } = certificate;
  const days_left = daysLeft(certificate, at);
  const which = intermediate === undefined ? "certificate" : `intermediate certificate ${intermediate}`;
  const text = `the ${which} ${expiryText(days_left, notAfter, timeZoneOf(after.projectRef))}`;
  const facts = {
    not_after: Math.floor(notAfter / 1_000),
    days_left,
    issuer,
    ...(intermediate === undefined ? {} : { intermediate }),
  };
  return { event: "monitor.certificate", text, facts };
}

function domainNotification(
  before: MonitorRow,
  after: MonitorRow,
  { at }: CompletedCheck,
  timeZoneOf: TimeZones,
): HealthNotification | null {
  const { domain } = after;
  if (domain === null || domain.told === (before.domain?.told ?? null)) return null;
  const { expiresAt } = domain;
  const days_left = daysUntil(domain, at);
  const when = expiryText(days_left, expiresAt, timeZoneOf(after.projectRef));
  const text = `the registration of ${after.settings.host} ${when}`;
  return { event: "monitor.domain", text, facts: { expires_at: Math.floor(expiresAt / 1_000), days_left } };
}

/** `expires in 7 days, on 2026-12-06`. */
function expiryText(daysLeft: number, at: number, timeZone: string): string {
  const when = daysLeft === 0 ? "within a day" : `in ${daysLeft} ${daysLeft === 1 ? "day" : "days"}`;
  return `expires ${when}, on ${localTime(at, timeZone).slice(0, 10)}`;
}
