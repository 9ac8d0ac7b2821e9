import {
  assertBelowRunLimit,
  bulkRequest,
  type Candidate,
  countMatching,
  isRunning,
  type Part,
  PER_SECOND,
  runView,
  skippedOf,
} from "../../../kernel/bulk/bulk.ts";
import type { Caller, CallerAccount, Charger } from "../../../kernel/callers/caller.ts";
import { isPrefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField, rejectionBy } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { OrderKeys } from "../deliveries/destination.ts";
import { filtersOf } from "../deliveries/listing.ts";
import type { RelayResend, RelayResendBody } from "../deliveries/schema.ts";
import type { MessageRefs, RelayService } from "../deliveries/service.ts";
import { BULK_RESEND, CHARGED_AS, RECOVERY, ResendRuns, targetOf } from "./runs.ts";
import type { RecoveryFilters, ResendFilters, ResendRow, ResendStore } from "./store.ts";

/** The job of a bulk resend, which sends some deliveries in each run. */
const RESENDS = "relay.resends";

/** Filters that resends of earlier versions do not have; they named the endpoint `endpoint`. */
function storedFilters(text: string): ResendFilters {
  const { endpoint = null, ...stored } = JSON.parse(text);
  return { ...filtersOf({}, { endpointRef: endpoint, messageRef: null }), refs: null, ...stored };
}

/** Resends many failed deliveries. */
export class BulkResends {
  private readonly runs: ResendRuns;

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock" | "ids" | "changes"> & {
      readonly resends: ResendStore;
      readonly service: RelayService;
      readonly stopped: StoppedProjects;
      readonly refs: MessageRefs;
      readonly charger: Charger;
      readonly accounts: { account(accountRef: number): CallerAccount };
    },
  ) {
    this.runs = new ResendRuns(deps, {
      job: RESENDS,
      look: ({ projectRef, filters }, part) => this.candidates(projectRef, storedFilters(filters), part),
      prepare: (_row, refs) => deps.service.orderKeys(refs),
      sendOne: (tx, row, ref, keys) => this.sendOne(tx, row, ref, keys),
    });
  }

  /**
   * Starts a bulk resend, or counts what it would send.
   * @throws ApiError, from its parts: `validation_error` without `since`, `conflict` when too many run.
   */
  start(caller: Caller, body: RelayResendBody) {
    const { project } = caller;
    const { since, per_second = PER_SECOND, endpoint_id, relay_ids, dry_run, status: _, ...others } = body;
    return bulkRequest({
      dry_run,
      claim: (tx) => {
        if (
          relay_ids !== undefined &&
          Object.values({ since, endpoint_id, ...others }).some((value) => value !== undefined)
        )
          throw invalidField("relay_ids", "cannot be combined with other filters: it selects the deliveries");
        if (since === undefined && endpoint_id === undefined && relay_ids === undefined)
          throw invalidField(
            "since",
            "is required unless endpoint_id or relay_ids is given: the earliest creation time",
          );
        if (dry_run !== true) this.assertBelowLimit(project.ref);
        const endpoint = endpoint_id === undefined ? null : this.deps.refs.endpoint(project.ref, endpoint_id);
        const filters: ResendFilters = {
          ...filtersOf(body, { endpointRef: endpoint, messageRef: null }),
          refs: relay_ids === undefined ? null : this.deps.service.refsOf(project.ref, relay_ids),
          endedBy: tx.now,
        };
        return filters;
      },
      count: (filters) => countMatching((part) => this.candidates(project.ref, filters, part)),
      start: (tx, filters, matching, matched) => {
        this.assertBelowLimit(project.ref);
        const resend_id = this.runs.start(tx, caller, filters, per_second, matching);
        const filter = relay_ids === undefined ? { since, endpoint_id, ...others } : { relay_ids };
        const after = { ...matched, per_second, ...filter };
        tx.audit({ summary: `${BULK_RESEND} started`, target: targetOf(resend_id), before: null, after });
        return { resend_id };
      },
    });
  }

  private candidates(
    projectRef: number,
    { refs, ...filters }: ResendFilters,
    { after, limit }: Part,
  ): Candidate[] {
    const { resends, service } = this.deps;
    if (refs === null) return resends.failedAfter({ ...filters, projectRef, after, limit });
    return refs.filter((ref) => ref > after).map((ref) => service.failed(ref));
  }

  /** The progress of a run; of a portal link, only of those that its customer started. @throws ApiError `not_found` */
  read(caller: Caller, resendId: string): RelayResend {
    return resendView(this.find(caller, resendId));
  }

  /** Stops a running one; what was sent stays so. @throws ApiError `not_found` */
  stop(tx: Tx, caller: Caller, resendId: string): RelayResend {
    const row = this.find(caller, resendId);
    if (!isRunning(row)) {
      tx.audit(null);
      return resendView(row);
    }
    const after = { status: "cancelled", resent: row.resent };
    const kind = recoveryOf(row).recover === undefined ? BULK_RESEND : RECOVERY;
    const target = targetOf(row.resend_id);
    tx.audit({ summary: `${kind} stopped`, target, before: { status: "running" }, after });
    return resendView(this.runs.cancel(tx, row));
  }

  private find({ project, portal }: Caller, resendId: string): ResendRow {
    const row = isPrefixedId("rsn", resendId) ? this.deps.resends.find(project.ref, resendId) : null;
    if (row === null || (portal !== undefined && recoveryOf(row).startedBy !== portal.ownerId))
      throw new ApiError("not_found", "There is no resend with this resend_id in this project.");
    return row;
  }

  private assertBelowLimit(projectRef: number): void {
    assertBelowRunLimit(this.deps.resends.running(projectRef), "resends of this project");
  }

  private sendOne(
    tx: Tx,
    { accountRef }: ResendRow,
    ref: number,
    keys: OrderKeys,
  ): "sent" | "skipped" | "no-credits" {
    const { service, charger, accounts, changes } = this.deps;
    const row = service.resendable(ref);
    // Resent by another request in the meantime.
    if (row === null) return "skipped";
    const rejection = rejectionBy(() =>
      charger.charge(tx, accounts.account(accountRef), CHARGED_AS, service.creditsOf(row)),
    );
    if (rejection !== null) return "no-credits";
    service.restart(tx, row, keys.get(ref) ?? null);
    changes.inProject(tx, row.projectRef, "relay", row.item.relay_id);
    return "sent";
  }
}

/** The filters of a recovery; of other runs, none of them. */
function recoveryOf({ filters }: ResendRow): Partial<RecoveryFilters> {
  return JSON.parse(filters) as Partial<RecoveryFilters>;
}

function resendView(row: ResendRow): RelayResend {
  const { resend_id, resent, created_at, finished_at } = row;
  return {
    resend_id,
    ...("recover" in recoveryOf(row) ? { kind: "recover" as const } : {}),
    ...runView(row),
    resent,
    skipped: skippedOf(row),
    created_at,
    finished_at,
  };
}
