import { isUnavailable } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Job, JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import { retryDelayMs } from "./domain.ts";
import type { PutOutcome } from "./s3.ts";
import type { NotaryService } from "./service.ts";
import { UPLOAD_JOB, type Upload, type Uploads } from "./uploads.ts";

/** Projects whose buffered receipts are uploaded at once: a storage that hangs holds up its own project alone. */
const PROJECTS_AT_ONCE = 16;
/** Receipts of one project under way at once. */
const RECEIPTS_AT_ONCE = 8;
/** Receipts that one run of the job takes on, so that the process need not wait for a long backlog when it ends. */
export const RECEIPTS_PER_RUN = 200;
/** Time for one upload. */
const UPLOAD_TIMEOUT_MS = 10_000;

/** How far the job of a project is. */
interface Progress {
  /** It goes on after this position. */
  readonly after: number;
  /** Runs in a row in which some upload failed. */
  readonly failures: number;
}

/** What became of a run: whether the storage could be used, and whether every upload succeeded. */
interface Run {
  readonly usable: boolean;
  readonly clean: boolean;
}

/** Registers the job that uploads buffered receipts, oldest first, until none are left. */
export function registerUploadJob(kernel: Kernel, notary: NotaryService, uploads: Uploads): void {
  const { scheduler, writer, clock, ids } = kernel;

  const attempt = async (upload: Upload): Promise<PutOutcome | null> => {
    const receipt = notary.receipt(upload.projectRef, upload.sequence);
    // Null: the project was removed meanwhile, or the log request itself is uploading it.
    if (receipt === null || uploads.isUnderWay(upload)) return null;
    return uploads.upload(upload, receipt, UPLOAD_TIMEOUT_MS);
  };

  const uploadAll = async (due: readonly Upload[]): Promise<Run> => {
    let clean = true;
    for (let start = 0; start < due.length; start += RECEIPTS_AT_ONCE) {
      const group = due.slice(start, start + RECEIPTS_AT_ONCE);
      const outcomes = await Promise.all(group.map(attempt));
      await writer.submit((tx) => {
        for (const [index, upload] of group.entries()) {
          const outcome = outcomes[index];
          if (outcome) uploads.record(tx, upload, outcome);
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
    const due = uploads.due(projectRef, after, RECEIPTS_PER_RUN);
    const { usable, clean } = await uploadAll(due).catch(whenUnwritable);
    if (!usable) return again(failures + 1, after);
    const last = due.at(-1);
    if (last !== undefined && due.length === RECEIPTS_PER_RUN) {
      const payload: Progress = { after: last.sequence, failures: clean ? failures : failures + 1 };
      return { retryAt: clock.now(), payload };
    }
    // What is still buffered came in meanwhile, is under way, or conflicts with an object that is there.
    return uploads.bufferedOf(projectRef) === 0 ? {} : again(clean && after === 0 ? 0 : failures + 1, 0);
  };

  scheduler.register(UPLOAD_JOB, { concurrency: PROJECTS_AT_ONCE, run });
}

/** On a full disk the job is tried again later, as when a storage does not answer. */
function whenUnwritable(error: unknown): Run {
  if (isUnavailable(error)) return { usable: false, clean: false };
  throw error;
}
