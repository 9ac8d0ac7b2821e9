/**
 * Events are numbered by their time of receipt: the number is the epoch millisecond with room for this many events
 * within it. Beyond that, or when the wall clock is set back, numbers just go on rising. They stay exact integers
 * until the year 2248.
 */
const EVENTS_PER_MS = 1024;
/** Characters of a number below 2^55 in base 32. */
const DIGITS = 11;
const EVENT_ID = /^evt_([0-9a-v]{11})$/;

/** Gives out the numbers of events. A number is never given twice, whatever becomes of the event. */
export class EventSequence {
  private given: number;

  /** `highest`: the largest number that is stored. */
  constructor(highest: number) {
    this.given = highest;
  }

  /** The number given last. */
  get last(): number {
    return this.given;
  }

  next(now: number): number {
    this.given = Math.max(this.given + 1, now * EVENTS_PER_MS);
    return this.given;
  }
}

/** The text of a number. Texts sort as their numbers do, and so by time of receipt. */
export function eventIdOf(sequence: number): string {
  return `evt_${sequence.toString(32).padStart(DIGITS, "0")}`;
}

/** The number behind an id, or null when it is none of ours. */
export function sequenceOf(eventId: string): number | null {
  const digits = EVENT_ID.exec(eventId)?.[1];
  if (digits === undefined) return null;
  const sequence = Number.parseInt(digits, 32);
  return Number.isSafeInteger(sequence) ? sequence : null;
}
