import type { Kernel } from "../../../kernel/kernel.ts";
import {
  ATTEMPT_TIMEOUT_MS,
  attempt,
  isLocalFailure,
  LOCAL_RETRY_MS,
  resultOf,
} from "../../../kernel/outbound/attempt.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { type RequestHeaders, withDefaults } from "../../../kernel/outbound/headers.ts";
import { hopsHeader } from "../../../kernel/outbound/hops.ts";
import type {
  AttemptListener,
  Destination,
  Notification,
  TrialResult,
} from "../../../kernel/outbound/notification.ts";
import { type AttemptResult, type NextStep, readWaits } from "../../../kernel/outbound/retries.ts";
import { notificationSignature, relaySignature, type SignedBody } from "../../../kernel/outbound/signing.ts";
import type { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { afterRelayAttempt, DELIVER, failureOf } from "../domain.ts";
import type { DeliveryJob, EndpointDispatch, EndpointRequest } from "../endpoints/dispatch.ts";
import type { EventSource } from "../endpoints/event-source.ts";
import type { DeliveryCounts } from "./counts.ts";
import { exchangeOf, STORED_BODY_BYTES_MAX } from "./exchange.ts";
import type { RelayFailure } from "./schema.ts";
import { type AttemptRow, eventOf, type RelayRequest, type RelayStore } from "./store.ts";

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

const USER_AGENT = "Svc-Relay/1.0";

export interface SigningKeys {
  /** The newest platform key of an account, which signs its deliveries. */
  signingKey(accountRef: number): string | null;
}

/** The outcome of an attempt. */
interface Recorded {
  readonly next: NextStep;
  readonly failure: RelayFailure | null;
  /** A retry that needs a new job; null when the current job is postponed, or nothing is retried. */
  readonly retry: Extract<NextStep, { kind: "retry" }> | null;
}

/** Sends the webhooks of deliveries, and retries them. */
export class WebhookSender {
  private readonly listeners: AttemptListener[] = [];
  /** Projects of the deliveries with a first attempt in flight, by reference. */
  private readonly firstAttempts = new Map<number, number>();

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock" | "ids" | "vault" | "changes"> & {
      readonly store: RelayStore;
      readonly stopped: StoppedProjects;
      readonly outbound: OutboundClient;
      readonly accounts: SigningKeys;
      readonly secrets: Pick<WebhookSecrets, "headers">;
      readonly counts: DeliveryCounts;
      readonly dispatch: EndpointDispatch;
      readonly source: EventSource;
    },
  ) {
    deps.scheduler.register(DELIVER, {
      concurrency: CONCURRENCY,
      lanes: {
        perLane: PER_HOST,
        perSlowLane: PER_SLOW_HOST,
        slowTotal: SLOW_TOTAL,
        ownerShare: ACCOUNT_SHARE,
        termsOf: (destination) => deps.dispatch.laneTerms(destination),
      },
      run: ({ payload }) =>
        this.attempt(typeof payload === "object" ? (payload as DeliveryJob) : { ref: Number(payload) }),
    });
  }

  /** Registers a listener to the attempts of notifications. */
  onAttempt(listener: AttemptListener): void {
    this.listeners.push(listener);
  }

  /** Whether the first attempt is in flight. The row does not record it: it would be wrong after a crash. */
  isInFlight(ref: number): boolean {
    return this.firstAttempts.has(ref);
  }

  /** References of a project's deliveries with a first attempt in flight. */
  inFlight(projectRef: number): number[] {
    return [...this.firstAttempts].filter(([, project]) => project === projectRef).map(([ref]) => ref);
  }

  private async attempt(job: DeliveryJob): Promise<JobOutcome> {
    const { ref } = job;
    const { store, stopped, dispatch } = this.deps;
    const relay = store.request(ref);
    if (relay === null || relay.item.finished_at !== null) return dispatch.abandoned(job);
    // Cancelled or finished, and then resent by another job, which continues.
    if ((job.begun ?? relay.item.scheduled_for) !== relay.item.scheduled_for) return dispatch.abandoned(job);
    if (stopped.has(relay.projectRef)) return {};
    const toEndpoint = relay.endpointRef !== null;
    const instead = toEndpoint ? dispatch.admit(relay, job) : null;
    if (instead !== null) return instead;
    const message = toEndpoint ? dispatch.request(relay) : null;
    if (toEndpoint && message === null) return dispatch.withoutEvent(relay, job);
    if (toEndpoint || relay.item.status === "scheduled") this.firstAttempts.set(ref, relay.projectRef);
    try {
      if (!toEndpoint) return await this.send(relay, job, null);
      return await dispatch.trackAttempt(relay, () => this.send(relay, job, message));
    } catch (error) {
      this.firstAttempts.delete(ref);
      throw error;
    }
  }

  /** `message`: the request to an endpoint; null for other deliveries. */
  private async send(
    relay: RelayRequest,
    job: DeliveryJob,
    message: EndpointRequest | null,
  ): Promise<JobOutcome> {
    const { clock, dispatch } = this.deps;
    const { kind, attempts, method, target_url } = relay.item;
    const body = message?.body ?? bodyOf(relay);
    const destination = this.destinationOf(relay);
    const given = message?.custom ?? destination?.headers ?? this.customOf(relay);
    const custom = withDefaults(given, defaultsOf(relay));
    const startedAt = clock.now();
    const own = await (message === null
      ? this.ownHeaders(relay, destination, startedAt, body ?? "")
      : dispatch.headers(relay, startedAt, message));
    const outcome = await attempt(this.deps.outbound, {
      account: relay.accountRef,
      method,
      url: message?.url ?? destination?.url ?? target_url,
      // Users may schedule requests over plain HTTP; an alert reveals what is down, and where.
      requireHttps: kind === "pulse",
      headers: { ...custom, ...own },
      body,
      timeoutMs: message?.timeoutMs ?? relay.timeout_ms ?? ATTEMPT_TIMEOUT_MS,
      storedBytesMax: STORED_BODY_BYTES_MAX,
    });
    if (isLocalFailure(outcome)) {
      this.firstAttempts.delete(relay.ref);
      return {
        record: (tx) => dispatch.postponed(tx, relay),
        retryAt: clock.now() + LOCAL_RETRY_MS,
        attempt: attempts,
      };
    }
    const result = resultOf(outcome, clock.now());
    const next = this.nextOf(relay, result);
    const failure = next.kind === "failed" ? failureOf(result) : null;
    const exchange = exchangeOf(custom, own, outcome);
    // A response may repeat the request's path, which contains secrets.
    const storesResponse = message?.storesResponse !== false && destination === null;
    const made: AttemptRow = {
      attempt: attempts + 1,
      started_at: startedAt,
      duration_ms: outcome.latencyMs,
      response_status: result.status,
      error: next.kind === "delivered" ? null : next.error,
      ...(storesResponse ? exchange : { ...exchange, response_headers: null, response_body: null }),
    };
    const jobOutcome = this.jobOutcomeOf(relay, job, next);
    // The endpoint's settings may change before the outcome is recorded.
    const retry = next.kind === "retry" && jobOutcome.retryAt === undefined ? next : null;
    const record = (tx: Tx): void => this.record(tx, relay, job, made, { next, failure, retry });
    return { record, ...jobOutcome };
  }

  /** Sends a notification once, without storing it. */
  async sendOnce(notification: Notification & { readonly relay_id: string }): Promise<TrialResult> {
    const { accountRef, target_url, destination = null } = notification;
    const body = Buffer.from(notification.body);
    const now = this.deps.clock.now();
    const own = await this.ownHeaders(
      { ...notification, item: { ...notification, kind: "pulse" } },
      destination,
      now,
      body,
    );
    const outcome = await attempt(this.deps.outbound, {
      account: accountRef,
      method: "POST",
      url: destination?.url ?? target_url,
      requireHttps: true,
      headers: {
        ...withDefaults(destination?.headers ?? {}, defaultsOf({ body_bytes: null })),
        ...own,
      },
      body,
      storedBytesMax: STORED_BODY_BYTES_MAX,
    });
    const result = resultOf(outcome, now);
    const next = afterRelayAttempt("pulse", 1, result, 0);
    return {
      status: result.status,
      error: next.kind === "delivered" ? null : next.error,
    };
  }

  private nextOf(relay: RelayRequest, result: AttemptResult): NextStep {
    const { ids, dispatch } = this.deps;
    const { attempts, kind } = relay.item;
    const number = attempts + 1 - relay.attempts_before;
    if (relay.endpointRef !== null) return dispatch.next(relay, number, result);
    const waits = relay.retry_schedule === null ? null : readWaits(JSON.parse(relay.retry_schedule));
    return afterRelayAttempt(kind, number, result, ids.fraction(), waits);
  }

  private jobOutcomeOf(
    relay: RelayRequest,
    job: DeliveryJob,
    next: NextStep,
  ): Pick<JobOutcome, "retryAt" | "payload"> {
    if (next.kind !== "retry") return {};
    return relay.endpointRef === null
      ? { retryAt: next.at }
      : this.deps.dispatch.jobOutcome(job, relay, next.at);
  }

  private customOf({ headers, item }: RelayRequest): RequestHeaders {
    return headers === null ? {} : JSON.parse(this.deps.vault.open(headers, sealContext(item.relay_id)));
  }

  private destinationOf({ destination, item }: RelayRequest): Destination | null {
    return destination && JSON.parse(this.deps.vault.open(destination, sealContext(item.relay_id)));
  }

  /** Signs each attempt with the newest key and the project's secrets, except requests in the formats of other services. */
  private async ownHeaders(
    relay: Pick<RelayRequest, "accountRef" | "projectRef"> & {
      readonly item: Pick<RelayRequest["item"], "kind" | "event" | "relay_id">;
    },
    destination: Destination | null,
    now: number,
    body: SignedBody,
  ): Promise<RequestHeaders> {
    if (destination !== null) return hopsHeader();
    const { accounts, secrets } = this.deps;
    const { kind, event, relay_id: relayId } = relay.item;
    const key = accounts.signingKey(relay.accountRef);
    const own =
      kind === "pulse"
        ? {
            "X-Svc-Event": event ?? "",
            ...(key === null ? {} : { "X-Svc-Signature": notificationSignature(key, body) }),
          }
        : {
            "X-Svc-Timestamp": String(now),
            ...(key === null ? {} : { "X-Svc-Signature": relaySignature(key, now, body) }),
          };
    return {
      ...own,
      ...hopsHeader(),
      "X-Svc-Delivery-Id": relayId,
      ...(await secrets.headers(relay.projectRef, relayId, now, body)),
    };
  }

  private record(
    tx: Tx,
    relay: RelayRequest,
    job: DeliveryJob,
    made: AttemptRow,
    { next: step, failure, retry }: Recorded,
  ): void {
    const { store, counts, changes, dispatch, source } = this.deps;
    const next = step.kind;
    const { ref, item, projectRef } = relay;
    changes.inProject(tx, projectRef, "relay", item.relay_id);
    tx.afterCommit(() => this.firstAttempts.delete(ref));
    const { attempt: attempts, response_status, error } = made;
    // Withdrawn while a retry was in flight: it stays cancelled.
    if (item.kind === "pulse" && store.request(ref)?.item.status === "cancelled") return;
    const status = next === "retry" ? "delivering" : next;
    // Deleted with its project in the meantime.
    if (
      !store.update(tx, ref, {
        status,
        attempts,
        response_status,
        error,
        failure,
      })
    )
      return;
    const counter = next === "retry" ? counts.retries[item.kind] : counts.finished[item.kind][next];
    tx.afterCommit(() => counter.add());
    store.recordAttempt(tx, { ...made, ref });
    if (item.kind === "pulse") for (const listener of this.listeners) listener(tx, item.relay_id, error);
    if (relay.endpointRef !== null) dispatch.record(tx, relay, job, made, retry, next);
    const inbound = eventOf(relay);
    const retryAt = step.kind === "retry" ? step.at : null;
    if (inbound !== null) source.changed(tx, inbound, { attempt: made, retryAt });
  }
}

/** The body of a delivery that has it. */
export function bodyOf({ body, body_bytes }: RelayRequest): Uint8Array | null {
  return body_bytes ?? (body === null ? null : Buffer.from(body));
}

/** The context that a delivery's headers are sealed with. */
export function sealContext(relayId: string): string {
  return `relay-headers:${relayId}`;
}

/** Headers that the user's may override. A body of unknown type is `application/octet-stream`. */
function defaultsOf({ body_bytes }: Pick<RelayRequest, "body_bytes">): RequestHeaders {
  const type = body_bytes === null ? "application/json" : "application/octet-stream";
  return { "Content-Type": type, "User-Agent": USER_AGENT };
}
