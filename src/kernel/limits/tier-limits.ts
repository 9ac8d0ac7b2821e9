import { ApiError, type ErrorCode } from "../errors.ts";
import type { Database } from "../storage/database.ts";
import type { TierLimits, TierName, Tiers } from "./tiers.ts";

/** How many of a kind an account has over all its projects, and may have. Triggers of the schema keep the counts. */
export class TierLimit {
  private readonly count;

  /** `kind` is the tier's figure, and the name of the count; `code` refuses one too many. */
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

  /** Whether an account may have one more, up to `times` its tier's figure. */
  hasCapacity(account: { ref: number; tier: TierName }, times = 1): boolean {
    return this.count(account.ref, this.kind) < times * this.tiers[account.tier][this.kind];
  }

  /** An account that has more than its tier allows keeps what it has. @throws ApiError with the bound's code. */
  assertCapacity(account: { ref: number; tier: TierName }, times = 1): void {
    if (this.hasCapacity(account, times)) return;
    const { kind } = this;
    throw new ApiError(
      this.code,
      `Your tier allows ${this.tiers[account.tier][kind]} ${kind}, and you have ${this.count(account.ref, kind)}. Remove one, or move to a larger tier.`,
    );
  }
}
