import { mayHaveExactNumbers } from "../../../json-text.ts";
import { slices } from "../../../kernel/background/time-slices.ts";
import type { Caller, Charger } from "../../../kernel/callers/caller.ts";
import { invalidField, withFieldPrefix } from "../../../kernel/errors.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { DeliveryOwner } from "../deliveries/store.ts";
import { DEDUPLICATION_MS, dueAt } from "../domain.ts";
import { assertNotReservedType } from "../endpoints/notices.ts";
import { readsOrderKey } from "../endpoints/order.ts";
import { acceptsNow, type Endpoint, type EndpointRegistry, isEnabled } from "../endpoints/registry.ts";
import {
  type EventTypes,
  rejectedBy,
  type SchemaCheck,
  type SchemaProblem,
} from "../event-types/event-types.ts";
import { messagePayloadTexts, parsedOnce, payloadText } from "../payload.ts";
import { DIRECT_MAX, type FanOut } from "./fan-out.ts";
import { deliveryIds, type Messages, type NewMessage } from "./messages.ts";
import {
  BATCH_DELIVERIES_MAX,
  PAYLOAD_ADVISED_BYTES,
  type RelayMessageBody,
  type RelayMessageSent,
  type RelayMessagesBody,
  type RelayMessagesSent,
} from "./schema.ts";
import type { MessageRow, MessageStore } from "./store.ts";

/** A caller's message, checked. */
interface Prepared {
  readonly message: Omit<NewMessage, "dueAt" | "to">;
  readonly dueAt: (now: number) => number;
  /** References of the matching endpoints. */
  to: readonly number[];
  /** The payload, parsed. */
  value?: () => unknown;
  /** What of the payload does not fit the schema of its type. */
  schemaErrors?: readonly SchemaProblem[];
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
interface CheckedMessage extends Pick<Prepared, "schemaErrors"> {
  readonly message: Prepared["message"];
  readonly dueAt: number;
  readonly to: readonly Endpoint[];
  readonly value: (() => unknown) | undefined;
  /** The stored message that it repeats. */
  readonly first: MessageRow | null;
  /** The position in the request of the message that it repeats. */
  readonly repeats: number | null;
}

type Sent = RelayMessagesSent["messages"][number];

/** The operations that credits are charged for. */
const SEND = "relay.messages.send";
const BATCH = "relay.messages.batch";

/** Sends the messages of callers: each once, however often it is requested. */
export class MessageRequests {
  constructor(
    private readonly deps: {
      readonly messages: Messages;
      readonly rows: MessageStore;
      readonly registry: EndpointRegistry;
      readonly charger: Charger;
      readonly payloadRetentionMs: number;
      readonly fanOut: FanOut;
      readonly eventTypes: Pick<EventTypes, "check">;
    },
  ) {}

  /** Checks a caller's message and finds the matching endpoints. @throws ApiError `validation_error` naming the field. */
  async prepare(caller: Caller, body: RelayMessageBody, bodyText: string): Promise<Sending> {
    const message = prepared(body, await payloadText(bodyText, body.payload));
    await this.select(caller, [message], [body]);
    assertFits(await this.checkSchema(caller, message));
    return { messages: [message], prefixOf: () => "", unfinished: [] };
  }

  /** The same for a batch: an error in one message rejects all. */
  async prepareMany(caller: Caller, { messages }: RelayMessagesBody, bodyText: string): Promise<Sending> {
    const payloads = await messagePayloadTexts(
      bodyText,
      messages.map(({ payload }) => payload),
    );
    const all = messages.map((body, at) =>
      withFieldPrefix(prefixInBatch(at), () => prepared(body, payloads[at] ?? "{}")),
    );
    await this.select(caller, all, messages);
    for (const [at, message] of all.entries()) {
      const check = await this.checkSchema(caller, message);
      withFieldPrefix(prefixInBatch(at), () => assertFits(check));
    }
    return { messages: all, prefixOf: prefixInBatch, unfinished: [] };
  }

  /** Checks the payload of a message that will be sent by the schema of its type; null for a repeat. */
  private async checkSchema({ project }: Caller, candidate: Prepared): Promise<SchemaCheck | null> {
    const { message, value } = candidate;
    if (value === undefined) return null;
    const check = await this.deps.eventTypes.check(project.ref, message.type, value);
    candidate.schemaErrors = check.problems;
    return check;
  }

  /** Finds the matching endpoints in slices: the filters of a thousand endpoints take long. */
  private async select(
    { project }: Caller,
    messages: readonly Prepared[],
    bodies: readonly RelayMessageBody[],
  ): Promise<void> {
    const seen = new Set<string>();
    for (const [at, candidate] of messages.entries()) {
      const ids = idsOf(candidate.message);
      // A repeat within the request is not sent.
      if (ids.some((id) => seen.has(id))) continue;
      for (const id of ids) seen.add(id);
      const { type, channels = [], ownerId = null, orderKey = null } = candidate.message;
      const value = filteredValue(candidate.message.payload, bodies[at]?.payload);
      const properties = { type, channels, ownerId, value };
      const to: number[] = [];
      for (const endpoint of this.deps.registry.ofProject(project.ref)) {
        if (slices.isOver) await slices.next();
        if (!acceptsNow(endpoint, properties)) continue;
        to.push(endpoint.row.ref);
        // Parsed here, and not within the unit of work.
        if (readsOrderKey(endpoint, orderKey)) value();
      }
      candidate.to = to;
      candidate.value = value;
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
  private findRepeats(tx: Tx, owner: DeliveryOwner, { messages, prefixOf }: Sending): CheckedMessage[] {
    const positions = new Map<string, number>();
    const checked: CheckedMessage[] = [];
    for (const [at, { message, dueAt, to, value, schemaErrors }] of messages.entries()) {
      const ids = idsOf(message);
      const repeats = ids.map((id) => positions.get(id)).find((place) => place !== undefined) ?? null;
      const earlier = repeats === null ? null : (checked[repeats] ?? null);
      const first = earlier === null ? this.sentBefore(tx, owner, message) : earlier.first;
      const isNew = earlier === null && first === null;
      if (isNew) for (const id of ids) positions.set(id, at);
      const refs = earlier === null ? to : [];
      checked.push({
        message,
        value,
        schemaErrors: schemaErrors ?? [],
        dueAt: isNew ? withFieldPrefix(prefixOf(at), () => dueAt(tx.now)) : tx.now,
        to: earlier?.to ?? this.stillEnabled(refs),
        first,
        repeats,
      });
    }
    return checked;
  }

  /** Endpoints that are neither disabled nor deleted since they were found. */
  private stillEnabled(refs: readonly number[]): Endpoint[] {
    return refs.map((ref) => this.deps.registry.get(ref)).filter(isEnabled);
  }

  private sendChecked(
    tx: Tx,
    owner: DeliveryOwner,
    checked: readonly CheckedMessage[],
    unfinished: number[],
  ): Sent[] {
    let direct = DIRECT_MAX;
    const sent: Sent[] = [];
    for (const { message, value, schemaErrors = [], dueAt, to, first, repeats } of checked) {
      const warning =
        Buffer.byteLength(message.payload) > PAYLOAD_ADVISED_BYTES
          ? { warning: `The payload is larger than ${PAYLOAD_ADVISED_BYTES} bytes: receivers may reject it.` }
          : {};
      const earlier = repeats === null ? undefined : sent[repeats];
      if (earlier !== undefined) {
        const { message_id, deliveries } = earlier;
        sent.push({ message_id, deliveries, ...warning, deduplicated: true });
      } else if (first !== null) {
        const deliveries = this.deps.messages.deliveriesOf(first).map(deliveryIds);
        sent.push({ message_id: first.message_id, deliveries, ...warning, deduplicated: true });
      } else {
        const isDirect = to.length <= direct;
        if (isDirect) direct -= to.length;
        sent.push({
          ...this.deps.messages.send(
            tx,
            owner,
            { ...message, ...(value === undefined ? {} : { value }), schemaErrors, dueAt, to },
            isDirect,
            unfinished,
          ),
          ...warning,
          ...(schemaErrors.length === 0 ? {} : { schema_errors: [...schemaErrors] }),
        });
      }
    }
    return sent;
  }

  private sentBefore(tx: Tx, { projectRef }: DeliveryOwner, message: Prepared["message"]): MessageRow | null {
    const { rows } = this.deps;
    const { messageId = null, deduplicationId = null } = message;
    const byId = messageId === null ? null : rows.findById(projectRef, messageId);
    // An id is unique as long as the payload is stored, and at least for a day.
    const idsSince = tx.now - Math.max(this.deps.payloadRetentionMs, DEDUPLICATION_MS);
    if (byId !== null && byId.created_at > idsSince) return byId;
    if (deduplicationId === null) return null;
    const byDeduplication = rows.findByDeduplication(projectRef, deduplicationId);
    return byDeduplication !== null && byDeduplication.created_at > tx.now - DEDUPLICATION_MS
      ? byDeduplication
      : null;
  }

  private charge(tx: Tx, { account }: Caller, operation: string, cost: number): void {
    if (cost > 0) this.deps.charger.charge(tx, account, operation, cost);
  }
}

/** @throws ApiError `validation_error` for a payload that does not fit an enforced schema */
function assertFits(check: SchemaCheck | null): void {
  if (check?.isRejected === true) throw rejectedBy(check.problems);
}

/** The value of a payload for filters and order keys: read again only if it has numbers that the parsed one does not hold. */
function filteredValue(text: string, parsed: unknown): () => unknown {
  return mayHaveExactNumbers(text) ? parsedOnce(() => text) : () => parsed;
}

function prepared(body: RelayMessageBody, payload: string): Prepared {
  const {
    event_type: type,
    owner_id,
    channels = [],
    message_id,
    deduplication_id,
    order_key,
    delay,
    at,
  } = body;
  assertNotReservedType(type);
  return {
    message: {
      type,
      channels,
      payload,
      ownerId: owner_id ?? null,
      messageId: message_id ?? null,
      deduplicationId: deduplication_id ?? null,
      orderKey: order_key ?? null,
    },
    to: [],
    dueAt:
      delay === undefined && at === undefined
        ? (now) => now
        : dueAt({ ...(delay === undefined ? {} : { delay }), ...(at === undefined ? {} : { at }) }),
  };
}

function prefixInBatch(at: number): string {
  return `messages.${at}.`;
}

function ownerOf({ account, project }: Caller): DeliveryOwner {
  return { accountRef: account.ref, projectRef: project.ref };
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
  const unsent = checked.filter(({ first, repeats }) => first === null && repeats === null);
  return unsent.reduce((sum, { to }) => sum + 1 + to.length, 0);
}
