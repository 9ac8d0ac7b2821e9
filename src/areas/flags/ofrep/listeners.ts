import type { EventStream } from "../../../kernel/http/responses/event-stream.ts";
import { type Cancel, realTimeout } from "../../../kernel/time/clock.ts";
import { EVENT_AFTER_MS, notifiedPerStep, refetchEvent } from "./domain.ts";

/** A client with an open stream. */
export interface Listener {
  readonly stream: EventStream;
  /** Id of its key in changes. */
  readonly keyId: string;
  /** Whether it is notified of server-only flags. */
  readonly seesServerOnly: boolean;
  /** Version that the client knows. */
  knownVersion: number;
}

/**
 * The listeners of one project. Notifications of a change are spread over time, because every client then requests all
 * flags. They use real time, also with a manual clock.
 */
export class Listeners {
  /** In the order of notification. */
  private readonly queue = new Set<Listener>();
  private cancelStep: Cancel | null = null;

  /** `versionFor` returns the version of the flags that a listener can see. */
  constructor(
    private readonly versionFor: (listener: Listener) => number,
    private readonly now: () => number,
  ) {}

  get size(): number {
    return this.queue.size;
  }

  /** Adds a listener and notifies it immediately of missed changes. */
  add(listener: Listener): void {
    this.queue.add(listener);
    // After a restore, the version can be lower than the client's.
    const version = this.versionFor(listener);
    if (listener.knownVersion !== version) this.notify(listener, version);
  }

  remove(listener: Listener): void {
    this.queue.delete(listener);
    if (this.queue.size > 0) return;
    this.cancelStep?.();
    this.cancelStep = null;
  }

  /** Schedules the notification of affected listeners. */
  flagsChanged(): void {
    this.cancelStep ??= this.stepLater();
  }

  /** Ends the streams of a key that is no longer valid. */
  keyChanged(keyId: string): void {
    for (const listener of this.queue) if (listener.keyId === keyId) listener.stream.reauthorize();
  }

  /** Ends all streams if the account or the project is no longer active, which is the same for all of them. */
  ownerChanged(): void {
    const [first] = this.queue;
    if (first === undefined || first.stream.reauthorize()) return;
    for (const { stream } of this.queue) stream.reauthorize();
  }

  private stepLater(): Cancel {
    return realTimeout(EVENT_AFTER_MS, () => {
      this.cancelStep = null;
      let isDone = false;
      try {
        isDone = this.step();
      } catch {
        // Reading the version can fail with the disk. The next step repeats it.
      }
      if (!isDone) this.cancelStep = this.stepLater();
    });
  }

  /** Notifies the next listeners. Returns whether all have been checked. */
  private step(): boolean {
    let remaining = notifiedPerStep(this.queue.size);
    let unchecked = this.queue.size;
    for (const listener of this.queue) {
      if (unchecked === 0 || remaining === 0) break;
      unchecked -= 1;
      // Move to the end of the queue.
      this.queue.delete(listener);
      this.queue.add(listener);
      const version = this.versionFor(listener);
      if (listener.knownVersion >= version) continue;
      this.notify(listener, version);
      remaining -= 1;
    }
    return unchecked === 0;
  }

  private notify(listener: Listener, version: number): void {
    listener.knownVersion = version;
    if (listener.stream.reauthorize()) listener.stream.send(refetchEvent(version, this.now()));
  }
}
