import { delay, onAbort } from "./abort.ts";
import type { AnswerOf } from "./api.ts";
import type { Locks } from "./areas/locks.ts";
import { NinefoldError } from "./errors.ts";

/** Options of {@link Ninefold.withLock}. */
export interface WithLockOptions {
  /**
   * Milliseconds (1,000 to 900,000; 30,000 by default) after which the lock expires if this process dies. It is
   * renewed three times per period while the function runs.
   */
  readonly ttlMs?: number | undefined;
  /** Longest wait for the lock, 1,000 to 900,000 milliseconds, or 0 to try once; 10,000 by default. */
  readonly waitMs?: number | undefined;
  /** `shared` for a read lock, which several hold together; `exclusive` by default. */
  readonly mode?: "exclusive" | "shared" | undefined;
  /** Ends the wait. After the grant it aborts the function's signal. */
  readonly signal?: AbortSignal | undefined;
}

/** A held lock, as passed to the function. */
export interface HeldLock {
  readonly key: string;
  readonly token: string;
  /** Send it with every write; the storage must reject a lower token than it has seen. */
  readonly fencingToken: number;
  /** Aborted as soon as the lock is lost or may be lost. Its reason is a NinefoldError `lock_lost`. */
  readonly signal: AbortSignal;
}

/** Long enough for unattended work, short enough that a crash does not block others for long. */
const TTL_MS_DEFAULT = 30_000;
/** Renewals per period: two may fail. */
const RENEWALS_PER_TTL = 3;
/** Longest wait after a renewal without a response. */
const RENEWAL_PAUSE_MS = 1_000;
/** Shortest timeout of a renewal. */
const RENEWAL_ANSWER_MS_MIN = 500;
/** Shortest timeout of a release. */
const RELEASE_MS_MIN = 1_000;
const NOT_RENEWED = "it could not be renewed in time";
/** How long the release waits for a renewal in flight, which it must not overtake. */
const LAST_RENEWAL_MS = 2_000;

/** Runs a function while holding a lock: see {@link Ninefold.withLock}. */
export async function holdLock<T>(
  locks: Locks,
  key: string,
  work: (lock: HeldLock) => T | Promise<T>,
  options: WithLockOptions,
): Promise<T> {
  const hold = new Hold(locks, key, options);
  await hold.acquire();
  let result: T;
  try {
    await hold.confirm();
    result = await work(hold.view);
  } finally {
    await hold.release();
  }
  if (hold.lost !== null) throw hold.lost;
  return result;
}

class Hold {
  /** Why the lock is no longer held; undefined while it is. */
  lost: NinefoldError | null = null;
  private readonly ttlMs: number;
  private readonly controller = new AbortController();
  private readonly stopping = new AbortController();
  private forget: () => void = () => {};
  private token = "";
  private fencingToken = 0;
  /** On this machine's clock: before this time no other client can hold the lock. */
  private heldUntil = 0;
  private end: ReturnType<typeof setTimeout> | undefined;
  private renewing: Promise<void> = Promise.resolve();

  constructor(
    private readonly locks: Locks,
    private readonly key: string,
    private readonly options: WithLockOptions,
  ) {
    this.ttlMs = options.ttlMs ?? TTL_MS_DEFAULT;
  }

  get view(): HeldLock {
    const { key, token, fencingToken } = this;
    return { key, token, fencingToken, signal: this.controller.signal };
  }

  /** Waits for the lock. */
  async acquire(): Promise<void> {
    const { signal, waitMs, mode } = this.options;
    const sentAt = performance.now();
    const lock = await this.locks.acquire(this.key, { ttlMs: this.ttlMs, waitMs, mode, signal });
    this.token = lock.token;
    this.fencingToken = lock.fencing_token;
    this.extend(sentAt);
  }

  /**
   * Renews the lock so that the function starts with most of its lifetime left, and keeps it renewed. @throws
   * NinefoldError `lock_lost`
   */
  async confirm(): Promise<void> {
    const { signal } = this.options;
    signal?.throwIfAborted();
    // The time of the grant within the wait is not known; a renewal returns the exact expiry.
    const isLate = this.heldUntil - performance.now() < this.ttlMs * (1 - 1 / RENEWALS_PER_TTL);
    if (isLate) {
      this.extend(performance.now());
      // An abort does not wait for a server that does not respond.
      const forget = onAbort(signal, () => this.stopping.abort());
      this.renewing = this.renew(this.heldUntil);
      await Promise.race([this.renewing, aborted(this.stopping.signal)]);
      forget();
    }
    signal?.throwIfAborted();
    if (this.lost === null && performance.now() >= this.heldUntil) this.lose(NOT_RENEWED);
    if (this.lost !== null) throw this.lost;
    this.forget = onAbort(signal, () => this.controller.abort(signal?.reason));
    this.renewing = this.keepRenewing();
  }

  /** Ends the hold in any state. If the release fails, the lock expires. */
  async release(): Promise<void> {
    clearTimeout(this.end);
    this.forget();
    this.stopping.abort();
    const stop = new AbortController();
    await Promise.race([this.renewing, delay(LAST_RENEWAL_MS, stop.signal).catch(() => {})]);
    stop.abort();
    if (this.lost === null && performance.now() > this.heldUntil) this.lose(NOT_RENEWED);
    const over = new AbortController();
    // The lock expires at this time, so there is no reason to wait longer for the server.
    const timer = setTimeout(
      () => over.abort(),
      Math.max(RELEASE_MS_MIN, this.heldUntil - performance.now()),
    );
    try {
      await this.locks.release(this.key, this.token, { signal: over.signal });
    } catch (error) {
      const isGone = error instanceof NinefoldError && (error.status === 404 || error.status === 403);
      if (isGone && this.lost === null) this.lose("it was no longer held when it was released", error);
    } finally {
      clearTimeout(timer);
    }
  }

  private async keepRenewing(): Promise<void> {
    const { signal } = this.stopping;
    while (this.lost === null && !signal.aborted) {
      if (await this.pause(this.ttlMs / RENEWALS_PER_TTL)) await this.renew(this.heldUntil);
    }
  }

  /** Waits. Resolves to false as soon as the lock is to be released. */
  private pause(ms: number): Promise<boolean> {
    return delay(ms, this.stopping.signal).then(
      () => true,
      () => false,
    );
  }

  /** Renews the lock, with retries while there is time, unless it is lost or released. */
  private async renew(until: number): Promise<void> {
    while (this.lost === null && performance.now() < until) {
      const sentAt = performance.now();
      try {
        await this.requestRenewal(until - sentAt);
        this.extend(sentAt);
        return;
      } catch (error) {
        if (error instanceof NinefoldError && this.loseBy(error)) return;
      }
      if (!(await this.pause(Math.min(RENEWAL_PAUSE_MS, this.ttlMs / 10)))) return;
    }
  }

  private requestRenewal(leftMs: number): Promise<AnswerOf<"latch.extend">> {
    // Half of the remaining time, so that a hanging connection leaves time for another attempt.
    const timeoutMs = Math.max(RENEWAL_ANSWER_MS_MIN, leftMs / 2);
    const options = { timeoutMs, retries: 0, idempotencyKey: null };
    return this.locks.extend(this.key, this.token, this.ttlMs, options);
  }

  /** Whether the response to a renewal says that the lock is lost. */
  private loseBy(error: NinefoldError): boolean {
    if (error.status === 403) this.lose("another client holds it now", error);
    else if (error.status === 404)
      this.lose("it had expired, and another client may have held it since", error);
    else return false;
    return true;
  }

  /** A renewal is valid at least from the time at which it was sent. */
  private extend(sentAt: number): void {
    this.heldUntil = sentAt + this.ttlMs;
    clearTimeout(this.end);
    // The response to a last renewal may arrive during the release.
    if (this.stopping.signal.aborted) return;
    this.end = setTimeout(() => this.lose(NOT_RENEWED), Math.max(0, this.heldUntil - performance.now()));
  }

  private lose(why: string, cause?: unknown): void {
    if (this.lost !== null) return;
    clearTimeout(this.end);
    this.lost = new NinefoldError(`The lock ${this.key} was lost: ${why}.`, { code: "lock_lost", cause });
    this.controller.abort(this.lost);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, resolve));
}
