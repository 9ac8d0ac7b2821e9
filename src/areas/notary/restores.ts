import { ApiError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { type ChainActor, readLogEntry } from "./chain.ts";
import type { Checkpoints } from "./checkpoints/checkpoints.ts";
import { retryDelayMs } from "./domain.ts";
import { type Fork, originOf } from "./history.ts";
import type { NotaryService } from "./service.ts";
import type { NotaryStore } from "./store.ts";
import type { Uploads } from "./uploads.ts";
import type { Witnesses, WitnessProblem } from "./witnesses/witnesses.ts";

/** Kind of the durable job that checks a restored chain. Its key is the project. */
export const RESTORED_JOB = "notary.restored";

/** Concurrent checks; each is a request to a storage, and one to each witness. */
const CONCURRENT_CHAINS = 16;

/** How long a storage or a witness that does not respond delays a restored chain. */
export const UNREACHABLE_MS = DAY_MS;

/** What the restore notes in the database, as far as it is used here. */
interface RestoreNote {
  readonly backup_created_at: string | null;
}

/** State of the job: the beginning of its checks, and the failed ones. */
interface Attempts {
  readonly since: number;
  readonly failures: number;
}

interface RestoresDeps {
  readonly kernel: Pick<Kernel, "scheduler" | "writer" | "clock" | "ids">;
  readonly store: NotaryStore;
  readonly notary: NotaryService;
  readonly checkpoints: Checkpoints;
  readonly uploads: Uploads;
  readonly witnesses: Witnesses;
}

/**
 * Restored chains. A restored server cannot know what was signed after its backup: it asks the storage of the receipts and the
 * witnesses, and then declares the restore in the chain. If one of them has seen more, nothing is signed until that is accepted.
 */
export class Restores {
  constructor(private readonly deps: RestoresDeps) {
    deps.kernel.scheduler.register(RESTORED_JOB, {
      concurrency: CONCURRENT_CHAINS,
      run: ({ key, payload }) => this.check(Number(key), payload as Attempts),
    });
  }

  /** Declares the restore in chains without storage and witnesses, and starts the checks of all others. */
  async resume(): Promise<void> {
    const { kernel, store, notary, uploads, witnesses } = this.deps;
    for (const { project_ref } of store.restored()) {
      await kernel.writer.submit((tx) => {
        const chain = notary.chain(project_ref, tx);
        if (chain === undefined || chain.fork !== null) return;
        if (!uploads.isConfigured(project_ref) && !witnesses.areConfigured(chain))
          return this.declare(tx, project_ref, chain);
        const attempts: Attempts = { since: tx.now, failures: 0 };
        kernel.scheduler.enqueue(tx, RESTORED_JOB, String(project_ref), tx.now, attempts);
      });
    }
  }

  /**
   * Continues a chain although others have seen a longer history. Checkpoints get another origin, and the chain a receipt that
   * declares the fork.
   *
   * @throws ApiError `conflict` if the chain has no fork and is not being checked.
   */
  accept(tx: Tx, projectRef: number): ChainActor {
    const { kernel, notary } = this.deps;
    const chain = notary.chainToUse(projectRef, tx);
    if (chain.fork === null && chain.restored === null)
      throw new ApiError("conflict", "This chain has no fork: there is nothing to accept.");
    tx.audit({
      summary: "Fork of the chain accepted",
      target: { type: "chain", id: chain.chainId },
      before: { fork: chain.fork === null ? null : JSON.parse(chain.fork) },
      after: { fork: null, size: chain.sequence },
    });
    kernel.scheduler.cancel(tx, RESTORED_JOB, String(projectRef));
    this.declare(tx, projectRef, chain);
    return chain;
  }

  private async check(projectRef: number, { since, failures }: Attempts): Promise<JobOutcome> {
    const { kernel, notary, witnesses } = this.deps;
    const chain = notary.chain(projectRef);
    if (chain === undefined || chain.restored === null || chain.fork !== null) return {};
    const { found, problems } = await this.findLonger(projectRef, chain);
    const now = kernel.clock.now();
    const record = (tx: Tx): ChainActor | undefined => {
      const current = notary.chain(projectRef, tx);
      if (current !== undefined) witnesses.recordProblems(tx, current, problems);
      return current;
    };
    if (found === "unknown" && now - since < UNREACHABLE_MS) {
      const payload: Attempts = { since, failures: failures + 1 };
      const retryAt = now + retryDelayMs(payload.failures, kernel.ids.fraction());
      return { retryAt, payload, record: (tx) => void record(tx) };
    }
    return {
      record: (tx) => {
        const current = record(tx);
        if (current === undefined || current.restored === null) return;
        if (found !== null && found !== "unknown") this.setFork(tx, current, found);
        else this.declare(tx, projectRef, current);
      },
    };
  }

  /**
   * The longer history that the storage or a witness proves: by a receipt or a checkpoint with the signature of this chain. Null
   * if none does, `unknown` while one does not say.
   */
  private async findLonger(
    projectRef: number,
    chain: ChainActor,
  ): Promise<{ found: Fork | null | "unknown"; problems: readonly WitnessProblem[] }> {
    const { uploads, witnesses } = this.deps;
    const [isStored, { found: seen, problems }] = await Promise.all([
      uploads.hasNextReceipt(projectRef, chain),
      witnesses.findLonger(chain),
    ]);
    const stored: Fork = { by: "the storage", seen: chain.sequence + 1 };
    if (seen !== null && seen !== "unknown") return { found: seen, problems };
    if (isStored === true) return { found: stored, problems };
    return { found: isStored === null ? "unknown" : seen, problems };
  }

  /** Stops a chain of which a witness proves more than the server knows to have signed under the origin of `epoch`. */
  detectFork(tx: Tx, chain: ChainActor, epoch: number, fork: Fork): void {
    const isOutdated = chain.epoch !== epoch || chain.fork !== null || chain.restored !== null;
    const { size = 0 } = this.deps.checkpoints.submitted(chain, epoch) ?? {};
    if (!isOutdated && fork.seen > size) this.setFork(tx, chain, fork);
  }

  private setFork(tx: Tx, chain: ChainActor, fork: Fork): void {
    this.change(tx, chain, { fork: JSON.stringify(fork) });
  }

  /** Ends the epoch if something was signed in it, and logs that the chain continues from here. Free of charge. */
  private declare(tx: Tx, projectRef: number, chain: ChainActor): void {
    const { checkpoints, uploads } = this.deps;
    const note = chain.restored === null ? null : (JSON.parse(chain.restored) as RestoreNote);
    const epoch = checkpoints.hasSigned(chain) ? chain.epoch + 1 : chain.epoch;
    this.change(tx, chain, { epoch, restored: null, fork: null });
    // The key is lost: the chain has ended.
    if (chain.privateKey === null) return;
    const log = {
      ninefold: "restored",
      backup_made_at: note?.backup_created_at ?? null,
      previous_origin: originOf(chain, Math.max(0, epoch - 1)),
      size: chain.sequence,
    };
    uploads.append(tx, projectRef, readLogEntry({ log }, JSON.stringify({ log })), null);
  }

  private change(
    tx: Tx,
    chain: ChainActor,
    to: Partial<Pick<ChainActor, "epoch" | "restored" | "fork">>,
  ): void {
    const { epoch, restored, fork } = chain;
    const after = { epoch, restored, fork, ...to };
    this.deps.store.setHistory(tx, { ref: chain.ref, ...after });
    tx.onRollback(() => Object.assign(chain, { epoch, restored, fork }));
    Object.assign(chain, after);
  }
}
