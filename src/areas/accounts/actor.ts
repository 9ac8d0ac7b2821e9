import type { Actor } from "../../kernel/actors/registry.ts";
import type { CallerAccount, CallerProject } from "../../kernel/http/caller.ts";
import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { TierName } from "../../kernel/tiers.ts";

/** Credits that an operation has cost, and those that were given back. */
export interface OperationCredits {
  readonly charged: Counter;
  readonly refunded: Counter;
}

/** The summed costs of one operation in one hour: one ledger entry, written once per batch. */
export interface ChargeCell {
  readonly sequence: number;
  readonly operation: string;
  readonly hour: number;
  count: number;
  amount: number;
  balanceAfter: number;
  /** Whether its row exists. */
  stored: boolean;
  /** Credits of the operation in all, of every account. */
  readonly credits: OperationCredits;
}

/** An account in memory: its balance is here, and written back once per batch. */
export class AccountActor implements CallerAccount, Actor {
  readonly ref: number;
  readonly userId: string;
  readonly email: string;
  readonly createdAt: number;
  tier: TierName;
  tierSince = 0;
  balance: number;
  suspended: boolean;
  rotatedAt: number | null;
  grantedMonth: number;
  defaultProject: CallerProject;
  /** Number of the newest platform key: older ones are in their grace. */
  newestKey: number;
  /** Platform keys with a smaller number have been ended all at once. */
  oldestKey: number;
  /** Cells of the current hour, by operation. */
  readonly cells = new Map<string, ChargeCell>();
  /** Cells with charges that are not written yet. */
  readonly unwritten = new Set<ChargeCell>();
  recent = false;
  /** Whether the balance is not written yet. */
  dirty = false;
  /** Set when the actor is dropped: whoever still holds it must ask for the account again. */
  passivated = false;

  constructor(row: AccountState) {
    this.ref = row.ref;
    this.userId = row.userId;
    this.email = row.email;
    this.createdAt = row.createdAt;
    this.tier = row.tier;
    this.balance = row.balance;
    this.suspended = row.suspended;
    this.rotatedAt = row.rotatedAt;
    this.grantedMonth = row.grantedMonth;
    this.defaultProject = row.defaultProject;
    this.newestKey = row.newestKey;
    this.oldestKey = row.oldestKey;
  }

  get idle(): boolean {
    return !this.dirty;
  }
}

/** What an actor is built from. */
export interface AccountState {
  readonly ref: number;
  readonly userId: string;
  readonly email: string;
  readonly createdAt: number;
  readonly tier: TierName;
  readonly balance: number;
  readonly suspended: boolean;
  readonly rotatedAt: number | null;
  readonly grantedMonth: number;
  readonly defaultProject: CallerProject;
  /** Both 0 for an account that has no platform key yet. */
  readonly newestKey: number;
  readonly oldestKey: number;
}
