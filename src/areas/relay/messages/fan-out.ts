import { slices } from "../../../kernel/background/time-slices.ts";
import { uuidToBytes } from "../../../kernel/data/uuid.ts";
import { isUnavailable } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { DeliveryIds, ReservedIds } from "../deliveries/ids.ts";
import type { DeliveryOwner, RelayStore } from "../deliveries/store.ts";
import { type EndpointOrder, orderKeyOf, readsOrderKey } from "../endpoints/order.ts";
import type { EndpointRegistry } from "../endpoints/registry.ts";
import type { EndpointTerms } from "../endpoints/schema.ts";
import type { EndpointStore } from "../endpoints/store.ts";
import { parsedOnce } from "../payload.ts";
import type { MessageDelivery, MessageRow, MessageStore } from "./store.ts";

/** Deliveries stored in one unit of work: a few milliseconds. */
export const FAN_OUT_UNIT = 100;
/**
 * Deliveries of one request that are stored in the unit of work that accepts it. Units of many requests share a commit,
 * so this is far less than {@link FAN_OUT_UNIT}, of which there is one per commit.
 */
export const DIRECT_MAX = 10;

/** Job that stores the remaining deliveries of a message. */
const FAN_OUT = "relay.messages.fan-out";
const CONCURRENT_JOBS = 4;
const RETRY_MS = 1_000;

/** The properties of a message that its deliveries need. */
export type FanOutMessage = Pick<
  MessageRow,
  "ref" | "event_type" | "scheduled_for" | "created_at" | "schedule_id" | "order_key"
> &
  DeliveryOwner;

/**
 * Stores the deliveries of messages. Those of a message to many endpoints are stored in units of {@link FAN_OUT_UNIT}, one
 * per commit: after the message is accepted, its job completes them, also after a crash.
 */
export class FanOut {
  private readonly running = new Map<number, Promise<void>>();
  /** Units of all messages take turns. */
  private lastUnit: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "writer" | "clock"> & {
      readonly store: RelayStore;
      readonly messages: MessageStore;
      readonly endpoints: EndpointStore;
      readonly registry: EndpointRegistry;
      readonly order: EndpointOrder;
      readonly stopped: StoppedProjects;
      readonly relayIds: DeliveryIds;
    },
  ) {
    deps.scheduler.register(FAN_OUT, {
      concurrency: CONCURRENT_JOBS,
      run: ({ key }) => this.run(Number(key)),
    });
  }

  /** Stores deliveries of a message in this unit of work. `value`: its payload, parsed. */
  storeNow(
    tx: Tx,
    message: FanOutMessage,
    { first, uuid }: ReservedIds,
    endpointRefs: readonly number[],
    value: () => unknown,
  ): void {
    const { store, registry, endpoints, order, relayIds } = this.deps;
    endpointRefs.forEach((endpointRef, at) => {
      const ref = first + at;
      const endpoint = registry.get(endpointRef);
      const url = endpoint?.terms.url ?? urlOf(endpoints.find(endpointRef)?.terms);
      store.insertOfMessage(tx, {
        ref,
        relay_id: relayIds.idOf(uuid, ref),
        accountRef: message.accountRef,
        projectRef: message.projectRef,
        event: message.event_type,
        target_url: url,
        scheduled_for: message.scheduled_for,
        created_at: message.created_at,
        schedule_id: message.schedule_id,
        endpointRef,
        messageRef: message.ref,
      });
      if (endpoint !== null && endpoint.template !== null) store.setTemplate(tx, ref, endpoint.template);
      const key = endpoint === null ? null : orderKeyOf(endpoint, { explicit: message.order_key, value });
      order.accept(tx, endpoint, { ref, dueAt: Math.max(message.scheduled_for, tx.now), key });
    });
  }

  /** Records that deliveries of a message must be stored, by {@link complete} or by the job. */
  storeLater(
    tx: Tx,
    message: FanOutMessage,
    { first, uuid }: ReservedIds,
    endpointRefs: readonly number[],
  ): void {
    this.deps.messages.insertFanOut(tx, {
      message_ref: message.ref,
      account_ref: message.accountRef,
      uuid,
      endpoints: JSON.stringify(endpointRefs),
      stored: 0,
      last_ref: first + endpointRefs.length - 1,
    });
    this.deps.scheduler.enqueue(tx, FAN_OUT, String(message.ref), tx.now, null);
  }

  /** Stores all remaining deliveries of a message. @throws ApiError `service_unavailable`: the job does it later. */
  complete(messageRef: number): Promise<void> {
    const known = this.running.get(messageRef);
    if (known !== undefined) return known;
    const all = this.storeAll(messageRef).finally(() => this.running.delete(messageRef));
    this.running.set(messageRef, all);
    return all;
  }

  /** The remaining deliveries of a message, as they will be stored. */
  pending({ ref, first_ref }: Pick<MessageRow, "ref" | "first_ref">): MessageDelivery[] {
    const { messages, endpoints, relayIds } = this.deps;
    const fanOut = messages.findFanOut(ref);
    if (fanOut === null) return [];
    const { uuid, stored } = fanOut;
    const all = JSON.parse(fanOut.endpoints) as number[];
    return all.slice(stored).map((endpointRef, at) => ({
      ref: first_ref + stored + at,
      relay_id: uuidToBytes(relayIds.idOf(uuid, first_ref + stored + at)),
      endpointRef,
      endpoint_id: endpoints.find(endpointRef)?.endpoint_id ?? "",
      status: 1,
      attempts: 0,
      response_status: null,
      error: null,
      finished_at: null,
    }));
  }

  private async run(messageRef: number): Promise<JobOutcome> {
    try {
      await this.complete(messageRef);
      return {};
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return { retryAt: this.deps.clock.now() + RETRY_MS };
    }
  }

  private async storeAll(messageRef: number): Promise<void> {
    const value = await this.payloadOf(messageRef);
    while (await this.inTurn(() => this.deps.writer.submit((tx) => this.storeUnit(tx, messageRef, value))));
  }

  /** The payload of a message. Where an endpoint reads its order key from it, it is parsed here, and not within a unit of work. */
  private async payloadOf(messageRef: number): Promise<() => unknown> {
    const { messages, registry } = this.deps;
    const value = parsedOnce(() => messages.content(messageRef)?.payload ?? null);
    const fanOut = messages.findFanOut(messageRef);
    const refs = fanOut === null ? [] : (JSON.parse(fanOut.endpoints) as number[]);
    const isRead = refs.some((ref) => {
      const endpoint = registry.get(ref);
      return endpoint !== null && readsOrderKey(endpoint, fanOut?.order_key ?? null);
    });
    if (isRead) {
      await slices.next();
      value();
      await slices.next();
    }
    return value;
  }

  private inTurn<T>(unit: () => Promise<T>): Promise<T> {
    const result = this.lastUnit.then(unit);
    this.lastUnit = result.catch(() => {});
    return result;
  }

  /** @returns whether there are more. */
  private storeUnit(tx: Tx, messageRef: number, value: () => unknown): boolean {
    const { messages, stopped, scheduler } = this.deps;
    const fanOut = messages.findFanOut(messageRef);
    if (fanOut === null) return false;
    const { uuid, stored, first_ref, account_ref: accountRef, project_ref: projectRef } = fanOut;
    const { event_type, scheduled_for, created_at, schedule_id, order_key } = fanOut;
    tx.affects = accountRef;
    const all = JSON.parse(fanOut.endpoints) as number[];
    const unit = stopped.has(projectRef) ? [] : all.slice(stored, stored + FAN_OUT_UNIT);
    const message = {
      ref: messageRef,
      event_type,
      scheduled_for,
      created_at,
      schedule_id,
      order_key,
      accountRef,
      projectRef,
    };
    this.storeNow(tx, message, { first: first_ref + stored, uuid }, unit, value);
    const isDone = unit.length === 0 || stored + unit.length === all.length;
    if (isDone) {
      messages.removeFanOut(tx, messageRef);
      scheduler.cancel(tx, FAN_OUT, String(messageRef));
    } else messages.setStored(tx, stored + unit.length, messageRef);
    return !isDone;
  }
}

function urlOf(terms: string | undefined): string {
  return terms === undefined ? "" : (JSON.parse(terms) as EndpointTerms).url;
}
