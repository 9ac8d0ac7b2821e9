import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";

/** Default number of incidents on a page of the list. */
export const INCIDENT_LIST_LIMIT = 50;
/** Maximum number of monitors that a manual incident names. */
const MONITORS_MAX = 100;
/** Characters of a title. An automatic title is the monitor's name, which is shorter, and two words. */
const TITLE_MAX = 200;
const MESSAGE_MAX = 5_000;

export const IMPACTS = ["degraded", "outage"] as const;
/** Progress of work on an incident. */
export const STATUSES = ["investigating", "identified", "monitoring", "resolved"] as const;
export type IncidentStatus = (typeof STATUSES)[number];

const Title = text({
  min: 1,
  max: TITLE_MAX,
  description: "Title of the incident.",
  examples: ["Payments fail"],
});
const Message = text({
  min: 0,
  max: MESSAGE_MAX,
  description: "Text of the update, shown on status pages as plain text with links.",
  examples: ["Our provider has an outage."],
});
const Public = Type.Boolean({
  errorMessage: "must be true or false",
  description: "Whether status pages show the incident.",
  examples: [false],
});
const Impact = oneOf(IMPACTS, { description: "Severity of the incident." });
const Status = oneOf(STATUSES, { description: "Progress of work on the incident." });

export const IncidentCreateBody = named("IncidentCreateBody", {
  title: Title,
  message: Type.Optional(Message),
  impact: Type.Optional({ ...Impact, default: "outage" }),
  monitor_ids: Type.Optional(
    Type.Array(Type.String({ maxLength: 64 }), {
      maxItems: MONITORS_MAX,
      uniqueItems: true,
      errorMessage: `must be at most ${MONITORS_MAX} monitor ids`,
      description: "Ids of the affected monitors.",
      examples: [[]],
    }),
  ),
  public: Type.Optional({ ...Public, default: false }),
});
export type IncidentCreateBody = Static<typeof IncidentCreateBody>;

export const IncidentPatch = named("IncidentPatch", {
  title: Type.Optional(Title),
  public: Type.Optional(Public),
});
export type IncidentPatch = Static<typeof IncidentPatch>;

export const IncidentUpdateBody = named("IncidentUpdateBody", {
  status: Status,
  message: Type.Optional(Message),
});
export type IncidentUpdateBody = Static<typeof IncidentUpdateBody>;

const Timestamp = Type.String({ format: "date-time" });

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
  monitor_ids: Type.Array(Type.String({ format: "uuid" }), { description: "Ids of the affected monitors." }),
  started_at: Type.String({ format: "date-time", description: "Time at which the incident was opened." }),
  acknowledged_at: orNull(Timestamp, {
    description: "Time of the acknowledgement; null without one.",
    examples: [null],
  }),
  acknowledged_by: orNull(Type.String(), {
    description: "Name of the key that acknowledged the incident, else the user id.",
    examples: [null],
  }),
  resolved_at: orNull(Timestamp, {
    description: "Time of the resolution; null while the incident is open.",
    examples: [null],
  }),
  public: Public,
  suppressed_by: orNull(Type.String(), {
    description:
      "Id of the incident, else of the monitor, that explains this incident; no alert was sent for it. Null if alerts are sent.",
    examples: [null],
  }),
};

const Update = Type.Object({
  at: Type.String({ format: "date-time", description: "Time of the update." }),
  status: Status,
  message: Type.String({ examples: ["Our provider has an outage."] }),
});

export const Incident = named("Incident", {
  ...INCIDENT,
  updates: Type.Array(Update, { description: "Posted updates, oldest first." }),
});
export type Incident = Static<typeof Incident>;

/** An incident in a list: without its updates, which can be half a megabyte. */
export const IncidentSummary = named("IncidentSummary", {
  ...INCIDENT,
  updates_count: Type.Integer({ description: "Number of posted updates.", examples: [1] }),
});
export type IncidentSummary = Static<typeof IncidentSummary>;

export const IncidentParams = Type.Object({ incident_id: Type.String({ maxLength: 64 }) });

export const IncidentQuery = named("IncidentQuery", {
  status: Type.Optional(
    oneOf(["open", "resolved"], { description: "Returns only incidents with this status." }),
  ),
  monitor_id: Type.Optional(
    Type.String({ maxLength: 64, description: "Returns only incidents of the monitor with this id." }),
  ),
  ...pageQuery(INCIDENT_LIST_LIMIT).properties,
});
export type IncidentQuery = Static<typeof IncidentQuery>;

export const IncidentPage = named("IncidentPage", {
  incidents: Type.Array(IncidentSummary),
  cursor: NextCursor,
});
export type IncidentPage = Static<typeof IncidentPage>;
