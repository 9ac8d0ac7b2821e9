import { type Static, Type } from "@sinclair/typebox";
import { dateTime, named, oneOf } from "../../../kernel/data/schema.ts";
import { MeterBalance } from "../schema.ts";

/** Lengths of buckets. */
const GRANULARITIES = ["hour", "day", "month"] as const;
export type Granularity = (typeof GRANULARITIES)[number];

// A name of its own: generators of clients would name the one of `MeterUsage` like the parameter of `meter.usage`.
const GranularityName = oneOf(GRANULARITIES, {
  $id: "UsageGranularity",
  examples: ["day"],
});

export const UsageQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      description: "Start of the range, RFC 3339, rounded down to a bucket. Default: 30 days before `to`.",
    }),
  ),
  to: Type.Optional(
    Type.String({
      description: "End of the range (exclusive), RFC 3339, rounded up to a bucket. Default: now.",
    }),
  ),
  granularity: Type.Optional(GranularityName),
});
export type UsageQuery = Static<typeof UsageQuery>;

const Timestamp = dateTime({ examples: ["2026-03-10T00:00:00.000Z"] });
const SUMS = {
  from: Timestamp,
  to: Timestamp,
  deducted: Type.Integer({ description: "Deducted credits, including captures.", examples: [45] }),
  refilled: Type.Integer({ description: "Added credits, including refills of plans.", examples: [100] }),
  reset: Type.Integer({ description: "Sum of the changes by resets, signed.", examples: [0] }),
  entries: Type.Integer({ description: "Number of ledger entries.", examples: [3] }),
};
const RANGE = { from: Timestamp, to: Timestamp, granularity: GranularityName };

const ProjectBucket = named("ProjectUsageBucket", SUMS);
const Bucket = named("UsageBucket", {
  ...SUMS,
  balance: Type.Integer({ description: "Balance after the last entry of the bucket.", examples: [55] }),
});
export type UsageBucket = Static<typeof Bucket>;

/** Usage of a meter by UTC buckets, without empty ones. */
export const MeterUsage = named("MeterUsage", {
  meter_id: MeterBalance.properties.meter_id,
  ...RANGE,
  data: Type.Array(Bucket),
});
export type MeterUsage = Static<typeof MeterUsage>;

/** Usage of all meters of a project. */
export const ProjectUsage = named("ProjectUsage", { ...RANGE, data: Type.Array(ProjectBucket) });
export type ProjectUsage = Static<typeof ProjectUsage>;
