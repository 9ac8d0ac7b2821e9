import { ApiError, type ErrorCode } from "../errors.ts";
import type { Database } from "../storage/database.ts";
import type { TierLimits, TierName, Tiers } from "./tiers.ts";

/** A limit of the tier on how many resources of a kind an account has over all its projects. Database triggers count them. */
export class TierLimit {
  private readonly count;

  /** `kind`: the tier's limit, and the name of the count; `code`: the error above the limit. */
  constructor(
    db: Database,
    private readonly tiers: Tiers,
    private readonly kind: keyof TierLimits,
    private readonly code: ErrorCode,
  ) {
    this.count = db.number<[accountRef: number, kind: string]>(
      "SELECT count AS n FROM account_counts WHERE account_ref = ? AND kind = ?",
    );
  }

  /** Whether an account may have one more, up to `times` its tier's limit. */
  hasCapacity(account: { ref: number; tier: TierName }, times = 1): boolean {
    return this.count(account.ref, this.kind) < times * this.tiers[account.tier][this.kind];
  }

  /** An account above its limit keeps its resources. @throws ApiError with the limit's code. */
  assertCapacity(account: { ref: number; tier: TierName }, times = 1): void {
    if (this.hasCapacity(account, times)) return;
    const { kind } = this;
    throw new ApiError(
      this.code,
      `Your tier allows ${this.tiers[account.tier][kind]} ${kind}, and you have ${this.count(account.ref, kind)}. Remove one, or move to a larger tier.`,
    );
  }
}
