import { Bulk, type BulkKind, type Matching, newRun } from "../../../kernel/bulk/bulk.ts";
import type { Caller } from "../../../kernel/callers/caller.ts";
import { prefixedId } from "../../../kernel/data/uuid.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { OrderKeys } from "../deliveries/destination.ts";
import type { RecoveryFilters, ResendRow, ResendStore } from "./store.ts";

/** The operation that credits are charged for, per delivery of a run. */
export const CHARGED_AS = "relay.resend";

/** What the audit log calls the runs. */
export const BULK_RESEND = "Resend of failed deliveries";
export const RECOVERY = "Recovery of missed messages";

/** A run in the audit log. */
export function targetOf(resendId: string) {
  return { type: "resend", id: resendId };
}

interface RunDeps extends Pick<Kernel, "scheduler" | "clock" | "ids"> {
  readonly resends: ResendStore;
  readonly stopped: StoppedProjects;
}

/** The payload of a run's job. */
interface RunJob {
  readonly projectRef: number;
}

/** One kind of runs that send deliveries: they share a table, ids and routes, and each has a job of its own. */
export class ResendRuns {
  private readonly bulk: Bulk<ResendRow, OrderKeys>;

  constructor(
    private readonly deps: RunDeps,
    kind: Pick<BulkKind<ResendRow, OrderKeys>, "job" | "look" | "prepare" | "sendOne">,
  ) {
    const { resends, stopped } = deps;
    this.bulk = new Bulk(deps, {
      ...kind,
      find: ({ key, payload }) => {
        const { projectRef } = payload as RunJob;
        return stopped.has(projectRef) ? null : resends.find(projectRef, key);
      },
      insert: (tx, row) => resends.insert(tx, row),
      update: (tx, row) => resends.update(tx, row),
      removeExcess: (tx, { projectRef }, storedMax) => resends.removeExcess(tx, projectRef, storedMax),
    });
  }

  /** Stores a run of the caller's project, and starts it unless nothing matches. Returns its id. */
  start(
    tx: Tx,
    { account, project }: Caller,
    filters: object,
    per_second: number,
    matching: Matching,
  ): string {
    const resend_id = prefixedId("rsn", this.deps.ids.uuidV7());
    const row: ResendRow = {
      ...newRun(tx.now, filters, per_second, matching),
      resend_id,
      accountRef: account.ref,
      projectRef: project.ref,
    };
    this.bulk.begin(tx, row, resend_id, { projectRef: project.ref } satisfies RunJob);
    return resend_id;
  }

  /** Stops a run; what was sent stays so. */
  cancel(tx: Tx, row: ResendRow): ResendRow {
    return this.bulk.cancel(tx, row);
  }
}

/** The runs that are not finished. */
export class RunningResends {
  constructor(private readonly resends: Pick<ResendStore, "ofRunning">) {}

  /** The id of the run that recovers an endpoint, if the caller may read it; null without one. */
  recoveryOf({ project, portal }: Caller, endpointRef: number): string | null {
    const run = this.ofProject(project.ref).find(({ recover }) => recover === endpointRef);
    const isHidden = portal !== undefined && run?.startedBy !== portal.ownerId;
    return isHidden ? null : (run?.resend_id ?? null);
  }

  /** The runs of a project that are not finished; bulk resends have no endpoint to recover. */
  ofProject(projectRef: number): (Partial<RecoveryFilters> & { readonly resend_id: string })[] {
    return this.resends.ofRunning(projectRef).map(({ resend_id, filters }) => ({
      ...(JSON.parse(filters) as Partial<RecoveryFilters>),
      resend_id,
    }));
  }
}
