import type { CallerAccount } from "../../kernel/http/caller.ts";

/** The accounts that buckets belong to. */
export interface BucketAccounts {
  /** A live account: a change of tier, balance or suspension shows at once. */
  account(accountRef: number): CallerAccount;
  /** The account's newest platform key: what is sent on is signed with it. */
  signingKey(accountRef: number): string;
}
