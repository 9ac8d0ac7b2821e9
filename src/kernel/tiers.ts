/** The tiers that an account can have. `unlimited` is the operator's: no rate limit, no credit costs. */
export const TIER_NAMES = ["free", "starter", "pro", "scale", "unlimited"] as const;

/** One of {@link TIER_NAMES}. */
export type TierName = (typeof TIER_NAMES)[number];

/** What a tier grants. Every figure can be overridden in the configuration file. */
export interface TierFigures {
  readonly requestsPerMinute: number;
  readonly monitorRequestsPerMinute: number;
  readonly monitorBurst: number;
  readonly monthlyCredits: number;
  readonly monitorIntervalMinMs: number;
  readonly buckets: number;
  readonly eventRetentionHours: number;
  readonly eventsPerBucket: number;
  readonly catchPerMinute: number;
}

/** The figures of every tier. */
export type Tiers = Readonly<Record<TierName, TierFigures>>;

const SCALE: TierFigures = {
  requestsPerMinute: 1_800,
  monitorRequestsPerMinute: 300,
  monitorBurst: 450,
  monthlyCredits: 10_000_000,
  monitorIntervalMinMs: 15_000,
  buckets: 100,
  eventRetentionHours: 90 * 24,
  eventsPerBucket: 100_000,
  catchPerMinute: 1_800,
};

/** The documented figures. `unlimited` has every feature of `scale`; its request figures are not applied. */
export const DEFAULT_TIERS: Tiers = {
  free: {
    requestsPerMinute: 60,
    monitorRequestsPerMinute: 10,
    monitorBurst: 15,
    monthlyCredits: 10_000,
    monitorIntervalMinMs: 300_000,
    buckets: 1,
    eventRetentionHours: 24,
    eventsPerBucket: 100,
    catchPerMinute: 60,
  },
  starter: {
    requestsPerMinute: 300,
    monitorRequestsPerMinute: 30,
    monitorBurst: 45,
    monthlyCredits: 100_000,
    monitorIntervalMinMs: 60_000,
    buckets: 5,
    eventRetentionHours: 3 * 24,
    eventsPerBucket: 1_000,
    catchPerMinute: 300,
  },
  pro: {
    requestsPerMinute: 600,
    monitorRequestsPerMinute: 100,
    monitorBurst: 150,
    monthlyCredits: 1_000_000,
    monitorIntervalMinMs: 30_000,
    buckets: 25,
    eventRetentionHours: 30 * 24,
    eventsPerBucket: 10_000,
    catchPerMinute: 600,
  },
  scale: SCALE,
  unlimited: { ...SCALE, monthlyCredits: 0 },
};

/** Whether a tier is free of rate limits and credit costs. */
export function isUnlimited(tier: TierName): boolean {
  return tier === "unlimited";
}
