import type { Kernel } from "../../../kernel/kernel.ts";
import type { AttemptStep } from "../../../kernel/outbound/delivery.ts";
import { type Below, type RequestHeaders, withDefaults } from "../../../kernel/outbound/headers.ts";
import { hopsHeader } from "../../../kernel/outbound/hops.ts";
import { isPieces, type PieceBody } from "../../../kernel/outbound/piece-body.ts";
import type { AttemptResult } from "../../../kernel/outbound/retries.ts";
import type { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import type { LaneOptions } from "../../../kernel/scheduler/lane-groups.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import type {
  Admission,
  Admitted,
  DeliveryJob,
  DeliveryRequest,
  EndpointDestination,
  OrderKeys,
} from "../deliveries/destination.ts";
import type { DeliveryCounts, InFlight } from "../deliveries/status.ts";
import {
  type AttemptRow,
  eventOf,
  type InboundEvent,
  type RelayDelivery,
  type RelayRequest,
  type RelayStore,
} from "../deliveries/store.ts";
import { afterRelayAttempt, DELIVER, DUE_HEADER, type RelayFailure } from "../domain.ts";
import { messageBody, parsedOnce } from "../payload.ts";
import { PACE_AHEAD_MS, Pace, PROBE_MS_MAX, Progress } from "./breaker.ts";
import type { RegisteredSource } from "./event-source.ts";
import type { EndpointHealth } from "./health.ts";
import { type EndpointOrder, readOrderKey, readsOrderKey } from "./order.ts";
import { END, type EndpointQueue, SLICE } from "./queue.ts";
import { type Endpoint, type EndpointRegistry, endpointIn, isOrdered } from "./registry.ts";
import { CONCURRENCY } from "./schema.ts";
import { signatureOf } from "./signature.ts";
import { CLOSED, DISABLED, type EndpointStore, LIVE, PAUSED, PROBING } from "./store.ts";
import { renderTemplate, TEMPLATE_BODY_BYTES_MAX } from "./template.ts";

/** Concurrent jobs that end deliveries. */
const CONCURRENT_ENDS = 4;

/** What a delivery sends to an endpoint. */
interface Content {
  readonly method: string;
  readonly below: Below | undefined;
  readonly custom: RequestHeaders;
  /** Null for a method that has none. */
  readonly body: Uint8Array | PieceBody | null;
  /** Makes the body by the template of the delivery; null without one. */
  readonly template: (() => Promise<Uint8Array | null>) | null;
  /** Id of the message or event, for the signature. */
  readonly id: string;
  /** Headers about the event. */
  readonly eventHeaders: RequestHeaders;
}

/** The messages that are delivered. */
interface StoredMessages {
  find(ref: number): { readonly has_payload: number; readonly order_key: string | null } | null;
  content(ref: number): StoredMessage | null;
}

interface StoredMessage {
  readonly event_type: string;
  readonly created_at: number;
  /** JSON; null when it is deleted. */
  readonly payload: string | null;
  /** The schedule that sent it, at its time `scheduled_for`. */
  readonly schedule_id: string | null;
  readonly scheduled_for: number;
}

/** Decides when deliveries to endpoints are sent, parked, failed or cancelled. */
export class EndpointDispatch implements EndpointDestination {
  /** Rates of endpoints with `max_per_second`, by reference. */
  private readonly paces = new Map<number, Pace>();
  private readonly progress = new Progress();

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock" | "ids" | "changes"> & {
      readonly store: RelayStore;
      readonly endpoints: EndpointStore;
      readonly messages: StoredMessages;
      readonly registry: EndpointRegistry;
      readonly health: EndpointHealth;
      readonly secrets: Pick<WebhookSecrets, "headers">;
      readonly counts: DeliveryCounts;
      readonly source: RegisteredSource;
      readonly inFlight: InFlight;
      readonly queue: EndpointQueue;
      readonly order: EndpointOrder;
    },
  ) {
    deps.scheduler.register(END, {
      concurrency: CONCURRENT_ENDS,
      run: async ({ key, payload }) => ({
        record: (tx) => this.endSome(tx, Number(key), Number(payload)),
      }),
    });
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

  admit(relay: RelayRequest, job: DeliveryJob): Admission {
    const { ref, endpointRef, projectRef } = relay;
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    if (endpoint === null || endpoint.health.state === DISABLED)
      return unsent({ record: (tx) => this.end(tx, endpoint, ref, projectRef) });
    const deferred = this.deferred(endpoint, relay, job);
    if (deferred !== null) return unsent(deferred);
    const content = this.contentOf(endpoint, relay);
    if (content === null && eventOf(relay) === null)
      throw new Error(`the message of the delivery ${relay.item.relay_id} is missing`);
    if (content === null) return unsent(this.unsendable(endpoint, relay, job, EVENT_DELETED_ENDING));
    if (isTooLarge(endpoint, content)) return unsent(this.unsendable(endpoint, relay, job, TOO_LARGE_ENDING));
    const { template } = content;
    if (template === null)
      return { kind: "send", request: this.request(endpoint, relay, content, content.body) };
    return {
      kind: "render",
      render: async () => {
        const body = await template();
        return body === null
          ? unsent(this.unsendable(endpoint, relay, job, RESULT_TOO_LARGE_ENDING))
          : { kind: "send", request: this.request(endpoint, relay, content, body) };
      },
    };
  }

  /** The outcome of a due delivery that must wait; null when it can be sent. */
  private deferred(endpoint: Endpoint, { ref, item }: RelayRequest, job: DeliveryJob): JobOutcome | null {
    const { queue, clock, order } = this.deps;
    if (job.begun !== undefined && item.attempts === 0 && order.isLater(ref))
      return { record: (tx) => order.takePlace(tx, ref) };
    const { state, breaker, retrying_ref } = endpoint.health;
    const isBehind = retrying_ref !== null && retrying_ref !== ref;
    if (state === PAUSED || isBehind || (breaker !== CLOSED && job.probe === undefined))
      return { record: (tx) => queue.parkUnlessReady(tx, endpoint.row.ref, ref, job) };
    const waitMs = job.paced === true ? 0 : this.paceOf(endpoint);
    if (waitMs === 0) return null;
    if (waitMs > PACE_AHEAD_MS) return { record: (tx) => queue.parkForRate(tx, endpoint.row.ref, ref, job) };
    const retryAt = clock.now() + waitMs;
    return { retryAt, payload: { ...job, paced: true } satisfies DeliveryJob, attempt: item.attempts };
  }

  /** The outcome of a job whose delivery was finished before its attempt: if it was a probe, another one replaces it. */
  abandoned({ probe }: DeliveryJob): JobOutcome {
    return probe === undefined ? {} : { record: (tx) => this.deps.queue.replaceProbe(tx, probe) };
  }

  private request(
    { row: { ref }, terms }: Endpoint,
    { item: { relay_id } }: RelayRequest,
    { method, below, custom, id, eventHeaders }: Content,
    body: Uint8Array | PieceBody | null,
  ): DeliveryRequest {
    return {
      method,
      url: terms.url,
      below,
      requireHttps: false,
      custom,
      headers: async (now) => {
        const signed = await this.deps.secrets.headers(
          ref,
          id,
          now,
          body ?? "",
          signatureOf(terms.signature),
        );
        return { "X-Svc-Delivery-Id": relay_id, ...hopsHeader(), ...eventHeaders, ...signed };
      },
      body,
      timeoutMs: terms.timeout_ms,
      storesResponse: terms.keep_responses,
    };
  }

  /** What a delivery sends; null when its event, or the payload of its message, is not stored any more. */
  private contentOf(endpoint: Endpoint, relay: RelayRequest): Content | null {
    const event = eventOf(relay);
    if (event !== null) return this.eventContent(endpoint, relay, event);
    const message = this.deps.messages.content(relay.messageRef ?? 0);
    if (message === null || message.payload === null) return null;
    const { template } = relay;
    const { payload, schedule_id, scheduled_for } = message;
    const id = relay.item.message_id ?? "";
    const source = { id, type: message.event_type, timestamp: message.created_at, json: payload };
    const due = schedule_id === null ? {} : { [DUE_HEADER]: String(scheduled_for) };
    return {
      method: "POST",
      below: undefined,
      custom: withDefaults(due, endpoint.custom),
      body:
        template === null ? Buffer.from(messageBody(endpoint.terms.format, { ...message, payload })) : null,
      template: template === null ? null : () => renderTemplate(template, source),
      id,
      eventHeaders: {},
    };
  }

  /** The bytes of an event as its sender sent them, whatever the endpoint's format. */
  private eventContent(
    endpoint: Endpoint,
    { template, item: { event: type } }: RelayRequest,
    event: InboundEvent,
  ): Content | null {
    const { source } = this.deps;
    const content = source.current.content(event);
    if (content === null) return null;
    const { headers, receivedAt: timestamp, ...rest } = content;
    if (template === null || content.body === null)
      return { ...rest, template: null, custom: withDefaults(endpoint.custom, headers) };
    const { "content-type": _, "content-encoding": __, ...kept } = headers;
    return {
      ...rest,
      template: () => renderTemplate(template, { id: rest.id, type, timestamp, json: source.jsonOf(event) }),
      custom: withDefaults(endpoint.custom, kept),
    };
  }

  /** The body that the next attempt sends; null when it is not stored any more, or the endpoint of a message is deleted. */
  async body(relay: RelayRequest): Promise<Uint8Array | null> {
    const event = eventOf(relay);
    if (event !== null && relay.template === null) {
      const content = this.deps.source.current.content(event);
      return content === null || isPieces(content.body) ? null : (content.body ?? new Uint8Array());
    }
    const endpoint = this.deps.registry.get(relay.endpointRef ?? 0);
    const content = endpoint === null ? null : this.contentOf(endpoint, relay);
    if (content === null || isPieces(content.body)) return null;
    return content.template === null ? (content.body ?? new Uint8Array()) : content.template();
  }

  creditsOf(relay: RelayDelivery): number {
    const event = eventOf(relay);
    return event === null ? 1 : this.deps.source.current.creditsOf(event);
  }

  /** The outcome of a delivery that ends without an attempt. */
  private unsendable(
    { row }: Endpoint,
    { ref, projectRef }: RelayRequest,
    { probe }: DeliveryJob,
    ending: Ending,
  ): JobOutcome {
    return {
      record: (tx) => {
        if (probe !== undefined) this.deps.queue.replaceProbe(tx, probe);
        const endpoint = this.deps.registry.get(row.ref);
        this.end(tx, endpoint, ref, projectRef, ending);
      },
    };
  }

  next(
    { endpointRef, item }: RelayRequest,
    job: DeliveryJob,
    number: number,
    result: AttemptResult,
  ): AttemptStep<DeliveryJob> {
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    const waits = endpoint?.waits ?? [];
    const step = afterRelayAttempt("endpoint", number, result, this.deps.ids.fraction(), waits);
    if (step.kind !== "retry") return step;
    // A failed probe is parked with the others, and so is a delivery of an ordered endpoint.
    const isRequeued = job.probe !== undefined || (endpoint !== null && isOrdered(endpoint));
    if (isRequeued) return { ...step, kind: "requeue" };
    return { ...step, kind: "repeat", payload: { ref: job.ref, begun: item.scheduled_for } };
  }

  /** Blocks an ordered endpoint until a delivery is sent that this server had no capacity for. */
  postponed(tx: Tx, { endpointRef, ref }: RelayRequest): void {
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    if (endpoint !== null && isOrdered(endpoint)) this.deps.queue.block(tx, endpoint, ref);
  }

  record(tx: Tx, relay: RelayRequest, job: DeliveryJob, row: AttemptRow, step: AttemptStep): void {
    this.recordHealth(tx, relay, job, row, step);
    this.recordOrder(tx, relay, row, step);
    const event = eventOf(relay);
    const isRetried = step.kind === "repeat" || step.kind === "requeue";
    if (event !== null)
      this.deps.source.current.changed(tx, event, { attempt: row, retryAt: isRetried ? step.at : null });
  }

  private recordOrder(tx: Tx, relay: RelayRequest, row: AttemptRow, step: AttemptStep): void {
    const { registry, order } = this.deps;
    if (step.kind === "delivered" || step.kind === "failed") order.finished(tx, relay.ref);
    else if (row.attempt - relay.attempts_before === 1) {
      const endpoint = registry.get(relay.endpointRef ?? 0);
      if (endpoint !== null) order.retried(tx, endpoint, relay.ref, row.started_at);
    }
  }

  /** Records the outcome of an attempt in the endpoint's health. */
  private recordHealth(
    tx: Tx,
    relay: RelayRequest,
    job: DeliveryJob,
    row: AttemptRow,
    step: AttemptStep,
  ): void {
    const { registry, health, store, queue } = this.deps;
    const endpointRef = relay.endpointRef ?? 0;
    const endpoint = registry.get(endpointRef);
    if (endpoint === null) {
      if (step.kind === "requeue") queue.parkUnlessReady(tx, endpointRef, relay.ref, { ref: relay.ref });
      return;
    }
    const isFinal = step.kind === "delivered" || step.kind === "failed";
    if (isFinal) queue.unblock(tx, endpoint, relay.ref);
    if (relay.item.target_url !== endpoint.terms.url) store.setTarget(tx, endpoint.terms.url, relay.ref);
    if (step.kind === "delivered") {
      health.succeeded(tx, endpoint, relay.item.event);
      return;
    }
    const isProbe = job.probe !== undefined;
    const attempt = {
      status: row.response_status,
      error: row.error ?? "",
      // A user may have closed the breaker in the meantime.
      isProbe: isProbe && endpoint.health.breaker === PROBING,
    };
    health.failed(tx, endpoint, attempt, relay.item.event);
    if (step.kind === "failed") health.deliveryFailed(tx, endpoint, relay.item.event);
    else if (step.kind === "requeue") this.retry(tx, endpoint, relay, isProbe ? null : step.at);
  }

  /** Creates the job of a retry, or parks it. `at`: null for a probe, which is parked with the others. */
  private retry(tx: Tx, endpoint: Endpoint, { ref, item }: RelayRequest, at: number | null): void {
    const { queue, scheduler } = this.deps;
    const { state, breaker } = endpoint.health;
    if (at === null || state !== LIVE || breaker !== CLOSED) {
      queue.parkUnlessReady(tx, endpoint.row.ref, ref, { ref });
      return;
    }
    if (isOrdered(endpoint)) queue.block(tx, endpoint, ref);
    const job = { ref, begun: item.scheduled_for } satisfies DeliveryJob;
    // Behind an open breaker, other deliveries wait at most until the next probe.
    const latest = endpoint.health.holds === 1 ? tx.now + PROBE_MS_MAX : at;
    scheduler.enqueueAnonymous(tx, DELIVER, Math.min(at, latest), job, endpoint.lane);
  }

  /** Removes a cancelled delivery from the parked ones. */
  cancelled(tx: Tx, relay: RelayRequest): void {
    const { endpoints, registry, queue, order } = this.deps;
    const endpointRef = relay.endpointRef ?? 0;
    endpoints.unparkOne(tx, endpointRef, relay.ref);
    const endpoint = registry.get(endpointRef);
    if (endpoint !== null) queue.unblock(tx, endpoint, relay.ref);
    order.finished(tx, relay.ref);
    this.eventChanged(tx, relay);
  }

  canRestart(relay: RelayDelivery): boolean {
    return this.endpointFor(relay) !== null;
  }

  restart(tx: Tx, ref: number, read: string | null): boolean {
    const { store, order } = this.deps;
    const row = store.delivery(ref);
    const endpoint = row === null || row.item.finished_at === null ? null : this.endpointFor(row);
    if (row === null || endpoint === null) return false;
    store.restart(tx, tx.now, ref);
    const explicit = this.explicitKeyOf(row);
    const key = readsOrderKey(endpoint, explicit) ? read : explicit;
    order.accept(tx, endpoint, { ref, dueAt: tx.now, key });
    this.eventChanged(tx, row);
    return true;
  }

  async orderKeys(refs: readonly number[]): Promise<OrderKeys> {
    const { store, registry } = this.deps;
    const keys = new Map<number, string | null>();
    let last: { readonly messageRef: number; readonly value: () => unknown } | null = null;
    for (const ref of refs) {
      const row = store.delivery(ref);
      const endpoint = row === null ? null : registry.get(row.endpointRef ?? 0);
      if (row === null || endpoint === null || !readsOrderKey(endpoint, this.explicitKeyOf(row))) continue;
      const { messageRef } = row;
      // Deliveries of one message share its payload.
      const value: () => unknown = last?.messageRef === messageRef ? last.value : this.valueOf(row);
      last = messageRef === null ? null : { messageRef, value };
      keys.set(ref, await readOrderKey(endpoint, { explicit: null, value }));
    }
    return keys;
  }

  private explicitKeyOf(row: RelayDelivery): string | null {
    return eventOf(row) === null ? (this.deps.messages.find(row.messageRef ?? 0)?.order_key ?? null) : null;
  }

  /** What a delivery sends, parsed at its first use. */
  private valueOf(row: RelayDelivery): () => unknown {
    const { messages, source } = this.deps;
    const event = eventOf(row);
    if (event !== null) return parsedOnce(() => source.textOf(event));
    return parsedOnce(() => messages.content(row.messageRef ?? 0)?.payload ?? null);
  }

  /** The endpoint of a delivery; null when it is disabled or deleted, or the message's payload or the event is deleted. */
  private endpointFor(row: RelayDelivery): Endpoint | null {
    const { messages, source, registry } = this.deps;
    const event = eventOf(row);
    const hasContent =
      event === null ? messages.find(row.messageRef ?? 0)?.has_payload === 1 : source.current.has(event);
    return hasContent ? registry.enabled(row.endpointRef ?? 0) : null;
  }

  /** An event's delivery has changed without an attempt. */
  private eventChanged(tx: Tx, relay: RelayDelivery): void {
    const event = eventOf(relay);
    if (event !== null) this.deps.source.current.changed(tx, event, { attempt: null, retryAt: null });
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

  private endSome(tx: Tx, endpointRef: number, after: number): void {
    const { registry, endpoints, store, scheduler, inFlight } = this.deps;
    const endpoint = registry.get(endpointRef);
    // Enabled again in the meantime.
    if (endpoint !== null && endpoint.health.state !== DISABLED) return;
    const waiting = endpoints.waitingAfter(endpointRef, after, SLICE);
    for (const { ref } of waiting) {
      const row = inFlight.has(ref) ? null : store.delivery(ref);
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
    const { store, counts, changes } = this.deps;
    const row = store.delivery(ref);
    if (row === null || row.item.finished_at !== null) return;
    const { attempts, response_status, relay_id, kind } = row.item;
    const { status, error = row.item.error, failure = null } = ending;
    store.update(tx, ref, {
      status,
      failure,
      attempts,
      response_status,
      error,
    });
    if (endpoint !== null) this.deps.queue.unblock(tx, endpoint, ref);
    this.deps.order.finished(tx, ref);
    changes.inProject(tx, projectRef, "relay", relay_id);
    this.eventChanged(tx, row);
    tx.afterCommit(() => counts.finished[kind][status].add());
  }
}

/** The end of a delivery without an attempt. */
interface Ending {
  readonly status: "cancelled" | "failed";
  /** Default: the error of the last attempt. */
  readonly error?: string;
  readonly failure?: RelayFailure;
}

const DISABLED_ENDING: Ending = { status: "failed", error: "endpoint disabled", failure: "disabled" };
const EVENT_DELETED_ENDING: Ending = { status: "cancelled", error: "event deleted" };
const TOO_LARGE_ENDING: Ending = { status: "failed", error: "the body is above 1 MiB", failure: "blocked" };
const RESULT_TOO_LARGE_ENDING: Ending = {
  status: "failed",
  error: "the body that the template makes is above 1 MiB",
  failure: "blocked",
};

/** Whether the body of an event is too large for what must read all of it. */
function isTooLarge({ terms: { signature } }: Endpoint, { body, template }: Content): boolean {
  const readsAll = template !== null || signature?.scheme === "ed25519";
  return readsAll && (body?.length ?? 0) > TEMPLATE_BODY_BYTES_MAX;
}

function unsent(outcome: JobOutcome): Admitted {
  return { kind: "unsent", outcome };
}
