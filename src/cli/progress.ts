import { monotonicMs } from "../kernel/time/clock.ts";
import { SECOND_MS } from "../kernel/time/units.ts";

/** Unit of the counted items. */
type Unit = "bytes" | "rows";

const KILO = 1000;
const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"] as const;
const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;

/** An amount as people read it: `1.2 GB`, `1,234,567 rows`. */
export function formatAmount(amount: number, unit: Unit): string {
  if (unit === "rows") return `${formatCount(amount)} ${Math.round(amount) === 1 ? "row" : "rows"}`;
  let value = amount;
  let index = 0;
  // Rounding must not lead to 1000 of a unit.
  while (index < BYTE_UNITS.length - 1 && Number(value.toPrecision(3)) >= KILO) {
    value /= KILO;
    index += 1;
  }
  const text = index === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(value >= 10 ? 0 : 1);
  return `${text} ${BYTE_UNITS[index]}`;
}

/** A whole number with commas between its thousands. */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** A duration as people read it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(durationMs: number): string {
  if (durationMs < 9_950) return `${(durationMs / SECOND_MS).toFixed(1)} s`;
  const seconds = Math.round(durationMs / SECOND_MS);
  if (seconds < MINUTE_S) return `${seconds} s`;
  if (seconds < HOUR_S) return `${Math.floor(seconds / MINUTE_S)} min ${seconds % MINUTE_S} s`;
  return `${Math.floor(seconds / HOUR_S)} h ${Math.floor((seconds % HOUR_S) / MINUTE_S)} min`;
}

/** Where progress is shown: a terminal redraws one line, anything else gets a line now and then. */
export interface ProgressOutput {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** Work that ends sooner shows nothing on a terminal. */
export const TERMINAL_DELAY_MS = 300;
/** Redrawn so often: faster is not read. */
export const TERMINAL_INTERVAL_MS = 100;
/** Between two lines where there is no terminal: a log of an hour's work stays readable. */
export const PLAIN_INTERVAL_MS = 10_000;
/** The rate is that of so much time: it follows a disk that slows down, and does not flicker. */
const RATE_WINDOW_MS = 10_000;
/** Assumed width of a terminal that reports none. */
const COLUMNS_DEFAULT = 80;

/** Shows how far long work has come, one part after the other. */
export class Progress {
  private what = "";
  private samples: { readonly at: number; readonly done: number }[] = [];
  private nextAt = 0;
  private shownLength = 0;

  /** On standard error: standard output belongs to the command's response. `now` is in milliseconds and never goes back. */
  constructor(
    private readonly out: ProgressOutput = process.stderr,
    private readonly now: () => number = monotonicMs,
  ) {}

  /** Reports the progress of a part; another name starts another part. Cheap: it can be called for every row. */
  show(what: string, unit: Unit, done: number, total: number | null): void {
    const at = this.now();
    const isTerminal = this.out.isTTY === true;
    if (what !== this.what) {
      this.finish();
      this.what = what;
      this.samples = [{ at, done: 0 }];
      this.nextAt = at + (isTerminal ? TERMINAL_DELAY_MS : PLAIN_INTERVAL_MS);
    }
    if (at < this.nextAt) return;
    this.nextAt = at + (isTerminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS);
    this.samples.push({ at, done });
    while (this.samples.length > 2 && (this.samples[0]?.at ?? at) < at - RATE_WINDOW_MS) this.samples.shift();
    this.print([what, ...amounts(unit, done, total, this.perSecond(at, done))].join("  "));
  }

  /** Removes the line. Call it in a `finally`, so that an error is printed on a separate line. */
  finish(): void {
    if (this.shownLength > 0) this.out.write(`\r${" ".repeat(this.shownLength)}\r`);
    this.shownLength = 0;
    this.what = "";
  }

  /** Spaces instead of an escape sequence clear what was longer: every terminal knows them. */
  private print(text: string): void {
    if (this.out.isTTY !== true) {
      this.out.write(`${text}\n`);
      return;
    }
    // The last column stays empty: a line that fills it wraps, and could not be redrawn.
    const line = text.slice(0, (this.out.columns || COLUMNS_DEFAULT) - 1);
    this.out.write(`\r${line.padEnd(this.shownLength)}`);
    this.shownLength = line.length;
  }

  private perSecond(at: number, done: number): number {
    const first = this.samples[0];
    if (first === undefined || at <= first.at) return 0;
    return ((done - first.done) / (at - first.at)) * 1000;
  }
}

function amounts(unit: Unit, done: number, total: number | null, perSecond: number): string[] {
  const parts =
    total === null
      ? [formatAmount(done, unit)]
      : [
          `${percent(done, total)} %`,
          `${formatAmount(Math.min(done, total), unit)} of ${formatAmount(total, unit)}`,
        ];
  if (perSecond > 0) parts.push(`${formatAmount(perSecond, unit)}/s`);
  if (perSecond > 0 && total !== null && done < total)
    parts.push(`${formatDuration(((total - done) / perSecond) * 1000)} left`);
  return parts;
}

function percent(done: number, total: number): number {
  return total <= 0 ? 100 : Math.min(100, Math.floor((done / total) * 100));
}
