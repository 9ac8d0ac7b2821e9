import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";

/** Incidents on a page unless asked otherwise. */
export const INCIDENT_LIST_LIMIT = 50;
/** Monitors that people name in an incident. */
const MONITORS_MAX = 100;
/** Longest title; an automatic one is a monitor's name and two words. */
const TITLE_MAX = 200;
const MESSAGE_MAX = 5_000;

/** How bad an incident is. */
export const IMPACTS = ["degraded", "outage"] as const;
/** How far people are with an incident. */
export const STATUSES = ["investigating", "identified", "monitoring", "resolved"] as const;
/** How far people are with an incident. */
export type IncidentStatus = (typeof STATUSES)[number];

const Title = text({ min: 1, max: TITLE_MAX, examples: ["Payments fail"] });
const Message = text({
  min: 0,
  max: MESSAGE_MAX,
  description: "Plain text.",
  examples: ["Our provider has an outage."],
});
const Public = Type.Boolean({
  errorMessage: "must be true or false",
  description: "Whether status pages show it.",
  examples: [false],
});
const Impact = oneOf(IMPACTS);
const Status = oneOf(STATUSES);

/** Body of an incident that people tell of. */
export const IncidentCreateBody = named("IncidentCreateBody", {
  title: Title,
  message: Type.Optional(Message),
  impact: Type.Optional({ ...Impact, default: "outage" }),
  monitor_ids: Type.Optional(
    Type.Array(Type.String({ maxLength: 64 }), {
      maxItems: MONITORS_MAX,
      uniqueItems: true,
      errorMessage: `must be at most ${MONITORS_MAX} ids of monitors`,
      description: "The monitors that it is about.",
      examples: [[]],
    }),
  ),
  public: Type.Optional({ ...Public, default: false }),
});
export type IncidentCreateBody = Static<typeof IncidentCreateBody>;

/** Body of an incident's change. */
export const IncidentPatch = named("IncidentPatch", {
  title: Type.Optional(Title),
  public: Type.Optional(Public),
});
export type IncidentPatch = Static<typeof IncidentPatch>;

/** Body of an update. */
export const IncidentUpdateBody = named("IncidentUpdateBody", {
  status: Status,
  message: Type.Optional(Message),
});
export type IncidentUpdateBody = Static<typeof IncidentUpdateBody>;

const RFC_3339 = Type.String({ format: "date-time" });

const INCIDENT = {
  id: Type.String({ examples: ["inc_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  kind: oneOf(["auto", "manual"], { description: "Found by a monitor, or told by people." }),
  title: Type.String({ examples: ["Shop is down"] }),
  impact: Impact,
  status: Status,
  cause: orNull(Type.String(), {
    description: "What the check said that found it; null of a manual one.",
    examples: ["timeout: no complete answer within 10000 ms"],
  }),
  monitor_ids: Type.Array(Type.String({ format: "uuid" })),
  started_at: RFC_3339,
  acknowledged_at: orNull(RFC_3339, { examples: [null] }),
  acknowledged_by: orNull(Type.String(), { description: "A key's name, else a user id.", examples: [null] }),
  resolved_at: orNull(RFC_3339, { description: "Null while it is open.", examples: [null] }),
  public: Public,
  suppressed_by: orNull(Type.String(), {
    description: "The incident, else the monitor, that accounts for it: then nobody was told.",
    examples: [null],
  }),
};

const Update = Type.Object({
  at: RFC_3339,
  status: Status,
  message: Type.String({ examples: ["Our provider has an outage."] }),
});

/** An incident with its updates. */
export const Incident = named("Incident", {
  ...INCIDENT,
  updates: Type.Array(Update, { description: "Updates that people have posted, the oldest first." }),
});
export type Incident = Static<typeof Incident>;

/** An incident as lists return it: without its updates, of which there can be half a megabyte. */
export const IncidentSummary = named("IncidentSummary", {
  ...INCIDENT,
  updates_count: Type.Integer({ description: "Number of updates that people have posted.", examples: [1] }),
});
export type IncidentSummary = Static<typeof IncidentSummary>;

/** Path of an incident. */
export const IncidentParams = Type.Object({ incident_id: Type.String({ maxLength: 64 }) });

/** Query of a list of incidents. */
export const IncidentQuery = named("IncidentQuery", {
  status: Type.Optional(oneOf(["open", "resolved"])),
  monitor_id: Type.Optional(Type.String({ maxLength: 64, description: "Only those about this monitor." })),
  ...pageQuery(INCIDENT_LIST_LIMIT).properties,
});
export type IncidentQuery = Static<typeof IncidentQuery>;

/** A page of incidents, newest first. */
export const IncidentPage = named("IncidentPage", {
  incidents: Type.Array(IncidentSummary),
  cursor: NextCursor,
});
export type IncidentPage = Static<typeof IncidentPage>;
