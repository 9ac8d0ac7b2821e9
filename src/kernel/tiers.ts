/** The tiers that an account can have. `unlimited` is the operator's: no rate limit, no credit costs. */
export const TIER_NAMES = ["free", "starter", "pro", "scale", "unlimited"] as const;

/** One of {@link TIER_NAMES}. */
export type TierName = (typeof TIER_NAMES)[number];

/** What a tier grants. Every figure can be overridden in the configuration file. */
export interface TierFigures {
  readonly requestsPerMinute: number;
  /** Over all keys of an account: {@link accountCeiling} unless set. */
  readonly accountRequestsPerMinute: number;
  readonly monitorRequestsPerMinute: number;
  readonly monitorBurst: number;
  readonly monthlyCredits: number;
  readonly monitorIntervalMinMs: number;
  readonly buckets: number;
  readonly eventRetentionHours: number;
  readonly eventsPerBucket: number;
  readonly catchPerMinute: number;
  readonly projects: number;
  readonly keys: number;
  readonly monitors: number;
}

/** Keys of an account that can be as busy as their own bucket allows, all at once. */
const BUSY_KEYS = 10;

/** What an account may ask a minute over all its keys, where a key may ask `requestsPerMinute`. */
export function accountCeiling(requestsPerMinute: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, BUSY_KEYS * requestsPerMinute);
}

/** The figures of every tier. */
export type Tiers = Readonly<Record<TierName, TierFigures>>;

const SCALE: TierFigures = {
  requestsPerMinute: 1_800,
  accountRequestsPerMinute: accountCeiling(1_800),
  monitorRequestsPerMinute: 300,
  monitorBurst: 450,
  monthlyCredits: 10_000_000,
  monitorIntervalMinMs: 15_000,
  buckets: 100,
  eventRetentionHours: 90 * 24,
  eventsPerBucket: 100_000,
  catchPerMinute: 1_800,
  projects: 1_000,
  keys: 1_000_000,
  monitors: 20_000,
};

/** As good as no bound, and a figure like any other. */
const NO_BOUND = Number.MAX_SAFE_INTEGER;

/** The documented figures. `unlimited` has every feature of `scale`; its request figures are not applied. */
export const DEFAULT_TIERS: Tiers = {
  free: {
    requestsPerMinute: 60,
    accountRequestsPerMinute: accountCeiling(60),
    monitorRequestsPerMinute: 10,
    monitorBurst: 15,
    monthlyCredits: 10_000,
    monitorIntervalMinMs: 300_000,
    buckets: 1,
    eventRetentionHours: 24,
    eventsPerBucket: 100,
    catchPerMinute: 60,
    projects: 5,
    keys: 50,
    monitors: 10,
  },
  starter: {
    requestsPerMinute: 300,
    accountRequestsPerMinute: accountCeiling(300),
    monitorRequestsPerMinute: 30,
    monitorBurst: 45,
    monthlyCredits: 100_000,
    monitorIntervalMinMs: 60_000,
    buckets: 5,
    eventRetentionHours: 3 * 24,
    eventsPerBucket: 1_000,
    catchPerMinute: 300,
    projects: 20,
    keys: 500,
    monitors: 50,
  },
  pro: {
    requestsPerMinute: 600,
    accountRequestsPerMinute: accountCeiling(600),
    monitorRequestsPerMinute: 100,
    monitorBurst: 150,
    monthlyCredits: 1_000_000,
    monitorIntervalMinMs: 30_000,
    buckets: 25,
    eventRetentionHours: 30 * 24,
    eventsPerBucket: 10_000,
    catchPerMinute: 600,
    projects: 100,
    keys: 10_000,
    monitors: 500,
  },
  scale: SCALE,
  unlimited: { ...SCALE, monthlyCredits: 0, projects: NO_BOUND, keys: NO_BOUND, monitors: NO_BOUND },
};

/** Whether a tier is free of rate limits and credit costs. */
export function isUnlimited(tier: TierName): boolean {
  return tier === "unlimited";
}
