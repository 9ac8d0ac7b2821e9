import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  settled,
  type Target,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const METERS = 10;
const CREDITS = 1_000_000_000_000;
/** More than all holds of a run use. */
const BALANCE = 1_000_000_000_000;
const READERS = 8;
/** The amount of every hold, and of a capture. */
const HELD = 3;
const CAPTURED = 2;
/** Every fifth hold is left to expire. */
const SHORT = 0.2;
const SHORT_SECONDS = 1;
const LONG_SECONDS = 86_400;
/** Longest wait for the short ones, which expire by the wall clock. */
const OVER_WITHIN_MS = 30_000;

type Ending = "capture" | "release";

/** A requested hold and its known state. */
interface Hold {
  readonly meter: number;
  readonly id: string;
  readonly isShort: boolean;
  /** Whether it exists according to a response; null: in doubt. */
  isMade: boolean | null;
  /** The requested end, if any. */
  ending: Ending | null;
  isEndingKnown: boolean;
}

/**
 * Holds that are created, captured, released, or left to expire. After every crash each matches its responses, captured
 * amounts were deducted once, and balance, held and captured credits add up to the refills.
 */
export class HoldWorkload extends Recorded implements Workload {
  readonly name = "holds";
  readonly weight = 8;
  private holds: Hold[] = [];
  /** Captures of earlier verifications, by meter. */
  private readonly captures = Array.from({ length: METERS }, () => 0);
  private key = "";
  private made = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "holds@example.com", CREDITS);
    for (let meter = 0; meter < METERS; meter += 1) {
      const path = `${pathOf(meter)}/refill`;
      await target.ask({ method: "POST", path, key: this.key, body: { amount: BALANCE } });
    }
  }

  act(target: Target, random: Random): Promise<void> {
    const open = this.holds.filter((hold) => hold.isMade === true && hold.ending === null && !hold.isShort);
    if (open.length > 0 && random.chance(0.45)) {
      return this.end(target, random.pick(open), random.chance(0.7) ? "capture" : "release");
    }
    return this.hold(target, random);
  }

  async verify(target: Target): Promise<string[]> {
    const found = await inParallel(this.holds, READERS, (one) =>
      this.verifyHold(target, one).catch((error: unknown) => [`${one.id}: ${String(error)}`]),
    );
    const meters = Array.from({ length: METERS }, (_, meter) => meter);
    const sums = await inParallel(meters, READERS, (meter) =>
      this.verifyMeter(target, meter).catch((error: unknown) => [`${pathOf(meter)}: ${String(error)}`]),
    );
    this.settle();
    return [...found.flat(), ...sums.flat()];
  }

  private async hold(target: Target, random: Random): Promise<void> {
    this.made += 1;
    const isShort = random.chance(SHORT);
    const hold: Hold = {
      meter: random.below(METERS),
      id: `hold-${this.made}`,
      isShort,
      isMade: null,
      ending: null,
      isEndingKnown: true,
    };
    this.holds.push(hold);
    const ttl_seconds = isShort ? SHORT_SECONDS : LONG_SECONDS;
    const body = { hold_id: hold.id, amount: HELD, ttl_seconds };
    const path = `${pathOf(hold.meter)}/holds`;
    const response = await target.send({ method: "POST", path, key: this.key, body });
    this.count(response !== null);
    if (response !== null) hold.isMade = response.status !== UNAVAILABLE;
  }

  private async end(target: Target, hold: Hold, ending: Ending): Promise<void> {
    hold.ending = ending;
    hold.isEndingKnown = false;
    const path = `${pathOf(hold.meter)}/holds/${hold.id}/${ending}`;
    const body = ending === "capture" ? { amount: CAPTURED } : {};
    const response = await target.send({ method: "POST", path, key: this.key, body });
    this.count(response !== null);
    if (response?.status === UNAVAILABLE) hold.ending = null;
    hold.isEndingKnown = response !== null;
  }

  private count(isAnswered: boolean): void {
    if (isAnswered) this.counts.acknowledged += 1;
    else this.counts.inDoubt += 1;
  }

  private async verifyHold(target: Target, hold: Hold): Promise<string[]> {
    const response = await this.read(target, hold);
    const isThere = response.status === 200;
    const status = isThere ? bodyOf(response)["status"] : null;
    const problems: string[] = [];
    if (hold.isMade === true && !isThere) problems.push("was acknowledged and is lost");
    if (hold.isMade === false && isThere) problems.push("got 503 and has happened");
    if (hold.isMade === null && isThere) this.counts.happened += 1;
    hold.isMade = isThere;
    if (!isThere) hold.ending = null;
    else if (hold.isShort && status !== "expired") problems.push("its time is over");
    const ended = status === "captured" ? "capture" : status === "released" ? "release" : null;
    if (hold.isEndingKnown && ended !== hold.ending)
      problems.push(`the answers said ${hold.ending ?? "open"}`);
    if (!hold.isEndingKnown) {
      if (ended !== null) this.counts.happened += 1;
      if (ended !== null && ended !== hold.ending) problems.push(`${hold.ending} was requested`);
    }
    hold.ending = ended;
    hold.isEndingKnown = true;
    return problems.map((problem) => `${hold.id}: ${problem}, it says ${response.status} ${response.text}`);
  }

  /** Waits for short ones if necessary. */
  private read(target: Target, hold: Hold) {
    const request = { method: "GET", path: `${pathOf(hold.meter)}/holds/${hold.id}`, key: this.key } as const;
    const isOver = (response: HttpResponse) => !hold.isShort || bodyOf(response)["status"] !== "open";
    return settled(OVER_WITHIN_MS, () => target.ask(request), isOver);
  }

  private async verifyMeter(target: Target, meter: number): Promise<string[]> {
    const mine = this.holds.filter((hold) => hold.meter === meter && hold.isMade === true);
    const captures = this.capturesOf(meter);
    const taken = captures * CAPTURED;
    const held = mine.filter((one) => one.ending === null && !one.isShort).length * HELD;
    const ask = (what: string) =>
      target.ask({ method: "GET", path: `${pathOf(meter)}/${what}`, key: this.key });
    const balance = await ask("balance");
    const state = bodyOf(balance);
    const problems: string[] = [];
    const isRight = state["balance"] === BALANCE - taken && state["held"] === held;
    if (!isRight || state["available"] !== BALANCE - taken - held) {
      problems.push(`${pathOf(meter)}: ${taken} captured, ${held} held, it says ${balance.text}`);
    }
    const usage = await ask("usage?granularity=month");
    const data = (bodyOf(usage)["data"] ?? []) as { deducted: number; entries: number }[];
    const deducted = data.reduce((sum, bucket) => sum + bucket.deducted, 0);
    const entries = data.reduce((sum, bucket) => sum + bucket.entries, 0);
    // One more for the refill.
    if (deducted !== taken || entries !== captures + 1) {
      problems.push(`${pathOf(meter)}: ${captures} captures, its usage says ${usage.text}`);
    }
    return problems;
  }

  private capturesOf(meter: number): number {
    const now = this.holds.filter((hold) => hold.meter === meter && hold.ending === "capture").length;
    return (this.captures[meter] ?? 0) + now;
  }

  /** Closed holds are dropped, except for their captured amounts. */
  private settle(): void {
    for (let meter = 0; meter < METERS; meter += 1) this.captures[meter] = this.capturesOf(meter);
    this.holds = this.holds.filter((hold) => hold.isMade === true && hold.ending === null && !hold.isShort);
  }
}

function pathOf(meter: number): string {
  return `/v1/meter/held-${meter}`;
}
