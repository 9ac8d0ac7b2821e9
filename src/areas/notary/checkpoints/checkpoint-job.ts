import type { Kernel } from "../../../kernel/kernel.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import { CHECKPOINT_JOB, type NotaryService } from "../service.ts";
import type { Checkpoints } from "./checkpoints.ts";

/** Concurrent chains: the work of each is a unit of work. */
const CONCURRENT_CHAINS = 4;

/** Wait before the tree of an earlier version's chain is looked at again. */
const INCOMPLETE_RETRY_MS = 5_000;

/** Registers the job that signs a checkpoint some time after a receipt, so that old checkpoints exist without requests. */
export function registerCheckpointJob(
  { scheduler, clock, changes }: Pick<Kernel, "scheduler" | "clock" | "changes">,
  notary: NotaryService,
  checkpoints: Checkpoints,
): void {
  scheduler.register(CHECKPOINT_JOB, {
    concurrency: CONCURRENT_CHAINS,
    run: async ({ key }): Promise<JobOutcome> => {
      const projectRef = Number(key);
      const chain = notary.chain(projectRef);
      // The project was deleted, or the key of the chain is lost.
      if (chain === undefined || chain.privateKey === null) return {};
      // The receipt that declares a restore schedules a checkpoint again.
      if (chain.restored !== null || chain.fork !== null) return {};
      if (chain.backlog > 0) return { retryAt: clock.now() + INCOMPLETE_RETRY_MS, attempt: 0 };
      const waitMs = checkpoints.waitMs(chain, clock.now());
      if (waitMs > 0) return { retryAt: clock.now() + waitMs, attempt: 0 };
      return {
        record: (tx) => {
          const current = notary.chain(projectRef, tx);
          if (current === undefined) return;
          checkpoints.sign(tx, current);
          changes.inProject(tx, projectRef, "witness", "checkpoint");
          tx.onRollback(() => {
            current.checkpointDue = true;
          });
          current.checkpointDue = false;
        },
      };
    },
  });
}
