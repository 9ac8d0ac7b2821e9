import { ApiError } from "../../kernel/errors.ts";
import type { ChainActor } from "./chain.ts";

/** A longer history than the server's own. */
export interface Fork {
  /** Who has seen it, such as `the storage`. */
  readonly by: string;
  /** Receipts that they have seen, at least. */
  readonly seen: number;
}

/**
 * @throws ApiError `notary.fork_detected` if others have seen a longer history, `service_unavailable` while that is being
 *   checked after a restore.
 */
export function assertOneHistory({ chainId, fork, restored, sequence }: ChainActor): void {
  if (fork !== null) {
    const { by, seen } = JSON.parse(fork) as Fork;
    const problem = `The chain has ${sequence} receipts, but ${by} has ${seen}: the database is older than that, as after a restore. To continue from ${sequence}, run: ninefold notary accept-fork ${chainId}`;
    throw new ApiError("notary.fork_detected", problem);
  }
  if (restored === null) return;
  const problem =
    "The chain was restored from a backup. The server is checking whether others have seen a longer history.";
  throw new ApiError("service_unavailable", problem, { retryAfterSeconds: 1 });
}

/** Returns the origin of a chain's checkpoints: in each epoch another one. */
export function originOf(
  { origin, epoch: present }: Pick<ChainActor, "origin" | "epoch">,
  epoch: number = present,
): string {
  return epoch === 0 ? origin : `${origin}/e${epoch}`;
}
