import { Type } from "@sinclair/typebox";
import type { Kernel } from "../kernel.ts";
import type { Job, JobOutcome } from "../scheduler/scheduler.ts";
import type { Tx } from "../storage/tx.ts";
import { removeInSlices } from "./removal.ts";

/** Things that are sent again by one request, at most. */
export const BULK_MAX = 10_000;
/** Things sent again in a second, unless given and at most. */
export const PER_SECOND = 10;
export const PER_SECOND_MAX = 100;
/** Things that are looked at in one go: a few milliseconds. */
export const EXAMINED_MAX = 1_000;
/** Such jobs at once: each is a few milliseconds. */
const CONCURRENCY = 4;

/** What has become of a run, in the order of its numbers from 1. */
export const BULK_STATUSES = ["running", "done", "cancelled"] as const;
/** As the rows have them. */
export const [RUNNING, DONE, CANCELLED] = [1, 2, 3] as const;

/** What a run is given beside what it matches. */
export const BULK_TERMS = {
  per_second: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PER_SECOND_MAX,
      default: PER_SECOND,
      errorMessage: `must be an integer from 1 to ${PER_SECOND_MAX}`,
      description: "How many are sent in a second.",
    }),
  ),
  dry_run: Type.Optional(
    Type.Boolean({
      errorMessage: "must be true or false",
      description: "Only says how many match.",
      examples: [false],
    }),
  ),
};

/** A run over many things, as its row has it. */
export type BulkRow = {
  readonly status: number;
  readonly per_second: number;
  /** Things up to here have had their turn. */
  readonly after_ref: number;
  /** The last one that matched. */
  readonly through_ref: number;
  /** How many have been sent. */
  readonly resent: number;
  readonly error: string | null;
  readonly finished_at: number | null;
};

/** A thing that was looked at. */
export interface Candidate {
  readonly ref: number;
  /** 1 when it is one of those wanted. */
  readonly matches: number;
}

/** What matches, as far as it is sent. */
export interface Matching {
  readonly matched: number;
  readonly more?: true;
  /** The last one. */
  readonly through: number;
}

/** What an area does with many of its things. */
export interface BulkKind<Row extends BulkRow> {
  /** What the job is called. */
  readonly job: string;
  /** The row of a job; null where nothing is to be done any more. */
  find(job: Pick<Job, "key" | "payload">): Row | null;
  /** The things after a reference, ascending. */
  look(row: Row, after: number, limit: number): readonly Candidate[];
  /** Sends one, and charges for it. */
  sendOne(tx: Tx, row: Row, ref: number): "sent" | "skipped" | "no-credits";
  /** Writes a row whose run goes on. */
  update(tx: Tx, row: Row): void;
  /** Writes a row when all have had their turn. */
  walked(tx: Tx, row: Row): void;
}

/** What one run of the job does. */
interface Turn {
  readonly refs: readonly number[];
  readonly after: number;
  readonly isLast: boolean;
}

/** Counts what matches, in slices, so that nobody waits for it. */
export async function countMatching(
  look: (after: number, limit: number) => readonly Candidate[],
): Promise<Matching> {
  let [matched, through, after, more] = [0, 0, 0, false];
  const slice = async (): Promise<boolean> => {
    const found = look(after, EXAMINED_MAX);
    for (const { ref, matches } of found) {
      after = ref;
      if (matches === 0) continue;
      more = matched === BULK_MAX;
      if (more) return false;
      matched += 1;
      through = ref;
    }
    return found.length === EXAMINED_MAX;
  };
  await removeInSlices(slice, () => false);
  return { matched, through, ...(more ? { more } : {}) };
}

/**
 * Sends many things again, so many in a second, each in the unit of work that notes it: a restart goes on where it was, and
 * none is sent twice.
 */
export class Bulk<Row extends BulkRow> {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock">,
    private readonly kind: BulkKind<Row>,
  ) {
    deps.scheduler.register(kind.job, { concurrency: CONCURRENCY, run: (job) => this.run(job) });
  }

  /** Begins a run whose row has just been written. */
  begin(tx: Tx, key: string, payload: object): void {
    this.deps.scheduler.enqueue(tx, this.kind.job, key, tx.now, payload);
  }

  /** Ends a run; what was sent, was sent. */
  end(tx: Tx, row: Row, status: number, error: string | null = null): Row {
    const ended = { ...row, status, error, finished_at: tx.now };
    this.kind.update(tx, ended);
    return ended;
  }

  private async run(job: Job): Promise<JobOutcome> {
    const row = this.running(job);
    if (row === null) return {};
    const turn = this.turnOf(row);
    const record = (tx: Tx): void => this.record(tx, job, turn);
    if (turn.isLast) return { record };
    const pauseMs = Math.round((turn.refs.length * 1_000) / row.per_second);
    return { record, retryAt: this.deps.clock.now() + pauseMs };
  }

  private running(job: Job): Row | null {
    const row = this.kind.find(job);
    return row?.status === RUNNING ? row : null;
  }

  /** The next ones that match, at most as many as are sent in a second. */
  private turnOf(row: Row): Turn {
    const { after_ref, through_ref, per_second } = row;
    const looked = this.kind.look(row, after_ref, EXAMINED_MAX);
    const refs: number[] = [];
    for (const { ref, matches } of looked) {
      if (ref > through_ref) return { refs, after: through_ref, isLast: true };
      if (matches === 1) refs.push(ref);
      if (refs.length === per_second || ref === through_ref)
        return { refs, after: ref, isLast: ref === through_ref };
    }
    const isLast = looked.length < EXAMINED_MAX;
    return { refs, after: isLast ? through_ref : (looked.at(-1)?.ref ?? through_ref), isLast };
  }

  private record(tx: Tx, job: Job, turn: Turn): void {
    const row = this.running(job);
    // Stopped, or removed, since the look at it.
    if (row === null) return;
    let { resent } = row;
    for (const ref of turn.refs) {
      const outcome = this.kind.sendOne(tx, row, ref);
      if (outcome === "no-credits") {
        this.end(tx, { ...row, resent, after_ref: ref - 1 }, CANCELLED, "the account has no credits left");
        return;
      }
      if (outcome === "sent") resent += 1;
    }
    const next = { ...row, resent, after_ref: turn.after };
    if (turn.isLast) this.kind.walked(tx, next);
    else this.kind.update(tx, next);
  }
}
