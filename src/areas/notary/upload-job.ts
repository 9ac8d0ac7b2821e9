import { isUnavailable } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { PutOutcome } from "../../kernel/outbound/s3.ts";
import type { Job, JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import { retryDelayMs } from "./domain.ts";
import type { Receipt } from "./schema.ts";
import type { NotaryService } from "./service.ts";
import { UPLOAD_JOB, type Upload, type Uploads } from "./uploads.ts";

/** Projects with concurrent uploads. A storage that hangs delays only its own project. */
const CONCURRENT_PROJECTS = 16;
/** Concurrent uploads of one project. */
const CONCURRENT_RECEIPTS = 8;
/** Receipts per run of the job, so that a shutdown does not wait for a long backlog. */
export const RECEIPTS_PER_RUN = 200;
/** Timeout of one upload. */
const UPLOAD_TIMEOUT_MS = 10_000;

/** Progress of a project's job. */
interface Progress {
  /** The next run continues after this position. */
  readonly after: number;
  /** Consecutive runs with a failed upload. */
  readonly failures: number;
}

/** Outcome of a run. */
interface RunResult {
  /** Whether the storage was available. */
  readonly isAvailable: boolean;
  /** Whether every upload succeeded. */
  readonly isComplete: boolean;
}

/** An upload and what was uploaded. */
interface Attempt {
  readonly receipt: Receipt;
  readonly outcome: PutOutcome;
}

const UNAVAILABLE: RunResult = { isAvailable: false, isComplete: false };

/** Registers the job that uploads buffered receipts, oldest first, until none is left. */
export function registerUploadJob(kernel: Kernel, notary: NotaryService, uploads: Uploads): void {
  const { scheduler, writer, clock, ids } = kernel;

  const attempt = async (upload: Upload): Promise<Attempt | null> => {
    const receipt = notary.receipt(upload.projectRef, upload.sequence);
    // The project was removed meanwhile, or the log request is uploading the receipt.
    if (receipt === null || uploads.isInFlight(upload)) return null;
    return {
      receipt,
      outcome: await uploads.upload(upload, receipt, UPLOAD_TIMEOUT_MS),
    };
  };

  const uploadAll = async (due: readonly Upload[]): Promise<RunResult> => {
    let isComplete = true;
    for (let start = 0; start < due.length; start += CONCURRENT_RECEIPTS) {
      const group = due.slice(start, start + CONCURRENT_RECEIPTS);
      const attempts = await Promise.all(group.map(attempt));
      await writer.submit((tx) => {
        for (const [index, upload] of group.entries()) {
          const attempt = attempts[index];
          if (attempt) uploads.record(tx, upload, attempt.outcome, attempt.receipt);
        }
      });
      if (attempts.some((attempt) => attempt?.outcome.kind === "unavailable")) return UNAVAILABLE;
      if (attempts.some((attempt) => attempt?.outcome.kind === "conflict")) isComplete = false;
    }
    return { isAvailable: true, isComplete };
  };

  const retryLater = (failures: number, after: number): JobOutcome => {
    const retryAt = clock.now() + retryDelayMs(Math.max(1, failures), ids.fraction());
    return { retryAt, payload: { after, failures } satisfies Progress };
  };

  const run = async (job: Job): Promise<JobOutcome> => {
    const projectRef = Number(job.key);
    const { after, failures } = job.payload as Progress;
    const due = uploads.due(projectRef, after, RECEIPTS_PER_RUN);
    const { isAvailable, isComplete } = await uploadAll(due).catch(resultIfUnavailable);
    if (!isAvailable) return retryLater(failures + 1, after);
    const last = due.at(-1);
    if (last !== undefined && due.length === RECEIPTS_PER_RUN) {
      const payload: Progress = { after: last.sequence, failures: isComplete ? failures : failures + 1 };
      return { retryAt: clock.now(), payload };
    }
    // The remaining receipts are new, in flight, or in conflict with an existing object.
    return uploads.buffered(projectRef) === 0
      ? {}
      : retryLater(isComplete && after === 0 ? 0 : failures + 1, 0);
  };

  scheduler.register(UPLOAD_JOB, { concurrency: CONCURRENT_PROJECTS, run });
}

/** A full disk retries the job later, like an unavailable storage. */
function resultIfUnavailable(error: unknown): RunResult {
  if (isUnavailable(error)) return UNAVAILABLE;
  throw error;
}
