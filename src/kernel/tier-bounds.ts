import { ApiError, type ErrorCode } from "./errors.ts";
import type { Database } from "./storage/database.ts";
import type { TierName, Tiers } from "./tiers.ts";

/** What a tier bounds the number of, over all projects of an account. */
type BoundedKind = "projects" | "keys" | "monitors";

const CODES = {
  projects: "project_limit_exceeded",
  keys: "key_limit_exceeded",
  monitors: "monitor_limit_exceeded",
} as const satisfies Record<BoundedKind, ErrorCode>;

/** How many of a kind an account has, and may have. The counts are kept by triggers of the schema. */
export class TierBound {
  private readonly select;

  constructor(
    db: Database,
    private readonly tiers: Tiers,
    private readonly kind: BoundedKind,
  ) {
    this.select = db.query<{ count: number }, [number, string]>(
      "SELECT count FROM account_counts WHERE account_ref = ? AND kind = ?",
    );
  }

  /** Whether an account may have one more; `times` its tier's figure where that is to be passed. */
  hasRoom(account: { ref: number; tier: TierName }, times = 1): boolean {
    return this.count(account.ref) < times * this.tiers[account.tier][this.kind];
  }

  /**
   * An account that has more than its tier allows keeps what it has.
   * @throws ApiError `project_limit_exceeded`, `key_limit_exceeded`, `monitor_limit_exceeded`
   */
  assertRoom(account: { ref: number; tier: TierName }, times = 1): void {
    if (this.hasRoom(account, times)) return;
    const { kind } = this;
    throw new ApiError(
      CODES[kind],
      `Your tier allows ${this.tiers[account.tier][kind]} ${kind}, and you have ${this.count(account.ref)}. Remove one, or move to a larger tier.`,
    );
  }

  private count(accountRef: number): number {
    return this.select.get(accountRef, this.kind)?.count ?? 0;
  }
}
