import type { AuditTrail } from "../../kernel/audit/trail.ts";
import { removeInSlices } from "../../kernel/background/removal.ts";
import type { Caller } from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport, ExportedTable } from "../../kernel/projects/account-export.ts";
import type { RemoveAccountRows } from "../../kernel/projects/resources.ts";
import type { SuspendedAccounts } from "../../kernel/projects/suspended-accounts.ts";
import type { JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import type { PlatformCredentials } from "./credentials.ts";
import type { AccountActor, Accounts } from "./ledger.ts";
import type { AccountDeleted } from "./schema.ts";
import type { AccountStore } from "./store.ts";

/** The job that removes what a deleted account leaves behind. */
const REMOVE_ACCOUNT = "accounts.remove";
/** Rows removed in one unit of work: one or two milliseconds of the writer's time. */
const REMOVAL_SLICE_ROWS = 100;
/**
 * Time after the deletion at which the rows are removed once more, and then the account itself: a request that was between
 * its two units of work (30 s over the network at most), or a write in the background, can still add a row.
 */
export const LAST_PASS_MS = 2 * 60 * 1000;

/** The projects of a deleted account. */
export interface AccountProjects {
  /** Deletes at most `projectsMax` projects, the default one included. Returns how many. */
  deleteSomeOf(tx: Tx, accountRef: number, projectsMax: number): number;
  /** Removes the contents of all projects, and in the last pass the projects. False if the process stops before it is done. */
  removeAllOf(accountRef: number, isLastPass: boolean): Promise<boolean>;
}

/** What other areas keep of accounts. */
export interface AccountContents {
  readonly projects: AccountProjects;
  /** Rows outside of projects. The audit log comes last, since the removal of others may write to it. */
  readonly rows: readonly RemoveAccountRows[];
  /** What an export has of them. */
  readonly exports: readonly AreaExport[];
  /** The table of projects, each with what these tables have of it. */
  readonly projectExport: (contains: readonly ExportedTable[]) => ExportedTable;
}

export interface RemovalDeps extends Pick<Kernel, "writer" | "scheduler" | "clock"> {
  readonly store: AccountStore;
  readonly accounts: Accounts;
  readonly credentials: PlatformCredentials;
  readonly trail: AuditTrail;
  readonly suspended: SuspendedAccounts;
  /** Called at each removal: other areas are created later. */
  readonly contents: () => AccountContents;
}

/** Projects that the request itself deletes, so that the public pages of almost every account are gone with the response. */
const PROJECTS_DELETED_IMMEDIATELY = 20;

/** Deletes accounts: from the response on nothing works with their keys, and a durable job removes their rows in slices. */
export class AccountRemoval {
  private stopping = false;

  constructor(private readonly deps: RemovalDeps) {
    // One account at a time, to limit the load on the disk.
    deps.scheduler.register(REMOVE_ACCOUNT, {
      concurrency: 1,
      run: (job) => this.run(Number(job.key), job.dueAt),
    });
  }

  /**
   * Deletes an account in the caller's unit of work.
   * @throws ApiError `conflict` for the operator's account, and for the caller's own.
   */
  delete(tx: Tx, account: AccountActor, caller: Caller): AccountDeleted {
    const { store, accounts, credentials, suspended, scheduler, contents } = this.deps;
    const { ref, userId: user_id, tier, balance } = account;
    assertDeletable(ref, store.firstRef(), caller);
    // The owner's open streams listen for audit entries about the account, and end with this one.
    tx.audit({
      summary: `Account ${user_id} deleted`,
      target: { type: "account", id: user_id },
      subjectRef: ref,
      before: { tier, balance },
      after: null,
    });
    store.markDeleted(tx, { ref, now: tx.now });
    accounts.change(tx, account, { deletedAt: tx.now, deleted: true, suspended: true, email: "" });
    credentials.end(tx, account);
    suspended.set(tx, ref, true);
    contents().projects.deleteSomeOf(tx, ref, PROJECTS_DELETED_IMMEDIATELY);
    scheduler.enqueue(tx, REMOVE_ACCOUNT, String(ref), tx.now, {});
    return { user_id, deleted_at: isoTime(tx.now) };
  }

  /** Stops after the current slice; the next start continues. */
  stop(): void {
    this.stopping = true;
  }

  private async run(ref: number, dueAt: number): Promise<JobOutcome> {
    const { accounts, clock, scheduler, contents } = this.deps;
    const isStopping = (): boolean => this.stopping;
    const interrupted = { retryAt: dueAt, attempt: 0 };
    const lastPassAt = (accounts.get(ref).deletedAt ?? 0) + LAST_PASS_MS;
    const now = clock.now();
    // A clock that was set back does not delay it.
    const isLastPass = now >= lastPassAt || now < lastPassAt - LAST_PASS_MS;
    if (!(await contents().projects.removeAllOf(ref, isLastPass))) return interrupted;
    if (!(await scheduler.removeLanesOf(ref, isStopping))) return interrupted;
    for (const removeRows of [...contents().rows, this.removeOwnRows])
      if (!(await this.removeAll(ref, removeRows))) return interrupted;
    if (!isLastPass) return { retryAt: Math.max(lastPassAt, clock.now()), attempt: 0 };
    return { record: (tx) => this.removeAccount(tx, ref) };
  }

  private removeAll(ref: number, removeRows: RemoveAccountRows): Promise<boolean> {
    const slice = (tx: Tx) => removeRows(tx, ref, REMOVAL_SLICE_ROWS) === REMOVAL_SLICE_ROWS;
    return removeInSlices(
      () => this.deps.writer.submit(slice),
      () => this.stopping,
    );
  }

  /** The ledger. Newest entries stay no longer than others: nobody reads it any more. */
  private readonly removeOwnRows: RemoveAccountRows = (tx, ref, rowsMax) =>
    this.deps.store.removeEntries(tx, ref, rowsMax);

  private removeAccount(tx: Tx, ref: number): void {
    const { store, accounts, credentials, suspended, trail } = this.deps;
    const account = accounts.get(ref);
    credentials.removeAll(tx, account);
    store.removeCounts(tx, ref);
    store.remove(tx, ref);
    store.recordRemoved(tx, ref);
    trail.recordSystem(tx, "accounts.purge", null, {
      summary: `Account ${account.userId} removed with everything in it`,
      target: { type: "account", id: account.userId },
      before: null,
      after: null,
    });
    tx.afterCommit(() => {
      accounts.drop(ref);
      suspended.forget(ref);
    });
  }
}

/** @throws ApiError `conflict` */
function assertDeletable(ref: number, operatorRef: number, caller: Caller): void {
  if (ref === operatorRef) {
    throw new ApiError("conflict", "This is the operator's account, which cannot be deleted.");
  }
  if (ref === caller.account.ref) {
    throw new ApiError("conflict", "This is your own account. Use the key of another operator to delete it.");
  }
}
