import { Type } from "@sinclair/typebox";
import { removeInSlices } from "../background/removal.ts";
import { flag, integer } from "../data/schema.ts";
import { ApiError } from "../errors.ts";
import type { AcrossNetwork } from "../http/operations/perform.ts";
import { type Reply, reply } from "../http/responses/response.ts";
import type { Kernel } from "../kernel.ts";
import type { Job, JobOutcome } from "../scheduler/scheduler.ts";
import type { Tx } from "../storage/tx.ts";

/** Maximum number of items that one request resends. */
export const BULK_MAX = 10_000;
/** Items that one request names by their ids: more than a page of a list. */
export const BULK_IDS_MAX = 200;
/** Items resent per second: default and maximum. */
export const PER_SECOND = 10;
export const PER_SECOND_MAX = 100;
/** Items examined in one step: a few milliseconds. */
export const EXAMINED_MAX = 1_000;
/** Bytes that are written in one unit of work: a few milliseconds. One item may have more. */
const TURN_BYTES_MAX = 1024 * 1024;
/** Concurrent runs of one owner. */
export const RUNS_MAX = 10;
/** Runs that are stored for an owner: starting one costs nothing, so the oldest finished ones are removed. */
export const RUNS_STORED_MAX = 1_000;
/** Concurrent jobs: each takes a few milliseconds. */
const CONCURRENCY = 4;

/** Statuses of a run, in the order of their numbers from 1. */
export const BULK_STATUSES = ["running", "done", "cancelled"] as const;
/** The numbers of the statuses in rows. */
const [RUNNING, DONE, CANCELLED] = [1, 2, 3] as const;

/** Options of a run, in addition to its filter. */
export const BULK_TERMS = {
  per_second: Type.Optional(
    integer({
      min: 1,
      max: PER_SECOND_MAX,
      default: PER_SECOND,
      description: "Maximum number sent per second.",
    }),
  ),
  dry_run: Type.Optional(
    flag({
      description: "If true, returns only the number of matches.",
      examples: [false],
    }),
  ),
};

/** The row of a run. */
export type BulkRow = {
  /** One of the numbers of {@link BULK_STATUSES}. */
  readonly status: number;
  /** JSON of its filters. */
  readonly filters: string;
  readonly matched: number;
  /** 1 if more items match than one run sends. */
  readonly more: number;
  readonly per_second: number;
  /** Items up to this reference are done. */
  readonly after_ref: number;
  /** Reference of the last match. */
  readonly through_ref: number;
  /** Number of items sent. */
  readonly resent: number;
  readonly error: string | null;
  readonly created_at: number;
  readonly finished_at: number | null;
};

/** The row of a new run. It is done if nothing matches. */
export function newRun(
  now: number,
  filters: object,
  per_second: number,
  { matched, more, from, through }: Matching,
): BulkRow {
  const isDone = matched === 0;
  return {
    status: isDone ? DONE : RUNNING,
    filters: JSON.stringify(filters),
    matched,
    more: more === true ? 1 : 0,
    per_second,
    after_ref: isDone ? 0 : from - 1,
    through_ref: through,
    resent: 0,
    error: null,
    created_at: now,
    finished_at: isDone ? now : null,
  };
}

/** The fields that the API shows of every run. */
export function runView({ status, matched, more, error }: BulkRow) {
  return {
    status: BULK_STATUSES[status - 1] ?? "running",
    matched,
    ...(more === 0 ? {} : { more: true as const }),
    error,
  };
}

export function isRunning({ status }: BulkRow): boolean {
  return status === RUNNING;
}

/** Number of matches that a finished run did not send. */
export function skippedOf({ matched, resent, finished_at }: BulkRow): number {
  return finished_at === null ? 0 : Math.max(0, matched - resent);
}

/** `what`: such as "replays of this bucket". @throws ApiError `conflict` */
export function assertBelowRunLimit(running: number, what: string): void {
  if (running < RUNS_MAX) return;
  throw new ApiError("conflict", `${RUNS_MAX} ${what} are running. Wait until one is finished, or stop one.`);
}

/** An examined item. */
export interface Candidate {
  readonly ref: number;
  /** 1 if it matches. */
  readonly matches: number;
  /** Bytes that are written to send it again; default: few. */
  readonly bytes?: number;
}

/** The matches, up to the maximum of a run. */
export interface Matching {
  readonly matched: number;
  readonly more?: true;
  /** References of the first one and of the last one; 0 without any. */
  readonly from: number;
  readonly through: number;
}

/** Why a run cannot continue, by what it says. */
export const BULK_ENDS = {
  "no-credits": "the account has no credits left",
  disabled: "the endpoint is disabled or deleted",
} as const;
export type BulkEnd = keyof typeof BULK_ENDS;

/** A part of the items after a reference. */
export interface Part {
  readonly after: number;
  /** Most items that are looked at. */
  readonly limit: number;
  /** Matches that are enough: the items after them need not be looked at. */
  readonly matchesMax: number;
}

/** A kind of run, implemented by an area. `Prepared`: what sending some items needs. */
export interface BulkKind<Row extends BulkRow, Prepared = null> {
  /** Name of the job. */
  readonly job: string;
  /** The row of a job; null if nothing is left to do. */
  find(job: Pick<Job, "key" | "payload">): Row | null;
  /** The items of a part, ascending; none after the last one. */
  look(row: Row, part: Part): readonly Candidate[];
  /** Reads what takes too long for the unit of work that sends some items. */
  prepare(row: Row, refs: readonly number[]): Promise<Prepared>;
  /** Sends one, and charges for it. */
  sendOne(tx: Tx, row: Row, ref: number, prepared: Prepared): "sent" | "skipped" | BulkEnd;
  insert(tx: Tx, row: Row): void;
  update(tx: Tx, row: Row): void;
  /** Removes the oldest finished runs of the owner of a row beyond the newest `storedMax`. */
  removeExcess(tx: Tx, row: Row, storedMax: number): void;
  /** Updates the row when all items are done. Default: the run is done as well. */
  walked?(tx: Tx, row: Row): void;
}

/** What the API says of the matches. */
export type Matched = Pick<Matching, "matched" | "more">;

/** A request that starts a run, or counts what it would send. */
interface BulkRequest<Claim, Found extends Matching, Started extends object> {
  readonly dry_run: boolean | undefined;
  /** Checks the request before the count. */
  readonly claim: (tx: Tx) => Claim;
  readonly count: (claim: Claim) => Promise<Found>;
  /** Checks again what may have changed during the count, and starts the run. Returns its id, by the name of its field. */
  readonly start: (tx: Tx, claim: Claim, found: Found, matched: Matched) => Started;
}

/** The parts of such a request. The count runs in slices, without holding up other requests. */
export function bulkRequest<Claim, Found extends Matching, Started extends object>({
  dry_run,
  claim,
  count,
  start,
}: BulkRequest<Claim, Found, Started>): AcrossNetwork<
  Claim,
  Found,
  Reply<202, Started & Matched> | Reply<200, Matched>
> {
  return {
    claim,
    outside: count,
    settle: (tx, claimed, found) => {
      const matched = { matched: found.matched, ...(found.more === true ? { more: found.more } : {}) };
      if (dry_run !== true) return reply(202, { ...start(tx, claimed, found, matched), ...matched });
      tx.audit(null);
      return reply(200, matched);
    },
  };
}

/** The work of one job run. */
interface Turn<Prepared> extends Looked {
  readonly prepared: Prepared;
}

interface Looked {
  readonly refs: readonly number[];
  readonly after: number;
  readonly isLast: boolean;
}

/** Counts the matches, up to a maximum, in slices of the event loop. */
export async function countMatching(
  look: (part: Part) => readonly Candidate[],
  matchedMax: number = BULK_MAX,
): Promise<Matching> {
  let [matched, from, through, after, more] = [0, 0, 0, 0, false];
  const slice = async (): Promise<boolean> => {
    const found = look({ after, limit: EXAMINED_MAX, matchesMax: EXAMINED_MAX });
    for (const { ref, matches } of found) {
      after = ref;
      if (matches === 0) continue;
      more = matched === matchedMax;
      if (more) return false;
      if (matched === 0) from = ref;
      matched += 1;
      through = ref;
    }
    return found.length > 0;
  };
  await removeInSlices(slice, () => false);
  return { matched, from, through, ...(more ? { more } : {}) };
}

/**
 * Resends many items at a fixed rate, each in the unit of work that records it: a restart continues where it stopped, and
 * none is sent twice.
 */
export class Bulk<Row extends BulkRow, Prepared = null> {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock">,
    private readonly kind: BulkKind<Row, Prepared>,
  ) {
    deps.scheduler.register(kind.job, { concurrency: CONCURRENCY, run: (job) => this.run(job) });
  }

  /** Stores a run, and starts it unless nothing matches. `key` and `payload` are those of its job. */
  begin(tx: Tx, row: Row, key: string, payload: object): void {
    this.kind.insert(tx, row);
    this.kind.removeExcess(tx, row, RUNS_STORED_MAX);
    if (isRunning(row)) this.deps.scheduler.enqueue(tx, this.kind.job, key, tx.now, payload);
  }

  /** Stops a run; items that were sent stay sent. */
  cancel(tx: Tx, row: Row, error: string | null = null): Row {
    return this.end(tx, row, CANCELLED, error);
  }

  /** Ends a run whose items are all sent. */
  complete(tx: Tx, row: Row): Row {
    return this.end(tx, row, DONE, null);
  }

  private end(tx: Tx, row: Row, status: number, error: string | null): Row {
    const ended = { ...row, status, error, finished_at: tx.now };
    this.kind.update(tx, ended);
    return ended;
  }

  private async run(job: Job): Promise<JobOutcome> {
    const row = this.running(job);
    if (row === null) return {};
    const startedAt = this.deps.clock.now();
    const looked = this.turnOf(row);
    const turn = { ...looked, prepared: await this.kind.prepare(row, looked.refs) };
    const record = (tx: Tx): void => this.record(tx, job, turn);
    if (turn.isLast) return { record };
    const pauseMs = Math.round((turn.refs.length * 1_000) / row.per_second);
    return { record, retryAt: startedAt + pauseMs };
  }

  private running(job: Job): Row | null {
    const row = this.kind.find(job);
    return row !== null && isRunning(row) ? row : null;
  }

  /** The next matches, at most those of one second, and of {@link TURN_BYTES_MAX}. */
  private turnOf(row: Row): Looked {
    const { after_ref, through_ref, per_second } = row;
    const looked = this.kind.look(row, { after: after_ref, limit: EXAMINED_MAX, matchesMax: per_second });
    const refs: number[] = [];
    let written = 0;
    for (const { ref, matches, bytes = 0 } of looked) {
      if (ref > through_ref) return { refs, after: through_ref, isLast: true };
      if (matches === 1) {
        refs.push(ref);
        written += bytes;
      }
      if (refs.length === per_second || written >= TURN_BYTES_MAX || ref === through_ref)
        return { refs, after: ref, isLast: ref === through_ref };
    }
    const isLast = looked.length === 0;
    return { refs, after: isLast ? through_ref : (looked.at(-1)?.ref ?? through_ref), isLast };
  }

  private record(tx: Tx, job: Job, turn: Turn<Prepared>): void {
    const row = this.running(job);
    // Stopped or removed meanwhile.
    if (row === null) return;
    let { resent } = row;
    for (const ref of turn.refs) {
      const outcome = this.kind.sendOne(tx, row, ref, turn.prepared);
      if (outcome === "sent") resent += 1;
      else if (outcome !== "skipped") {
        this.cancel(tx, { ...row, resent, after_ref: ref - 1 }, BULK_ENDS[outcome]);
        return;
      }
    }
    const next = { ...row, resent, after_ref: turn.after };
    if (!turn.isLast) this.kind.update(tx, next);
    else if (this.kind.walked === undefined) this.complete(tx, next);
    else this.kind.walked(tx, next);
  }
}
