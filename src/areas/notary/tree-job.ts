import type { Kernel } from "../../kernel/kernel.ts";
import type { JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { monotonicMs } from "../../kernel/time/clock.ts";
import type { NotaryService } from "./service.ts";
import { TILE_WIDTH } from "./tree/hash-tree.ts";
import type { TreeStore } from "./tree/store.ts";

/** Kind of the durable job that completes the trees of earlier versions' chains. Its key is the project. */
export const TREE_JOB = "notary.tree";

/** Work of one unit, half a commit's. A single step, the hash of a large log, may exceed it. */
const STEP_MS = 2;

/** Units of work in one run of the job, so that a shutdown does not wait for a long chain. */
const STEPS_PER_RUN = 50;

/**
 * Registers the job that adds the leaves of receipts that earlier versions have stored, and the tiles above them. It works in
 * short units of work between those of requests. Returns how to start it for every chain that needs it.
 */
export function registerTreeJob(
  { scheduler, writer, clock }: Pick<Kernel, "scheduler" | "writer" | "clock">,
  notary: NotaryService,
  store: TreeStore,
): () => Promise<void> {
  /** Does one step for a chain; false when its tree is complete. */
  const step = (tx: Tx, projectRef: number): boolean => {
    const chain = notary.chain(projectRef, tx);
    if (chain === undefined || chain.backlog === 0) return false;
    const { ref, backlog } = chain;
    let last = store.lastLeaf(ref, backlog);
    let tiles = store.fullTiles(ref);
    const startedAt = monotonicMs();
    do {
      if ((tiles + 1) * TILE_WIDTH <= (last < backlog ? last : chain.sequence)) {
        tiles += 1;
        notary.trees.fillTile(tx, ref, tiles * TILE_WIDTH);
      } else if (last < backlog) {
        last += 1;
        const fields = notary.leafFields(chain, last);
        if (fields === null) throw new Error(`chain ${ref} has no receipt ${last}`);
        notary.trees.add(tx, chain, fields);
      } else {
        store.complete(tx, ref);
        tx.onRollback(() => {
          chain.backlog = backlog;
        });
        chain.backlog = 0;
        return false;
      }
    } while (monotonicMs() - startedAt < STEP_MS);
    return true;
  };
  scheduler.register(TREE_JOB, {
    // One chain after the other: requests have the rest of the time.
    concurrency: 1,
    run: async ({ key }): Promise<JobOutcome> => {
      for (let steps = 0; steps < STEPS_PER_RUN; steps += 1) {
        const hasMore = await writer.submit((tx) => step(tx, Number(key)));
        if (!hasMore) return {};
      }
      return { retryAt: clock.now(), attempt: 0 };
    },
  });
  return async () => {
    const incomplete = store.incomplete();
    if (incomplete.length === 0) return;
    await writer.submit((tx) => {
      for (const { project_ref } of incomplete)
        scheduler.enqueue(tx, TREE_JOB, String(project_ref), tx.now, null);
    });
  };
}
