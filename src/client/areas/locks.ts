import { delay } from "../abort.ts";
import type { AnswerOf, Answers } from "../api.ts";
import { isWithoutAnswer } from "../errors.ts";
import { type RequestOptions, readRetries, readTimeout, TIMEOUT_MS_MAX } from "../options.ts";
import { mayRepeat, waitBefore } from "../transport.ts";
import { randomUuid } from "../uuid.ts";
import { LocksMethods } from "./methods.ts";

/** Options of {@link Locks.acquire}. */
export interface AcquireOptions extends RequestOptions {
  /** Lifetime of the lock, 1,000 to 900,000 milliseconds; 10,000 by default. */
  readonly ttlMs?: number | undefined;
  /** Longest wait for the lock, 1,000 to 900,000 milliseconds, or 0 to try once; 10,000 by default. */
  readonly waitMs?: number | undefined;
  /** `shared` for a read lock, which several hold together; `exclusive` by default. */
  readonly mode?: "exclusive" | "shared" | undefined;
  /** A UUID that becomes the lock's token. The holder's token extends the lock by another `ttlMs`. */
  readonly token?: string | undefined;
}

/** The server's default and minimum, in milliseconds. */
export const LOCK_MS_DEFAULT = 10_000;
/** See {@link LOCK_MS_DEFAULT}. */
export const LOCK_MS_MIN = 1_000;
/** Longest time in which a lock that may have been granted is released in the background. */
const CLEAN_UP_MS = 5_000;

/** Distributed locks. {@link Ninefold.withLock} runs a function while holding one. */
export class Locks extends LocksMethods {
  /**
   * Acquires a lock, waiting in its queue if necessary. After a broken connection or a restart of the server it
   * repeats the request with the same token: this returns the same lock, or joins the end of the queue.
   * @throws NinefoldError `timeout` if the lock was not free within `waitMs`.
   */
  async acquire(key: string, options: AcquireOptions = {}): Answers<"latch.acquire"> {
    const token = options.token ?? randomUuid();
    options.signal?.throwIfAborted();
    try {
      return await this.acquireWith(key, token, options);
    } catch (error) {
      // The response may have been lost after the lock was granted.
      const isUnknown = options.signal?.aborted || isWithoutAnswer(error);
      if (isUnknown && options.token === undefined) this.giveUp(key, token);
      throw error;
    }
  }

  private async acquireWith(key: string, token: string, options: AcquireOptions): Answers<"latch.acquire"> {
    const { ttlMs, waitMs = LOCK_MS_DEFAULT, mode, signal } = options;
    const settings = this.api.transport.settings;
    const retries = readRetries(options.retries ?? settings.retries);
    const slackMs = readTimeout(options.timeoutMs ?? settings.timeoutMs);
    const until = performance.now() + waitMs;
    for (let retry = 0; ; retry += 1) {
      const leftMs = Math.round(until - performance.now());
      const timeout = retry === 0 || waitMs === 0 ? waitMs : Math.max(LOCK_MS_MIN, leftMs);
      const body = {
        token,
        timeout,
        ...(ttlMs === undefined ? {} : { ttl: ttlMs }),
        ...(mode === undefined ? {} : { mode }),
      };
      const request = this.api.request("latch.acquire", { params: { key }, body }, options);
      try {
        const answer = await this.api.transport.attempt(request, {
          signal,
          timeoutMs: Math.min(timeout + slackMs, TIMEOUT_MS_MAX),
        });
        return answer.body as AnswerOf<"latch.acquire">;
      } catch (error) {
        const pauseMs = mayRepeat(error, request) ? waitBefore(retry, error) : null;
        // Retries through outages that are shorter than the wait.
        const isOver = retry >= retries && performance.now() + (pauseMs ?? 0) > until;
        if (pauseMs === null || isOver || retries === 0) throw error;
        await delay(pauseMs, signal);
      }
    }
  }

  /**
   * Releases a lock that may have been granted, in the background. If the server cannot be reached, the lock
   * expires.
   */
  private giveUp(key: string, token: string): void {
    this.release(key, token, { timeoutMs: CLEAN_UP_MS, retries: 0, idempotencyKey: null }).catch(() => {});
  }
}
