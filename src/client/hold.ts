import { delay, onAbort } from "./abort.ts";
import type { AnswerOf } from "./api.ts";
import { LOCK_MS_MIN, type Locks } from "./areas/locks.ts";
import { NinefoldError } from "./errors.ts";

/** How to hold a lock around a function. */
export interface WithLockOptions {
  /**
   * Milliseconds (1,000 to 900,000; 30,000 unless given) after which the lock is free should this process die. It is
   * renewed every third of it for as long as the function runs.
   */
  readonly ttlMs?: number | undefined;
  /** How long to wait for it, 1,000 to 900,000 milliseconds; 10,000 unless given. */
  readonly waitMs?: number | undefined;
  /** Ends the wait. Later on it aborts the signal that the function was given. */
  readonly signal?: AbortSignal | undefined;
}

/** A lock that is held, as the function under it sees it. */
export interface HeldLock {
  readonly key: string;
  readonly token: string;
  /** Send it along with every write, and have what is written to refuse a lower one than it has seen. */
  readonly fencingToken: number;
  /** Aborted as soon as the lock is lost, or may be: stop then. Its reason is a NinefoldError `lock_lost`. */
  readonly signal: AbortSignal;
}

/** Long enough for work that nobody watches, short enough that a crash does not block others for long. */
const TTL_MS_DEFAULT = 30_000;
/** Renewals within a TTL: two may fail. */
const RENEWALS_PER_TTL = 3;
/** The wait after a renewal that got no answer, at most. */
const RENEWAL_PAUSE_MS = 1_000;
/** How long the answer to a renewal may take at the least, beyond the second that the server waits. */
const RENEWAL_ANSWER_MS_MIN = 500;
/** How long a release may take at the least. */
const RELEASE_MS_MIN = 1_000;
const NOT_RENEWED = "it could not be renewed in time";
/** How long a renewal that is under way is waited for before the release, which it must not overtake. */
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
  /** Why it is not held any more, once it is not. */
  lost: NinefoldError | null = null;
  private readonly ttlMs: number;
  private readonly controller = new AbortController();
  private readonly stopping = new AbortController();
  private forget: () => void = () => {};
  private token = "";
  private fencingToken = 0;
  /** On this machine's clock: before this moment nobody else can have it. */
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
    const { signal, waitMs } = this.options;
    const sentAt = performance.now();
    const lock = await this.locks.acquire(this.key, { ttlMs: this.ttlMs, waitMs, signal });
    this.token = lock.token;
    this.fencingToken = lock.fencing_token;
    this.extend(sentAt);
  }

  /** Makes sure that the work begins with most of the lock's time before it, and keeps it so. @throws NinefoldError `lock_lost` */
  async confirm(): Promise<void> {
    const { signal } = this.options;
    signal?.throwIfAborted();
    // Of the wait for it nobody here knows which part came after the grant: a renewal tells.
    const isLate = this.heldUntil - performance.now() < this.ttlMs * (1 - 1 / RENEWALS_PER_TTL);
    if (isLate) {
      this.extend(performance.now());
      // Whoever gives up meanwhile is not kept waiting for a server that does not answer.
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

  /** Ends the hold, however it stands. What the lock cannot be released by, its TTL does. */
  async release(): Promise<void> {
    clearTimeout(this.end);
    this.forget();
    this.stopping.abort();
    const stop = new AbortController();
    await Promise.race([this.renewing, delay(LAST_RENEWAL_MS, stop.signal).catch(() => {})]);
    stop.abort();
    if (this.lost === null && performance.now() > this.heldUntil) this.lose(NOT_RENEWED);
    const over = new AbortController();
    // Once its time is over the lock is free by itself: nobody need wait for a server that does not answer.
    const timer = setTimeout(
      () => over.abort(),
      Math.max(RELEASE_MS_MIN, this.heldUntil - performance.now()),
    );
    try {
      await this.locks.release(this.key, this.token, { signal: over.signal });
    } catch (error) {
      const isGone = error instanceof NinefoldError && (error.status === 404 || error.status === 403);
      if (isGone && this.lost === null)
        this.lose("it was not held any more when it was to be released", error);
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

  /** Waits. False as soon as the lock is to be released. */
  private pause(ms: number): Promise<boolean> {
    return delay(ms, this.stopping.signal).then(
      () => true,
      () => false,
    );
  }

  /** Renews it, again and again while there is time, unless it is lost or no longer needed. */
  private async renew(until: number): Promise<void> {
    while (this.lost === null && performance.now() < until) {
      const sentAt = performance.now();
      try {
        this.judge(await this.askAgain(until - sentAt), sentAt);
        return;
      } catch (error) {
        if (error instanceof NinefoldError && error.code === "timeout") {
          this.lose("another one holds it now", error);
          return;
        }
      }
      if (!(await this.pause(Math.min(RENEWAL_PAUSE_MS, this.ttlMs / 10)))) return;
    }
  }

  /** With the holder's token it is answered at once; somebody who has lost the lock waits in vain for a second. */
  private askAgain(leftMs: number): Promise<AnswerOf<"latch.acquire">> {
    const { key, token, ttlMs } = this;
    // Half of the time that is left, so that a connection that hangs leaves time for another; it comes on top of the wait.
    const timeoutMs = Math.max(RENEWAL_ANSWER_MS_MIN, leftMs / 2 - LOCK_MS_MIN);
    return this.locks.acquire(key, { token, ttlMs, waitMs: LOCK_MS_MIN, timeoutMs, retries: 0 });
  }

  private judge(lock: AnswerOf<"latch.acquire">, sentAt: number): void {
    if (lock.fencing_token === this.fencingToken) this.extend(sentAt);
    else this.lose("it had expired, and others may have held it meanwhile");
  }

  /** A renewal holds from when it was sent, at the least. */
  private extend(sentAt: number): void {
    this.heldUntil = sentAt + this.ttlMs;
    clearTimeout(this.end);
    // The answer to a last renewal may come while it is being released.
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
