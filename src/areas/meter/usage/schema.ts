import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf } from "../../../kernel/data/schema.ts";
import { MeterBalance } from "../schema.ts";

/** How long a bucket of a series is. */
const GRANULARITIES = ["hour", "day", "month"] as const;
export type Granularity = (typeof GRANULARITIES)[number];

const GranularityName = oneOf(GRANULARITIES, {
  errorMessage: `must be one of ${GRANULARITIES.join(", ")}`,
  examples: ["day"],
});

/** Which stretch of time. */
export const UsageQuery = Type.Object({
  from: Type.Optional(
    Type.String({ description: "RFC 3339, rounded down; 30 days before `to` unless given." }),
  ),
  to: Type.Optional(Type.String({ description: "RFC 3339, exclusive, rounded up; now unless given." })),
  granularity: Type.Optional(GranularityName),
});
export type UsageQuery = Static<typeof UsageQuery>;

const Moment = Type.String({ format: "date-time", examples: ["2026-03-10T00:00:00.000Z"] });
const SUMS = {
  from: Moment,
  to: Moment,
  deducted: Type.Integer({ description: "What was taken, captures included.", examples: [45] }),
  refilled: Type.Integer({ description: "What was added, refills of plans included.", examples: [100] }),
  reset: Type.Integer({ description: "What resets changed, signed.", examples: [0] }),
  entries: Type.Integer({ description: "Entries of the ledger.", examples: [3] }),
};
const STRETCH = { from: Moment, to: Moment, granularity: GranularityName };

const ProjectBucket = named("ProjectUsageBucket", SUMS);
const Bucket = named("UsageBucket", {
  ...SUMS,
  balance: Type.Integer({ description: "After the last entry of the bucket.", examples: [55] }),
});
export type UsageBucket = Static<typeof Bucket>;

/** What became of a meter, in UTC; buckets without an entry are left out. */
export const MeterUsage = named("MeterUsage", {
  meter_id: MeterBalance.properties.meter_id,
  ...STRETCH,
  data: Type.Array(Bucket),
});
export type MeterUsage = Static<typeof MeterUsage>;

/** The same over all meters of the project. */
export const ProjectUsage = named("ProjectUsage", { ...STRETCH, data: Type.Array(ProjectBucket) });
export type ProjectUsage = Static<typeof ProjectUsage>;
