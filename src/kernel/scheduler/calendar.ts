import { Cron } from "croner";
import { invalidField } from "../errors.ts";
import { LruMap } from "../limits/lru-map.ts";
import { MINUTE_MS, SECOND_MS } from "../time/units.ts";

/**
 * Reads a cron expression of five fields, or six with seconds first, on clocks that show UTC: changes of clocks are for
 * {@link CronTimes}. As in every crontab, both day fields must match where one begins with `*`, and otherwise either is
 * enough; `5/15` means every 15 from 5 on.
 *
 * @throws Error when it is malformed.
 */
function readCron(fields: string, years = "*"): Cron {
  const parts = fields.split(/\s+/);
  if (parts.length < FIELDS || parts.length > FIELDS + 1) throw new RangeError("it has not five fields");
  const isNarrowed = [parts.at(-3), parts.at(-1)].some((days) => days?.startsWith("*"));
  const seconds = parts.length === FIELDS ? "0 " : "";
  const upToDays = parts.slice(0, -1).join(" ");
  const weekdays = (parts.at(-1) ?? "").replace(STEP_FROM_WEEKDAY, "$1$2-7/");
  const options = { utcOffset: 0, paused: true, domAndDow: isNarrowed, sloppyRanges: true };
  return new Cron(`${seconds}${upToDays} ${weekdays} ${years}`, options);
}

/** The first time after another one (epoch milliseconds), on clocks that show UTC; null when none comes. */
function nextOf(cron: Cron, afterMs: number): number | null {
  return cron.nextRun(new Date(afterMs))?.getTime() ?? null;
}

/**
 * The first time after `afterMs` (epoch milliseconds) that a cron expression names, in UTC. The library calculates;
 * waiting is the scheduler's.
 *
 * @throws Error when the expression is malformed or never comes true.
 */
export function nextOccurrence(expression: string, afterMs: number): number {
  const next = nextOf(readCron(NAMED.get(expression) ?? expression.trim()), afterMs);
  if (next === null) throw new Error(`the cron expression "${expression}" never comes true`);
  return next;
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
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
]);
const FIELDS = 5;
/** A step from nothing (`/15`), which the library would read. */
const BARE_STEP = /(?:^|[\s,])\//;
/** A step from a weekday on includes the Sunday that is written as 7; the library ends a week at 6. */
const STEP_FROM_WEEKDAY = /(^|,)([0-7]|[A-Za-z]{3})\//g;
const NS_PER_MS = 1_000_000;
const MINUTES_PER_HOUR = 60;
const MINUTES_PER_DAY = 24 * MINUTES_PER_HOUR;

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
    clocksAt(0, name);
    return true;
  } catch {
    return false;
  }
}

/**
 * Times of a user's cron expression, of five fields or by name, on the clocks of a time zone. Over changes of clocks they
 * are those of Vixie's cron: **fixed times**, whose minute and hour do not begin with `*`, come once (a time that clocks
 * skip comes when the change is over, of a time that they repeat the first one counts), and all others follow the clocks.
 */
export class CronTimes {
  private readonly fields: string;
  private readonly isFixed: boolean;

  /** @throws RangeError when that is no expression. */
  constructor(
    expression: string,
    private readonly timeZone: string,
  ) {
    const fields = NAMED.get(expression) ?? expression.trim();
    const parts = fields.split(/\s+/);
    const isLong = fields.length > CRON_LENGTH_MAX;
    if (isLong || parts.length !== FIELDS || BARE_STEP.test(fields))
      throw new RangeError("no cron expression");
    this.fields = fields;
    this.isFixed = parts.slice(0, 2).every((part) => !part.startsWith("*"));
    try {
      this.readFor(0);
    } catch {
      throw new RangeError("no cron expression");
    }
  }

  /** The first one after a time (epoch milliseconds); null when none comes. */
  after(moment: number): number | null {
    const read = this.readFor(moment);
    // Many schedules have the same expression, and are due at the same time.
    if (moment >= read.from && moment < read.next) return read.next;
    const next = this.isFixed ? this.fixedAfter(read.cron, moment) : this.wildAfter(read.cron, moment);
    if (next === null) return null;
    read.from = moment;
    read.next = next;
    return next;
  }

  /** After the clocks were set back, the times of the repeated hour are passed over. */
  private fixedAfter(cron: Cron, moment: number): number | null {
    let shown: number | null = moment + offsetOf(clocksAt(moment, this.timeZone));
    for (;;) {
      shown = nextOf(cron, shown);
      if (shown === null) return null;
      const time = firstTimeOf(shown, this.timeZone);
      if (time > moment) return time;
    }
  }

  /** From one change of clocks to the next, these only run. */
  private wildAfter(cron: Cron, moment: number): number | null {
    let clocks = clocksAt(moment, this.timeZone);
    let after = moment;
    for (;;) {
      const offset = offsetOf(clocks);
      const shown = nextOf(cron, after + offset);
      if (shown === null) return null;
      const change = clocks.getTimeZoneTransition("next");
      if (change === null || shown - offset < change.epochMilliseconds) return shown - offset;
      clocks = change;
      after = change.epochMilliseconds - 1;
    }
  }

  /** With its years: one that never comes true would be searched for in all years to come. */
  private readFor(moment: number): ReadExpression {
    // The year on the zone's clocks may be the one before.
    const year = new Date(moment).getUTCFullYear() - 1;
    const last = Math.min(year + YEARS_SEARCHED + 1, YEAR_MAX);
    const years = `${year}-${last}`;
    return READ.getOrAdd(`${this.timeZone} ${years} ${this.fields}`, () => ({
      cron: readCron(this.fields, years),
      from: 0,
      next: 0,
    }));
  }
}

/** @throws RangeError when there is no such zone. */
function clocksAt(moment: number, timeZone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(timeZone);
}

/** What clocks show more than UTC, in milliseconds. */
function offsetOf(clocks: Temporal.ZonedDateTime): number {
  return clocks.offsetNanoseconds / NS_PER_MS;
}

/** When the clocks of a zone first show a time (given as though in UTC); the end of the change where they skip it. */
function firstTimeOf(shown: number, timeZone: string): number {
  const local = clocksAt(shown, "UTC").toPlainDateTime();
  const first = local.toZonedDateTime(timeZone, { disambiguation: "earlier" });
  if (first.toPlainDateTime().equals(local)) return first.epochMilliseconds;
  return first.getTimeZoneTransition("next")?.epochMilliseconds ?? first.epochMilliseconds;
}

/** A period of every day on the clocks of a time zone, from a minute of the day to another one; it may span midnight. */
export interface DailyPeriod {
  /** Minutes since midnight. */
  readonly from: number;
  /** Minutes since midnight; not in the period. */
  readonly to: number;
  readonly timeZone: string;
}

/**
 * When the daily period ends that a time (epoch milliseconds) is in; null outside of it. The clocks of the zone decide: of an
 * hour that they repeat, each pass counts, and a change of clocks ends the period if they show a time outside of it then.
 */
export function endOfDailyPeriod({ from, to, timeZone }: DailyPeriod, moment: number): number | null {
  let end: number | null = null;
  let clocks = clocksAt(moment, timeZone);
  for (;;) {
    const minute = clocks.hour * MINUTES_PER_HOUR + clocks.minute;
    const isInside = from < to ? from <= minute && minute < to : from <= minute || minute < to;
    if (!isInside) return end;
    const left = (minute < to ? to : to + MINUTES_PER_DAY) - minute;
    end = clocks.epochMilliseconds - clocks.second * SECOND_MS - clocks.millisecond + left * MINUTE_MS;
    const change = clocks.getTimeZoneTransition("next");
    if (change === null || end < change.epochMilliseconds) return end;
    end = change.epochMilliseconds;
    clocks = change;
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
    "must be five fields such as 30 2 * * *, or one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually",
  );
}
