import type { Kernel } from "../../kernel/kernel.ts";
import { laneName } from "../../kernel/scheduler/dispatcher.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { ChainActor } from "./chain.ts";
import type { WitnessStore } from "./store.ts";
import type { ProjectOwners } from "./uploads.ts";

/** Kind of the durable job that submits the newest checkpoint of a chain to its witnesses. Its key is the project. */
export const WITNESS_JOB = "notary.witnesses";

/** Time between two submissions of a chain, so that a busy chain does not burden its witnesses. */
export const SUBMISSION_INTERVAL_MS = 60_000;

/** Schedules the submissions of checkpoints to the witnesses of their chains. */
export class Submissions {
  constructor(
    private readonly scheduler: Kernel["scheduler"],
    private readonly store: WitnessStore,
    private readonly owners: ProjectOwners,
  ) {}

  /** Submits the newest checkpoint to the witnesses, if there are any: now, or a minute after the last time. */
  schedule(tx: Tx, chain: ChainActor): void {
    if (this.store.witnesses(chain.ref).length === 0) return;
    const account = this.owners.accountOf(chain.projectRef);
    // In a lane of its account, so that it waits while that is suspended.
    const lane = account === null ? "" : laneName(account, "witnesses");
    // A clock that was set back delays it by no more than the interval.
    const dueAt = Math.min(Math.max(tx.now, chain.submitAfter), tx.now + SUBMISSION_INTERVAL_MS);
    this.scheduler.enqueue(tx, WITNESS_JOB, String(chain.projectRef), dueAt, { failures: 0 }, lane);
  }
}
