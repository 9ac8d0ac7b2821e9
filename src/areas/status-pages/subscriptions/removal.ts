import type { Kernel } from "../../../kernel/kernel.ts";
import { PartedRemoval } from "../../../kernel/scheduler/parted-removal.ts";
import type { SubscriberStore } from "./store.ts";

/** Rows that one unit of work removes: a few milliseconds. A page has up to 6,200, which took 40. */
export const ROWS_PER_PART = 500;

/**
 * Removes the subscribers of deleted pages, and the digests of those who have unsubscribed. The key is the reference of the
 * page, which no other page gets. Digests go last: who unsubscribes meanwhile adds one.
 */
export function subscriberRemoval(
  deps: Pick<Kernel, "scheduler" | "writer"> & { readonly subscribers: SubscriberStore },
): PartedRemoval {
  const { subscribers } = deps;
  return new PartedRemoval(deps, {
    job: "status_pages.removal",
    removePart(tx, key) {
      const pageRef = Number(key);
      const removed = subscribers.removeOfPage(tx, pageRef, ROWS_PER_PART);
      if (removed === ROWS_PER_PART) return true;
      const rowsMax = ROWS_PER_PART - removed;
      return subscribers.removeUnsubscribedOfPage(tx, pageRef, rowsMax) === rowsMax;
    },
  });
}
