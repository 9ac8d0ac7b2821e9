import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isUnlimited } from "../../kernel/tiers.ts";
import { monthOf } from "./domain.ts";
import type { AccountServiceDeps } from "./service.ts";

/** The first of each month, 00:00 UTC. */
const MONTHLY = "0 0 1 * *";
/** Accounts granted in one unit of work: a few milliseconds, so that requests get their turn in between. */
const GRANT_SLICE = 200;

/** Registers the monthly grant: each balance is raised to its tier's figure if it is lower, once a month. */
export function registerMonthlyGrant(
  scheduler: Scheduler,
  { writer, store, accounts, ledger, tiers }: AccountServiceDeps,
): void {
  const grantSlice = (tx: Tx, after: number): number | null => {
    const month = monthOf(tx.now);
    const refs = store.refsWithoutGrant(after, month, GRANT_SLICE);
    for (const ref of refs) {
      const account = accounts.get(ref);
      // The month is noted with the grant: a job that runs again after a crash grants nobody twice.
      store.setGranted(tx, ref, month);
      if (!isUnlimited(account.tier)) ledger.grantUpTo(tx, account, tiers[account.tier].monthlyCredits);
    }
    return refs.at(-1) ?? null;
  };
  scheduler.recurring("accounts.monthly-grant", MONTHLY, async () => {
    let after: number | null = 0;
    while (after !== null) {
      const position: number = after;
      after = await writer.submit((tx) => grantSlice(tx, position));
    }
  });
}
