// Words of the API that monitors, incidents, alerts and status pages share.

/** Events that channels are notified of. */
export const ALERT_EVENTS = [
  "monitor.down",
  "monitor.up",
  "monitor.degraded",
  "monitor.recovered",
  "monitor.certificate",
  "monitor.domain",
  "monitor.flapping",
  "monitor.acknowledged",
  "monitor.overdue",
  "monitor.runs_exceeded",
  "monitor.unknown",
  "probe.offline",
  "probe.online",
  "observer.offline",
  "maintenance.started",
  "maintenance.ended",
  "catch.failed",
] as const;
/** One of {@link ALERT_EVENTS}. */
export type AlertEvent = (typeof ALERT_EVENTS)[number];

/** Severity of an incident. */
export const IMPACTS = ["degraded", "outage"] as const;
/** One of {@link IMPACTS}. */
export type Impact = (typeof IMPACTS)[number];

/** Progress of work on an incident. */
export const INCIDENT_STATUSES = ["investigating", "identified", "monitoring", "resolved"] as const;
/** One of {@link INCIDENT_STATUSES}. */
export type IncidentStatus = (typeof INCIDENT_STATUSES)[number];

/** States of a monitor on status pages. */
export const SHOWN_STATES = [
  "up",
  "degraded",
  "down",
  "maintenance",
  "overdue",
  "paused",
  "unknown",
] as const;
/** One of {@link SHOWN_STATES}. */
export type ShownState = (typeof SHOWN_STATES)[number];
