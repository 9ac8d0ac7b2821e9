import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { SubscriberStore } from "./store.ts";

/** Rows that one unit of work removes: a few milliseconds. A page has up to 6,200, which took 40. */
export const ROWS_PER_PART = 500;
/** The job that removes what is left of a deleted page; its key is the reference of the page, which no other page gets. */
const REMOVAL_JOB = "status_pages.removal";
const CONCURRENCY = 1;

/** Removes the subscribers of deleted pages: the first part in the unit of work that deletes the page, and what is left in further ones. */
export class SubscriberRemoval {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "writer"> & { readonly subscribers: SubscriberStore },
  ) {
    deps.scheduler.register(REMOVAL_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => {
        while (await deps.writer.submit((tx) => this.removePart(tx, Number(key))));
        return {};
      },
    });
  }

  /** Removes the subscribers of a page, and the digests of those who have unsubscribed. */
  remove(tx: Tx, pageRef: number): void {
    if (this.removePart(tx, pageRef))
      this.deps.scheduler.enqueue(tx, REMOVAL_JOB, String(pageRef), tx.now, null);
  }

  /** Returns whether something may be left. Digests go last: who unsubscribes meanwhile adds one. */
  private removePart(tx: Tx, pageRef: number): boolean {
    const { subscribers } = this.deps;
    const removed = subscribers.removeOfPage(tx, pageRef, ROWS_PER_PART);
    if (removed === ROWS_PER_PART) return true;
    const rowsMax = ROWS_PER_PART - removed;
    return subscribers.removeUnsubscribedOfPage(tx, pageRef, rowsMax) === rowsMax;
  }
}
