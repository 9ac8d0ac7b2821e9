/** A period of time, epoch milliseconds. */
export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** Separate intervals of one range: a window every half hour of a day, and two more. Further ones are not counted. */
export const INTERVALS_MAX = 50;

/** Intervals within a range of time. Those that overlap or adjoin are merged. */
export class Intervals {
  private merged: Interval[] = [];

  constructor(readonly range: Interval) {}

  /** Adds the part of an interval that lies in the range, unless it would be one more than {@link INTERVALS_MAX}. */
  add({ from, to }: Interval): void {
    const begin = Math.max(from, this.range.from);
    const end = Math.min(to, this.range.to);
    if (end <= begin) return;
    const touches = (interval: Interval) => interval.from <= end && interval.to >= begin;
    const touched = this.merged.filter(touches);
    if (touched.length === 0 && this.merged.length === INTERVALS_MAX) return;
    const union = {
      from: Math.min(begin, ...touched.map(({ from }) => from)),
      to: Math.max(end, ...touched.map(({ to }) => to)),
    };
    this.merged = [...this.merged.filter((interval) => !touches(interval)), union];
  }

  /** The end of the interval that covers a time; that time where none does. */
  coveredUntil(at: number): number {
    return this.merged.find(({ from, to }) => from <= at && at < to)?.to ?? at;
  }

  get totalMs(): number {
    return this.merged.reduce((sum, { from, to }) => sum + to - from, 0);
  }
}
