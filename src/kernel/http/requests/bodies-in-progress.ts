import { ApiError, invalidField } from "../../errors.ts";
import { monotonicMs, realTimeout } from "../../time/clock.ts";
import { HeldBytes, type HoldLimits, type Sender } from "../held-bytes.ts";

const MIB = 1024 * 1024;

/** Limits on bodies that have begun to arrive and are not complete: each holds memory until it is. */
export interface ProgressLimits extends HoldLimits {
  /** Longest time from the first byte to the last, in milliseconds. */
  readonly durationMsMax: number;
  /** Large bodies of one sender that arrive concurrently, and of all: each takes a share of the disk. */
  readonly largeOfSenderMax: number;
  readonly largeMax: number;
  /** Longest time for a piece of a large body, in milliseconds. */
  readonly pieceMsMax: number;
}

/** 64 of the largest bodies for one sender, and four times as many in all: no more memory than a small machine has. */
export const PROGRESS_LIMITS: ProgressLimits = {
  senderBytesMax: 64 * MIB,
  bytesMax: 256 * MIB,
  durationMsMax: 30_000,
  largeOfSenderMax: 16,
  largeMax: 256,
  pieceMsMax: 10_000,
};

/** The share of a large body in the limits, until it ends. */
export interface LargeBodySlot {
  readonly pieceMsMax: number;
  /** Its turns at reading, which bodies share. */
  readonly turns: OwnTurns;
  end(): void;
}

/** The turns of one user, among those of others. */
export interface OwnTurns {
  /** Waits for the next turn, and resolves with what ends it. */
  take(): Promise<() => void>;
  /** Has its next turns after everybody else who is waiting. */
  goLast(): void;
}

/** How often bodies that take too long are looked for. */
const SWEEP_MS = 500;

/** Large bodies of which a chunk is in memory at a time: as many as fill a commit with a piece of each. */
export const LARGE_TURNS = 4;

/** Turns that a limited number of users have at a time. */
class Turns {
  private readonly waiting: { readonly number: number; readonly begin: () => void }[] = [];
  private users = 0;

  /** `free`: how many have a turn at the same time. */
  constructor(private free: number) {}

  /**
   * Adds a user, who comes before those that are added later, each time: what has begun is completed before more begins. Who uses its
   * turns slowly has to go last, or it would delay all others.
   */
  add(): OwnTurns {
    let number = this.users++;
    return {
      take: async () => {
        if (this.free > 0) this.free -= 1;
        else await new Promise<void>((begin) => this.wait(number, begin));
        let hasEnded = false;
        return () => {
          if (hasEnded) return;
          hasEnded = true;
          const next = this.waiting.shift();
          if (next === undefined) this.free += 1;
          else next.begin();
        };
      },
      goLast: () => {
        number = this.users++;
      },
    };
  }

  private wait(number: number, begin: () => void): void {
    const at = this.waiting.findLastIndex((other) => other.number < number);
    this.waiting.splice(at + 1, 0, { number, begin });
  }
}

/** The bodies that are being received. A body counts with the size that it declares, from the beginning. */
export class BodiesInProgress extends HeldBytes {
  /** In the order in which they began. */
  private readonly open = new Set<BodyInProgress>();
  private isSweeping = false;
  /** Large bodies that are being received, by sender. */
  private readonly large = new Map<Sender, number>();
  private largeCount = 0;
  /**
   * The runtime holds 1.5 MiB of each body that arrives, and lets as much arrive again for what was read: few bodies are read at a
   * time, and those that began first are completed first.
   */
  private readonly turns = new Turns(LARGE_TURNS);

  constructor(readonly limits: ProgressLimits = PROGRESS_LIMITS) {
    super(limits, tooMany);
  }

  /** Begins a body. It counts nothing yet. */
  begin(sender: Sender): BodyInProgress {
    const body = new BodyInProgress(this, sender);
    this.open.add(body);
    this.sweepSoon();
    return body;
  }

  /**
   * Begins a large body, of which `bytes` are in memory at a time.
   * @throws ApiError `service_unavailable` beyond a limit.
   */
  beginLarge(sender: Sender, bytes: number): LargeBodySlot {
    const ofSender = (this.large.get(sender) ?? 0) + 1;
    const { largeOfSenderMax, largeMax } = this.limits;
    if (ofSender > largeOfSenderMax || this.largeCount >= largeMax) throw tooMany();
    this.add(sender, bytes);
    this.large.set(sender, ofSender);
    this.largeCount += 1;
    let hasEnded = false;
    return {
      ...this.completeSlot(),
      end: () => {
        if (hasEnded) return;
        hasEnded = true;
        this.remove(sender, bytes);
        const left = (this.large.get(sender) ?? 0) - 1;
        if (left > 0) this.large.set(sender, left);
        else this.large.delete(sender);
        this.largeCount -= 1;
      },
    };
  }

  /** The slot of a large body that is complete already: it has turns, and no share in the limits. */
  completeSlot(): LargeBodySlot {
    return {
      pieceMsMax: this.limits.pieceMsMax,
      turns: this.turns.add(),
      end: () => undefined,
    };
  }

  /** Ends a body that counted so many bytes. */
  end(body: BodyInProgress, bytes: number): void {
    this.open.delete(body);
    this.remove(body.sender, bytes);
  }

  /** One timer for all bodies: hardly any of them lasts until it runs. */
  private sweepSoon(): void {
    if (this.isSweeping) return;
    this.isSweeping = true;
    realTimeout(SWEEP_MS, () => {
      this.isSweeping = false;
      const latest = monotonicMs() - this.limits.durationMsMax;
      for (const body of this.open) {
        if (body.begunAt > latest) break;
        body.giveUp();
      }
      if (this.open.size > 0) this.sweepSoon();
    });
  }
}

/** One body that is being received. */
export class BodyInProgress {
  readonly begunAt = monotonicMs();
  private bytes = 0;
  private isGivenUp = false;
  private reject: (reason: ApiError) => void = () => {};

  constructor(
    private readonly all: BodiesInProgress,
    readonly sender: Sender,
  ) {}

  /** Counts more bytes. @throws ApiError `service_unavailable` beyond a limit. */
  grow(bytes: number): void {
    this.all.add(this.sender, bytes);
    this.bytes += bytes;
  }

  /**
   * The result of `take` for the bytes of `reading`; the body ends with them. One promise, since every small body comes by here.
   *
   * @throws ApiError `timeout` when the body takes too long, those of {@link readingError}; what `take` throws.
   */
  within<Body, T>(reading: Promise<Body>, take: (body: Body) => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.reject = reject;
      reading.then(
        (body) => {
          this.close();
          if (this.isGivenUp) return;
          try {
            resolve(take(body));
          } catch (error) {
            reject(error);
          }
        },
        (error) => {
          this.close();
          reject(readingError(error));
        },
      );
    });
  }

  /** Rejects what waits for it: it takes too long. */
  giveUp(): void {
    this.close();
    this.isGivenUp = true;
    this.reject(
      new ApiError(
        "timeout",
        `The body was not complete within ${this.all.limits.durationMsMax / 1_000} s.`,
        {
          headers: { connection: "close" },
        },
      ),
    );
  }

  /** Counts it no longer. */
  close(): void {
    this.all.end(this, this.bytes);
    this.bytes = 0;
  }
}

function tooMany(): ApiError {
  const message =
    "Too many request bodies are being received at the same time. Send fewer concurrently, and retry.";
  return new ApiError("service_unavailable", message, {
    retryAfterSeconds: 1,
    headers: { connection: "close" },
  });
}

/**
 * The error of a body that could not be read. A client that goes away in the middle of its body gets no response; for the log
 * it is a bad request, not a defect.
 */
export function readingError(error: unknown): ApiError {
  return error instanceof ApiError ? error : invalidField("body", "ended before it was complete");
}
