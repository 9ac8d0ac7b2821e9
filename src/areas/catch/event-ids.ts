/**
 * An event's number is the epoch millisecond of its receipt, times this number of events per millisecond. Beyond that, or
 * when the wall clock is set back, numbers continue to increase. They are exact integers until the year 2248.
 */
const EVENTS_PER_MS = 1024;
/** Characters of a number below 2^55 in base 32. */
const DIGITS = 11;
const EVENT_ID = /^evt_([0-9a-v]{11})$/;

/** Assigns the numbers of events. No number is reused. */
export class EventSequence {
  /** `last`: the last assigned number; initially the largest stored one. */
  constructor(public last: number) {}

  next(now: number): number {
    this.last = Math.max(this.last + 1, firstSequenceAt(now));
    return this.last;
  }
}

/** The lowest number of events received at a time or later. */
export function firstSequenceAt(epochMs: number): number {
  return epochMs * EVENTS_PER_MS;
}

/** The time of receipt that a number represents. */
export function receiptOf(sequence: number): number {
  return Math.floor(sequence / EVENTS_PER_MS);
}

/** The id of an event. Ids sort like their numbers, by time of receipt. */
export function eventIdOf(sequence: number): string {
  return `evt_${sequence.toString(32).padStart(DIGITS, "0")}`;
}

/** The number of an event id; null for an invalid id. */
export function sequenceOf(eventId: string): number | null {
  const digits = EVENT_ID.exec(eventId)?.[1];
  if (digits === undefined) return null;
  const sequence = Number.parseInt(digits, 32);
  return Number.isSafeInteger(sequence) ? sequence : null;
}
