import { realTimeout } from "../clock.ts";
import { OutboundFailure } from "./outcome.ts";

/** The end of a request's real time, which covers everything from the name's look-up to the last byte. */
export class Deadline {
  private readonly endings = new Set<(failure: OutboundFailure) => void>();
  private readonly cancelTimer: () => void;
  private failure: OutboundFailure | null = null;

  constructor(timeoutMs: number) {
    this.cancelTimer = realTimeout(timeoutMs, () => {
      this.end(new OutboundFailure("timeout", `no complete answer within ${timeoutMs} ms`));
    });
  }

  /** Runs `work` until it settles or time is up. @throws OutboundFailure `timeout` */
  within<T>(work: (settle: Settle<T>) => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.failure !== null) {
        reject(this.failure);
        return;
      }
      let release: (() => void) | undefined;
      const ending = (failure: OutboundFailure): void => {
        release?.();
        reject(failure);
      };
      this.endings.add(ending);
      work({
        resolve: (value) => {
          this.endings.delete(ending);
          resolve(value);
        },
        reject: (error) => {
          this.endings.delete(ending);
          reject(error);
        },
        onGivenUp: (run) => {
          release = run;
        },
      });
    });
  }

  /** Ends the timer when the request is over. */
  close(): void {
    this.cancelTimer();
    this.endings.clear();
  }

  private end(failure: OutboundFailure): void {
    this.failure = failure;
    for (const ending of this.endings) ending(failure);
    this.endings.clear();
  }
}

/** Settles a piece of work. */
export interface Settle<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
  /** Registers what releases the resources of the work when time is up. */
  onGivenUp(run: () => void): void;
}
