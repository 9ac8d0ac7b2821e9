/** What can be wrong in a minute, in the order of the bits of {@link FlagRow.flags}. */
const FLAGS = ["errors", "commits", "jobs", "event_loop", "disk"] as const;

/** Which problems the server had in a minute. */
export type FlagRow = { readonly minute: number; readonly flags: number };

/** Minutes in which the server had a problem, both ends inclusive. */
export interface Problem {
  readonly kind: (typeof FLAGS)[number] | "offline";
  readonly first: number;
  readonly last: number;
}

/** Minutes of a problem that are at most so far apart are one time of it. */
const JOINED_MINUTES = 5;
/** Problems of each kind that are found: the newest. */
const PROBLEMS_MAX = 20;
/** A missing minute alone is a timer that came late. */
const MISSING_MINUTES_MIN = 2;

/** Finds the times of each problem in the minutes of a period, which are given in their order. */
export class ProblemFinder {
  private readonly found = new Map<Problem["kind"], Problem[]>();
  private before: number | null = null;

  add({ minute, flags }: FlagRow): void {
    const { before } = this;
    this.before = minute;
    if (before !== null && minute - before > MISSING_MINUTES_MIN)
      this.push({ kind: "offline", first: before + 1, last: minute - 1 });
    for (const [bit, kind] of FLAGS.entries()) if ((flags & (1 << bit)) !== 0) this.note(kind, minute);
  }

  /** The newest problems of each kind, newest first. */
  get problems(): Problem[] {
    return [...this.found.values()].flat().toSorted((a, b) => b.first - a.first);
  }

  private note(kind: Problem["kind"], minute: number): void {
    const list = this.found.get(kind) ?? [];
    const last = list.at(-1);
    if (last !== undefined && minute - last.last <= JOINED_MINUTES)
      list[list.length - 1] = { ...last, last: minute };
    else this.push({ kind, first: minute, last: minute });
  }

  private push(problem: Problem): void {
    const list = this.found.get(problem.kind) ?? [];
    list.push(problem);
    if (list.length > PROBLEMS_MAX) list.shift();
    this.found.set(problem.kind, list);
  }
}
