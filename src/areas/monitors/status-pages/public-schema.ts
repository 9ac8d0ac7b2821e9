import { Type } from "@sinclair/typebox";
import { named, oneOf, orNull } from "../../../kernel/data/schema.ts";
import { IMPACTS, STATUSES } from "../incidents/schema.ts";

/** How something is, as pages say it. */
const State = oneOf(["up", "degraded", "down", "maintenance", "paused", "unknown"], { examples: ["up"] });
const Time = Type.String({ format: "date-time" });
const Percent = Type.Number({ minimum: 0, maximum: 100, examples: [99.98] });

const PublicMonitor = named("PublicMonitor", {
  number: Type.Integer({
    description: "Position on the page, from 1; badges are named by it.",
    examples: [1],
  }),
  name: Type.String({ examples: ["Shop"] }),
  status: State,
  uptime_90d: orNull(Percent, { description: "Percent of the checks of 90 days; null without checks." }),
  url: Type.Optional(Type.String({ description: "Where the page shows addresses.", examples: [] })),
  latency_ms: Type.Optional(
    Type.Number({
      description: "Milliseconds of the latest check, where the page shows latencies.",
      examples: [],
    }),
  ),
  uptime_by_day: orNull(Type.Array(orNull(Percent)), {
    description:
      "Percent of each of 90 days, from `first_day` on; null for a day without checks. Null beyond 250 monitors.",
    examples: [[99.98]],
  }),
});

const Positions = Type.Array(Type.Integer(), {
  description: "Positions of the monitors on the page that it is about; empty: all.",
  examples: [[1]],
});

/** An incident of a status page as data. */
export const PublicIncident = named("PublicIncident", {
  id: Type.String({
    description: "Its own page is `/status/{slug}/incidents/{id}`.",
    examples: ["inc_01a1fc2c30c071d9bf080e3cb4a7b202"],
  }),
  title: Type.String({ examples: ["Checkout is slow"] }),
  impact: oneOf(IMPACTS),
  status: oneOf(STATUSES),
  started_at: Time,
  resolved_at: orNull(Time, { description: "Null while it is open.", examples: [null] }),
  monitors: Positions,
  updates_count: Type.Integer({ description: "Number of all its updates.", examples: [1] }),
  updates: Type.Array(
    Type.Object({
      at: Time,
      status: oneOf(STATUSES),
      message: Type.String({ examples: ["We are looking into it."] }),
    }),
    { description: "The newest updates, at most 3 on a status page; the oldest of them first." },
  ),
});

const PublicMaintenance = named("PublicMaintenance", {
  title: Type.String({ examples: ["Database upgrade"] }),
  message: Type.String({ examples: ["The shop is read-only."] }),
  starts_at: Time,
  ends_at: Time,
  monitors: Positions,
});

/** A status page as data. */
export const PublicPage = named("PublicPage", {
  slug: Type.String({ examples: ["acme"] }),
  title: Type.String({ examples: ["Acme"] }),
  description: Type.String({ examples: ["What we run, and how it is."] }),
  footer: Type.String({ examples: ["Acme Ltd"] }),
  status: State,
  sentence: Type.String({ description: "The same for people.", examples: ["All systems work"] }),
  checked_at: orNull(Time, { description: "Time of the latest check; null before the first." }),
  first_day: Type.String({ description: "First day of `uptime_by_day`, in UTC.", examples: ["2025-12-11"] }),
  groups: Type.Array(
    Type.Object({ name: Type.String({ examples: ["Shop"] }), monitors: Type.Array(PublicMonitor) }),
  ),
  incidents: Type.Array(PublicIncident, { description: "Newest first." }),
  maintenance: Type.Array(PublicMaintenance),
});

/** A badge as shields.io's endpoint badge reads it. */
export const BadgeData = named("BadgeData", {
  schemaVersion: Type.Literal(1),
  label: Type.String({ examples: ["Shop"] }),
  message: Type.String({ examples: ["up"] }),
  color: Type.String({ examples: ["brightgreen"] }),
  isError: Type.Optional(Type.Literal(true, { description: "Without data.", examples: [] })),
});
