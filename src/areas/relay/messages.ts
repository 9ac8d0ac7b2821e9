import { ApiError, invalidField } from "../../kernel/errors.ts";
import { type Reply, reply } from "../../kernel/http/answer.ts";
import type { Caller, Charger } from "../../kernel/http/caller.ts";
import { encodeCursor, pageStart } from "../../kernel/http/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { bytesToUuid } from "../../kernel/uuid.ts";
import { DEDUPLICATED_MS, dueAt, exactly, RELAYS_KEPT_MS } from "./domain.ts";
import type { EndpointDeliveries } from "./endpoint-deliveries.ts";
import { type Endpoint, type EndpointRegistry, type Offered, OWN_TYPES } from "./endpoint-registry.ts";
import { DISABLED } from "./endpoint-store.ts";
import { idOf } from "./ids.ts";
import { WALKED_ROWS_MAX } from "./listing.ts";
import {
  BATCH_DELIVERIES_MAX,
  PAYLOAD_ADVISED_BYTES,
  type RelayMessage,
  type RelayMessageBody,
  type RelayMessagePage,
  type RelayMessageQuery,
  type RelayMessageResendBody,
  type RelayMessageResent,
  type RelayMessageSent,
  type RelayMessagesBody,
  type RelayMessagesSent,
} from "./message-schema.ts";
import type { MessageDelivery, MessageItem, MessageRow, MessageStore } from "./message-store.ts";
import { LIST_LIMIT, RELAY_STATUSES } from "./schema.ts";
import type { RelayStore } from "./store.ts";

/** How long a payload whose time is over, but not its deliveries', waits for another look. */
const LOOK_AGAIN_MS = 3_600_000;

/** Whose message it is. */
interface MessageOwner {
  readonly accountRef: number;
  readonly projectRef: number;
}

/** A message to be sent. */
export interface NewMessage {
  readonly type: string;
  /** JSON. */
  readonly payload: string;
  readonly channels?: readonly string[];
  readonly messageId?: string | null;
  readonly deduplicationId?: string | null;
  /** Epoch milliseconds; now unless given. */
  readonly dueAt?: number;
  /** The endpoints that it goes to, instead of all that take it. */
  readonly to?: readonly Endpoint[];
}

/** A message that a caller sends, checked and made ready. */
interface Prepared {
  readonly message: Omit<NewMessage, "dueAt">;
  readonly dueAt: (now: number) => number;
}

type Sent = RelayMessagesSent["messages"][number];

/** The operations whose credits are charged for deliveries. */
const SEND = "relay.messages.send";
const BATCH = "relay.messages.batch";
const RESEND = "relay.messages.resend";

/** The use cases of messages. */
export class Messages {
  private nextRef: number;

  constructor(
    private readonly deps: Pick<Kernel, "ids"> & {
      readonly store: RelayStore;
      readonly messages: MessageStore;
      readonly registry: EndpointRegistry;
      readonly deliveries: EndpointDeliveries;
      readonly charger: Charger;
      readonly payloadRetentionMs: number;
      /** The reference and the id of a new delivery. */
      readonly newId: () => { ref: number; relay_id: string };
    },
  ) {
    this.nextRef = deps.messages.highestRef() + 1;
  }

  /** Checks what a caller sends. @throws ApiError `validation_error` naming the field. */
  prepare(given: RelayMessageBody, bodyText: string): Prepared {
    const exact = exactly(bodyText) as { payload: object } | null;
    return prepared(given, exact?.payload ?? given.payload);
  }

  /** The same for many: a fault of one refuses all. */
  prepareMany({ messages }: RelayMessagesBody, bodyText: string): readonly Prepared[] {
    const exact = exactly(bodyText) as RelayMessagesBody | null;
    return messages.map((given, at) =>
      within(`messages.${at}`, () => prepared(given, exact?.messages[at]?.payload ?? given.payload)),
    );
  }

  /** Sends one, unless it has been sent before. */
  sendOne(
    tx: Tx,
    caller: Caller,
    given: Prepared,
    forNothing: () => void,
  ): Reply<201, RelayMessageSent> | Reply<200, RelayMessageSent & { deduplicated: true }> {
    const { deduplicated, ...sent } = this.offer(tx, ownerOf(caller), given);
    if (deduplicated === true) {
      forNothing();
      return reply(200, { ...sent, deduplicated });
    }
    this.charge(tx, caller, SEND, sent.deliveries.length);
    return reply(201, sent);
  }

  /** Sends many in one unit of work. @throws ApiError for the first fault: then none is sent. */
  sendMany(
    tx: Tx,
    caller: Caller,
    given: readonly Prepared[],
    forNothing: () => void,
  ): Reply<201, RelayMessagesSent> {
    const owner = ownerOf(caller);
    const offered = given.map(({ message, dueAt }) => {
      return { dueAt, message: { ...message, to: this.takersOf(owner.projectRef, message) } };
    });
    const made = offered.reduce((sum, { message: { to } }) => sum + to.length, 0);
    if (made > BATCH_DELIVERIES_MAX)
      throw invalidField("messages", `have ${made} deliveries: send at most ${BATCH_DELIVERIES_MAX} at once`);
    const messages = offered.map((one, at) => within(`messages.${at}`, () => this.offer(tx, owner, one)));
    const anew = messages.filter(({ deduplicated }) => deduplicated !== true);
    const cost = anew.reduce((sum, { deliveries }) => sum + 1 + deliveries.length, 0);
    if (cost === 0) forNothing();
    // One is paid already.
    else this.charge(tx, caller, BATCH, cost - 1);
    return reply(201, { messages });
  }

  private offer(tx: Tx, owner: MessageOwner, { message, dueAt }: Prepared): Sent {
    const warning =
      Buffer.byteLength(message.payload) > PAYLOAD_ADVISED_BYTES
        ? { warning: `The payload is larger than ${PAYLOAD_ADVISED_BYTES} bytes: receivers may refuse it.` }
        : {};
    const first = this.sentBefore(tx, owner, message);
    if (first === null) return { ...this.send(tx, owner, { ...message, dueAt: dueAt(tx.now) }), ...warning };
    const deliveries = this.deliveriesOf(first).map(named);
    return { message_id: first.message_id, deliveries, ...warning, deduplicated: true };
  }

  private sentBefore(tx: Tx, { projectRef }: MessageOwner, given: Prepared["message"]): MessageRow | null {
    const { messages } = this.deps;
    const { messageId = null, deduplicationId = null } = given;
    const byId = messageId === null ? null : messages.findById(projectRef, messageId);
    // An id is remembered as long as its payload is kept, and a day at least.
    const idsSince = tx.now - Math.max(this.deps.payloadRetentionMs, DEDUPLICATED_MS);
    if (byId !== null && byId.created_at > idsSince) return byId;
    if (deduplicationId === null) return null;
    const byDeduplication = messages.findByDeduplication(projectRef, deduplicationId);
    return byDeduplication !== null && byDeduplication.created_at > tx.now - DEDUPLICATED_MS
      ? byDeduplication
      : null;
  }

  /** Sends a message: a delivery for each endpoint that takes it, all in this unit of work. Charges nothing. */
  send(tx: Tx, { accountRef, projectRef }: MessageOwner, given: NewMessage): RelayMessageSent {
    const { store, messages, deliveries, ids, newId, payloadRetentionMs } = this.deps;
    const { type, payload, channels = [], dueAt: due = tx.now } = given;
    const endpoints = given.to ?? this.takersOf(projectRef, given);
    const ref = this.nextRef++;
    const message_id = given.messageId ?? idOf("msg", ids.uuidV7());
    const made = endpoints.map((endpoint) => ({ endpoint, id: newId() }));
    messages.insert(tx, {
      ...{ ref, projectRef, message_id, payload, event_type: type, scheduled_for: due, created_at: tx.now },
      channels: channels.length === 0 ? null : JSON.stringify(channels),
      deduplication_id: given.deduplicationId ?? null,
      ...{ first_ref: made[0]?.id.ref ?? 0, deliveries: made.length, purge_at: due + payloadRetentionMs },
    });
    for (const { endpoint, id } of made) {
      store.insertOfMessage(tx, {
        ...{ ref: id.ref, relay_id: id.relay_id, accountRef, projectRef, event: type, scheduled_for: due },
        ...{ target_url: endpoint.terms.url, endpointRef: endpoint.row.ref, messageRef: ref },
      });
      deliveries.enqueue(tx, endpoint, id.ref, due);
    }
    return {
      message_id,
      deliveries: made.map(({ endpoint, id }) => ({
        ...{ relay_id: id.relay_id, endpoint_id: endpoint.row.endpoint_id },
      })),
    };
  }

  /** The endpoints that would take a message now. */
  takersOf(projectRef: number, { type, payload, channels = [] }: NewMessage): readonly Endpoint[] {
    return this.takers(projectRef, { type, channels, value: parsedOnce(payload) });
  }

  /** Whether some of a message's deliveries have not ended. */
  isOpen(projectRef: number, messageId: string): boolean {
    const row = this.deps.messages.findById(projectRef, messageId);
    return row !== null && this.deliveriesOf(row).some(({ finished_at }) => finished_at === null);
  }

  private takers(projectRef: number, offered: Offered): Endpoint[] {
    const all = this.deps.registry.ofProject(projectRef);
    return all.filter((one) => one.health.state !== DISABLED && one.takes(offered));
  }

  /** Tells the endpoints of a project that name a type of this server's own; never the one that it is about. */
  notice(tx: Tx, about: Endpoint, type: string, data: object): void {
    const { accountRef, projectRef, ref } = about.row;
    const takers = this.takers(projectRef, { type, channels: [], value: () => data });
    const to = takers.filter(({ row }) => row.ref !== ref);
    if (to.length > 0) this.send(tx, { accountRef, projectRef }, { type, payload: JSON.stringify(data), to });
  }

  /** A page of a project's messages, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, query: RelayMessageQuery): RelayMessagePage {
    const { limit = LIST_LIMIT, cursor, event_type, since = 0, until = Number.MAX_SAFE_INTEGER } = query;
    const isNarrowed = event_type !== undefined || query.since !== undefined || query.until !== undefined;
    const looked = isNarrowed ? WALKED_ROWS_MAX : limit + 1;
    const rows = this.deps.messages.page(projectRef, pageStart(cursor), looked);
    const fits = (row: MessageItem): boolean =>
      (event_type === undefined || row.event_type === event_type) &&
      row.created_at >= since &&
      row.created_at < until;
    const wanted = rows.filter(fits);
    const shown = wanted.slice(0, limit);
    // Where a page is full the next one begins behind it, else behind what was looked at.
    const last = wanted.length > limit ? shown.at(-1) : rows.length === looked ? rows.at(-1) : null;
    return {
      messages: shown.map(itemView),
      ...(last === null || last === undefined ? {} : { cursor: encodeCursor([last.ref]) }),
    };
  }

  /** A message with its deliveries. @throws ApiError `not_found` */
  read(projectRef: number, messageId: string): RelayMessage {
    const row = this.find(projectRef, messageId);
    const { payload } = row;
    return {
      ...itemView(row),
      payload: payload === null ? null : ((exactly(payload) as object | null) ?? JSON.parse(payload)),
      deliveries: this.deliveriesOf(row).map((one) => ({
        ...named(one),
        status: RELAY_STATUSES[one.status - 1] ?? "scheduled",
        attempts: one.attempts,
        ...{ response_status: one.response_status, error: one.error, finished_at: one.finished_at },
      })),
    };
  }

  /**
   * Sends a message again, to the endpoints where it failed, or to one.
   * @throws ApiError `not_found`, `conflict` where the payload is gone, or that delivery has not ended.
   */
  resend(
    tx: Tx,
    caller: Caller,
    messageId: string,
    { endpoint_id }: RelayMessageResendBody,
    forNothing: () => void,
  ): Reply<202, RelayMessageResent> {
    const row = this.find(caller.project.ref, messageId);
    if (row.payload === null)
      throw new ApiError("conflict", "The payload of this message is gone: its time is over.");
    const all = this.deliveriesOf(row);
    const wanted =
      endpoint_id === undefined
        ? all.filter(({ status }) => RELAY_STATUSES[status - 1] === "failed")
        : [deliveryTo(all, endpoint_id)];
    const resent = wanted.filter((one) => this.sendAgain(tx, one.ref)).length;
    if (endpoint_id !== undefined && resent === 0)
      throw new ApiError("conflict", "This endpoint is disabled or deleted: enable it first.");
    if (resent === 0) forNothing();
    else this.charge(tx, caller, RESEND, resent - 1);
    const target = { type: "message", id: row.message_id };
    tx.audit(
      resent === 0
        ? null
        : { summary: "Message resent", target, before: null, after: { resent, endpoint_id } },
    );
    return reply(202, { resent });
  }

  /** Begins a delivery that has ended anew. @returns whether it can be sent now. */
  sendAgain(tx: Tx, ref: number): boolean {
    const { store, deliveries } = this.deps;
    const row = store.request(ref);
    const endpoint = row === null ? null : this.endpointFor(row);
    if (row === null || endpoint === null) return false;
    store.again(tx, tx.now, ref);
    deliveries.enqueue(tx, endpoint, ref, tx.now);
    return true;
  }

  /** Where a delivery of a message can go now; null where its endpoint is disabled or deleted, or its payload gone. */
  endpointFor({ endpointRef, messageRef }: { endpointRef: number | null; messageRef: number | null }) {
    const endpoint = this.deps.registry.get(endpointRef ?? 0);
    const isThere = this.deps.messages.find(messageRef ?? 0)?.payload != null;
    return isThere && endpoint?.health.state !== DISABLED ? endpoint : null;
  }

  /**
   * Drops payloads whose time is over, and then the messages of which no delivery is left.
   * @returns how many it has looked at.
   */
  purge(tx: Tx, rowsMax: number): number {
    const { messages } = this.deps;
    const rows = messages.toPurge(tx.now, rowsMax);
    for (const row of rows) {
      const deliveries = this.deliveriesOf(row);
      if (deliveries.some(({ finished_at }) => finished_at === null))
        messages.lookAgainAt(tx, tx.now + LOOK_AGAIN_MS, row.ref);
      else if (row.payload !== null) messages.dropPayload(tx, tx.now + RELAYS_KEPT_MS, row.ref);
      else if (deliveries.length > 0) messages.lookAgainAt(tx, tx.now + LOOK_AGAIN_MS, row.ref);
      else messages.remove(tx, row.ref);
    }
    return rows.length;
  }

  private charge(tx: Tx, { account }: Caller, operation: string, cost: number): void {
    if (cost > 0) this.deps.charger.charge(tx, account, operation, cost);
  }

  private deliveriesOf({ ref, first_ref, deliveries }: MessageRow): MessageDelivery[] {
    return this.deps.messages.deliveries(first_ref, deliveries, ref);
  }

  private find(projectRef: number, messageId: string): MessageRow {
    const row = this.deps.messages.findById(projectRef, messageId);
    if (row !== null) return row;
    throw new ApiError("not_found", "There is no message with this message_id in this project.");
  }
}

function prepared(given: RelayMessageBody, payload: object): Prepared {
  const { event_type: type, channels = [], message_id, deduplication_id, delay, at } = given;
  assertUsersType(type);
  return {
    message: {
      ...{ type, channels, payload: JSON.stringify(payload) },
      ...{ messageId: message_id ?? null, deduplicationId: deduplication_id ?? null },
    },
    dueAt:
      delay === undefined && at === undefined
        ? (now) => now
        : dueAt({ ...(delay === undefined ? {} : { delay }), ...(at === undefined ? {} : { at }) }),
  };
}

/** @throws ApiError `validation_error` for a type of this server's own notices. */
export function assertUsersType(type: string): void {
  if (!type.startsWith(OWN_TYPES)) return;
  throw invalidField("event_type", `must not begin with ${OWN_TYPES}: that is for this server's own`);
}

/** Runs a part, and names its place in what it refuses. */
function within<T>(place: string, part: () => T): T {
  try {
    return part();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "validation_error") throw error;
    const [field = "", messages = []] = Object.entries(error.details.fields ?? {})[0] ?? [];
    throw invalidField(`${place}.${field}`, messages.join(", "));
  }
}

function ownerOf({ account, project }: Caller): MessageOwner {
  return { accountRef: account.ref, projectRef: project.ref };
}

function deliveryTo(all: readonly MessageDelivery[], endpointId: string): MessageDelivery {
  const found = all.find(({ endpoint_id }) => endpoint_id === endpointId);
  if (found === undefined) throw new ApiError("not_found", "This message has no delivery to this endpoint.");
  if (found.finished_at !== null) return found;
  throw new ApiError("conflict", "This delivery has not ended: only one that has can be sent again.");
}

function named({ relay_id, endpoint_id }: MessageDelivery) {
  return { relay_id: bytesToUuid(relay_id), endpoint_id };
}

function itemView({ message_id, event_type, channels, scheduled_for, created_at }: MessageItem) {
  return {
    ...{ message_id, event_type, scheduled_for, created_at },
    channels: channels === null ? [] : (JSON.parse(channels) as string[]),
  };
}

function parsedOnce(text: string): () => unknown {
  let value: unknown;
  return () => {
    value ??= JSON.parse(text);
    return value;
  };
}
