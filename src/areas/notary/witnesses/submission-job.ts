import type { Kernel } from "../../../kernel/kernel.ts";
import { backoffMs, varied } from "../../../kernel/outbound/retries.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import type { ChainActor } from "../chain.ts";
import type { Checkpoints } from "../checkpoints/checkpoints.ts";
import type { Fork } from "../history.ts";
import type { NotaryService } from "../service.ts";
import { SUBMISSION_INTERVAL_MS, WITNESS_JOB } from "../submissions.ts";
import type { Witnesses } from "./witnesses.ts";

/** Concurrent chains. The requests to the witnesses of a chain run concurrently, too. */
const CONCURRENT_CHAINS = 16;

/** Longest delay before a witness without a response gets the same checkpoint again. */
const RETRY_LONGEST_MS = HOUR_MS;

interface SubmissionDeps {
  readonly notary: NotaryService;
  readonly checkpoints: Checkpoints;
  readonly witnesses: Witnesses;
  /** Stops a chain of which a witness proves more than was signed under the origin of `epoch`. */
  readonly detectFork: (tx: Tx, chain: ChainActor, epoch: number, fork: Fork) => void;
}

/** Registers the job that submits checkpoints to witnesses. A crash repeats a submission, which changes nothing. */
export function registerSubmissionJob(
  { scheduler, clock, ids, log }: Pick<Kernel, "scheduler" | "clock" | "ids" | "log">,
  { notary, checkpoints, witnesses, detectFork }: SubmissionDeps,
): void {
  scheduler.register(WITNESS_JOB, {
    concurrency: CONCURRENT_CHAINS,
    run: async ({ key, payload }): Promise<JobOutcome> => {
      const projectRef = Number(key);
      const chain = notary.chain(projectRef);
      // The receipt that declares a restore or a fork is followed by a checkpoint, and that by a submission.
      if (chain === undefined || chain.restored !== null || chain.fork !== null) return {};
      const checkpoint = checkpoints.submitted(chain, chain.epoch);
      if (checkpoint === null) return {};
      const rows = witnesses.missing(chain, checkpoint);
      if (rows.length === 0) return {};
      chain.submitAfter = clock.now() + SUBMISSION_INTERVAL_MS;
      const said = await Promise.all(rows.map((row) => witnesses.submit(chain, row, checkpoint)));
      const record: JobOutcome["record"] = (tx) => {
        const current = notary.chain(projectRef, tx);
        if (current === undefined) return;
        for (const [at, row] of rows.entries()) {
          const outcome = said[at];
          if (outcome === undefined) continue;
          // A witness that returns the same at each checkpoint is logged once.
          if (outcome.kind === "rejected" && outcome.problem !== row.last_error)
            log.warn("a witness has not cosigned a checkpoint", {
              chain: current.chainId,
              witness: row.name,
              error: outcome.problem,
            });
          const isKnown = witnesses.record(tx, current, row, checkpoint, outcome);
          if (isKnown && outcome.kind === "larger")
            detectFork(tx, current, checkpoint.epoch, { by: `the witness ${row.name}`, seen: outcome.size });
        }
      };
      if (!said.some(({ kind }) => kind === "unavailable")) return { record };
      const failures = (payload as { failures: number }).failures + 1;
      const delayMs = Math.round(
        varied(backoffMs(failures, SUBMISSION_INTERVAL_MS, RETRY_LONGEST_MS), ids.fraction()),
      );
      return {
        record,
        retryAt: clock.now() + Math.max(SUBMISSION_INTERVAL_MS, delayMs),
        payload: { failures },
      };
    },
  });
}
