import { delay } from "../abort.ts";
import type { AnswerOf, Answers, Api, ListOf, PageQuery } from "../api.ts";
import { isWithoutAnswer } from "../errors.ts";
import {
  type ChangeOptions,
  type RequestOptions,
  readRetries,
  readTimeout,
  TIMEOUT_MS_MAX,
} from "../options.ts";
import { mayRepeat, waitBefore } from "../transport.ts";
import { randomUuid } from "../uuid.ts";

/** How to acquire a lock. */
export interface AcquireOptions extends RequestOptions {
  /** How long the lock is held unless it is released before, 1,000 to 900,000 milliseconds; 10,000 unless given. */
  readonly ttlMs?: number | undefined;
  /** How long to wait for it, 1,000 to 900,000 milliseconds; 10,000 unless given. */
  readonly waitMs?: number | undefined;
  /** A UUID that becomes the lock's token. With the holder's token the lock is held for another `ttlMs`. */
  readonly token?: string | undefined;
}

/** What the server takes when nothing is said, and the least that it takes. */
export const LOCK_MS_DEFAULT = 10_000;
/** See {@link LOCK_MS_DEFAULT}. */
export const LOCK_MS_MIN = 1_000;
/** How long a release of a lock that perhaps was never got may take, in the background. */
const CLEAN_UP_MS = 5_000;

/** Distributed locks. {@link Ninefold.withLock} does all of it around a function of yours. */
export class Locks {
  constructor(private readonly api: Api) {}

  /**
   * Acquires a lock, waiting in line for it if need be. A broken connection or a restart of the server does not end
   * the wait: the client asks again with the same token, which gets the same lock, or a new place at the end of the line.
   *
   * @throws NinefoldError `timeout` when it did not become free within `waitMs`.
   */
  async acquire(key: string, options: AcquireOptions = {}): Answers<"latch.acquire"> {
    const token = options.token ?? randomUuid();
    options.signal?.throwIfAborted();
    try {
      return await this.acquireWith(key, token, options);
    } catch (error) {
      // The answer may have been lost, and the lock be ours without our knowing.
      const isUnknown = options.signal?.aborted || isWithoutAnswer(error);
      if (isUnknown && options.token === undefined) this.giveUp(key, token);
      throw error;
    }
  }

  /**
   * Releases a lock. The next in line gets it at once.
   *
   * @throws NinefoldError `not_found` when it is free, `forbidden` when another token holds it.
   */
  release(key: string, token: string, options?: ChangeOptions): Answers<"latch.release"> {
    return this.api.call("latch.release", { params: { key }, body: { token } }, options);
  }

  /** Whether a lock is held, and how many wait for it. */
  status(key: string, options?: RequestOptions): Answers<"latch.status"> {
    return this.api.call("latch.status", { params: { key } }, options);
  }

  /** The locks that are held, by key. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"latch.list", "locks"> {
    return this.api.list("latch.list", "locks", { query }, options);
  }

  /**
   * Takes a lock away from the holder that has this fencing token, and does not tell it.
   *
   * @throws NinefoldError `not_found` when it is free, `conflict` when another holds it by now.
   */
  forceRelease(key: string, fencingToken: number, options?: ChangeOptions): Answers<"latch.force"> {
    return this.api.call("latch.force", { params: { key }, body: { fencing_token: fencingToken } }, options);
  }

  private async acquireWith(key: string, token: string, options: AcquireOptions): Answers<"latch.acquire"> {
    const { ttlMs, waitMs = LOCK_MS_DEFAULT, signal } = options;
    const settings = this.api.transport.settings;
    const retries = readRetries(options.retries ?? settings.retries);
    const slackMs = readTimeout(options.timeoutMs ?? settings.timeoutMs);
    const until = performance.now() + waitMs;
    for (let retry = 0; ; retry += 1) {
      const leftMs = Math.round(until - performance.now());
      const timeout = retry === 0 ? waitMs : Math.max(LOCK_MS_MIN, leftMs);
      const body = { token, timeout, ...(ttlMs === undefined ? {} : { ttl: ttlMs }) };
      const request = this.api.request("latch.acquire", { params: { key }, body }, options);
      try {
        const answer = await this.api.transport.attempt(request, {
          signal,
          timeoutMs: Math.min(timeout + slackMs, TIMEOUT_MS_MAX),
        });
        return answer.body as AnswerOf<"latch.acquire">;
      } catch (error) {
        const pauseMs = mayRepeat(error, request) ? waitBefore(retry, error) : null;
        // Outages that the wait outlasts are waited out.
        const isOver = retry >= retries && performance.now() + (pauseMs ?? 0) > until;
        if (pauseMs === null || isOver || retries === 0) throw error;
        await delay(pauseMs, signal);
      }
    }
  }

  /** Releases what may have been got, in the background. If it cannot be reached, the lock ends by itself. */
  private giveUp(key: string, token: string): void {
    this.release(key, token, { timeoutMs: CLEAN_UP_MS, retries: 0, idempotencyKey: null }).catch(() => {});
  }
}
