import type { Cancel, Clock } from "../../kernel/clock.ts";
import type { ApiError } from "../../kernel/errors.ts";
import { clientGone, waitTimedOut } from "./domain.ts";
import type { Granted } from "./lock.ts";

/** A request for a lock. */
export interface AcquireRequest {
  readonly projectRef: number;
  readonly key: string;
  readonly ttlMs: number;
  readonly timeoutMs: number;
  /** The token that the lock is to have, and that makes the request one of the holder's when it has it already. */
  readonly token: string | null;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/**
 * A request that waits in a queue. It ends once: granted, at its deadline, when its client goes away, or when it
 * is turned away.
 */
export class Waiter {
  private readonly end = Promise.withResolvers<Granted>();
  private ended = false;
  private cancelDeadline: Cancel = () => {};
  private stopListening: Cancel = () => {};

  constructor(readonly request: AcquireRequest) {
    // It may end before anyone looks; that is no defect.
    this.end.promise.catch(() => {});
  }

  /** Whether it still wants the lock: not past its deadline, not turned away, its client still there. */
  get alive(): boolean {
    return !this.ended && !this.request.signal.aborted;
  }

  /** Resolves with the grant. @throws ApiError `timeout`, or what it was turned away with. */
  get outcome(): Promise<Granted> {
    return this.end.promise;
  }

  /** Begins to watch the deadline and the connection. `leave` takes it out of its queue. */
  watch(clock: Clock, leave: () => void): void {
    if (this.ended) return;
    const { signal, key, timeoutMs } = this.request;
    const endWith = (error: ApiError): void => {
      leave();
      this.refuse(error);
    };
    const clientLeft = (): void => endWith(clientGone());
    signal.addEventListener("abort", clientLeft, { once: true });
    this.stopListening = () => signal.removeEventListener("abort", clientLeft);
    this.cancelDeadline = clock.after(timeoutMs, () => endWith(waitTimedOut(key, timeoutMs)));
  }

  /** Hands over the lock, once the grant is durable. */
  grant(granted: Granted): void {
    this.settle();
    this.end.resolve(granted);
  }

  /** Turns it away. */
  refuse(error: ApiError): void {
    this.settle();
    this.end.reject(error);
  }

  private settle(): void {
    this.ended = true;
    this.cancelDeadline();
    this.stopListening();
  }
}
