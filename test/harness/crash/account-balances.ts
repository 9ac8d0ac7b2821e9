import { ChangeLog, entriesSince } from "./changes.ts";
import { checkAccountLedger } from "./ledger-checks.ts";
import { databaseOf, sumOf } from "./meters.ts";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  type Tally,
  type Target,
  type TargetRequest,
  type Workload,
} from "./workload.ts";

/** Few accounts, so that many changes of one account meet in a batch. */
const ACCOUNTS = 4;
const CREDITS = 1_000_000;

interface Account {
  readonly email: string;
  readonly log: ChangeLog;
  key: string;
  verifiedThrough: number;
}

/** Deductions and refills of account balances. Their ledger is written once per account and batch. */
export class AccountBalanceWorkload implements Workload {
  readonly name = "account balances";
  readonly weight = 6;
  private readonly accounts: readonly Account[];
  private changes = 0;

  constructor() {
    this.accounts = Array.from({ length: ACCOUNTS }, (_, index) => {
      const email = `own-${index}@example.com`;
      return { email, log: new ChangeLog(email), key: "", verifiedThrough: 0 };
    });
  }

  async prepare(target: Target): Promise<void> {
    for (const account of this.accounts) {
      account.key = await createAccount(target, account.email, CREDITS);
      const entries = await entriesSince(target, "/v1/meter/history", account.key, 0);
      account.verifiedThrough = entries[0]?.sequence ?? 0;
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const account = random.pick(this.accounts);
    const kind = random.chance(0.5) ? "deduct" : "refill";
    this.changes += 1;
    const number = this.changes;
    const keyed = random.chance(0.4);
    const request: TargetRequest = {
      method: "POST",
      path: `/v1/meter/${kind}`,
      key: account.key,
      body: { amount: number },
      ...(keyed ? { idempotencyKey: `${kind}-${number}` } : {}),
    };
    await account.log.make(target, { kind, number, request }, keyed && random.chance(0.15));
  }

  async verify(target: Target): Promise<string[]> {
    const problems: string[] = [];
    for (const account of this.accounts) problems.push(...(await this.verifyAccount(target, account)));
    return [...problems, ...checkAccountLedger(databaseOf(target))];
  }

  takeTally(): Tally {
    return sumOf(this.accounts.map(({ log }) => log.takeTally()));
  }

  private async verifyAccount(target: Target, account: Account): Promise<string[]> {
    await account.log.retry(target);
    const { key, verifiedThrough } = account;
    const entries = await entriesSince(target, "/v1/meter/history", key, verifiedThrough);
    const problems = account.log.compare(entries);
    const newest = entries[0];
    if (newest === undefined) return problems;
    account.verifiedThrough = newest.sequence;
    const { balance } = bodyOf(await target.ask({ method: "GET", path: "/v1/meter/balance", key }));
    if (balance !== newest.balance_after) {
      problems.push(
        `${account.email}: the balance is ${String(balance)}, its newest entry says ${newest.balance_after}`,
      );
    }
    return problems;
  }
}
