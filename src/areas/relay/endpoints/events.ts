import type { Tx } from "../../../kernel/storage/tx.ts";
import type { DeliveryIds } from "../deliveries/ids.ts";
import type {
  DeliveryOwner,
  EventDelivery,
  EventDeliveryAttempt,
  InboundEvent,
  RelayStore,
} from "../deliveries/store.ts";
import type { EventSource, RegisteredSource } from "./event-source.ts";
import { type EndpointOrder, orderKeyOf } from "./order.ts";
import { type Endpoint, type EndpointRegistry, isEnabled, NOTICE_PREFIX } from "./registry.ts";
import { LIVE } from "./store.ts";

/** An event as endpoints are matched with it. */
export interface EventProperties {
  readonly type: string | null;
  /** The body, parsed when a filter needs it; undefined if it is not JSON. */
  readonly value: () => unknown;
}

/** An endpoint that accepts an event. */
export interface Recipient {
  readonly ref: number;
  /** The key that the event is ordered by; null without an order. */
  readonly orderKey: string | null;
}

/** The deliveries of inbound events to endpoints. */
export class EventDeliveries {
  /** Endpoints by id, for each list of the registry, which replaces a list that changes: a project may have a thousand. */
  private readonly byId = new WeakMap<readonly Endpoint[], ReadonlyMap<string, Endpoint>>();

  constructor(
    private readonly deps: {
      readonly store: RelayStore;
      readonly registry: EndpointRegistry;
      readonly order: EndpointOrder;
      readonly relayIds: DeliveryIds;
      readonly source: RegisteredSource;
    },
  ) {}

  /** Registers the area whose events are delivered. */
  register(source: EventSource): void {
    this.deps.source.register(source);
  }

  /** Whether a project has an endpoint that does not belong to one of its customers. */
  hasEndpoint(projectRef: number, endpointId: string): boolean {
    return this.find(projectRef, endpointId)?.row.owner_id === null;
  }

  /** The URL of an endpoint; null when the project has none with this id. */
  urlOf(projectRef: number, endpointId: string): string | null {
    return this.find(projectRef, endpointId)?.terms.url ?? null;
  }

  /** Whether an endpoint is live: neither paused nor disabled. */
  isLive(projectRef: number, endpointId: string): boolean {
    return this.find(projectRef, endpointId)?.health.state === LIVE;
  }

  /** Whether an endpoint exists and is not disabled. */
  isEnabled(projectRef: number, endpointId: string): boolean {
    return isEnabled(this.find(projectRef, endpointId) ?? null);
  }

  /** An endpoint whose types and filter accept an event; null when they do not. Call it before the unit of work: it may parse the body. */
  accepting(projectRef: number, endpointId: string, { type, value }: EventProperties): Recipient | null {
    const endpoint = this.find(projectRef, endpointId);
    // Types of notices are reserved: an event of a sender cannot have one.
    const accepted = endpoint?.accepts({
      type: withoutNotices(type) ?? "",
      channels: [],
      ownerId: null,
      value,
    });
    if (endpoint === undefined || accepted !== true) return null;
    return { ref: endpoint.row.ref, orderKey: orderKeyOf(endpoint, { explicit: null, value }) };
  }

  /**
   * Stores a delivery of an event to each endpoint, in this unit of work. One to a disabled endpoint fails, and can be
   * resent.
   */
  send(
    tx: Tx,
    { accountRef, projectRef }: DeliveryOwner,
    { type, ...event }: InboundEvent & { readonly type: string | null },
    recipients: readonly Recipient[],
  ): { relay_id: string; endpoint_id: string }[] {
    const { store, registry, order, relayIds } = this.deps;
    const found = recipients.flatMap(({ ref, orderKey: key }) => {
      const endpoint = registry.get(ref);
      // Deleted since it was matched.
      return endpoint === null ? [] : { endpoint, key };
    });
    const { first, uuid } = relayIds.reserve(found.length);
    return found.map(({ endpoint, key }, at) => {
      const ref = first + at;
      const relay_id = relayIds.idOf(uuid, ref);
      store.insertOfEvent(tx, {
        ...event,
        ref,
        relay_id,
        accountRef,
        projectRef,
        event: withoutNotices(type),
        target_url: endpoint.terms.url,
        scheduled_for: tx.now,
        endpointRef: endpoint.row.ref,
      });
      if (endpoint.template !== null) store.setTemplate(tx, ref, endpoint.template);
      order.accept(tx, isEnabled(endpoint) ? endpoint : null, { ref, dueAt: tx.now, key });
      return { relay_id, endpoint_id: endpoint.row.endpoint_id };
    });
  }

  /** The deliveries of an event, oldest first. */
  ofEvent(eventId: string): EventDelivery[] {
    return this.deps.store.ofEvent(eventId);
  }

  /** The last attempts to deliver an event, newest first. */
  attempts(eventId: string, limit: number): EventDeliveryAttempt[] {
    return this.deps.store.attemptsOfEvent(eventId, limit);
  }

  private find(projectRef: number, endpointId: string): Endpoint | undefined {
    const all = this.deps.registry.ofProject(projectRef);
    const known = this.byId.get(all) ?? new Map(all.map((endpoint) => [endpoint.row.endpoint_id, endpoint]));
    this.byId.set(all, known);
    return known.get(endpointId);
  }
}

function withoutNotices(type: string | null): string | null {
  return type?.startsWith(NOTICE_PREFIX) === true ? null : type;
}
