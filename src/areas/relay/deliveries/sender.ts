import type { Kernel } from "../../../kernel/kernel.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { type Attempt, type AttemptStep, deliver } from "../../../kernel/outbound/delivery.ts";
import { withDefaults } from "../../../kernel/outbound/headers.ts";
import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { DELIVER, failureOf, NOTIFICATION, type RelayFailure } from "../domain.ts";
import type { Callbacks } from "./callbacks.ts";
import {
  type DeliveryJob,
  type DeliveryRequest,
  type Destination,
  type Destinations,
  destinationOf,
} from "./destination.ts";
import { exchangeOf, STORED_BODY_BYTES_MAX } from "./exchange.ts";
import type { DeliveryCounts, InFlight } from "./status.ts";
import type { AttemptRow, RelayRequest, RelayStore } from "./store.ts";
import { defaultHeaders } from "./url-destination.ts";

/** Concurrent attempts in total. */
const CONCURRENCY = 1_024;
/** Concurrent attempts to one host: a small server can handle this many. */
const PER_HOST = 16;
/** Concurrent attempts to a host that did not respond within a second. */
const PER_SLOW_HOST = 4;
/** Concurrent attempts to all such hosts together: the other half is for hosts that respond. */
const SLOW_TOTAL = CONCURRENCY / 2;
/** Share of both that one account may use: however many hosts it sends to, the deliveries of others continue. */
const ACCOUNT_SHARE = 1 / 4;

/** A delivery that is sent now. */
interface Current {
  readonly relay: RelayRequest;
  readonly job: DeliveryJob;
  readonly destination: Destination;
}

/** An attempt that is recorded. */
interface Recorded {
  readonly row: AttemptRow;
  readonly failure: RelayFailure | null;
  readonly outcome: OutboundOutcome;
}

/** Sends the webhooks of deliveries, and retries them. */
export class WebhookSender {
  constructor(
    private readonly deps: Destinations &
      Pick<Kernel, "scheduler" | "clock" | "changes"> & {
        readonly store: RelayStore;
        readonly stopped: StoppedProjects;
        readonly outbound: OutboundClient;
        readonly counts: DeliveryCounts;
        readonly inFlight: InFlight;
        readonly callbacks: Callbacks;
      },
  ) {
    deps.scheduler.register(DELIVER, {
      concurrency: CONCURRENCY,
      lanes: {
        perLane: PER_HOST,
        perSlowLane: PER_SLOW_HOST,
        slowTotal: SLOW_TOTAL,
        ownerShare: ACCOUNT_SHARE,
        termsOf: (destination) => deps.endpoints.laneTerms(destination),
      },
      run: ({ payload }) =>
        this.deliver(typeof payload === "object" ? (payload as DeliveryJob) : { ref: Number(payload) }),
    });
  }

  private async deliver(job: DeliveryJob): Promise<JobOutcome> {
    const { store, stopped, endpoints, inFlight } = this.deps;
    const relay = store.request(job.ref);
    if (relay === null || relay.item.finished_at !== null) return endpoints.abandoned(job);
    // Cancelled or finished, and then resent by another job, which continues.
    if ((job.begun ?? relay.item.scheduled_for) !== relay.item.scheduled_for) return endpoints.abandoned(job);
    if (stopped.has(relay.projectRef)) return {};
    const destination = destinationOf(this.deps, relay);
    const admission = destination.admit(relay, job);
    if (admission.kind === "unsent") return admission.outcome;
    inFlight.add(relay);
    try {
      const admitted = admission.kind === "render" ? await admission.render() : admission;
      if (admitted.kind === "unsent") {
        inFlight.remove(job.ref);
        return admitted.outcome;
      }
      const { request } = admitted;
      return await destination.trackAttempt(relay, () => this.send({ relay, job, destination }, request));
    } catch (error) {
      inFlight.remove(job.ref);
      throw error;
    }
  }

  private send(
    current: Current,
    { storesResponse, readBytesMax = STORED_BODY_BYTES_MAX, ...request }: DeliveryRequest,
  ): Promise<JobOutcome> {
    const { relay, job, destination } = current;
    const { attempts, method } = relay.item;
    const webhook = {
      method,
      ...request,
      account: relay.accountRef,
      custom: withDefaults(request.custom, defaultHeaders(relay.body_bytes)),
      storedBytesMax: readBytesMax,
    };
    return deliver(this.deps, webhook, {
      attempts,
      next: (result) => destination.next(relay, job, attempts + 1 - relay.attempts_before, result),
      postponed: (tx) => {
        tx.afterCommit(() => this.deps.inFlight.remove(relay.ref));
        destination.postponed(tx, relay);
      },
      record: (tx, attempt, step) =>
        this.record(tx, current, step, {
          row: rowOf(attempt, attempts + 1, step, storesResponse),
          failure: step.kind === "failed" ? failureOf(attempt.result) : null,
          outcome: attempt.outcome,
        }),
    });
  }

  private record(
    tx: Tx,
    { relay, job, destination }: Current,
    step: AttemptStep,
    { row, failure, outcome }: Recorded,
  ): void {
    const { store, counts, changes, inFlight } = this.deps;
    const { ref, item, projectRef } = relay;
    changes.inProject(tx, projectRef, "relay", item.relay_id);
    tx.afterCommit(() => inFlight.remove(ref));
    const { attempt: attempts, response_status, error } = row;
    // Withdrawn while a retry was in flight: it stays cancelled.
    if (item.kind === NOTIFICATION && store.request(ref)?.item.status === "cancelled") return;
    const status = step.kind === "delivered" || step.kind === "failed" ? step.kind : "delivering";
    const isStored = store.update(tx, ref, {
      status,
      attempts,
      response_status,
      error,
      failure,
      next_attempt_at: "at" in step ? step.at : null,
    });
    // Deleted with its project in the meantime.
    if (!isStored) return;
    const counter = status === "delivering" ? counts.retries[item.kind] : counts.finished[item.kind][status];
    tx.afterCommit(() => counter.add());
    store.recordAttempt(tx, { ...row, ref });
    destination.record(tx, relay, job, row, step);
    if (item.kind === "scheduled" && (status === "delivered" || status === "failed"))
      this.deps.callbacks.send(tx, relay, { status, attempts, error, outcome });
  }
}

/** An attempt as it is stored. */
function rowOf(attempt: Attempt, number: number, step: AttemptStep, storesResponse: boolean): AttemptRow {
  const { at, custom, serverHeaders, outcome, result } = attempt;
  const exchange = exchangeOf(custom, serverHeaders, outcome);
  return {
    attempt: number,
    started_at: at,
    duration_ms: outcome.latencyMs,
    response_status: result.status,
    error: step.kind === "delivered" ? null : step.error,
    ...(storesResponse ? exchange : { ...exchange, response_headers: null, response_body: null }),
  };
}
