/** What a check of a copy came to. */
export interface CheckResult {
  readonly name: string;
  /** What was looked at: `12 accounts, 340 ledger entries`. */
  readonly extent: string;
  /** How many things do not hold; none when all is well. */
  readonly problemCount: number;
  /** The first of them. */
  readonly problems: readonly string[];
}

/** Problems listed before the rest is only counted: a broken file breaks everywhere. */
export const PROBLEMS_LISTED_MAX = 10;

/** Told how many rows a check has looked at; may throw to end it. */
export type OnRows = (rows: number) => Promise<void>;

/** Rows between two calls of {@link OnRows}: some hundredths of a second. */
export const ROWS_PER_STEP = 5_000;

/** Collects what does not hold. */
export class Problems {
  count = 0;
  readonly listed: string[] = [];

  add(problem: string): void {
    this.count += 1;
    if (this.listed.length < PROBLEMS_LISTED_MAX) this.listed.push(problem);
  }

  result(name: string, extent: string): CheckResult {
    return { name, extent, problemCount: this.count, problems: this.listed };
  }
}

/** `1 meter`, `2 meters`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
