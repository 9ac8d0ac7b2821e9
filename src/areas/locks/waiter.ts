import type { ApiError } from "../../kernel/errors.ts";
import type { Cancel, Clock } from "../../kernel/time/clock.ts";
import type { Disconnects } from "./disconnects.ts";
import { connectionClosedError, type Lease, waitTimeoutError } from "./domain.ts";
import type { Lock } from "./lock.ts";

/** A request for a lock. */
export interface AcquireRequest {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly key: string;
  readonly ttlMs: number;
  readonly timeoutMs: number;
  /** Token for the lock. If it is the holder's token, the request refreshes the holder's lease. Null: generate one. */
  readonly token: string | null;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** A lock that was granted to a request. */
export interface Grant {
  readonly lock: Lock;
  readonly lease: Lease;
  /** Whether the request's token already held the lock. */
  readonly reentrant: boolean;
  /** Set for waiters. */
  readonly handover?: Handover;
}

/**
 * The grant of a lock to the next waiter and to the duplicates of its request. The lock passes on unless at least one of
 * them accepts it.
 */
export interface Handover {
  /** Lease of the last duplicate. */
  lease: Lease;
  /** Number of waiters that have neither accepted nor declined yet. */
  pending: number;
  /** Whether one waiter has accepted. */
  isAccepted: boolean;
}

/**
 * A request in a lock's queue. It settles once: granted, timed out, disconnected or rejected.
 */
export class Waiter {
  private readonly result = Promise.withResolvers<Grant>();
  /** Resolves with the grant. @throws ApiError `timeout`, or the error of {@link reject}. */
  readonly outcome = this.result.promise;
  private isSettled = false;
  private cancelDeadline: Cancel = () => {};
  /** Called once, when the waiter settles. */
  onSettled: () => void = () => {};
  private removeAbortListener: Cancel = () => {};

  constructor(readonly request: AcquireRequest) {
    // The waiter may settle before the outcome is awaited, which is not an unhandled rejection.
    this.outcome.catch(() => {});
  }

  /** Whether the waiter can still be granted the lock. */
  get isActive(): boolean {
    return !this.isSettled && !this.request.signal.aborted;
  }

  /** Starts the deadline and watches the connection. `leave` removes the waiter from its queue. */
  watch(clock: Clock, disconnects: Disconnects, leave: () => void): void {
    if (this.isSettled) return;
    const { signal, key, timeoutMs } = this.request;
    const fail = (error: ApiError): void => {
      leave();
      this.reject(error);
    };
    const onDisconnect = (): void => disconnects.add(() => fail(connectionClosedError()));
    signal.addEventListener("abort", onDisconnect, { once: true });
    this.removeAbortListener = () => signal.removeEventListener("abort", onDisconnect);
    this.cancelDeadline = clock.after(timeoutMs, () => fail(waitTimeoutError(key, timeoutMs)));
  }

  /** Grants the lock. Call it after the grant is durable. */
  grant(grant: Grant): void {
    this.settle();
    this.result.resolve(grant);
  }

  /** Rejects the request. */
  reject(error: ApiError): void {
    this.settle();
    this.result.reject(error);
  }

  private settle(): void {
    if (!this.isSettled) this.onSettled();
    this.isSettled = true;
    this.cancelDeadline();
    this.removeAbortListener();
  }
}
