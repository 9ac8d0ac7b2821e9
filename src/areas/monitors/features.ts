import { ApiError } from "../../kernel/errors.ts";
import { TIER_NAMES, type TierName } from "../../kernel/limits/tiers.ts";

/** The lowest tier with a feature, all higher tiers have it; and how errors name the feature. */
const FEATURES = {
  headers: { tier: "pro", noun: "headers" },
  email_alert: { tier: "pro", noun: "email_alert" },
  webhook_url: { tier: "starter", noun: "webhook_url" },
  channels: { tier: "starter", noun: "a channel" },
  email_channels: { tier: "pro", noun: "a channel of kind email" },
} as const satisfies Readonly<Record<string, { readonly tier: TierName; readonly noun: string }>>;

/** @throws ApiError `forbidden` naming the tier that a feature needs. */
export function assertFeature(feature: keyof typeof FEATURES, tier: TierName): void {
  const { tier: needed, noun } = FEATURES[feature];
  if (TIER_NAMES.indexOf(tier) >= TIER_NAMES.indexOf(needed)) return;
  throw new ApiError(
    "forbidden",
    `${noun} requires the tier ${needed} or higher; the tier of this account is ${tier}.`,
  );
}
