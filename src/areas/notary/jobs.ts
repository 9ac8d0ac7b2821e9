import type { Clock } from "../../kernel/clock.ts";
import { isUnavailable } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Job, JobOutcome, Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { DELIVERY_JOB, type Delivery, type ReceiptCopies } from "./copies.ts";
import { retryDelayMs } from "./domain.ts";
import type { PutOutcome } from "./s3.ts";
import type { NotaryService } from "./service.ts";

/** Projects whose buffered receipts are delivered at once: a storage that hangs holds up its own project alone. */
const PROJECTS_AT_ONCE = 16;
/** Receipts of one project under way at once. */
const RECEIPTS_AT_ONCE = 8;
/** Receipts that one run of the job takes on, so that the end of the process does not wait for a long backlog. */
export const RECEIPTS_PER_RUN = 200;
/** Time for one delivery. */
const DELIVERY_TIMEOUT_MS = 10_000;

/** Where the job of a project stands. */
interface Progress {
  /** Position after which it goes on. */
  readonly after: number;
  /** Runs in a row that could not deliver something. */
  readonly failures: number;
}

/** What became of a run: whether the storage could be used, and whether some receipt could not be delivered. */
interface Run {
  readonly usable: boolean;
  readonly clean: boolean;
}

/** Registers the job that delivers buffered receipts, oldest first, until none is left. */
export function registerDeliveries(deps: {
  scheduler: Scheduler;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  notary: NotaryService;
  copies: ReceiptCopies;
}): void {
  const { scheduler, writer, clock, ids, notary, copies } = deps;

  const attempt = async (delivery: Delivery): Promise<PutOutcome | null> => {
    const receipt = notary.receipt(delivery.projectRef, delivery.sequence);
    // Null: the project was removed meanwhile, or the log request is at it itself.
    if (receipt === null || copies.isUnderWay(delivery)) return null;
    return copies.deliver(delivery, receipt, DELIVERY_TIMEOUT_MS);
  };

  const deliverAll = async (due: readonly Delivery[]): Promise<Run> => {
    let clean = true;
    for (let start = 0; start < due.length; start += RECEIPTS_AT_ONCE) {
      const group = due.slice(start, start + RECEIPTS_AT_ONCE);
      const outcomes = await Promise.all(group.map(attempt));
      await writer.submit((tx) => {
        for (const [index, delivery] of group.entries()) {
          const outcome = outcomes[index];
          if (outcome !== null && outcome !== undefined) copies.record(tx, delivery, outcome);
        }
      });
      if (outcomes.some((outcome) => outcome?.kind === "unavailable")) return { usable: false, clean: false };
      if (outcomes.some((outcome) => outcome?.kind === "taken")) clean = false;
    }
    return { usable: true, clean };
  };

  const again = (failures: number, after: number): JobOutcome => {
    const retryAt = clock.now() + retryDelayMs(Math.max(1, failures), ids.fraction());
    return { retryAt, payload: { after, failures } satisfies Progress };
  };

  const run = async (job: Job): Promise<JobOutcome> => {
    const projectRef = Number(job.key);
    const { after, failures } = job.payload as Progress;
    const due = copies.due(projectRef, after, RECEIPTS_PER_RUN);
    const { usable, clean } = await deliverAll(due).catch(whenUnwritable);
    if (!usable) return again(failures + 1, after);
    const last = due.at(-1);
    if (last !== undefined && due.length === RECEIPTS_PER_RUN) {
      const payload: Progress = { after: last.sequence, failures: clean ? failures : failures + 1 };
      return { retryAt: clock.now(), payload };
    }
    // What is still buffered came in meanwhile, is under way, or stands in conflict with an object that is there.
    return copies.bufferedOf(projectRef) === 0 ? {} : again(clean && after === 0 ? 0 : failures + 1, 0);
  };

  scheduler.register(DELIVERY_JOB, { concurrency: PROJECTS_AT_ONCE, run });
}

/** A full disk is no defect of the job: it is tried again later like a storage that does not answer. */
function whenUnwritable(error: unknown): Run {
  if (isUnavailable(error)) return { usable: false, clean: false };
  throw error;
}
