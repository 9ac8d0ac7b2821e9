import type { Cron, CronOptions } from "croner";
import { invalidField } from "../errors.ts";
import { LruMap } from "../limits/lru-map.ts";

/** Reads a cron expression. The library is loaded at its first use: a start needs none of them. */
function readCron(expression: string, options: CronOptions): Cron {
  const { Cron } = require("croner") as typeof import("croner");
  return new Cron(expression, options);
}

/**
 * The first time after `afterMs` (epoch milliseconds) that a cron expression names, in UTC. The library calculates;
 * waiting is the scheduler's.
 *
 * @throws Error when the expression is malformed or never comes true.
 */
export function nextOccurrence(expression: string, afterMs: number): number {
  // An offset of 0 rather than a time zone of that name: for zones the library uses Intl, whose tables take 10 ms to load.
  const next = readCron(expression, { utcOffset: 0, paused: true }).nextRun(new Date(afterMs));
  if (next === null) throw new Error(`the cron expression "${expression}" never comes true`);
  return next.getTime();
}

/** Longest cron expression and name of a time zone that are looked at. */
const CRON_LENGTH_MAX = 256;
const TIME_ZONE_LENGTH_MAX = 64;
/** Names, and no offsets. */
const TIME_ZONE = /^[A-Za-z][A-Za-z0-9_+/-]*$/;

/** Names for expressions. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
]);
const FIELDS = 5;

/** Years that are searched. The rarest day, a leap day on a given weekday, comes every 40 years at the latest. */
const YEARS_SEARCHED = 40;
/** The last that an expression can name. */
const YEAR_MAX = 9_999;

/** Expressions that were read: reading one takes longer than to find its next time. Each is some 20 kB. */
const READ_MAX = 250;
const READ = new LruMap<string, ReadExpression>(READ_MAX);

/** An expression that was read, and the result of its last calculation, which holds for every time in between. */
interface ReadExpression {
  readonly cron: Cron;
  from: number;
  next: number;
}

/** Whether a text is the name of a time zone that this machine knows. */
export function isTimeZone(name: string): boolean {
  if (name.length > TIME_ZONE_LENGTH_MAX || !TIME_ZONE.test(name)) return false;
  try {
    // Its tables are requested only when a time is calculated.
    return readCron("* * * * *", zoned(name)).nextRun() !== null;
  } catch {
    return false;
  }
}

/** Times of a user's cron expression, of five fields or by name, on the clocks of a time zone. */
export class CronTimes {
  private readonly fields: string;

  /** @throws RangeError when that is no expression. */
  constructor(
    expression: string,
    private readonly timeZone: string,
  ) {
    const fields = NAMED.get(expression) ?? expression.trim();
    const isLong = fields.length > CRON_LENGTH_MAX;
    if (isLong || fields.split(/\s+/).length !== FIELDS) throw new RangeError("no cron expression");
    this.fields = fields;
    try {
      this.readFor(0);
    } catch {
      throw new RangeError("no cron expression");
    }
  }

  /**
   * The first one after a time (epoch milliseconds); null when none comes. Of an hour that clocks repeat, the first one
   * counts; what they omit comes when it is over.
   */
  after(moment: number): number | null {
    const read = this.readFor(moment);
    // Many schedules have the same expression, and are due at the same time.
    if (moment >= read.from && moment < read.next) return read.next;
    const next = read.cron.nextRun(new Date(moment));
    if (next === null) return null;
    read.from = moment;
    read.next = next.getTime();
    return read.next;
  }

  /** With its years: one that never comes true would be searched for in all years to come. */
  private readFor(moment: number): ReadExpression {
    // The year on the zone's clocks may be the one before.
    const year = new Date(moment).getUTCFullYear() - 1;
    const last = Math.min(year + YEARS_SEARCHED + 1, YEAR_MAX);
    const pattern = `0 ${this.fields} ${year}-${last}`;
    const key = `${this.timeZone} ${pattern}`;
    const known = READ.get(key);
    if (known !== undefined) return known;
    const read = { cron: readCron(pattern, zoned(this.timeZone)), from: 0, next: 0 };
    READ.set(key, read);
    return read;
  }
}

/** Whether a text is a cron expression that {@link CronTimes} reads, in a time zone that this machine knows. */
export function isCron(expression: string, timeZone: string): boolean {
  try {
    new CronTimes(expression, timeZone);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Names of the fields of a request that have an expression and its time zone. */
interface CronFields {
  readonly expression: string;
  readonly timeZone: string;
}

/**
 * The times of an expression that a request sets.
 *
 * @throws ApiError `validation_error` naming the field without a cron expression or a known time zone.
 */
export function requestedTimes(expression: string, timeZone: string, fields: CronFields): CronTimes {
  // First: an unknown time zone causes an error only when a time is calculated.
  if (!isTimeZone(timeZone))
    throw invalidField(fields.timeZone, "must be a time zone such as Europe/Berlin or UTC");
  if (isCron(expression, timeZone)) return new CronTimes(expression, timeZone);
  throw invalidField(
    fields.expression,
    "must be five fields such as 30 2 * * *, or one of @hourly, @daily, @weekly, @monthly and @yearly",
  );
}

/** An offset for UTC: see {@link nextOccurrence}. */
function zoned(timeZone: string): CronOptions {
  return { paused: true, ...(timeZone === "UTC" ? { utcOffset: 0 } : { timezone: timeZone }) };
}
