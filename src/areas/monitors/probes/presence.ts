import { type Cancel, monotonicMs, realTimeout } from "../../../kernel/time/clock.ts";
import { TransitTimes } from "./transit.ts";

/** How long a probe counts as connected between two of its requests, in milliseconds of real time. */
const CONNECTED_MS = 1_000;

/** A check that the server has asked a probe for. */
interface DueCheck {
  manual: boolean;
  readonly isRecorded: Promise<boolean>;
  readonly done: (isRecorded: boolean) => void;
}

/** Whose a probe is. */
export interface PresenceOwner {
  readonly projectRef: number;
  readonly accountRef: number;
}

/** A probe as the server knows it while it runs: who waits, and what its list is. */
export class Presence {
  readonly transit = new TransitTimes();
  /** Changes with its list of monitors: a cursor of another list begins again. */
  private version = 0;
  private wake: (() => void) | null = null;
  private seenAt = Number.NEGATIVE_INFINITY;
  private wasCut = false;
  private waits = false;
  /** Of its last request, epoch milliseconds; 0 before one. */
  lastSeenAt = 0;
  private counted: { readonly version: number; readonly monitors: number } | null = null;
  /** By monitor id. */
  private readonly due = new Map<string, DueCheck>();
  /** Checks that it has been told of. */
  private readonly told = new Set<string>();

  /** `run`: tells lists of this process from those of others. */
  constructor(
    private readonly run: string,
    readonly owner: PresenceOwner,
  ) {}

  /** Identifies its list of monitors. */
  get list(): string {
    return `${this.run}-${this.version}`;
  }

  /** Whether a list is one that this process has given to it, maybe before a change. */
  isOwnList(list: string): boolean {
    return list.startsWith(`${this.run}-`);
  }

  /** Whether a request of it waits. */
  get isWaiting(): boolean {
    return this.wake !== null;
  }

  /** Whether its connection was closed from the other end, and it has not called since. */
  get isCut(): boolean {
    return this.wasCut && !this.isWaiting;
  }

  /** Whether it gets checks as soon as they are due: it waits for them, or is between two requests that do. */
  get isConnected(): boolean {
    if (this.isWaiting) return true;
    return this.waits && (this.told.size > 0 || monotonicMs() - this.seenAt < CONNECTED_MS);
  }

  /** Number of its monitors, which `count` reads where they have changed. */
  monitors(count: () => number): number {
    if (this.counted?.version !== this.version) this.counted = { version: this.version, monitors: count() };
    return this.counted.monitors;
  }

  /** Its monitors have changed. */
  changed(): void {
    this.version += 1;
    this.wake?.();
  }

  /** Ends a request that waits, because the probe waits anew or may not wait any more. */
  end(): void {
    this.wake?.();
  }

  /** The probe is removed or suspended, or the server stops: nothing waits for it any more. */
  close(): void {
    for (const check of [...this.due.values()]) check.done(false);
    this.end();
  }

  /**
   * A request for work has begun, or has ended, at a time (epoch milliseconds): the next one follows, unless the probe has closed
   * the connection (`isCut`). `waits`: whether it is one that waits for work.
   */
  seen(now: number, { isCut, waits }: { readonly isCut: boolean; readonly waits: boolean }): void {
    this.wasCut = isCut;
    this.waits = waits;
    this.seenAt = isCut ? Number.NEGATIVE_INFINITY : monotonicMs();
    this.lastSeenAt = now;
  }

  /** Whether there are checks that it has not been told of. */
  get hasDue(): boolean {
    return this.due.size > this.told.size;
  }

  /** The checks that it has not been told of. From now on it has. */
  takeDue(): string[] {
    const untold = [...this.due.keys()].filter((id) => !this.told.has(id));
    for (const id of untold) this.told.add(id);
    return untold;
  }

  /** Whether the next result of a monitor was asked for manually. */
  isManual(monitorId: string): boolean {
    return this.due.get(monitorId)?.manual === true;
  }

  /** A result of a monitor is recorded. */
  recorded(monitorId: string): void {
    this.due.get(monitorId)?.done(true);
  }

  /** Asks for one check. Resolves when its result is recorded, or to false after `timeoutMs` of real time. */
  request(monitorId: string, manual: boolean, timeoutMs: number): Promise<boolean> {
    const pending = this.due.get(monitorId);
    if (pending !== undefined) {
      // One result is for both; the probe may not have got the first request.
      pending.manual ||= manual;
      this.told.delete(monitorId);
      this.wake?.();
      return pending.isRecorded;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    let cancel: Cancel = () => undefined;
    const check: DueCheck = {
      manual,
      isRecorded: promise,
      done: (isRecorded) => {
        cancel();
        if (this.due.get(monitorId) === check) {
          this.due.delete(monitorId);
          this.told.delete(monitorId);
        }
        resolve(isRecorded);
      },
    };
    this.due.set(monitorId, check);
    cancel = realTimeout(timeoutMs, () => check.done(false));
    this.wake?.();
    return promise;
  }

  /** Waits until something changes, or `waitMs` of real time are over. Another request that waits ends. */
  wait(waitMs: number): Promise<void> {
    this.wake?.();
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => {
      cancel();
      if (this.wake === end) this.wake = null;
      resolve();
    };
    const cancel = realTimeout(waitMs, end);
    this.wake = end;
    return promise;
  }
}
