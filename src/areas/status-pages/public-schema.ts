import { Type } from "@sinclair/typebox";
import { IMPACTS, INCIDENT_STATUSES, SHOWN_STATES } from "../../kernel/data/incident-words.ts";
import { dateTime, named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { OUTAGE_DAYS, OUTAGES_MAX } from "./events.ts";

const State = oneOf(SHOWN_STATES, {
  description: "Current status.",
  examples: ["up"],
});
const Percent = Type.Number({ minimum: 0, maximum: 100, examples: [99.98] });

const PublicMonitor = named("PublicMonitor", {
  number: Type.Integer({
    description: "Position on the page, from 1; part of the path of its badges.",
    examples: [1],
  }),
  name: Type.String({ description: "Name of the monitor on the page.", examples: ["Shop"] }),
  status: State,
  uptime_90d: orNull(Percent, {
    description: "Percentage of successful checks in the last 90 days; null without checks.",
  }),
  url: Type.Optional(Type.String({ description: "Monitored URL, if the page shows URLs.", examples: [] })),
  latency_ms: Type.Optional(
    Type.Number({
      description: "Latency of the latest check in milliseconds, if the page shows latencies.",
      examples: [],
    }),
  ),
  uptime_by_day: orNull(Type.Array(orNull(Percent)), {
    description:
      "Percentage of successful checks for each of 90 days, starting with `first_day`; null for a day without checks. Null from the 251st monitor on.",
    examples: [[99.98]],
  }),
});

const Positions = Type.Array(Type.Integer(), {
  description: "Positions of the affected monitors on the page; empty if the whole page is affected.",
  examples: [[1]],
});

export const PublicIncident = named("PublicIncident", {
  id: Type.String({
    description: "Id of the incident; its page is `/status/{slug}/incidents/{id}`.",
    examples: ["inc_01a1fc2c30c071d9bf080e3cb4a7b202"],
  }),
  title: Type.String({ examples: ["Checkout is slow"] }),
  impact: oneOf(IMPACTS),
  status: oneOf(INCIDENT_STATUSES),
  started_at: dateTime({ description: "Time at which the incident was opened." }),
  resolved_at: orNull(dateTime(), {
    description: "Time of the resolution; null while the incident is open.",
    examples: [null],
  }),
  monitors: Positions,
  updates_count: Type.Integer({ description: "Number of all posted updates.", examples: [1] }),
  updates: Type.Array(
    Type.Object({
      at: dateTime({ description: "Time of the update." }),
      status: oneOf(INCIDENT_STATUSES),
      message: Type.String({ examples: ["We are looking into it."] }),
    }),
    { description: "Newest updates, at most 3 on a status page, oldest first." },
  ),
});

const PublicOutage = named("PublicOutage", {
  monitor: Type.Integer({ description: "Position of the monitor on the page.", examples: [1] }),
  name: Type.String({ description: "Name of the monitor on the page.", examples: ["Shop"] }),
  started_at: dateTime({ description: "Time of the first failed check of the outage." }),
  ended_at: orNull(dateTime(), { description: "Time of the recovery; null while the outage continues." }),
  duration_ms: Type.Integer({
    description: "Duration in milliseconds, up to now while the outage continues.",
    examples: [720_000],
  }),
});

const GROUP = {
  number: Type.Integer({
    description: "Position of the group on the page, from 1; part of the path of its JSON and badge.",
    examples: [1],
  }),
  name: Type.String({ description: "Heading of the group; empty for none.", examples: ["Shop"] }),
  status: State,
  sentence: Type.String({
    description: "Current status of the group's monitors as text.",
    examples: ["All systems operational"],
  }),
};
const FirstDay = Type.String({
  description: "First day of `uptime_by_day`, a date in UTC.",
  examples: ["2025-12-11"],
});

export const PublicGroup = named("PublicGroup", {
  ...GROUP,
  checked_at: orNull(dateTime(), {
    description: "Time of the latest check of the group's monitors; null before the first check.",
  }),
  first_day: FirstDay,
  monitors: Type.Array(PublicMonitor),
});

const PublicMaintenance = named("PublicMaintenance", {
  title: Type.String({ examples: ["Database upgrade"] }),
  message: Type.String({ examples: ["The shop is read-only."] }),
  starts_at: dateTime({ description: "Start of the maintenance window." }),
  ends_at: dateTime({ description: "End of the maintenance window." }),
  monitors: Positions,
});

export const PublicPage = named("PublicPage", {
  slug: Type.String({ examples: ["acme"] }),
  title: Type.String({ examples: ["Acme"] }),
  description: Type.String({ examples: ["Current status of our services."] }),
  footer: Type.String({ examples: ["Acme Ltd"] }),
  status: State,
  sentence: Type.String({
    description: "Current status as text.",
    examples: ["All systems operational"],
  }),
  checked_at: orNull(dateTime(), {
    description: "Time of the latest check of any monitor; null before the first check.",
  }),
  first_day: FirstDay,
  groups: Type.Array(Type.Object({ ...GROUP, monitors: Type.Array(PublicMonitor) })),
  incidents: Type.Array(PublicIncident, {
    description: "Open incidents, and those resolved in the last 15 days; newest first.",
  }),
  outages: Type.Array(PublicOutage, {
    description: `Outages of the page's monitors in the last ${OUTAGE_DAYS} days, newest first, at most ${OUTAGES_MAX}; empty unless \`publish_incidents\` is \`outages\` or \`all\`.`,
  }),
  maintenance: Type.Array(PublicMaintenance, {
    description: "Maintenance windows from the last 15 to the next 14 days, by start.",
  }),
});

/** A badge in the format of shields.io's endpoint badge. */
export const BadgeData = named("BadgeData", {
  schemaVersion: Type.Literal(1),
  label: Type.String({ examples: ["Shop"] }),
  message: Type.String({ examples: ["operational"] }),
  color: Type.String({ examples: ["brightgreen"] }),
  isError: Type.Optional(
    Type.Literal(true, { description: "True if the metric has no data.", examples: [] }),
  ),
});
