import type { Cancel, Clock } from "../kernel/time/clock.ts";

/** For so long a comparison counts, at least; twice as long at most. */
const PERIOD_MS = 2 * 60_000;
/** Differences that are not corrected: what two synchronized clocks show while one waits for the other's message. */
const DIFFERENCE_MS_MIN = 1_000;
/**
 * Part of the time by which a corrected clock approaches its own: so slow that nothing notices, and leases of a minute end at most
 * 0.6 s early.
 */
const SLEW = 0.01;

/** What is known of a difference: it is at least and at most so large. */
interface Limits {
  readonly since: number;
  least: number;
  most: number;
}

/**
 * Compares the wall clock of the leader with that of this machine, by the times in what it writes. They are older than their
 * arrival, so each is a lower limit of how far the leader's clock is ahead; one that was certainly not there a while ago is an
 * upper limit, too.
 */
export class ClockComparison {
  private epoch = 0;
  private now: Limits | null = null;
  private before: Limits | null = null;

  /** `now`: the monotonic clock. */
  constructor(private readonly monotonic: () => number) {}

  /** The leader of an epoch has written `at`, which was seen at `seenAt` by this machine's wall clock. `ageMsMax`: if it is known. */
  note(epoch: number, at: number, seenAt: number, ageMsMax = Number.POSITIVE_INFINITY): void {
    if (epoch < this.epoch) return;
    if (epoch > this.epoch) {
      this.epoch = epoch;
      this.now = null;
      this.before = null;
    }
    const [least, most] = [at - seenAt, at - seenAt + ageMsMax];
    const known = this.limits;
    // One of the clocks was set meanwhile: what was known says nothing any more.
    if (least > known.most || most < known.least) {
      this.now = null;
      this.before = null;
    }
    const since = this.monotonic();
    if (this.now === null || since - this.now.since > PERIOD_MS) {
      this.before = this.now;
      this.now = { since, least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY };
    }
    this.now.least = Math.max(this.now.least, least);
    this.now.most = Math.min(this.now.most, most);
  }

  /** Milliseconds by which the leader's clock is ahead of this one's; 0 where that is not known, or too little. */
  get differenceMs(): number {
    const { least, most } = this.limits;
    if (least === Number.NEGATIVE_INFINITY || most === Number.POSITIVE_INFINITY) return 0;
    const difference = (least + most) / 2;
    const isCertain = least > DIFFERENCE_MS_MIN || most < -DIFFERENCE_MS_MIN;
    return isCertain ? Math.round(difference) : 0;
  }

  private get limits(): Pick<Limits, "least" | "most"> {
    const limits = [this.now, this.before].filter((limit) => limit !== null);
    return {
      least: Math.max(...limits.map((limit) => limit.least)),
      most: Math.min(...limits.map((limit) => limit.most)),
    };
  }
}

/**
 * A clock that continues another machine's, which is ahead by `differenceMs`, and slowly approaches this machine's own: what the
 * other leader stored with a time, such as the end of a lock, does not end early because another machine leads.
 */
export function continuedClock(clock: Clock, differenceMs: number): Clock {
  const begunAt = clock.monotonic();
  const offset = (): number => {
    const slewed = (clock.monotonic() - begunAt) * SLEW;
    return Math.round(Math.sign(differenceMs) * Math.max(0, Math.abs(differenceMs) - slewed));
  };
  const continued: Clock = Object.assign(Object.create(clock) as Clock, {
    now: () => clock.now() + offset(),
    at: (epochMs: number, run: () => void): Cancel => {
      let cancel: Cancel = () => undefined;
      const arm = (): void => {
        cancel = clock.at(epochMs - offset(), () => (continued.now() < epochMs ? arm() : run()));
      };
      arm();
      return () => cancel();
    },
  });
  return continued;
}
