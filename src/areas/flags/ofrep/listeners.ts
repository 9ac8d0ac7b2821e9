import type { EventStream } from "../../../kernel/http/responses/event-stream.ts";
import { type Cancel, realTimeout } from "../../../kernel/time/clock.ts";
import { EVENT_AFTER_MS, refetchEvent, toldPerStep } from "./domain.ts";

/** One client that listens. */
export interface Listener {
  readonly stream: EventStream;
  /** The id of its key, as changes name it. */
  readonly keyId: string;
  /** Whether it hears of flags that are for servers only. */
  readonly seesServerOnly: boolean;
  /** The version that it knows of. */
  told: number;
}

/**
 * The listeners of one project. A change reaches few of them at once, and many in turn: each asks for all flags when it
 * hears of it. In real time, also on a clock that stands.
 */
export class Listeners {
  /** In the order in which their turn comes. */
  private readonly waiting = new Set<Listener>();
  private cancelStep: Cancel | null = null;

  /** `versionFor`: the version of the flags that a listener sees. */
  constructor(
    private readonly versionFor: (listener: Listener) => number,
    private readonly now: () => number,
  ) {}

  get size(): number {
    return this.waiting.size;
  }

  /** Lets one listen. It hears at once what it has missed. */
  add(listener: Listener): void {
    this.waiting.add(listener);
    // After a restore, versions are lower than some have heard of.
    const version = this.versionFor(listener);
    if (listener.told !== version) this.tell(listener, version);
  }

  remove(listener: Listener): void {
    this.waiting.delete(listener);
    if (this.waiting.size > 0) return;
    this.cancelStep?.();
    this.cancelStep = null;
  }

  /** Tells of a change soon, whom it concerns. */
  flagsChanged(): void {
    this.cancelStep ??= this.stepLater();
  }

  /** Ends the streams of a key that has ended. */
  keyChanged(keyId: string): void {
    for (const listener of this.waiting) if (listener.keyId === keyId) listener.stream.reauthorize();
  }

  /** Ends all streams when the account or the project has ended: what holds for one of them holds for all. */
  ownerChanged(): void {
    const [first] = this.waiting;
    if (first === undefined || first.stream.reauthorize()) return;
    for (const { stream } of this.waiting) stream.reauthorize();
  }

  private stepLater(): Cancel {
    return realTimeout(EVENT_AFTER_MS, () => {
      this.cancelStep = null;
      let isDone = false;
      try {
        isDone = this.step();
      } catch {
        // A failing disk may keep the version back: it is told of when it can be read.
      }
      if (!isDone) this.cancelStep = this.stepLater();
    });
  }

  /** Whether all have been told. */
  private step(): boolean {
    let left = toldPerStep(this.waiting.size);
    let unseen = this.waiting.size;
    for (const listener of this.waiting) {
      if (unseen === 0 || left === 0) break;
      unseen -= 1;
      // Behind all others, whose turn comes first the next time.
      this.waiting.delete(listener);
      this.waiting.add(listener);
      const version = this.versionFor(listener);
      if (listener.told >= version) continue;
      this.tell(listener, version);
      left -= 1;
    }
    return unseen === 0;
  }

  private tell(listener: Listener, version: number): void {
    listener.told = version;
    if (listener.stream.reauthorize()) listener.stream.send(refetchEvent(version, this.now()));
  }
}
