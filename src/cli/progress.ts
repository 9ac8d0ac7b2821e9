import { monotonicMs } from "../kernel/clock.ts";
import { formatAmount, formatDuration, type Unit } from "./format.ts";

/** Where progress is shown: a terminal redraws one line, anything else gets a line now and then. */
export interface ProgressOutput {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** What is to be shown. */
export interface ProgressOptions {
  /** What is being done, such as "Backing up". */
  readonly what: string;
  readonly unit: Unit;
  /** How much there is to do; null when nobody knows. */
  readonly total: number | null;
  /** Standard error, as a rule: standard output belongs to the command's answer. */
  readonly out: ProgressOutput;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/** Shows how far a long piece of work has come. */
export interface Progress {
  /** Tells how much is done in all. Cheap: it can be called for every row. */
  advance(to: number): void;
  /** Takes the line away. Belongs into a `finally`, so that an error stands on a line of its own. */
  finish(): void;
}

/** Work that ends sooner shows nothing on a terminal. */
export const TERMINAL_DELAY_MS = 300;
/** Redrawn so often: faster is not read. */
export const TERMINAL_INTERVAL_MS = 100;
/** Between two lines where there is no terminal: a log of an hour's work stays readable. */
export const PLAIN_INTERVAL_MS = 10_000;
/** The rate is that of so much time: it follows a disk that slows down, and does not flicker. */
const RATE_WINDOW_MS = 10_000;
/** Of a terminal that does not tell its width, or tells none. */
const COLUMNS_DEFAULT = 80;

/** Begins to show the progress of a piece of work. */
export function createProgress(options: ProgressOptions): Progress {
  return new Line(options);
}

class Line implements Progress {
  private readonly now: () => number;
  private readonly intervalMs: number;
  private readonly samples: { readonly at: number; readonly done: number }[];
  private nextAt: number;
  private shownLength = 0;

  constructor(private readonly options: ProgressOptions) {
    this.now = options.now ?? monotonicMs;
    const begun = this.now();
    this.samples = [{ at: begun, done: 0 }];
    this.intervalMs = options.out.isTTY === true ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS;
    this.nextAt = begun + (options.out.isTTY === true ? TERMINAL_DELAY_MS : PLAIN_INTERVAL_MS);
  }

  advance(to: number): void {
    const at = this.now();
    if (at < this.nextAt) return;
    this.nextAt = at + this.intervalMs;
    this.samples.push({ at, done: to });
    while (this.samples.length > 2 && (this.samples[0]?.at ?? at) < at - RATE_WINDOW_MS) this.samples.shift();
    this.show(this.text(at, to));
  }

  finish(): void {
    if (this.shownLength > 0) this.options.out.write(`\r${" ".repeat(this.shownLength)}\r`);
    this.shownLength = 0;
    this.nextAt = Number.POSITIVE_INFINITY;
  }

  /** Spaces instead of an escape sequence clear what was longer: every terminal knows them. */
  private show(text: string): void {
    const { out } = this.options;
    if (out.isTTY !== true) {
      out.write(`${text}\n`);
      return;
    }
    // The last column stays empty: a line that fills it wraps, and could not be redrawn.
    const columns = out.columns ?? 0;
    const line = text.slice(0, columns > 0 ? columns - 1 : COLUMNS_DEFAULT - 1);
    out.write(`\r${line.padEnd(this.shownLength)}`);
    this.shownLength = line.length;
  }

  private text(at: number, done: number): string {
    const { what, unit, total } = this.options;
    const perSecond = this.perSecond(at, done);
    const parts = [what];
    if (total === null) parts.push(formatAmount(done, unit));
    else {
      parts.push(`${percent(done, total)} %`);
      parts.push(`${formatAmount(Math.min(done, total), unit)} of ${formatAmount(total, unit)}`);
    }
    if (perSecond > 0) {
      parts.push(`${formatAmount(perSecond, unit)}/s`);
      if (total !== null && done < total)
        parts.push(`${formatDuration(((total - done) / perSecond) * 1000)} left`);
    }
    return parts.join("  ");
  }

  private perSecond(at: number, done: number): number {
    const first = this.samples[0];
    if (first === undefined || at <= first.at) return 0;
    return ((done - first.done) / (at - first.at)) * 1000;
  }
}

function percent(done: number, total: number): number {
  return total <= 0 ? 100 : Math.min(100, Math.floor((done / total) * 100));
}
