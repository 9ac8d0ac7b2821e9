import type { CallerAccount, Charger } from "../../../kernel/callers/caller.ts";
import { bytesToUuid, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, rejectionBy } from "../../../kernel/errors.ts";
import { encodeCursor, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { type Reply, withJson } from "../../../kernel/http/responses/response.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import type { DeliveryIds } from "../deliveries/ids.ts";
import { SCANNED_ROWS_MAX } from "../deliveries/listing.ts";
import { LIST_LIMIT, RELAY_STATUSES } from "../deliveries/schema.ts";
import type { DeliveryOwner } from "../deliveries/store.ts";
import { RELAY_RETENTION_MS } from "../domain.ts";
import type { MessageSource } from "../endpoints/endpoints.ts";
import { NOTICE_SUBSCRIBERS_MAX, NoticePace } from "../endpoints/notices.ts";
import { readOrderKey } from "../endpoints/order.ts";
import {
  acceptsNow,
  type Endpoint,
  type EndpointRegistry,
  type MessageProperties,
} from "../endpoints/registry.ts";
import type { RelayEndpointTested } from "../endpoints/schema.ts";
import { CLOSED } from "../endpoints/store.ts";
import type { EventTypes, SchemaProblem } from "../event-types/event-types.ts";
import { parsedOnce } from "../payload.ts";
import { DIRECT_MAX, type FanOut } from "./fan-out.ts";
import type { RelayMessage, RelayMessagePage, RelayMessageQuery, RelayMessageSent } from "./schema.ts";
import type { MessageDelivery, MessageItem, MessageRow, MessageStore } from "./store.ts";

/** Interval of checks whether the deliveries of a message are finished, or deleted, after its retention is over. */
const RECHECK_MS = HOUR_MS;

/**
 * Deliveries of a message that are created after it, to endpoints that were disabled or did not exist: as many as it had at first
 * at most. Its response lists all of them, and endpoints can be created and deleted without end.
 */
export const LATER_DELIVERIES_MAX = 1_000;

export interface NewMessage {
  readonly type: string;
  /** JSON. */
  readonly payload: string;
  /** The payload, parsed; default: parsed when an endpoint's order needs it. */
  readonly value?: () => unknown;
  readonly channels?: readonly string[];
  /** The customer to whose endpoints it goes; default: to endpoints without an owner. */
  readonly ownerId?: string | null;
  readonly messageId?: string | null;
  readonly deduplicationId?: string | null;
  readonly orderKey?: string | null;
  /** What does not fit the schema of its type; default: nothing. */
  readonly schemaErrors?: readonly SchemaProblem[];
  /** Epoch milliseconds; default: now. */
  readonly dueAt?: number;
  /** The schedule that sends it. */
  readonly scheduleId?: string;
  /** Endpoints that receive it; default: all that match. */
  readonly to?: readonly Endpoint[];
}

/** The operation that credits of a notice are charged for. */
const NOTICE = "relay.endpoints.notice";

/** The messages of projects, and the server's notices. */
export class Messages {
  private nextRef: number;
  private readonly notices = new NoticePace();

  constructor(
    private readonly deps: Pick<Kernel, "ids"> & {
      readonly accounts: { account(accountRef: number): CallerAccount };
      readonly messages: MessageStore;
      readonly registry: EndpointRegistry;
      readonly charger: Charger;
      readonly payloadRetentionMs: number;
      readonly fanOut: FanOut;
      readonly relayIds: DeliveryIds;
      readonly eventTypes: Pick<EventTypes, "countInvalid">;
    },
  ) {
    this.nextRef = deps.messages.highestRef() + 1;
  }

  /**
   * Sends a message: a delivery to each matching endpoint, without a charge. `isDirect`: all deliveries are stored in
   * this unit of work; otherwise the message is added to `unfinished`, and the deliveries are stored soon.
   */
  send(
    tx: Tx,
    { accountRef, projectRef }: DeliveryOwner,
    content: NewMessage,
    isDirect?: boolean,
    unfinished: number[] = [],
  ): RelayMessageSent {
    const { messages, fanOut, ids, relayIds, payloadRetentionMs } = this.deps;
    const { type, payload, channels = [], schemaErrors = [], dueAt: due = tx.now } = content;
    const endpoints = content.to ?? this.matchingEndpoints(projectRef, content);
    const ref = this.nextRef++;
    const message_id = content.messageId ?? prefixedId("msg", ids.uuidV7());
    const reserved = relayIds.reserve(endpoints.length);
    const message = {
      ref,
      event_type: type,
      scheduled_for: due,
      created_at: tx.now,
      schedule_id: content.scheduleId ?? null,
      order_key: content.orderKey ?? null,
    };
    messages.insert(tx, {
      ...message,
      projectRef,
      message_id,
      owner_id: content.ownerId ?? null,
      payload,
      channels: channels.length === 0 ? null : JSON.stringify(channels),
      deduplication_id: content.deduplicationId ?? null,
      first_ref: endpoints.length === 0 ? 0 : reserved.first,
      deliveries: endpoints.length,
      purge_at: due + payloadRetentionMs,
      schema_errors: schemaErrors.length === 0 ? null : JSON.stringify(schemaErrors),
    });
    if (schemaErrors.length > 0) this.deps.eventTypes.countInvalid(tx, projectRef, type);
    const refs = endpoints.map(({ row }) => row.ref);
    const owned = { ...message, accountRef, projectRef };
    const value = content.value ?? parsedOnce(() => payload);
    if (isDirect ?? refs.length <= DIRECT_MAX) fanOut.storeNow(tx, owned, reserved, refs, value);
    else {
      fanOut.storeLater(tx, owned, reserved, refs);
      unfinished.push(ref);
    }
    return {
      message_id,
      deliveries: endpoints.map(({ row: { endpoint_id } }, at) => ({
        relay_id: relayIds.idOf(reserved.uuid, reserved.first + at),
        endpoint_id,
      })),
    };
  }

  /** Sends a message to one endpoint, regardless of its types and filter, without a charge. `payload`: JSON. */
  sendTo(tx: Tx, endpoint: Endpoint, type: string, payload: string): RelayEndpointTested {
    const message = { type, payload, ownerId: endpoint.row.owner_id, to: [endpoint] };
    const { message_id, deliveries } = this.send(tx, endpoint.row, message);
    return { message_id, relay_id: deliveries[0]?.relay_id ?? "" };
  }

  /** What the body of a message is made of. @throws ApiError `not_found`; `conflict` when its payload is deleted */
  sourceOf(projectRef: number, messageId: string): MessageSource {
    const { ref, message_id: id, event_type: type, created_at: timestamp } = this.find(projectRef, messageId);
    const json = this.deps.messages.content(ref)?.payload ?? null;
    if (json !== null) return { id, type, timestamp, json };
    throw new ApiError("conflict", "The payload of this message is deleted: its retention is over.");
  }

  /** The endpoints that match a message now. */
  matchingEndpoints(
    projectRef: number,
    { type, payload, value = parsedOnce(() => payload), channels = [], ownerId = null }: NewMessage,
  ): readonly Endpoint[] {
    return this.endpointsAccepting(projectRef, { type, channels, ownerId, value });
  }

  /** Whether a message has unfinished deliveries. */
  isOpen(projectRef: number, messageId: string): boolean {
    const row = this.deps.messages.findById(projectRef, messageId);
    return row !== null && this.hasOpenDeliveries(row);
  }

  private endpointsAccepting(projectRef: number, properties: MessageProperties): Endpoint[] {
    return this.deps.registry.ofProject(projectRef).filter((endpoint) => acceptsNow(endpoint, properties));
  }

  /**
   * Sends a notice to the endpoints of a project that subscribe to its type, except the one that it is about, those with an
   * open breaker, and those of customers. It costs what any message costs; without the credits it is not sent. A project sends one notice
   * per {@link NOTICE_INTERVAL_MS}: further ones are delayed.
   */
  notice(
    tx: Tx,
    { accountRef, projectRef }: DeliveryOwner,
    type: string,
    data: object,
    about: Endpoint | null = null,
  ): void {
    const { accounts, charger } = this.deps;
    const to = this.endpointsAccepting(projectRef, { type, channels: [], ownerId: null, value: () => data })
      .filter(({ row, health }) => row.ref !== about?.row.ref && health.breaker === CLOSED)
      .slice(0, NOTICE_SUBSCRIBERS_MAX);
    const slot = this.notices.slot(projectRef, tx.now);
    if (to.length === 0 || slot === null) return;
    const account = accounts.account(accountRef);
    if (rejectionBy(() => charger.charge(tx, account, NOTICE, 1 + to.length)) !== null) return;
    this.notices.take(tx, projectRef, slot);
    this.send(tx, { accountRef, projectRef }, { type, payload: JSON.stringify(data), to, dueAt: slot });
  }

  /** A page of a project's messages, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, query: RelayMessageQuery): RelayMessagePage {
    const {
      limit = LIST_LIMIT,
      cursor,
      owner_id,
      event_type,
      since = 0,
      until = Number.MAX_SAFE_INTEGER,
    } = query;
    const isFiltered = event_type !== undefined || query.since !== undefined || query.until !== undefined;
    const scanned = isFiltered ? SCANNED_ROWS_MAX : limit + 1;
    const { page, pageOfOwner } = this.deps.messages;
    const before = pageStart(cursor);
    const rows =
      owner_id === undefined
        ? page(projectRef, before, scanned)
        : pageOfOwner(projectRef, owner_id, before, scanned);
    const fits = (row: MessageItem): boolean =>
      (event_type === undefined || row.event_type === event_type) &&
      row.created_at >= since &&
      row.created_at < until;
    const matching = rows.filter(fits);
    const shown = matching.slice(0, limit);
    // The next page starts after a full page, otherwise after the scanned rows.
    const last = matching.length > limit ? shown.at(-1) : rows.length === scanned ? rows.at(-1) : null;
    return {
      messages: shown.map(itemView),
      ...(last === null || last === undefined ? {} : { cursor: encodeCursor([last.ref]) }),
    };
  }

  /** A message with its deliveries. @throws ApiError `not_found` */
  read(projectRef: number, messageId: string): Reply<200, RelayMessage> {
    const row = this.find(projectRef, messageId);
    const payload = this.deps.messages.content(row.ref)?.payload ?? null;
    const errors = this.deps.messages.schemaErrors(row.ref)?.errors;
    const shown = {
      ...itemView(row),
      ...(errors === undefined ? {} : { schema_errors: JSON.parse(errors) as SchemaProblem[] }),
      deliveries: this.deliveriesOf(row).map((delivery) => ({
        ...deliveryIds(delivery),
        status: RELAY_STATUSES[delivery.status - 1] ?? "scheduled",
        attempts: delivery.attempts,
        response_status: delivery.response_status,
        error: delivery.error,
        finished_at: delivery.finished_at,
      })),
    };
    return withJson(200, shown, "payload", payload);
  }

  /** Whether a message can have a further delivery: it has fewer than {@link LATER_DELIVERIES_MAX} that were created later. */
  canDeliver({ ref }: MessageRow): boolean {
    return this.deps.messages.laterDeliveries(ref) < LATER_DELIVERIES_MAX;
  }

  /** The order key of a message to an endpoint. Called before the unit of work: a large payload takes long. */
  orderKey({ ref, order_key }: MessageRow, endpoint: Endpoint): Promise<string | null> {
    const value = parsedOnce(() => this.deps.messages.content(ref)?.payload ?? null);
    return readOrderKey(endpoint, { explicit: order_key, value });
  }

  /** Creates a delivery of a message that has none to this endpoint, due now. `order_key`: by {@link orderKey}. */
  deliver(
    tx: Tx,
    { accountRef, projectRef }: DeliveryOwner,
    row: MessageRow,
    endpoint: Endpoint,
    order_key: string | null,
  ): void {
    const { messages, fanOut, relayIds } = this.deps;
    const reserved = relayIds.reserve(1);
    const times = { scheduled_for: tx.now, created_at: tx.now };
    const delivery = { ...row, ...times, accountRef, projectRef, order_key };
    fanOut.storeNow(tx, delivery, reserved, [endpoint.row.ref], () => undefined);
    messages.addLater(tx, row.ref, reserved.first, projectRef, row.owner_id);
  }

  /** An endpoint of a project that may get a message, by its id; null if there is none. */
  recipient(
    projectRef: number,
    endpointId: string,
    { owner_id }: Pick<MessageRow, "owner_id">,
  ): Endpoint | null {
    const all = this.deps.registry.ofProject(projectRef);
    return all.find(({ row }) => row.endpoint_id === endpointId && row.owner_id === owner_id) ?? null;
  }

  /**
   * Deletes payloads after their retention, and then messages without deliveries.
   * @returns the number of messages it checked.
   */
  purge(tx: Tx, rowsMax: number): number {
    const { messages } = this.deps;
    const rows = messages.toPurge(tx.now, rowsMax);
    for (const row of rows) {
      if (this.hasOpenDeliveries(row)) messages.recheckAt(tx, tx.now + RECHECK_MS, row.ref);
      else if (row.has_payload === 1) messages.dropPayload(tx, tx.now + RELAY_RETENTION_MS, row.ref);
      else if (messages.hasDeliveries(row.first_ref, row.deliveries, row.ref) === 1)
        messages.recheckAt(tx, tx.now + RECHECK_MS, row.ref);
      else messages.remove(tx, row.ref);
    }
    return rows.length;
  }

  /** Removes at most `rowsMax` messages of a deleted project. @returns their number. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const { messages } = this.deps;
    let removed = 0;
    for (const { ref } of messages.someOfProject(projectRef, rowsMax)) removed += messages.remove(tx, ref);
    return removed;
  }

  private hasOpenDeliveries({ ref, first_ref, deliveries }: MessageRow): boolean {
    return this.deps.messages.hasOpenDeliveries(first_ref, deliveries, ref) === 1;
  }

  /** The deliveries of a message, including those that are not stored yet. */
  deliveriesOf(row: MessageRow): MessageDelivery[] {
    const stored = this.deps.messages.deliveries(row.first_ref, row.deliveries, row.ref);
    return [...stored, ...this.deps.fanOut.pending(row)];
  }

  /** The delivery of a message to an endpoint, including one that is not stored yet; null without one. */
  deliveryTo(row: MessageRow, endpointRef: number): Pick<MessageDelivery, "ref" | "status"> | null {
    const stored = this.deps.messages.deliveryTo(row.first_ref, row.deliveries, row.ref, endpointRef);
    if (stored !== null || row.deliveries === 0) return stored;
    return this.deps.fanOut.pending(row).find((delivery) => delivery.endpointRef === endpointRef) ?? null;
  }

  /** @throws ApiError `not_found` */
  find(projectRef: number, messageId: string): MessageRow {
    const row = this.deps.messages.findById(projectRef, messageId);
    if (row !== null) return row;
    throw new ApiError("not_found", "There is no message with this message_id in this project.");
  }
}

export function deliveryIds({ relay_id, endpoint_id }: MessageDelivery) {
  return { relay_id: bytesToUuid(relay_id), endpoint_id };
}

function itemView(item: MessageItem) {
  const { message_id, event_type, owner_id, channels, order_key, scheduled_for, created_at } = item;
  return {
    message_id,
    event_type,
    owner_id,
    order_key,
    scheduled_for,
    created_at,
    channels: channels === null ? [] : (JSON.parse(channels) as string[]),
  };
}
