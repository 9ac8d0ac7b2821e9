import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const KEYS = 3;
const CREDITS = 1_000_000_000;
/** Uses before this time are written: what the documentation promises. */
const WRITTEN_AFTER_MS = 10_000;
const DURATION_MS = 30 * 86_400_000;
const TOKENS = 1_000_000;
const COST = 5;
/** A key with fewer tokens is replaced. */
const TOKENS_MIN = TOKENS / 2;

interface LimitedKey {
  secret: string;
  /** Tokens at the last verification, and when that was. */
  tokens: number;
  seenAt: number;
  /** Times of the responses to its uses since then. */
  respondedAt: number[];
  inDoubt: number;
}

/**
 * Keys with a rate limit of 30 days, whose level is written in the background: a crash returns tokens of the last 10 s, but
 * no earlier ones, and takes none twice.
 */
export class LimitLevelWorkload extends RecordedOfAccount implements Workload {
  readonly name = "levels of rate limits";
  readonly weight = 2;
  /** Uses whose tokens crashes have returned so far. */
  forgiven = 0;
  private keys: LimitedKey[] = [];

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "limit-levels@example.com", CREDITS);
    for (let number = 0; number < KEYS; number += 1) this.keys.push(await this.createKey(target));
  }

  async act(target: Target, random: Random): Promise<void> {
    const of = random.pick(this.keys);
    const response = await target.send(this.useOf(of, COST));
    if (response === null) {
      of.inDoubt += 1;
      this.counts.inDoubt += 1;
    } else if (response.status !== UNAVAILABLE) {
      of.respondedAt.push(Date.now());
      this.counts.acknowledged += 1;
      if (bodyOf(response)["valid"] !== true) this.problems.push(`limits: a use got ${response.text}`);
    }
  }

  async verify(target: Target): Promise<string[]> {
    const last = Math.max(0, ...this.keys.flatMap(({ respondedAt }) => respondedAt));
    for (const [index, of] of this.keys.entries()) {
      await this.verifyKey(target, of, last - WRITTEN_AFTER_MS);
      if (of.tokens < TOKENS_MIN) this.keys[index] = await this.createKey(target);
    }
    return this.problems.splice(0);
  }

  private async verifyKey(target: Target, of: LimitedKey, writtenUntil: number): Promise<void> {
    const { ratelimits } = bodyOf(await target.ask(this.useOf(of, 0))) as {
      ratelimits: { remaining: number }[];
    };
    const tokens = ratelimits[0]?.remaining ?? Number.NaN;
    const now = Date.now();
    const refilled = Math.ceil(((now - of.seenAt) * TOKENS) / DURATION_MS) + 1;
    const { respondedAt, inDoubt } = of;
    const least = COST * respondedAt.filter((at) => at < writtenUntil).length;
    const most = COST * (respondedAt.length + inDoubt);
    const taken = of.tokens - tokens;
    if (!(taken >= least - refilled && taken <= most))
      this.problems.push(`limits: ${taken} tokens are taken, ${least} to ${most} would be right`);
    const uses = Math.round((taken + refilled / 2) / COST);
    this.forgiven += Math.max(0, respondedAt.length - uses);
    this.counts.happened += Math.max(0, uses - respondedAt.length);
    Object.assign(of, { tokens, seenAt: now, respondedAt: [], inDoubt: 0 });
  }

  private useOf({ secret }: LimitedKey, cost: number): TargetRequest {
    const body = { secret, ratelimits: [{ name: "month", cost }] };
    return { method: "POST", path: "/v1/keys/verify", key: this.key, body };
  }

  private async createKey(target: Target): Promise<LimitedKey> {
    const body = {
      prefix: "acme",
      name: "k",
      scopes: ["orders:read"],
      ratelimits: [{ name: "month", limit: TOKENS, duration_ms: DURATION_MS }],
    };
    const { secret } = await this.ask(target, "POST", "/v1/keys", body);
    return { secret: String(secret), tokens: TOKENS, seenAt: Date.now(), respondedAt: [], inDoubt: 0 };
  }
}
