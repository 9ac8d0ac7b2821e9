import { join } from "node:path";
import { type ChangeKind, ChangeLog, entriesSince } from "./changes.ts";
import { checkMeterLedger } from "./ledger-checks.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import {
  bodyOf,
  createAccount,
  type Tally,
  type Target,
  type TargetRequest,
  type Workload,
} from "./workload.ts";

const METERS = 300;
/** Every third change uses one of these, so that batches contain several changes of one meter. */
const HOT_METERS = 3;
/** Credits of the account: more than any run uses. */
const CREDITS = 1_000_000_000_000;
/** More than any meter ever has: such a deduction is always rejected. */
const OVERDRAW = 1_000_000_000_000;
/** Connections that are used for verification. */
const READERS = 8;

interface Meter {
  readonly id: string;
  readonly log: ChangeLog;
  verifiedThrough: number;
}

/** Tenant meters: refill, deduct (also above the balance) and reset, with and without Idempotency-Keys, some sent twice concurrently. */
export class MeterWorkload implements Workload {
  readonly name = "meters";
  readonly weight = 20;
  private readonly meters: readonly Meter[];
  private readonly charged = new Map<string, number>();
  private key = "";
  private changes = 0;

  constructor(meters = METERS) {
    this.meters = Array.from({ length: meters }, (_, index) => {
      const id = `meter-${index}`;
      return { id, log: new ChangeLog(id), verifiedThrough: 0 };
    });
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "meters@example.com", CREDITS);
  }

  async act(target: Target, random: Random): Promise<void> {
    const meter = random.chance(1 / 3) ? this.meterAt(random.below(HOT_METERS)) : random.pick(this.meters);
    this.changes += 1;
    const number = this.changes;
    const choice = random.below(100);
    if (choice < 35) return this.change(target, random, meter, "deduct", number);
    if (choice < 80) return this.change(target, random, meter, "refill", number);
    if (choice < 90) return this.change(target, random, meter, "reset", number);
    return this.change(target, random, meter, "deduct", OVERDRAW + number);
  }

  async verify(target: Target): Promise<string[]> {
    // A failed read is a problem like any other; the file is checked in any case.
    const found = await inParallel(this.meters, READERS, (meter) =>
      this.verifyMeter(target, meter).catch((error: unknown) => [`${meter.id}: ${String(error)}`]),
    );
    return [...found.flat(), ...(await this.verifyCharges(target)), ...checkMeterLedger(databaseOf(target))];
  }

  takeTally(): Tally {
    return sumOf(this.meters.map(({ log }) => log.takeTally()));
  }

  private meterAt(index: number): Meter {
    const meter = this.meters[index];
    if (meter === undefined) throw new Error(`there is no meter ${index}`);
    return meter;
  }

  private change(
    target: Target,
    random: Random,
    meter: Meter,
    kind: ChangeKind,
    number: number,
  ): Promise<void> {
    const keyed = random.chance(0.4);
    const request: TargetRequest = {
      method: "POST",
      path: `/v1/meter/${meter.id}/${kind}`,
      key: this.key,
      body: kind === "reset" ? { balance: number } : { amount: number },
      ...(keyed ? { idempotencyKey: `${meter.id}-${kind}-${number}` } : {}),
    };
    return meter.log.make(target, { kind, number, request }, keyed && random.chance(0.15));
  }

  private async verifyMeter(target: Target, meter: Meter): Promise<string[]> {
    await meter.log.retry(target);
    const path = `/v1/meter/${meter.id}`;
    const entries = await entriesSince(target, `${path}/history`, this.key, meter.verifiedThrough);
    const problems = meter.log.compare(entries);
    for (const { kind } of entries) this.charged.set(kind, (this.charged.get(kind) ?? 0) + 1);
    const newest = entries[0];
    if (newest === undefined) return problems;
    meter.verifiedThrough = newest.sequence;
    const response = await target.ask({ method: "GET", path: `${path}/balance`, key: this.key });
    const { balance } = bodyOf(response);
    if (balance !== newest.balance_after) {
      problems.push(
        `${meter.id}: the balance is ${String(balance)}, its newest entry says ${newest.balance_after}`,
      );
    }
    return problems;
  }

  /** Charge and work are one transaction: the account was charged for exactly the existing entries. */
  private async verifyCharges(target: Target): Promise<string[]> {
    const problems: string[] = [];
    const entries = await entriesSince(target, "/v1/meter/history", this.key, 0);
    let total = 0;
    for (const [kind, happened] of this.charged) {
      const paid = entries
        .filter(({ operation }) => operation === `meter.${kind}`)
        .reduce((sum, { count }) => sum + (count ?? 0), 0);
      if (paid !== happened) problems.push(`charges: ${happened} × ${kind} happened, ${paid} were paid for`);
      total += happened;
    }
    const response = await target.ask({ method: "GET", path: "/v1/meter/balance", key: this.key });
    const { balance } = bodyOf(response);
    if (balance !== CREDITS - total) {
      problems.push(`charges: the account balance is ${String(balance)}, ${CREDITS - total} would be right`);
    }
    return problems;
  }
}

/** The database file of a target. */
export function databaseOf(target: Target): string {
  return join(target.folder, "ninefold.db");
}

/** The sum of counts. */
export function sumOf(tallies: readonly Tally[]): Tally {
  return tallies.reduce(
    (sum, tally) => ({
      acknowledged: sum.acknowledged + tally.acknowledged,
      inDoubt: sum.inDoubt + tally.inDoubt,
      happened: sum.happened + tally.happened,
    }),
    { acknowledged: 0, inDoubt: 0, happened: 0 },
  );
}
