import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  type Target,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const LOCKS = 16;
const TTL_MS = 900_000;
/** Shares of the steps that release a holder, and that try to get a lock alone. */
const RELEASES = 0.3;
const ALONE = 0.2;
/** No response within the time: others hold the lock. */
const HELD = 408;

type Mode = "exclusive" | "shared";

/** A granted lock, as its response said. */
interface Holder {
  readonly token: string;
  readonly fencing: number;
  readonly mode: Mode;
  readonly expiresAt: number;
}

/** A holder of a lock in the list. */
interface HeldLock {
  readonly key: string;
  readonly fencing_token: number;
  readonly mode: Mode;
}

/** The acknowledged state of a lock. */
class Lock {
  holders: Holder[] = [];
  /** Token of an acquire or a release without a response. */
  doubt: string | null = null;
  /** The highest fencing token so far. */
  highest = 0;
  /** Whether a step is in progress: the next one waits, so that their order is known. */
  isBusy = false;

  constructor(readonly key: string) {}
}

/** Locks held by several, or by one: after every crash each has the holders that were acknowledged, and fencing tokens only increase. */
export class SharedLockWorkload extends RecordedOfAccount implements Workload {
  readonly name = "shared locks";
  readonly weight = 4;
  private readonly locks = Array.from({ length: LOCKS }, (_, index) => new Lock(`shared-${index}`));
  private tokens = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "shared-locks@example.com", "unlimited");
  }

  async act(target: Target, random: Random): Promise<void> {
    const lock = random.pick(this.locks);
    const isRelease = random.chance(RELEASES);
    const mode = random.chance(ALONE) ? "exclusive" : "shared";
    if (lock.isBusy || lock.doubt !== null) return;
    lock.isBusy = true;
    const [holder] = lock.holders;
    if (isRelease && holder !== undefined) await this.release(target, lock, holder);
    else await this.acquire(target, lock, mode);
    lock.isBusy = false;
  }

  async verify(target: Target): Promise<string[]> {
    const held = await this.askAll<HeldLock>(target, "/v1/latch", "locks");
    for (const lock of this.locks) await this.verifyLock(target, lock, held);
    return this.problems.splice(0);
  }

  private send(target: Target, { key }: Lock, action: string, body: object): Promise<HttpResponse | null> {
    return target.send({ method: "POST", path: `/v1/latch/${key}/${action}`, key: this.key, body });
  }

  private async acquire(target: Target, lock: Lock, mode: Mode): Promise<void> {
    this.tokens += 1;
    const token = `00000000-0000-4000-8000-${String(this.tokens).padStart(12, "0")}`;
    const response = await this.send(target, lock, "acquire", { token, mode, ttl: TTL_MS, timeout: 0 });
    if (!this.isAnswered(lock, token, response)) return;
    const isFree = lock.holders.every((holder) => holder.mode === "shared" && mode === "shared");
    if (response.status !== (isFree ? 200 : HELD)) this.report(lock, `${mode} got ${response.status}`);
    if (response.status !== 200) return;
    const { fencing_token, expires_at } = bodyOf(response);
    const fencing = Number(fencing_token);
    if (fencing <= lock.highest) this.report(lock, `fencing token ${fencing} came after ${lock.highest}`);
    lock.highest = fencing;
    lock.holders.push({ token, fencing, mode, expiresAt: Number(expires_at) });
  }

  private async release(target: Target, lock: Lock, holder: Holder): Promise<void> {
    const { token } = holder;
    const response = await this.send(target, lock, "release", { token });
    if (!this.isAnswered(lock, token, response)) return;
    if (response.status !== 200) this.report(lock, `a release got ${response.status}`);
    lock.holders = lock.holders.filter((one) => one !== holder);
  }

  /** Counts a response; none leaves the token in doubt. */
  private isAnswered(lock: Lock, token: string, response: HttpResponse | null): response is HttpResponse {
    if (response === null) {
      this.counts.inDoubt += 1;
      lock.doubt = token;
    } else if (response.status !== UNAVAILABLE) {
      this.counts.acknowledged += 1;
      return true;
    }
    return false;
  }

  /** Compares the holders, and releases all of them: none expires before the next verification. */
  private async verifyLock(target: Target, lock: Lock, held: readonly HeldLock[]): Promise<void> {
    const found = held.filter(({ key }) => key === lock.key);
    const { doubt, holders } = lock;
    for (const { token, fencing, mode, expiresAt } of holders) {
      const isThere = found.some((one) => one.fencing_token === fencing && one.mode === mode);
      if (!isThere && token !== doubt && expiresAt > Date.now()) this.report(lock, `${fencing} is lost`);
    }
    const others = found.filter((one) => holders.every(({ fencing }) => fencing !== one.fencing_token));
    const isNew = doubt !== null && holders.every(({ token }) => token !== doubt);
    for (const { fencing_token } of others)
      if (!isNew || others.length > 1 || fencing_token <= lock.highest)
        this.report(lock, `${fencing_token} holds it unexpectedly`);
    lock.highest = Math.max(lock.highest, ...others.map(({ fencing_token }) => fencing_token));
    if (doubt !== null && (isNew ? others.length === 1 : found.length < holders.length))
      this.counts.happened += 1;
    const tokens = new Set([...holders.map(({ token }) => token), ...(doubt === null ? [] : [doubt])]);
    for (const token of tokens) {
      const path = `/v1/latch/${lock.key}/release`;
      await target.ask({ method: "POST", path, key: this.key, body: { token } });
    }
    const status = await this.ask(target, "GET", `/v1/latch/${lock.key}`);
    if (status["locked"] !== false)
      this.report(lock, `its holders are released, it says ${JSON.stringify(status)}`);
    lock.holders = [];
    lock.doubt = null;
  }

  private report(lock: Lock, problem: string): void {
    this.problems.push(`${lock.key}: ${problem}; its responses said ${JSON.stringify(lock.holders)}`);
  }
}
