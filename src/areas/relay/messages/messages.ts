import { slices } from "../../../kernel/background/time-slices.ts";
import { bytesToUuid, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField, rejectionBy } from "../../../kernel/errors.ts";
import type { Caller, CallerAccount, Charger } from "../../../kernel/http/access/caller.ts";
import { encodeCursor, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { type Reply, reply, withJson } from "../../../kernel/http/responses/response.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { SCANNED_ROWS_MAX } from "../deliveries/listing.ts";
import { LIST_LIMIT, RELAY_STATUSES } from "../deliveries/schema.ts";
import type { RelayStore } from "../deliveries/store.ts";
import { DEDUPLICATION_MS, dueAt, RELAY_RETENTION_MS } from "../domain.ts";
import type { EndpointDeliveries } from "../endpoints/deliveries.ts";
import { NOTICE_SUBSCRIBERS_MAX, NoticePace } from "../endpoints/notices.ts";
import {
  type Endpoint,
  type EndpointRegistry,
  type MessageProperties,
  NOTICE_PREFIX,
} from "../endpoints/registry.ts";
import { CLOSED, DISABLED } from "../endpoints/store.ts";
import { messagePayloadTexts, payloadText } from "../payload.ts";
import { DIRECT_MAX, type FanOut } from "./fan-out.ts";
import {
  BATCH_DELIVERIES_MAX,
  PAYLOAD_ADVISED_BYTES,
  type RelayMessage,
  type RelayMessageBody,
  type RelayMessagePage,
  type RelayMessageQuery,
  type RelayMessageSent,
  type RelayMessagesBody,
  type RelayMessagesSent,
} from "./schema.ts";
import type { MessageDelivery, MessageItem, MessageRow, MessageStore } from "./store.ts";

/** Interval of checks whether the deliveries of a message are finished, or deleted, after its retention is over. */
const RECHECK_MS = 3_600_000;

interface MessageOwner {
  readonly accountRef: number;
  readonly projectRef: number;
}

export interface NewMessage {
  readonly type: string;
  /** JSON. */
  readonly payload: string;
  readonly channels?: readonly string[];
  readonly messageId?: string | null;
  readonly deduplicationId?: string | null;
  /** Epoch milliseconds; default: now. */
  readonly dueAt?: number;
  /** The schedule that sends it. */
  readonly scheduleId?: string;
  /** Endpoints that receive it; default: all that match. */
  readonly to?: readonly Endpoint[];
}

/** A caller's message, checked. */
interface Prepared {
  readonly message: Omit<NewMessage, "dueAt" | "to">;
  readonly dueAt: (now: number) => number;
  /** References of the matching endpoints. */
  to: readonly number[];
}

/** The messages of a request, ready for its unit of work. */
interface Sending {
  readonly messages: readonly Prepared[];
  /** Prefix of a message's fields in errors. */
  readonly prefixOf: (at: number) => string;
  /** Messages with deliveries that are not stored in that unit of work. */
  readonly unfinished: number[];
}

/** A message of a request, after the search for an earlier one with the same id. */
interface CheckedMessage {
  readonly message: Prepared["message"];
  readonly dueAt: number;
  readonly to: readonly Endpoint[];
  /** The stored message that it repeats. */
  readonly first: MessageRow | null;
  /** The position in the request of the message that it repeats. */
  readonly repeats: number | null;
}

type Sent = RelayMessagesSent["messages"][number];

/** The operations that credits are charged for. */
const SEND = "relay.messages.send";
const BATCH = "relay.messages.batch";
const NOTICE = "relay.endpoints.notice";

export class Messages {
  private nextRef: number;
  private readonly notices = new NoticePace();

  constructor(
    private readonly deps: Pick<Kernel, "ids"> & {
      readonly accounts: { account(accountRef: number): CallerAccount };
      readonly store: RelayStore;
      readonly messages: MessageStore;
      readonly registry: EndpointRegistry;
      readonly deliveries: EndpointDeliveries;
      readonly charger: Charger;
      readonly payloadRetentionMs: number;
      readonly fanOut: FanOut;
      /** Reserves references of new deliveries. */
      readonly newIds: (count: number) => { first: number; uuid: string };
      /** The id of a delivery, by its reference. */
      readonly idOf: (uuid: string, ref: number) => string;
    },
  ) {
    this.nextRef = deps.messages.highestRef() + 1;
  }

  /** Checks a caller's message and finds the matching endpoints. @throws ApiError `validation_error` naming the field. */
  async prepare(caller: Caller, given: RelayMessageBody, bodyText: string): Promise<Sending> {
    const message = prepared(given, await payloadText(bodyText, given.payload));
    await this.select(caller, [message], [given]);
    return { messages: [message], prefixOf: () => "", unfinished: [] };
  }

  /** The same for a batch: an error in one message rejects all. */
  async prepareMany(caller: Caller, { messages }: RelayMessagesBody, bodyText: string): Promise<Sending> {
    const payloads = await messagePayloadTexts(
      bodyText,
      messages.map(({ payload }) => payload),
    );
    const all = messages.map((given, at) =>
      withFieldPrefix(prefixInBatch(at), () => prepared(given, payloads[at] ?? "{}")),
    );
    await this.select(caller, all, messages);
    return { messages: all, prefixOf: prefixInBatch, unfinished: [] };
  }

  /** Finds the matching endpoints in slices: the filters of a thousand endpoints take long. */
  private async select(
    { project }: Caller,
    messages: readonly Prepared[],
    given: readonly RelayMessageBody[],
  ): Promise<void> {
    const seen = new Set<string>();
    for (const [at, one] of messages.entries()) {
      const ids = idsOf(one.message);
      // A repeat within the request is not sent.
      if (ids.some((id) => seen.has(id))) continue;
      for (const id of ids) seen.add(id);
      const { type, channels = [] } = one.message;
      const properties = { type, channels, value: () => given[at]?.payload };
      const to: number[] = [];
      for (const endpoint of this.deps.registry.ofProject(project.ref)) {
        if (slices.isOver) await slices.next();
        if (acceptsNow(endpoint, properties)) to.push(endpoint.row.ref);
      }
      one.to = to;
    }
  }

  /** Sends a message, unless it was sent before. */
  sendOne(
    tx: Tx,
    caller: Caller,
    sending: Sending,
    waiveCharge: () => void,
  ): Reply<201, RelayMessageSent> | Reply<200, RelayMessageSent & { deduplicated: true }> {
    const checked = this.findRepeats(tx, ownerOf(caller), sending);
    const cost = costOf(checked);
    if (cost === 0) waiveCharge();
    else this.charge(tx, caller, SEND, cost - 1);
    const [sent] = this.sendChecked(tx, ownerOf(caller), checked, sending.unfinished);
    if (sent === undefined) throw new Error("a request for one message has sent none");
    const { deduplicated, ...rest } = sent;
    return deduplicated === true ? reply(200, { ...rest, deduplicated }) : reply(201, rest);
  }

  /** Sends a batch in one unit of work. @throws ApiError for the first error: then none is sent. */
  sendMany(tx: Tx, caller: Caller, sending: Sending, waiveCharge: () => void): Reply<201, RelayMessagesSent> {
    const checked = this.findRepeats(tx, ownerOf(caller), sending);
    const listed = checked.reduce((sum, { first, to }) => sum + (first?.deliveries ?? to.length), 0);
    if (listed > BATCH_DELIVERIES_MAX)
      throw invalidField(
        "messages",
        `have ${listed} deliveries: send at most ${BATCH_DELIVERIES_MAX} in one request`,
      );
    const cost = costOf(checked);
    // Charged before the work: a request that cannot be paid costs the server nothing.
    if (cost === 0) waiveCharge();
    // The request itself has paid for one.
    else this.charge(tx, caller, BATCH, cost - 1);
    return reply(201, { messages: this.sendChecked(tx, ownerOf(caller), checked, sending.unfinished) });
  }

  /** Waits until all deliveries of a request are stored. On failure, a job stores the rest later. */
  async completed({ unfinished }: Sending): Promise<void> {
    await Promise.allSettled(unfinished.map((ref) => this.deps.fanOut.complete(ref)));
  }

  /** Finds the messages that were sent before, by an earlier request or earlier in this one. */
  private findRepeats(tx: Tx, owner: MessageOwner, { messages, prefixOf }: Sending): CheckedMessage[] {
    const positions = new Map<string, number>();
    const checked: CheckedMessage[] = [];
    for (const [at, { message, dueAt, to }] of messages.entries()) {
      const ids = idsOf(message);
      const repeats = ids.map((id) => positions.get(id)).find((one) => one !== undefined) ?? null;
      const earlier = repeats === null ? null : (checked[repeats] ?? null);
      const first = earlier === null ? this.sentBefore(tx, owner, message) : earlier.first;
      const isNew = earlier === null && first === null;
      if (isNew) for (const id of ids) positions.set(id, at);
      const refs = earlier === null ? to : [];
      checked.push({
        message,
        dueAt: isNew ? withFieldPrefix(prefixOf(at), () => dueAt(tx.now)) : tx.now,
        to: earlier?.to ?? refs.map((ref) => this.deps.registry.get(ref)).filter(isEnabled),
        first,
        repeats,
      });
    }
    return checked;
  }

  private sendChecked(
    tx: Tx,
    owner: MessageOwner,
    checked: readonly CheckedMessage[],
    unfinished: number[],
  ): Sent[] {
    let direct = DIRECT_MAX;
    const sent: Sent[] = [];
    for (const { message, dueAt, to, first, repeats } of checked) {
      const warning =
        Buffer.byteLength(message.payload) > PAYLOAD_ADVISED_BYTES
          ? { warning: `The payload is larger than ${PAYLOAD_ADVISED_BYTES} bytes: receivers may reject it.` }
          : {};
      const earlier = repeats === null ? undefined : sent[repeats];
      if (earlier !== undefined) {
        const { message_id, deliveries } = earlier;
        sent.push({ message_id, deliveries, ...warning, deduplicated: true });
      } else if (first !== null) {
        const deliveries = this.deliveriesOf(first).map(deliveryIds);
        sent.push({ message_id: first.message_id, deliveries, ...warning, deduplicated: true });
      } else {
        const isDirect = to.length <= direct;
        if (isDirect) direct -= to.length;
        sent.push({ ...this.send(tx, owner, { ...message, dueAt, to }, isDirect, unfinished), ...warning });
      }
    }
    return sent;
  }

  private sentBefore(tx: Tx, { projectRef }: MessageOwner, given: Prepared["message"]): MessageRow | null {
    const { messages } = this.deps;
    const { messageId = null, deduplicationId = null } = given;
    const byId = messageId === null ? null : messages.findById(projectRef, messageId);
    // An id is unique as long as the payload is stored, and at least for a day.
    const idsSince = tx.now - Math.max(this.deps.payloadRetentionMs, DEDUPLICATION_MS);
    if (byId !== null && byId.created_at > idsSince) return byId;
    if (deduplicationId === null) return null;
    const byDeduplication = messages.findByDeduplication(projectRef, deduplicationId);
    return byDeduplication !== null && byDeduplication.created_at > tx.now - DEDUPLICATION_MS
      ? byDeduplication
      : null;
  }

  /**
   * Sends a message: a delivery to each matching endpoint, without a charge. `isDirect`: all deliveries are stored in
   * this unit of work; otherwise the message is added to `unfinished`, and the deliveries are stored soon.
   */
  send(
    tx: Tx,
    { accountRef, projectRef }: MessageOwner,
    given: NewMessage,
    isDirect?: boolean,
    unfinished: number[] = [],
  ): RelayMessageSent {
    const { messages, fanOut, ids, newIds, idOf, payloadRetentionMs } = this.deps;
    const { type, payload, channels = [], dueAt: due = tx.now } = given;
    const endpoints = given.to ?? this.matchingEndpoints(projectRef, given);
    const ref = this.nextRef++;
    const message_id = given.messageId ?? prefixedId("msg", ids.uuidV7());
    const reserved = newIds(endpoints.length);
    const message = {
      ref,
      event_type: type,
      scheduled_for: due,
      created_at: tx.now,
      schedule_id: given.scheduleId ?? null,
    };
    messages.insert(tx, {
      ...message,
      projectRef,
      message_id,
      payload,
      channels: channels.length === 0 ? null : JSON.stringify(channels),
      deduplication_id: given.deduplicationId ?? null,
      first_ref: endpoints.length === 0 ? 0 : reserved.first,
      deliveries: endpoints.length,
      purge_at: due + payloadRetentionMs,
    });
    const refs = endpoints.map(({ row }) => row.ref);
    const owned = { ...message, accountRef, projectRef };
    if (isDirect ?? refs.length <= DIRECT_MAX) fanOut.storeNow(tx, owned, reserved, refs);
    else {
      fanOut.storeLater(tx, owned, reserved, refs);
      unfinished.push(ref);
    }
    return {
      message_id,
      deliveries: endpoints.map(({ row: { endpoint_id } }, at) => ({
        relay_id: idOf(reserved.uuid, reserved.first + at),
        endpoint_id,
      })),
    };
  }

  /** The endpoints that match a message now. */
  matchingEndpoints(projectRef: number, { type, payload, channels = [] }: NewMessage): readonly Endpoint[] {
    return this.endpointsAccepting(projectRef, { type, channels, value: parsedOnce(payload) });
  }

  /** Whether a message has unfinished deliveries. */
  isOpen(projectRef: number, messageId: string): boolean {
    const row = this.deps.messages.findById(projectRef, messageId);
    return row !== null && this.hasOpenDeliveries(row);
  }

  private endpointsAccepting(projectRef: number, properties: MessageProperties): Endpoint[] {
    return this.deps.registry.ofProject(projectRef).filter((one) => acceptsNow(one, properties));
  }

  /**
   * Sends a notice to the endpoints of a project that subscribe to its type, except the one that it is about, and those
   * with an open breaker. It costs what any message costs; without the credits it is not sent. A project sends one notice
   * per {@link NOTICE_INTERVAL_MS}: further ones are delayed.
   */
  notice(tx: Tx, about: Endpoint, type: string, data: object): void {
    const { accountRef, projectRef, ref } = about.row;
    const { accounts, charger } = this.deps;
    const to = this.endpointsAccepting(projectRef, { type, channels: [], value: () => data })
      .filter(({ row, health }) => row.ref !== ref && health.breaker === CLOSED)
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
    const { limit = LIST_LIMIT, cursor, event_type, since = 0, until = Number.MAX_SAFE_INTEGER } = query;
    const isFiltered = event_type !== undefined || query.since !== undefined || query.until !== undefined;
    const scanned = isFiltered ? SCANNED_ROWS_MAX : limit + 1;
    const rows = this.deps.messages.page(projectRef, pageStart(cursor), scanned);
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
    const shown = {
      ...itemView(row),
      deliveries: this.deliveriesOf(row).map((one) => ({
        ...deliveryIds(one),
        status: RELAY_STATUSES[one.status - 1] ?? "scheduled",
        attempts: one.attempts,
        response_status: one.response_status,
        error: one.error,
        finished_at: one.finished_at,
      })),
    };
    return withJson(200, shown, "payload", payload);
  }

  /** Restarts a finished delivery, due now. Returns whether it is finished and can be sent. */
  restart(tx: Tx, ref: number): boolean {
    const { store, deliveries } = this.deps;
    const row = store.request(ref);
    const endpoint = row === null || row.item.finished_at === null ? null : this.endpointFor(row);
    if (endpoint === null) return false;
    store.restart(tx, tx.now, ref);
    deliveries.enqueue(tx, endpoint, ref, tx.now);
    return true;
  }

  /** The endpoint of a delivery; null when it is disabled or deleted, or the message's payload is deleted. */
  endpointFor({ endpointRef, messageRef }: { endpointRef: number | null; messageRef: number | null }) {
    const hasPayload = this.deps.messages.find(messageRef ?? 0)?.has_payload === 1;
    return hasPayload ? this.enabledEndpoint(endpointRef) : null;
  }

  /** An endpoint; null when it is disabled or deleted. */
  enabledEndpoint(endpointRef: number | null): Endpoint | null {
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    return isEnabled(endpoint) ? endpoint : null;
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

  private charge(tx: Tx, { account }: Caller, operation: string, cost: number): void {
    if (cost > 0) this.deps.charger.charge(tx, account, operation, cost);
  }

  private hasOpenDeliveries({ ref, first_ref, deliveries }: MessageRow): boolean {
    return this.deps.messages.hasOpenDeliveries(first_ref, deliveries, ref) === 1;
  }

  /** The deliveries of a message, including those that are not stored yet. */
  deliveriesOf(row: MessageRow): MessageDelivery[] {
    const stored = this.deps.messages.deliveries(row.first_ref, row.deliveries, row.ref);
    return [...stored, ...this.deps.fanOut.pending(row)];
  }

  /** @throws ApiError `not_found` */
  find(projectRef: number, messageId: string): MessageRow {
    const row = this.deps.messages.findById(projectRef, messageId);
    if (row !== null) return row;
    throw new ApiError("not_found", "There is no message with this message_id in this project.");
  }
}

function prepared(given: RelayMessageBody, payload: string): Prepared {
  const { event_type: type, channels = [], message_id, deduplication_id, delay, at } = given;
  assertNotReservedType(type);
  return {
    message: {
      type,
      channels,
      payload,
      messageId: message_id ?? null,
      deduplicationId: deduplication_id ?? null,
    },
    to: [],
    dueAt:
      delay === undefined && at === undefined
        ? (now) => now
        : dueAt({ ...(delay === undefined ? {} : { delay }), ...(at === undefined ? {} : { at }) }),
  };
}

/** @throws ApiError `validation_error` for a type that is reserved for notices. */
export function assertNotReservedType(type: string): void {
  if (!type.startsWith(NOTICE_PREFIX)) return;
  throw invalidField(
    "event_type",
    `must not begin with ${NOTICE_PREFIX}: this prefix is reserved for notices of the server`,
  );
}

function prefixInBatch(at: number): string {
  return `messages.${at}.`;
}

/** Runs a function, and adds a prefix to the field of its validation error. */
function withFieldPrefix<T>(place: string, part: () => T): T {
  try {
    return part();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "validation_error") throw error;
    const [field = "", messages = []] = Object.entries(error.details.fields ?? {})[0] ?? [];
    throw invalidField(`${place}${field}`, messages.join(", "));
  }
}

function ownerOf({ account, project }: Caller): MessageOwner {
  return { accountRef: account.ref, projectRef: project.ref };
}

function deliveryIds({ relay_id, endpoint_id }: MessageDelivery) {
  return { relay_id: bytesToUuid(relay_id), endpoint_id };
}

function itemView({ message_id, event_type, channels, scheduled_for, created_at }: MessageItem) {
  return {
    message_id,
    event_type,
    scheduled_for,
    created_at,
    channels: channels === null ? [] : (JSON.parse(channels) as string[]),
  };
}

function isEnabled(endpoint: Endpoint | null): endpoint is Endpoint {
  return endpoint !== null && endpoint.health.state !== DISABLED;
}

function acceptsNow(endpoint: Endpoint, properties: MessageProperties): boolean {
  return isEnabled(endpoint) && endpoint.accepts(properties);
}

/** The ids that make a message unique. */
function idsOf({ messageId, deduplicationId }: Prepared["message"]): string[] {
  return [
    ...(messageId == null ? [] : [`message ${messageId}`]),
    ...(deduplicationId == null ? [] : [`deduplication ${deduplicationId}`]),
  ];
}

/** One credit for each message that was not sent before, and one for each of its deliveries. */
function costOf(checked: readonly CheckedMessage[]): number {
  const made = checked.filter(({ first, repeats }) => first === null && repeats === null);
  return made.reduce((sum, { to }) => sum + 1 + to.length, 0);
}

function parsedOnce(text: string): () => unknown {
  let value: unknown;
  return () => {
    value ??= JSON.parse(text);
    return value;
  };
}
