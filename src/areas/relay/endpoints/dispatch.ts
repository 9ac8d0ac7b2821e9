import type { Kernel } from "../../../kernel/kernel.ts";
import { type RequestHeaders, withDefaults } from "../../../kernel/outbound/headers.ts";
import { hopsHeader } from "../../../kernel/outbound/hops.ts";
import type { AttemptResult, NextStep } from "../../../kernel/outbound/retries.ts";
import type { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import type { LaneOptions } from "../../../kernel/scheduler/lane-groups.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import type { DeliveryCounts } from "../deliveries/counts.ts";
import {
  type AttemptRow,
  eventOf,
  type InboundEvent,
  type RelayRequest,
  type RelayStore,
} from "../deliveries/store.ts";
import { afterRelayAttempt, DELIVER, DUE_HEADER } from "../domain.ts";
import type { MessageStore } from "../messages/store.ts";
import { messageBody } from "../payload.ts";
import { PACE_AHEAD_MS, Pace, PROBE_MS_MAX, Progress } from "./breaker.ts";
import type { EventSource } from "./event-source.ts";
import type { EndpointHealth } from "./health.ts";
import { type Endpoint, type EndpointRegistry, endpointIn, isOrdered, mustPark } from "./registry.ts";
import { CONCURRENCY } from "./schema.ts";
import { CLOSED, DISABLED, type EndpointStore, LIVE, PAUSED, PROBING } from "./store.ts";

/** The payload of a delivery job that needs more than the delivery's reference. */
export interface DeliveryJob {
  readonly ref: number;
  /** The endpoint, if this delivery is the probe of its open breaker. */
  readonly probe?: number;
  /** Whether it has a token of the endpoint's rate. */
  readonly paced?: true;
  /**
   * The delivery's `scheduled_for` when the job was created for later. A resend changes it and creates a job of its own: a
   * job with another time does nothing. The name is stored.
   */
  readonly begun?: number;
}

/** A retry that has no job yet. */
type RetryStep = Extract<NextStep, { kind: "retry" }>;

/** The request of an attempt to an endpoint. */
export interface EndpointRequest {
  readonly url: string;
  readonly custom: RequestHeaders;
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  readonly storesResponse: boolean;
  /** Id of the message or event, for the signature. */
  readonly id: string;
  /** Headers about the event. */
  readonly own: RequestHeaders;
}

/** Job that ends the pending deliveries of a disabled or deleted endpoint. */
const END = "relay.endpoint.end";
/** Job that sends the parked deliveries of an endpoint, in the order in which they were accepted. */
const RELEASE = "relay.endpoint.release";
/** Deliveries in one unit of work of either job: a millisecond or two. */
const SLICE = 200;
const CONCURRENT_JOBS = 4;
const EVENT_DELETED = "event deleted";

/**
 * Decides when deliveries to endpoints are sent, parked, failed or cancelled. A due delivery is parked while its endpoint
 * accepts none: it is stored in `relay_parked` without a job, and sent in the order of acceptance when the endpoint accepts
 * deliveries again.
 */
export class EndpointDispatch {
  /** Rates of endpoints with `max_per_second`, by reference. */
  private readonly paces = new Map<number, Pace>();
  private readonly progress = new Progress();

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock" | "ids" | "changes"> & {
      readonly store: RelayStore;
      readonly endpoints: EndpointStore;
      readonly messages: MessageStore;
      readonly registry: EndpointRegistry;
      readonly health: EndpointHealth;
      readonly secrets: Pick<WebhookSecrets, "headers">;
      readonly counts: DeliveryCounts;
      readonly source: EventSource;
      /** Whether an attempt is in flight. */
      readonly isInFlight: (ref: number) => boolean;
    },
  ) {
    const { scheduler } = deps;
    scheduler.register(RELEASE, {
      concurrency: CONCURRENT_JOBS,
      run: async ({ key }) => ({
        record: (tx) => this.release(tx, Number(key)),
      }),
    });
    scheduler.register(END, {
      concurrency: CONCURRENT_JOBS,
      run: async ({ key, payload }) => ({
        record: (tx) => this.endSome(tx, Number(key), Number(payload)),
      }),
    });
  }

  /** Creates the job of a delivery, or parks it behind those that are parked already. */
  enqueue(tx: Tx, endpoint: Endpoint, ref: number, dueAt: number): void {
    if (dueAt <= tx.now && mustPark(endpoint)) this.deps.health.park(tx, endpoint, ref);
    else {
      const job = dueAt <= tx.now ? ref : ({ ref, begun: dueAt } satisfies DeliveryJob);
      this.deps.scheduler.enqueueAnonymous(tx, DELIVER, dueAt, job, endpoint.lane);
    }
  }

  /** The same for an endpoint that may be deleted: then the job ends the delivery. */
  enqueueFor(tx: Tx, endpoint: Endpoint | null, ref: number, dueAt: number): void {
    if (endpoint === null) this.deps.scheduler.enqueueAnonymous(tx, DELIVER, tx.now, ref);
    else this.enqueue(tx, endpoint, ref, dueAt);
  }

  /** An endpoint's lane has a limit, and shares the limit of its host with other lanes. */
  laneTerms(destination: string): LaneOptions | null {
    const ref = endpointIn(destination);
    if (ref === null) return null;
    const { registry } = this.deps;
    return {
      group: registry.get(ref)?.host ?? destination,
      slots: () =>
        this.progress.isSilent(ref, monotonicMs())
          ? 1
          : (registry.get(ref)?.terms.max_concurrency ?? CONCURRENCY),
    };
  }

  /** Makes an attempt, and tracks in real time whether its endpoint responds. */
  async trackAttempt({ endpointRef }: RelayRequest, attempt: () => Promise<JobOutcome>): Promise<JobOutcome> {
    const ref = endpointRef ?? 0;
    this.progress.started(ref, monotonicMs());
    try {
      return await attempt();
    } finally {
      this.progress.finished(ref, monotonicMs());
    }
  }

  /** The outcome of a due delivery that cannot be sent now; null when it can. */
  admit({ ref, endpointRef, projectRef, item }: RelayRequest, job: DeliveryJob): JobOutcome | null {
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    if (endpoint === null || endpoint.health.state === DISABLED)
      return { record: (tx) => this.end(tx, endpoint, ref, projectRef) };
    const { state, breaker, retrying_ref } = endpoint.health;
    const isBehind = retrying_ref !== null && retrying_ref !== ref;
    if (state === PAUSED || isBehind || (breaker !== CLOSED && job.probe === undefined))
      return { record: (tx) => this.parkUnlessReady(tx, endpoint.row.ref, ref, job) };
    const waitMs = job.paced === true ? 0 : this.paceOf(endpoint);
    if (waitMs === 0) return null;
    if (waitMs > PACE_AHEAD_MS) return { record: (tx) => this.parkForRate(tx, endpoint.row.ref, ref, job) };
    const retryAt = this.deps.clock.now() + waitMs;
    return {
      retryAt,
      payload: { ...job, paced: true },
      attempt: item.attempts,
    };
  }

  /** The outcome of a job whose delivery was finished before its attempt: if it was a probe, another one replaces it. */
  abandoned({ probe }: DeliveryJob): JobOutcome {
    return probe === undefined ? {} : { record: (tx) => this.deps.health.replaceProbe(tx, probe) };
  }

  /**
   * The request of an attempt; null when its event is deleted.
   * @throws Error without its message, which is stored as long as its deliveries.
   */
  request(relay: RelayRequest): EndpointRequest | null {
    const { endpointRef, messageRef, item } = relay;
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    const event = eventOf(relay);
    if (endpoint !== null && event !== null) return this.eventRequest(endpoint, event);
    const message = this.deps.messages.content(messageRef ?? 0);
    if (endpoint === null || message === null || message.payload === null)
      throw new Error(`the message of the delivery ${item.relay_id} is missing`);
    const { terms } = endpoint;
    const due = message.schedule_id === null ? {} : { [DUE_HEADER]: String(message.scheduled_for) };
    return {
      ...requestTerms(endpoint),
      custom: withDefaults(due, endpoint.custom),
      body: Buffer.from(messageBody(terms.format, { ...message, payload: message.payload })),
      id: item.message_id ?? "",
      own: {},
    };
  }

  /** The bytes of an event as its sender sent them, whatever the endpoint's format. */
  private eventRequest(endpoint: Endpoint, event: InboundEvent): EndpointRequest | null {
    const content = this.deps.source.content(event);
    if (content === null) return null;
    const { headers, ...rest } = content;
    return { ...requestTerms(endpoint), ...rest, custom: withDefaults(endpoint.custom, headers) };
  }

  /** The body that the next attempt sends; null when it is not stored any more, or its endpoint is deleted. */
  body(relay: RelayRequest): Uint8Array | null {
    const event = eventOf(relay);
    if (event !== null) return this.deps.source.content(event)?.body ?? null;
    const endpoint = this.deps.registry.get(relay.endpointRef ?? 0);
    const message = this.deps.messages.content(relay.messageRef ?? 0);
    if (endpoint === null || message === null || message.payload === null) return null;
    return Buffer.from(messageBody(endpoint.terms.format, { ...message, payload: message.payload }));
  }

  /** The outcome of a delivery whose event is deleted. */
  withoutEvent({ ref, projectRef, endpointRef }: RelayRequest, { probe }: DeliveryJob): JobOutcome {
    return {
      record: (tx) => {
        if (probe !== undefined) this.deps.health.replaceProbe(tx, probe);
        const endpoint = this.deps.registry.get(endpointRef ?? 0);
        this.end(tx, endpoint, ref, projectRef, { status: "cancelled", error: EVENT_DELETED });
      },
    };
  }

  /** The headers that the delivery sets itself. */
  async headers(
    { endpointRef, item }: RelayRequest,
    now: number,
    { id, body, own }: EndpointRequest,
  ): Promise<RequestHeaders> {
    const signed = await this.deps.secrets.headers(endpointRef ?? 0, id, now, body);
    return { "X-Svc-Delivery-Id": item.relay_id, ...hopsHeader(), ...own, ...signed };
  }

  /** The next step after attempt number `number`. */
  next({ endpointRef }: RelayRequest, number: number, result: AttemptResult): NextStep {
    const waits = this.deps.registry.get(endpointRef ?? 0)?.waits ?? [];
    return afterRelayAttempt("endpoint", number, result, this.deps.ids.fraction(), waits);
  }

  /**
   * The outcome of the job itself. Empty when {@link record} creates another job, or parks the delivery: a failed probe is
   * parked with the others, and so is a delivery of an ordered endpoint.
   */
  jobOutcome(
    job: DeliveryJob,
    { item, endpointRef }: RelayRequest,
    retryAt: number,
  ): Pick<JobOutcome, "retryAt" | "payload"> {
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    if (job.probe !== undefined || (endpoint !== null && isOrdered(endpoint))) return {};
    return {
      retryAt,
      payload: {
        ref: job.ref,
        begun: item.scheduled_for,
      } satisfies DeliveryJob,
    };
  }

  /** Blocks an ordered endpoint until a delivery is sent that this server had no capacity for. */
  postponed(tx: Tx, { endpointRef, ref }: RelayRequest): void {
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    if (endpoint !== null && isOrdered(endpoint)) this.deps.health.block(tx, endpoint, ref);
  }

  /** Records the outcome of an attempt in the endpoint's health. */
  record(
    tx: Tx,
    relay: RelayRequest,
    job: DeliveryJob,
    made: AttemptRow,
    retry: RetryStep | null,
    next: NextStep["kind"],
  ): void {
    const { registry, health, store } = this.deps;
    const endpoint = registry.get(relay.endpointRef ?? 0);
    if (endpoint === null) {
      if (retry !== null) this.parkUnlessReady(tx, relay.endpointRef ?? 0, relay.ref, { ref: relay.ref });
      return;
    }
    if (next !== "retry") health.unblock(tx, endpoint, relay.ref);
    if (relay.item.target_url !== endpoint.terms.url) store.setTarget(tx, endpoint.terms.url, relay.ref);
    const isProbe = job.probe !== undefined;
    // A user may have closed the breaker in the meantime.
    const isExpected = isProbe && endpoint.health.breaker === PROBING;
    if (next === "delivered") {
      health.succeeded(tx, endpoint, relay.item.event);
      return;
    }
    const attempt = {
      status: made.response_status,
      error: made.error ?? "",
      isProbe: isExpected,
    };
    health.failed(tx, endpoint, attempt, relay.item.event);
    if (next === "failed") health.deliveryFailed(tx, endpoint, relay.item.event);
    else if (retry !== null) this.retry(tx, endpoint, relay, isProbe ? null : retry.at);
  }

  /** Creates the job of a retry, or parks it. `at`: null for a probe, which is parked with the others. */
  private retry(tx: Tx, endpoint: Endpoint, { ref, item }: RelayRequest, at: number | null): void {
    const { health, scheduler } = this.deps;
    const { state, breaker } = endpoint.health;
    if (at === null || state !== LIVE || breaker !== CLOSED) {
      this.parkUnlessReady(tx, endpoint.row.ref, ref, { ref });
      return;
    }
    if (isOrdered(endpoint)) health.block(tx, endpoint, ref);
    const job = { ref, begun: item.scheduled_for } satisfies DeliveryJob;
    // Behind an open breaker, other deliveries wait at most until the next probe.
    const latest = endpoint.health.holds === 1 ? tx.now + PROBE_MS_MAX : at;
    scheduler.enqueueAnonymous(tx, DELIVER, Math.min(at, latest), job, endpoint.lane);
  }

  /** Removes a cancelled delivery from the parked ones. */
  cancelled(tx: Tx, { endpointRef, ref }: RelayRequest): void {
    if (endpointRef === null) return;
    this.deps.endpoints.unparkOne(tx, endpointRef, ref);
    const endpoint = this.deps.registry.get(endpointRef);
    if (endpoint !== null) this.deps.health.unblock(tx, endpoint, ref);
  }

  /** Starts the job that sends or ends the pending deliveries of an endpoint, according to its state. */
  stateChanged(tx: Tx, endpointRef: number): void {
    const { registry, scheduler } = this.deps;
    const endpoint = registry.get(endpointRef);
    const key = String(endpointRef);
    if (endpoint === null || endpoint.health.state === DISABLED) scheduler.enqueue(tx, END, key, tx.now, 0);
    else if (endpoint.health.holds === 1) scheduler.enqueue(tx, RELEASE, key, tx.now, null);
  }

  private paceOf({ row: { ref }, terms: { max_per_second } }: Endpoint): number {
    if (max_per_second === null) {
      this.paces.delete(ref);
      return 0;
    }
    const pace = this.paces.get(ref) ?? new Pace();
    this.paces.set(ref, pace);
    return pace.take(this.deps.clock.monotonic(), max_per_second);
  }

  /** Parks a delivery, unless its endpoint accepts deliveries again, or was disabled, in the meantime. */
  private parkUnlessReady(tx: Tx, endpointRef: number, ref: number, job: DeliveryJob): void {
    if (job.probe !== undefined) this.deps.health.replaceProbe(tx, endpointRef);
    const endpoint = this.deps.registry.get(endpointRef);
    if (endpoint !== null && endpoint.health.state !== DISABLED) this.enqueue(tx, endpoint, ref, tx.now);
    else this.deps.scheduler.enqueueAnonymous(tx, DELIVER, tx.now, ref);
  }

  /** Parks a delivery that gets no token of its endpoint's rate soon: parked deliveries are sent at that rate. */
  private parkForRate(tx: Tx, endpointRef: number, ref: number, job: DeliveryJob): void {
    const { registry, health, scheduler } = this.deps;
    const endpoint = registry.get(endpointRef);
    if (endpoint === null || mustPark(endpoint)) {
      this.parkUnlessReady(tx, endpointRef, ref, job);
      return;
    }
    health.park(tx, endpoint, ref);
    scheduler.enqueue(tx, RELEASE, String(endpointRef), tx.now + PACE_AHEAD_MS, null);
  }

  private release(tx: Tx, endpointRef: number): void {
    const { registry, endpoints, scheduler, health } = this.deps;
    const endpoint = registry.get(endpointRef);
    if (endpoint === null || !health.acceptsAll(endpoint)) return;
    const { max_per_second: rate } = endpoint.terms;
    const most = Math.min(SLICE, rate ?? SLICE);
    const parked = endpoints.unpark(tx, endpointRef, most);
    for (const { ref } of parked) scheduler.enqueueAnonymous(tx, DELIVER, tx.now, ref, endpoint.lane);
    const pauseMs = rate === null ? 0 : Math.ceil((most * 1_000) / rate);
    if (parked.length < most) registry.setHealth(tx, endpoint, { holds: 0 });
    else scheduler.enqueue(tx, RELEASE, String(endpointRef), tx.now + pauseMs, null);
  }

  private endSome(tx: Tx, endpointRef: number, after: number): void {
    const { registry, endpoints, store, scheduler, isInFlight } = this.deps;
    const endpoint = registry.get(endpointRef);
    // Enabled again in the meantime.
    if (endpoint !== null && endpoint.health.state !== DISABLED) return;
    const waiting = endpoints.waitingAfter(endpointRef, after, SLICE);
    for (const { ref } of waiting) {
      const row = isInFlight(ref) ? null : store.request(ref);
      if (row !== null) this.end(tx, endpoint, ref, row.projectRef);
    }
    const last = waiting.length === SLICE ? waiting.at(-1) : undefined;
    // Only failed or cancelled ones: the endpoint may be enabled before the others are.
    endpoints.unparkThrough(tx, endpointRef, last?.ref ?? Number.MAX_SAFE_INTEGER);
    if (last !== undefined) scheduler.enqueue(tx, END, String(endpointRef), tx.now, last.ref);
    else if (endpoint !== null) registry.setHealth(tx, endpoint, { holds: 0 });
    else this.paces.delete(endpointRef);
  }

  /** Cancels a delivery of a deleted endpoint; fails one of a disabled endpoint, so that it can be resent. */
  private end(
    tx: Tx,
    endpoint: Endpoint | null,
    ref: number,
    projectRef: number,
    ending: Ending = endpoint === null ? { status: "cancelled" } : DISABLED_ENDING,
  ): void {
    const { store, counts, changes, source } = this.deps;
    const row = store.request(ref);
    if (row === null || row.item.finished_at !== null) return;
    const { attempts, response_status, relay_id, kind } = row.item;
    const { status, error = row.item.error } = ending;
    const failure = status === "failed" ? "disabled" : null;
    store.update(tx, ref, {
      status,
      failure,
      attempts,
      response_status,
      error,
    });
    if (endpoint !== null) this.deps.health.unblock(tx, endpoint, ref);
    changes.inProject(tx, projectRef, "relay", relay_id);
    const event = eventOf(row);
    if (event !== null) source.changed(tx, event, { attempt: null, retryAt: null });
    tx.afterCommit(() => counts.finished[kind][status].add());
  }
}

/** The end of a delivery without an attempt. */
interface Ending {
  readonly status: "cancelled" | "failed";
  /** Default: the error of the last attempt. */
  readonly error?: string;
}

const DISABLED_ENDING: Ending = { status: "failed", error: "endpoint disabled" };

/** The parts of a request that depend only on the endpoint. */
function requestTerms({ terms }: Endpoint) {
  return { url: terms.url, timeoutMs: terms.timeout_ms, storesResponse: terms.keep_responses };
}
