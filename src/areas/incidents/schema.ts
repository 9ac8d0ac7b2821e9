import { type Static, Type } from "@sinclair/typebox";
import { ALERT_EVENTS, IMPACTS, INCIDENT_STATUSES, SHOWN_STATES } from "../../kernel/data/incident-words.ts";
import { ProbeState } from "../../kernel/data/probe-state.ts";
import {
  dateTime,
  duration,
  flag,
  givenDateTime,
  named,
  oneOf,
  orNull,
  patchOf,
  refersTo,
  text,
  uuid,
} from "../../kernel/data/schema.ts";
import { MANAGED } from "../../kernel/resources/managed.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../kernel/time/units.ts";

/** Maximum number of updates of an incident: one response returns all of them. */
export const INCIDENT_UPDATES_MAX = 100;
/** Default number of incidents on a page of the list. */
export const INCIDENT_LIST_LIMIT = 50;
/** Maximum number of monitors that a manual incident names. */
export const INCIDENT_MONITORS_MAX = 100;
/** Characters of texts. An automatic title is the monitor's name, which is shorter than a title may be, and two words. */
export const INCIDENT_LENGTHS_MAX = { title: 200, message: 5_000 } as const;

const Title = text({
  min: 1,
  max: INCIDENT_LENGTHS_MAX.title,
  description: "Title of the incident.",
  examples: ["Payments fail"],
});
const Message = text({
  min: 0,
  max: INCIDENT_LENGTHS_MAX.message,
  description: "Text of the update, shown on status pages as plain text with links.",
  examples: ["Our provider has an outage."],
});
const Public = flag({
  description: "Whether status pages show the incident.",
  examples: [false],
});
const Impact = oneOf(IMPACTS, { description: "Severity of the incident." });
const Status = oneOf(INCIDENT_STATUSES, { description: "Progress of work on the incident." });

const PastUpdate = Type.Object(
  {
    at: givenDateTime({ description: "Time of the update.", examples: ["2025-01-31T12:10:00Z"] }),
    status: Status,
    message: Type.Optional(Message),
  },
  { errorMessage: "must be an object with at, status and message" },
);

export const IncidentCreateBody = named("IncidentCreateBody", {
  title: Title,
  message: Type.Optional(Message),
  impact: Type.Optional({ ...Impact, default: "outage" }),
  monitor_ids: Type.Optional(
    Type.Array(Type.String({ maxLength: 64, ...refersTo("monitors") }), {
      maxItems: INCIDENT_MONITORS_MAX,
      uniqueItems: true,
      errorMessage: `must be at most ${INCIDENT_MONITORS_MAX} monitor ids`,
      description: "Ids of the affected monitors. An automatic incident has the monitor that opened it.",
      examples: [[]],
    }),
  ),
  public: Type.Optional({ ...Public, default: false }),
  started_at: Type.Optional(
    givenDateTime({
      description:
        "Time at which an incident of the past began, now by default. With it, nobody is notified of the creation.",
      examples: ["2025-01-31T12:00:00Z"],
    }),
  ),
  resolved_at: Type.Optional(
    givenDateTime({
      description: "Time at which an incident of the past was resolved. It is open by default.",
      examples: ["2025-01-31T12:40:00Z"],
    }),
  ),
  updates: Type.Optional(
    Type.Array(PastUpdate, {
      maxItems: INCIDENT_UPDATES_MAX,
      errorMessage: `must be at most ${INCIDENT_UPDATES_MAX} updates, each with at, status and message`,
      description:
        "Updates of an incident of the past, oldest first, in place of `message`. The first one with the status `resolved` resolves it.",
      examples: [[]],
    }),
  ),
});
export type IncidentCreateBody = Static<typeof IncidentCreateBody>;

export const IncidentPatch = patchOf("IncidentPatch", IncidentCreateBody, [
  "message",
  "started_at",
  "resolved_at",
  "updates",
]);

export const IncidentUpdateBody = named("IncidentUpdateBody", {
  status: Status,
  message: Type.Optional(Message),
});
export type IncidentUpdateBody = Static<typeof IncidentUpdateBody>;

/** How long an outage is snoozed if nothing else is said. */
export const SNOOZE_MS = HOUR_MS;

/** Body of a snooze. */
export const IncidentSnoozeBody = named("IncidentSnoozeBody", {
  for_ms: Type.Optional({
    ...duration({
      unit: "ms",
      min: MINUTE_MS,
      max: 7 * DAY_MS,
      description: "Time for which nobody is notified again, in milliseconds.",
      examples: [SNOOZE_MS],
    }),
    default: SNOOZE_MS,
  }),
});
export type IncidentSnoozeBody = Static<typeof IncidentSnoozeBody>;

const INCIDENT = {
  id: Type.String({
    description: "Id of the incident.",
    examples: ["inc_01a1fc2c30c071d9bf080e3cb4a7b202"],
  }),
  kind: oneOf(["auto", "manual"], {
    description: "`auto` if a monitor opened the incident, `manual` if it was created through the API.",
  }),
  title: Type.String({ examples: ["Shop is down"] }),
  impact: Impact,
  status: Status,
  cause: orNull(Type.String(), {
    description: "Error of the check that opened the incident; null for a manual incident.",
    examples: ["timeout: no complete response within 10000 ms"],
  }),
  monitor_ids: Type.Array(uuid(), { description: "Ids of the affected monitors." }),
  started_at: dateTime({ description: "Time at which the incident was opened." }),
  acknowledged_at: orNull(dateTime(), {
    description: "Time of the acknowledgement; null without one.",
    examples: [null],
  }),
  acknowledged_by: orNull(Type.String(), {
    description:
      "Name of the person or key that acknowledged the incident, or of the channel whose link did; else the user id.",
    examples: [null],
  }),
  snoozed_until: orNull(dateTime(), {
    description: "Time until which nobody is notified again of the outage; null if it was not snoozed.",
    examples: [null],
  }),
  resolved_at: orNull(dateTime(), {
    description: "Time of the resolution; null while the incident is open.",
    examples: [null],
  }),
  public: Public,
  suppressed_by: orNull(Type.String(), {
    description:
      "Id of the incident, else of the monitor, that explains this incident; no alert was sent for it. Null if alerts are sent.",
    examples: [null],
  }),
  ...MANAGED,
};

const Update = Type.Object({
  at: dateTime({ description: "Time of the update." }),
  status: Status,
  message: Type.String({ examples: ["Our provider has an outage."] }),
  author: orNull(Type.String(), {
    description:
      "Name of the person or key that posted the update, else the user id; null for older updates. Status pages do not show it.",
    examples: ["Ann"],
  }),
});

const Alert = Type.Object({
  at: dateTime({ description: "Time at which the alert was queued." }),
  event: oneOf(ALERT_EVENTS, { description: "Event of the alert." }),
  monitor_id: orNull(uuid(), {
    description: "Id of the monitor; null for an alert about a manual incident.",
  }),
  channels: Type.Array(Type.String(), {
    description:
      "Names of the notified channels, and the e-mail address of the account if it was notified directly.",
    examples: [["Team chat"]],
  }),
});

const Check = Type.Object({
  at: dateTime({ description: "Time of the check." }),
  monitor_id: uuid({ description: "Id of the monitor." }),
  status: oneOf(["up", "degraded", "down"], {
    description: "Result of the check; `degraded` if it took longer than `degraded_ms` of the monitor.",
  }),
  latency_ms: Type.Number({ description: "Latency in milliseconds.", examples: [87] }),
  response_status: orNull(Type.Integer(), {
    description: "HTTP status of the response; null without one.",
    examples: [503],
  }),
  error: orNull(Type.String(), {
    description: "Error of a failed check; null if it succeeded.",
    examples: ["the target responded with 503"],
  }),
});

const AffectedMonitor = Type.Object({
  id: uuid({ description: "Id of the monitor." }),
  name: Type.String({ description: "Name of the monitor, else the host of its target.", examples: ["Shop"] }),
  state: oneOf(SHOWN_STATES, { description: "State that status pages show for the monitor." }),
});

const IncidentPage = Type.Object({
  slug: Type.String({ description: "Slug of the status page.", examples: ["acme"] }),
  title: Type.String({ description: "Title of the status page.", examples: ["Acme"] }),
  shown: Type.Boolean({
    description: "Whether the page shows the incident; if not, it would if the incident were public.",
  }),
  incident_title: Type.String({
    description: "Title of the incident on the page.",
    examples: ["Payments fail"],
  }),
  affected: Type.String({
    description: "Names of the affected monitors on the page; empty for none.",
    examples: ["Shop, API"],
  }),
  subscribers: Type.Integer({
    description: "Number of confirmed e-mail subscribers of the page.",
    examples: [12],
  }),
});

export const Incident = named("Incident", {
  ...INCIDENT,
  updates: Type.Array(Update, { description: "Posted updates, oldest first." }),
  alerts: Type.Optional(
    Type.Array(Alert, {
      description:
        "Alerts about the incident, and about outages of its monitors at that time; oldest first, at most 100. Only in the response to `GET`.",
    }),
  ),
  checks: Type.Optional(
    Type.Array(Check, {
      description:
        "Checks of the affected monitors whose result differs from the check before, from 30 minutes before the incident until its resolution; oldest first, the newest 50. Only in the response to `GET`.",
    }),
  ),
  monitors: Type.Optional(
    Type.Array(AffectedMonitor, {
      description: "Affected monitors that still exist. Only in the response to `GET`.",
    }),
  ),
  probe_states: Type.Optional(
    Type.Array(ProbeState, {
      description:
        "What each probe of the monitor that opened the incident sees; once it is resolved, what each saw at the check that opened it. Empty for manual incidents, and for monitors that only the server checks. Only in the response to `GET`.",
      examples: [[]],
    }),
  ),
  status_pages: Type.Optional(
    Type.Array(IncidentPage, {
      description:
        "Published status pages that show the incident, or would if it were public, among the newest 5 of the project. Only in the response to `GET`.",
    }),
  ),
});
export type Incident = Static<typeof Incident>;

/** An incident in a list: without its updates, which can be half a megabyte. */
export const IncidentSummary = named("IncidentSummary", {
  ...INCIDENT,
  updates_count: Type.Integer({ description: "Number of posted updates.", examples: [1] }),
});
export type IncidentSummary = Static<typeof IncidentSummary>;

/** Filters of a list of incidents. */
export const IncidentFilters = {
  status: Type.Optional(
    oneOf(["open", "resolved"], { description: "Returns only incidents with this status." }),
  ),
  monitor_id: Type.Optional(
    Type.String({ maxLength: 64, description: "Returns only incidents of the monitor with this id." }),
  ),
  kind: Type.Optional(
    oneOf(["manual"], {
      description: "`manual`: returns only manual incidents. Not together with `monitor_id`.",
      examples: ["manual"],
    }),
  ),
};
