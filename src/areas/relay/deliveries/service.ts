import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { mapInSlices } from "../../../kernel/background/time-slices.ts";
import type { Caller, Charger } from "../../../kernel/callers/caller.ts";
import { isUuid } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { RequestHeaders } from "../../../kernel/outbound/headers.ts";
import type { Notification } from "../../../kernel/outbound/notification.ts";
import { readWaits } from "../../../kernel/outbound/retries.ts";
import type { TargetPolicy } from "../../../kernel/outbound/target.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import { DEDUPLICATION_MS, dueAt, NOTIFICATION } from "../domain.ts";
import { payloadText } from "../payload.ts";
import { assertCallbackUrls, shownCallbacks } from "./callback-urls.ts";
import { type Destination, type Destinations, destinationOf, type OrderKeys } from "./destination.ts";
import { attemptView } from "./exchange.ts";
import type { DeliveryIds } from "./ids.ts";
import { listRelays, type OfMessages } from "./listing.ts";
import { listOfOwner, type OwnedMessages } from "./owned.ts";
import { withoutReservedHeaders } from "./reserved-headers.ts";
import {
  BODY_BYTES_MAX,
  DEDUPLICATION_ID_LENGTH_MAX,
  LIST_LIMIT,
  type Relay,
  type RelayBody,
  type RelayCancelled,
  type RelayDeduplicated,
  type RelayItem,
  type RelayPage,
  type RelayQuery,
  type RelayResent,
  type RelayScheduled,
  type RelaySentBody,
  type RelayStats,
  type RelayStatsQuery,
} from "./schema.ts";
import { searchDeliveries } from "./search.ts";
import { deliveryStats } from "./stats.ts";
import { type DeliveryCounts, type InFlight, itemOf, statusOf } from "./status.ts";
import {
  type CallbackUrls,
  eventOf,
  type InboundEvent,
  type NewRelay,
  type RelayDelivery,
  type RelayExtras,
  type RelayRequest,
  type RelayStore,
} from "./store.ts";
import { DELIVERY_HEADERS, SECRET_TARGET, type UrlDestination } from "./url-destination.ts";

/** The delivery of a schedule's run. */
type ScheduledRun = Pick<
  NewRelay,
  "accountRef" | "projectRef" | "target_url" | "method" | "body" | "scheduled_for"
> &
  Pick<RelayExtras, "retry_schedule" | "schedule_id"> & {
    readonly headers: RequestHeaders;
    readonly callbacks: CallbackUrls;
  };

/** References of endpoints and messages; 0 for those that do not exist. */
export interface MessageRefs {
  endpoint(projectRef: number, endpointId: string): number;
  message(projectRef: number, messageId: string): number;
}

/** A checked delivery, ready to be stored. */
export interface PreparedRelay extends Pick<NewRelay, "target_url" | "method"> {
  readonly host: string;
  readonly dueAt: (now: number) => number;
  readonly custom: RequestHeaders;
  body: string | null;
  readonly extras: RelayExtras | null;
  readonly deduplicationId: string | null;
  /** Whether the content is compared, in place of an id. */
  readonly isByContent: boolean;
  readonly deduplicationMs: number;
  readonly callbacks: CallbackUrls | null;
}

/** The response to a request that schedules a delivery. */
export type ScheduleResult = Reply<201, RelayScheduled> | Reply<200, RelayDeduplicated>;

export class RelayService {
  constructor(
    private readonly deps: Destinations &
      Pick<Kernel, "vault" | "clock"> & {
        readonly store: RelayStore;
        readonly relayIds: DeliveryIds;
        readonly inFlight: InFlight;
        /** The area whose events are delivered. */
        readonly source: { readonly current: { methodOf(event: InboundEvent): string | null } };
        readonly urls: UrlDestination;
        readonly policy: TargetPolicy;
        readonly counts: DeliveryCounts;
        readonly refs: MessageRefs;
        readonly messageRows: OwnedMessages;
        readonly charger: Charger;
      },
  ) {}

  /**
   * Checks a caller's delivery. Returns a promise only if the payload has to be scanned.
   * @throws ApiError `validation_error` naming the field.
   */
  prepare(request: RelayBody, bodyText: string): PreparedRelay | Promise<PreparedRelay> {
    const { target_url, method, body_base64, deduplication_id: deduplicationId = null } = request;
    const { callback_url = null, failure_callback_url = null } = request;
    const { url } = this.deps.policy.assertUrl("target_url", target_url);
    assertCallbackUrls(request, this.deps.policy);
    const hasCallback = callback_url !== null || failure_callback_url !== null;
    const prepared: PreparedRelay = {
      host: url.host,
      dueAt: dueAt(request),
      custom: withoutReservedHeaders(request.headers ?? {}),
      target_url,
      method,
      body: null,
      extras: extrasOf(request),
      deduplicationId,
      ...deduplicationOf(request),
      callbacks: hasCallback ? { callback_url, failure_callback_url } : null,
    };
    if (method === "GET" || body_base64 !== undefined) return prepared;
    const body = payloadText(bodyText, request.payload);
    if (body instanceof Promise) return body.then((text) => ({ ...prepared, body: text }));
    prepared.body = body;
    return prepared;
  }

  /** Schedules a delivery in the caller's project, unless its `deduplication_id` did so within a day: then it is free of charge. */
  schedule(
    tx: Tx,
    { account, project }: Caller,
    prepared: PreparedRelay,
    waiveCharge: () => void,
  ): ScheduleResult {
    const { host, dueAt, custom, extras, isByContent, deduplicationMs, callbacks } = prepared;
    const deduplicationId = isByContent ? contentId(prepared) : prepared.deduplicationId;
    const first =
      deduplicationId === null ? null : this.firstOf(project.ref, deduplicationId, tx.now - deduplicationMs);
    if (first !== null) {
      waiveCharge();
      const { relay_id, scheduled_for } = first.item;
      return reply(200, {
        relay_id,
        scheduled_for,
        status: this.statusOf(first),
        deduplicated: true as const,
      });
    }
    const id = this.deps.relayIds.next();
    if (deduplicationId !== null)
      this.deps.store.noteDeduplication(tx, project.ref, deduplicationId, id.ref, tx.now);
    const headers = DELIVERY_HEADERS.sealOrNull(this.deps.vault, id.relay_id, custom);
    const scheduled_for = dueAt(tx.now);
    const relay: NewRelay = {
      ref: id.ref,
      relay_id: id.relay_id,
      accountRef: account.ref,
      projectRef: project.ref,
      kind: "scheduled",
      event: null,
      monitor_id: null,
      target_url: prepared.target_url,
      method: prepared.method,
      headers,
      body: prepared.body,
      scheduled_for,
    };
    this.insert(tx, relay, host, extras);
    if (callbacks !== null) this.deps.store.setCallbacks(tx, id.ref, callbacks);
    return reply(201, { relay_id: id.relay_id, scheduled_for, status: "scheduled" });
  }

  /** Queues the delivery of a schedule's run, in the run's unit of work. */
  sendScheduled(tx: Tx, run: ScheduledRun): { relay_id: string } {
    const { accountRef, projectRef, target_url, method, body, scheduled_for } = run;
    const id = this.deps.relayIds.next();
    const headers = DELIVERY_HEADERS.sealOrNull(this.deps.vault, id.relay_id, run.headers);
    const sent = { kind: "scheduled", event: null, monitor_id: null, target_url, method, body } as const;
    const extras = { ...NO_EXTRAS, retry_schedule: run.retry_schedule, schedule_id: run.schedule_id };
    const { host } = new URL(target_url);
    this.insert(tx, { ...id, accountRef, projectRef, ...sent, headers, scheduled_for }, host, extras);
    const { callback_url, failure_callback_url } = run.callbacks;
    if (callback_url !== null || failure_callback_url !== null)
      this.deps.store.setCallbacks(tx, id.ref, run.callbacks);
    return { relay_id: id.relay_id };
  }

  /** Whether a delivery exists and is not finished. */
  isOpen(relayId: string): boolean {
    const refs = this.deps.relayIds.refsOf(relayId);
    const row = refs
      .map((ref) => this.deps.store.delivery(ref))
      .find((delivery) => delivery?.item.relay_id === relayId);
    return row !== undefined && row?.item.finished_at === null;
  }

  private firstOf(projectRef: number, deduplicationId: string, after: number): RelayRequest | null {
    const { store } = this.deps;
    return store.request(store.deduplicated(projectRef, deduplicationId, after));
  }

  /** Queues a notification, due immediately. Returns its id, for {@link withdraw}. */
  notify(tx: Tx, { destination, retry_schedule, ...notification }: Notification): string {
    const id = this.deps.relayIds.next();
    const fixed = { kind: NOTIFICATION, method: "POST", headers: null } as const;
    const sealed = destination && SECRET_TARGET.seal(this.deps.vault, id.relay_id, destination);
    const extras: RelayExtras = {
      ...NO_EXTRAS,
      destination: sealed ?? null,
      retry_schedule: retry_schedule === undefined ? null : JSON.stringify(retry_schedule),
    };
    this.insert(
      tx,
      { ...notification, ...id, ...fixed, scheduled_for: tx.now },
      new URL(notification.target_url).host,
      sealed === undefined && retry_schedule === undefined ? null : extras,
    );
    return id.relay_id;
  }

  /** Cancels a pending notification that a newer one supersedes. Returns whether it was still pending. */
  withdraw(tx: Tx, relayId: string): boolean {
    const { store, inFlight, counts } = this.deps;
    const rows = this.deps.relayIds.refsOf(relayId).map((ref) => store.request(ref));
    const row = rows.find(
      (delivery) => delivery?.item.relay_id === relayId && delivery.item.kind === NOTIFICATION,
    );
    if (!row || row.item.finished_at !== null) return false;
    if (row.item.status === "scheduled" && inFlight.has(row.ref)) return false;
    const { attempts, response_status, error } = row.item;
    store.update(tx, row.ref, { status: "cancelled", failure: null, attempts, response_status, error });
    tx.afterCommit(() => counts.finished[NOTIFICATION].cancelled.add());
    return true;
  }

  /** A page of a project's deliveries, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  async list(projectRef: number, query: RelayQuery): Promise<RelayPage> {
    const { store, inFlight } = this.deps;
    const { owner_id } = query;
    const of = this.ofMessages(projectRef, query);
    const page =
      owner_id === undefined
        ? listRelays(store, inFlight, projectRef, query, of)
        : listOfOwner(this.deps, projectRef, owner_id, query, of);
    // The method of an event stands behind its body, which may be large.
    const deliveries = await mapInSlices(page.deliveries, (item) => ({
      ...item,
      method: this.methodOf(item),
    }));
    return { ...page, deliveries };
  }

  /** A bucket can forward the method of a request, and changes of its settings apply to the next attempt. */
  private methodOf(item: RelayItem): string {
    const event = eventOf({ item });
    return (event === null ? null : this.deps.source.current.methodOf(event)) ?? item.method;
  }

  /** The same with the text `q`. */
  search(projectRef: number, query: RelayQuery & { readonly q: string }): Promise<RelayPage> {
    const { q, cursor, limit = LIST_LIMIT } = query;
    const source = {
      page: (at: string | undefined, size: number) =>
        this.list(projectRef, { ...query, ...(at === undefined ? {} : { cursor: at }), limit: size }),
      body: async (relayId: string) => {
        const row = this.lookUp(projectRef, relayId);
        return row === null ? null : this.destinationOf(row).body(row);
      },
    };
    return searchDeliveries(source, { q, cursor, limit });
  }

  /** Counts a project's deliveries by status and over time. */
  stats(projectRef: number, query: RelayStatsQuery): Promise<RelayStats> {
    return deliveryStats(
      this.deps,
      projectRef,
      query,
      this.ofMessages(projectRef, query),
      this.deps.clock.now(),
    );
  }

  private ofMessages(projectRef: number, { endpoint_id, message_id }: RelayStatsQuery): OfMessages {
    const { refs } = this.deps;
    return {
      endpointRef: endpoint_id === undefined ? null : refs.endpoint(projectRef, endpoint_id),
      messageRef: message_id === undefined ? null : refs.message(projectRef, message_id),
    };
  }

  /** The body that a delivery sends, while it is stored. @throws ApiError `not_found` */
  sentBody(projectRef: number, relayId: string): Promise<RelaySentBody> {
    return this.sentBodyOf(this.find(projectRef, relayId));
  }

  /** The same of a delivery of a message to a customer. @throws ApiError `not_found` */
  ownedBody(projectRef: number, ownerId: string, relayId: string): Promise<RelaySentBody> {
    return this.sentBodyOf(this.findOwned(projectRef, ownerId, relayId));
  }

  private async sentBodyOf(row: RelayRequest): Promise<RelaySentBody> {
    const bytes = await this.destinationOf(row).body(row);
    if (bytes === null) return { body: null, size_bytes: null };
    const size_bytes = bytes.length;
    return isUtf8(bytes)
      ? { body: Buffer.from(bytes).toString("utf8"), size_bytes }
      : { body: null, body_base64: Buffer.from(bytes).toString("base64"), size_bytes };
  }

  /** References of the deliveries with these ids, ascending, without those that do not exist. */
  refsOf(projectRef: number, relayIds: readonly string[]): number[] {
    const found = new Set<number>();
    for (const id of relayIds.map((relayId) => relayId.toLowerCase()).filter(isUuid))
      for (const ref of this.deps.relayIds.refsOf(id)) {
        const head = this.deps.store.head(ref);
        if (head?.relay_id === id && head.projectRef === projectRef) found.add(ref);
      }
    return [...found].sort((a, b) => a - b);
  }

  /** A delivery with its attempts. @throws ApiError `not_found` */
  read(projectRef: number, relayId: string): Relay {
    const row = this.find(projectRef, relayId);
    const { retry_schedule, timeout_ms } = row;
    return {
      ...itemOf(row, this.deps.inFlight),
      method: this.methodOf(row.item),
      retry_schedule: retry_schedule === null ? null : JSON.parse(retry_schedule),
      timeout_ms,
      ...shownCallbacks(row.hasCallback ? this.deps.store.callbacksOf(row.ref) : null),
      attempt_log: this.deps.store.attempts(row.ref).map(attemptView),
    };
  }

  /** A delivery of a message to a customer, with its message. @throws ApiError `not_found` */
  owned(projectRef: number, ownerId: string, relayId: string): { relay: Relay; row: RelayRequest } {
    const row = this.findOwned(projectRef, ownerId, relayId);
    return { relay: this.read(projectRef, relayId), row };
  }

  private findOwned(projectRef: number, ownerId: string, relayId: string): RelayRequest {
    const row = this.find(projectRef, relayId);
    const owner = this.deps.messageRows.find(row.messageRef ?? 0)?.owner_id;
    if (owner !== ownerId) throw notFound();
    return row;
  }

  /** Cancels a delivery. @throws ApiError `not_found`, `conflict` once its first attempt has started */
  cancel(tx: Tx, projectRef: number, relayId: string): RelayCancelled {
    const row = this.find(projectRef, relayId);
    const { relay_id, kind, attempts, response_status, error } = row.item;
    const status = this.statusOf(row);
    if (status === "scheduled") {
      const end = { status: "cancelled", failure: null, attempts, response_status, error } as const;
      this.deps.store.update(tx, row.ref, end);
      this.destinationOf(row).cancelled(tx, row);
      tx.afterCommit(() => this.deps.counts.finished[kind].cancelled.add());
      const target = { type: "delivery", id: relay_id };
      tx.audit({
        summary: "Delivery cancelled",
        target,
        before: { status },
        after: { status: "cancelled" },
      });
    } else if (status !== "cancelled") {
      throw new ApiError(
        "conflict",
        `This delivery is ${status}. Only a delivery before its first attempt can be cancelled.`,
      );
    }
    if (status === "cancelled") tx.audit(null);
    return { relay_id, status: "cancelled" };
  }

  /** The order key of a delivery that will be resent, if its payload or body has it. Called before the unit of work: it takes long. */
  async orderKey(projectRef: number, relayId: string): Promise<string | null> {
    const row = this.lookUp(projectRef, relayId);
    return row === null ? null : ((await this.orderKeys([row.ref])).get(row.ref) ?? null);
  }

  /** The same of several deliveries, by reference. */
  orderKeys(refs: readonly number[]): Promise<OrderKeys> {
    return this.deps.endpoints.orderKeys(refs);
  }

  /**
   * Resends a failed delivery immediately, under the same id. `key`: by {@link orderKey}.
   * @throws ApiError `not_found`, `conflict` when it is not finished, or its content is deleted.
   */
  resend(tx: Tx, { account, project }: Caller, relayId: string, key: string | null): RelayResent {
    const row = this.find(project.ref, relayId);
    const { relay_id } = row.item;
    const status = this.statusOf(row);
    const failed = this.resendable(row.ref);
    if (failed === null) {
      const gone =
        row.endpointRef === null
          ? "its content is not stored any more"
          : "its endpoint is disabled or deleted, or its payload or event is deleted";
      const why =
        status === "scheduled" || status === "delivering" ? "only a finished delivery can be resent" : gone;
      throw new ApiError("conflict", `This delivery is ${status}: ${why}.`);
    }
    // The request has paid for the first MiB.
    const further = this.creditsOf(failed) - 1;
    if (further > 0) this.deps.charger.charge(tx, account, "relay.resend", further);
    this.restart(tx, failed, key);
    const target = { type: "delivery", id: relay_id };
    tx.audit({ summary: "Delivery resent", target, before: { status }, after: { status: "scheduled" } });
    return { relay_id, status: "scheduled" };
  }

  /** A delivery that can be resent; null when it has not failed, or its content is deleted. */
  resendable(ref: number): RelayDelivery | null {
    const row = this.deps.store.delivery(ref);
    if (row?.item.status !== "failed" || row.failure === null) return null;
    return this.destinationOf(row).canRestart(row) ? row : null;
  }

  /** Credits that resending a delivery costs. */
  creditsOf(row: RelayDelivery): number {
    return this.destinationOf(row).creditsOf(row);
  }

  /** A delivery as a part of a bulk resend: it matches if it has failed; its content may be deleted. */
  failed(ref: number): { readonly ref: number; readonly matches: number; readonly bytes: number } {
    const head = this.deps.store.head(ref);
    return { ref, matches: head?.isFailed === true ? 1 : 0, bytes: head?.bytes ?? 0 };
  }

  /** Restarts a failed delivery, due now. `key`: by {@link orderKeys}. */
  restart(tx: Tx, row: RelayDelivery, key: string | null): void {
    this.destinationOf(row).restart(tx, row.ref, key);
  }

  /** `host`: the target's host. */
  private insert(tx: Tx, relay: NewRelay, host: string, extras: RelayExtras | null = null): void {
    this.deps.store.insert(tx, relay, extras);
    this.deps.urls.enqueue(tx, relay, relay.scheduled_for, host);
  }

  private destinationOf(row: RelayDelivery): Destination {
    return destinationOf(this.deps, row);
  }

  private find(projectRef: number, relayId: string): RelayRequest {
    const row = this.lookUp(projectRef, relayId);
    if (row === null) throw notFound();
    return row;
  }

  private lookUp(projectRef: number, relayId: string): RelayRequest | null {
    const id = relayId.toLowerCase();
    const refs = isUuid(id) ? this.deps.relayIds.refsOf(id) : [];
    for (const ref of refs) {
      const row = this.deps.store.request(ref);
      if (row !== null && row.item.relay_id === id && row.projectRef === projectRef) return row;
    }
    return null;
  }

  private statusOf(row: RelayRequest) {
    return statusOf(row, this.deps.inFlight);
  }
}

function notFound(): ApiError {
  return new ApiError("not_found", "There is no delivery with this relay_id in this project.");
}

const NO_EXTRAS: RelayExtras = {
  body_bytes: null,
  retry_schedule: null,
  timeout_ms: null,
  schedule_id: null,
  destination: null,
};

/** @throws ApiError `validation_error` for settings that contradict each other, or have no effect */
function deduplicationOf({ deduplication, deduplication_id, deduplicate_hours }: RelayBody) {
  if (deduplication !== undefined && deduplication_id !== undefined)
    throw invalidField("deduplication", "cannot be combined with deduplication_id: omit one of them");
  if (deduplicate_hours !== undefined && deduplication === undefined && deduplication_id === undefined)
    throw invalidField("deduplicate_hours", "requires deduplication_id or deduplication");
  return {
    isByContent: deduplication === "content",
    deduplicationMs: deduplicate_hours === undefined ? DEDUPLICATION_MS : deduplicate_hours * HOUR_MS,
  };
}

/** The id of what a delivery sends, and where. It is longer than any `deduplication_id`. */
function contentId({ method, target_url, body, extras }: PreparedRelay): string {
  const hash = createHash("sha256").update(`${method} ${target_url}\n`);
  const sent = extras?.body_bytes ?? body;
  if (sent !== null) hash.update(sent);
  return `content ${hash.digest("hex")}`.padEnd(DEDUPLICATION_ID_LENGTH_MAX + 1);
}

/** Properties that few deliveries have; null for the others. */
function extrasOf(request: RelayBody): RelayExtras | null {
  const { method, payload, body_base64, retry_schedule, timeout_ms = null } = request;
  if (body_base64 === undefined && retry_schedule === undefined && timeout_ms === null) return null;
  if (body_base64 !== undefined && payload !== undefined)
    throw invalidField("body_base64", "cannot be combined with payload: omit one of them");
  const bytes = body_base64 === undefined ? null : bodyBytes(body_base64);
  if (retry_schedule !== undefined) readWaits(retry_schedule);
  return {
    ...NO_EXTRAS,
    body_bytes: method === "GET" ? null : bytes,
    retry_schedule: retry_schedule === undefined ? null : JSON.stringify(retry_schedule),
    timeout_ms,
  };
}

/** Decodes base64. @throws ApiError `validation_error` for too many bytes, and for invalid base64. */
function bodyBytes(base64: string): Uint8Array {
  const bytes = new Uint8Array(Buffer.from(base64, "base64"));
  // The decoder ignores invalid characters: only the canonical form is valid.
  if (bytes.length <= BODY_BYTES_MAX && Buffer.from(bytes).toString("base64") === base64) return bytes;
  throw invalidField("body_base64", `must be base64 of at most ${BODY_BYTES_MAX} bytes`);
}
