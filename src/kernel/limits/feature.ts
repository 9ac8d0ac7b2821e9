import { ApiError } from "../errors.ts";
import { TIER_NAMES, type TierName } from "./tiers.ts";

/** A feature of some tiers. */
export interface Feature {
  /** The lowest tier with it: all higher tiers have it. */
  readonly tier: TierName;
  /** How errors name it. */
  readonly noun: string;
}

/** @throws ApiError `forbidden` naming the tier that a feature needs. */
export function assertFeature({ tier: needed, noun }: Feature, tier: TierName): void {
  if (TIER_NAMES.indexOf(tier) >= TIER_NAMES.indexOf(needed)) return;
  throw new ApiError(
    "forbidden",
    `${noun} requires the tier ${needed} or higher; the tier of this account is ${tier}.`,
  );
}
