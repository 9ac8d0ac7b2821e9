/** The tiers that an account can have. `unlimited` is the operator's: no rate limit, no credit costs. */
export const TIER_NAMES = ["free", "starter", "pro", "scale", "unlimited"] as const;

/** One of {@link TIER_NAMES}. */
export type TierName = (typeof TIER_NAMES)[number];

const MIB = 1024 * 1024;

/** Keys of an account that can use their full rate limits concurrently. */
const BUSY_KEYS = 10;

/** Requests per minute of an account over all its keys, by those of one key. */
export function accountCeiling(requestsPerMinute: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, BUSY_KEYS * requestsPerMinute);
}

/** The documented limits of the tiers from `free` to `scale`. */
const LIMITS = {
  requestsPerMinute: [60, 300, 600, 1_800],
  /** Over all keys of an account: {@link accountCeiling} unless set. */
  accountRequestsPerMinute: [60, 300, 600, 1_800].map(accountCeiling),
  monitorRequestsPerMinute: [10, 30, 100, 300],
  monitorBurst: [15, 45, 150, 450],
  monthlyCredits: [10_000, 100_000, 1_000_000, 10_000_000],
  monitorIntervalMinMs: [300_000, 60_000, 30_000, 15_000],
  buckets: [1, 5, 25, 100],
  eventRetentionHours: [24, 3 * 24, 30 * 24, 90 * 24],
  eventsPerBucket: [100, 1_000, 10_000, 100_000],
  /** Bytes of the body of an inbound event. */
  eventBytes: [1, 5, 25, 25].map((mebibytes) => mebibytes * MIB),
  /** Bytes of the bodies that an account stores. */
  storedEventBytes: [256, 2 * 1_024, 20 * 1_024, 100 * 1_024].map((mebibytes) => mebibytes * MIB),
  catchPerMinute: [60, 300, 600, 1_800],
  projects: [5, 20, 100, 1_000],
  keys: [50, 500, 10_000, 1_000_000],
  monitors: [10, 50, 500, 20_000],
  people: [3, 10, 100, 1_000],
  /** Probes, which check monitors from other machines. */
  probes: [0, 2, 10, 50],
  /** Status pages. */
  pages: [1, 3, 10, 50],
  /** In one project. */
  schedules: [5, 20, 200, 2_000],
  endpoints: [2, 10, 100, 1_000],
  eventTypes: [100, 500, 2_000, 5_000],
  /** Bytes of audit entries before the rest of the day's are shortened. */
  auditBytesPerDay: [50_000_000, 200_000_000, 1_000_000_000, 5_000_000_000],
};

/** The limits of a tier. Each can be overridden in the configuration file. */
export type TierLimits = Readonly<Record<keyof typeof LIMITS, number>>;

/** The limits of every tier. */
export type Tiers = Readonly<Record<TierName, TierLimits>>;

/** Effectively unlimited, but a number like the other limits. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** The documented limits. `unlimited` has every feature of `scale`; its request limits are ignored. */
export const DEFAULT_TIERS: Tiers = {
  free: limitsOf(0),
  starter: limitsOf(1),
  pro: limitsOf(2),
  scale: limitsOf(3),
  unlimited: {
    ...limitsOf(3),
    monthlyCredits: 0,
    pages: 1_000,
    auditBytesPerDay: NO_LIMIT,
    projects: NO_LIMIT,
    keys: NO_LIMIT,
    monitors: NO_LIMIT,
    probes: NO_LIMIT,
    schedules: NO_LIMIT,
  },
};

function limitsOf(column: number): TierLimits {
  const figures = Object.entries(LIMITS).map(([name, values]) => [name, values[column]]);
  return Object.fromEntries(figures) as TierLimits;
}

/** Whether a tier is free of rate limits and credit costs. */
export function isUnlimited(tier: TierName): boolean {
  return tier === "unlimited";
}
