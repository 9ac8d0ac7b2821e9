import { BULK_ENDS } from "../../../kernel/bulk/bulk.ts";
import type { Caller } from "../../../kernel/callers/caller.ts";
import { fieldsOf } from "../../../kernel/data/schema.ts";
import { ApiError } from "../../../kernel/errors.ts";
import { type Reply, withJson } from "../../../kernel/http/responses/response.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Destination } from "../deliveries/destination.ts";
import { isServerHeader } from "../deliveries/reserved-headers.ts";
import type {
  RelayAttempt,
  RelayItem,
  RelayResend,
  RelayResent,
  RelaySentBody,
} from "../deliveries/schema.ts";
import type { RelayService } from "../deliveries/service.ts";
import { countedToo, type Endpoints, whatToDo } from "../endpoints/endpoints.ts";
import { typeChoice } from "../endpoints/registry.ts";
import type { RelayEndpointItem, RelayEndpointTested } from "../endpoints/schema.ts";
import type { EventTypes } from "../event-types/event-types.ts";
import type { PortalEventTypePage, PortalEventTypeQuery } from "../event-types/schema.ts";
import type { MessageStore } from "../messages/store.ts";
import type { BulkResends } from "../resends/bulk-resends.ts";
import {
  DELIVERY_SHOWN,
  ENDPOINT_SETTINGS,
  ENDPOINT_SHOWN,
  PORTAL_ENDPOINTS_MAX,
  type PortalDelivery,
  type PortalDeliveryItem,
  type PortalDeliveryPage,
  type PortalDeliveryQuery,
  type PortalEndpoint,
  type PortalEndpointBody,
  type PortalEndpointCreated,
  type PortalEndpointPage,
  type PortalEndpointPatch,
  type PortalEndpointQuery,
  type PortalEndpointRead,
  type PortalResend,
  type PortalTestBody,
} from "./schema.ts";

/** A customer's settings of an endpoint, checked. */
type PortalInput = ReturnType<Portal["prepare"]>;

/** What a customer can do with a portal link: manage its own endpoints and their deliveries. */
export class Portal {
  constructor(
    private readonly deps: {
      readonly endpoints: Endpoints;
      readonly relays: Pick<RelayService, "list" | "owned" | "ownedBody" | "orderKey">;
      readonly dispatch: Pick<Destination, "restart">;
      readonly messageRows: Pick<MessageStore, "content">;
      readonly resends: Pick<BulkResends, "read" | "stop">;
      readonly eventTypes: Pick<EventTypes, "offered">;
    },
  ) {}

  /** Checks a customer's settings. @throws ApiError `validation_error` naming the field. */
  prepare(settings: PortalEndpointPatch) {
    return this.deps.endpoints.prepare(fieldsOf(settings, ENDPOINT_SETTINGS));
  }

  /** A page of the customer's endpoints, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(caller: Caller, query: PortalEndpointQuery): PortalEndpointPage {
    const { endpoints, ...next } = this.deps.endpoints.list(caller, query);
    return { endpoints: endpoints.map(endpointView), ...next };
  }

  /** @throws ApiError `not_found` */
  read(caller: Caller, endpointId: string, now: number): PortalEndpointRead {
    const endpoint = this.deps.endpoints.read(caller, endpointId, now);
    return fieldsOf(endpoint, [...ENDPOINT_SHOWN, "counts", "recovery_id"]);
  }

  /** Adds an endpoint of the customer. @throws ApiError `endpoint_limit_exceeded`, `validation_error` */
  create(tx: Tx, caller: Caller, { url }: PortalEndpointBody, input: PortalInput): PortalEndpointCreated {
    const { endpoints } = this.deps;
    const ownerId = ownerOf(caller);
    const { existing, deleted } = endpoints.countOf(caller.project.ref, ownerId, tx.now);
    if (existing + deleted >= PORTAL_ENDPOINTS_MAX)
      throw limitExceeded(
        `You have ${existing} endpoints${countedToo(deleted)}. The maximum is ${PORTAL_ENDPOINTS_MAX}. ${whatToDo(deleted)}.`,
      );
    // The account is not told of each customer's failures by e-mail: notices and lists show them.
    const terms = { ...input.terms, notify_email: false };
    try {
      const created = endpoints.create(tx, caller, { url }, { ...input, ownerId, terms });
      return { ...endpointView(created), ...fieldsOf(created, ["secret"]) };
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "endpoint_limit_exceeded") throw error;
      // The limit of the account's project, which is none of the customer's business.
      throw limitExceeded("No endpoint can be added now. Contact the provider of this page.");
    }
  }

  /** @throws ApiError `not_found`, `validation_error`; `conflict` for another origin of an endpoint with headers */
  change(tx: Tx, caller: Caller, endpointId: string, input: PortalInput): PortalEndpoint {
    // Buckets deliver to no customer's endpoint: its URL closes no loop.
    return endpointView(this.deps.endpoints.change(tx, caller, endpointId, input, []));
  }

  /** A page of the event types that the link offers. @throws ApiError `validation_error` for a foreign cursor */
  eventTypes(caller: Caller, offered: readonly string[], query: PortalEventTypeQuery): PortalEventTypePage {
    const isOffered = typeChoice(offered);
    return this.deps.eventTypes.offered(
      caller.project.ref,
      query,
      (name) => offered.length > 0 && isOffered(name),
    );
  }

  /** Sends a test event. @throws ApiError `not_found`; `validation_error` for a reserved type; `conflict` while the endpoint is disabled */
  test(tx: Tx, caller: Caller, endpointId: string, { event_type }: PortalTestBody): RelayEndpointTested {
    const body = event_type === undefined ? {} : { event_type };
    const sent = this.deps.endpoints.test(tx, caller, endpointId, body);
    const target = { type: "endpoint", id: endpointId };
    tx.audit({ summary: "Test event sent", target, before: null, after: { message_id: sent.message_id } });
    return sent;
  }

  /** The progress of a recovery that the customer started. @throws ApiError `not_found` */
  recovery(caller: Caller, resendId: string): PortalResend {
    return resendView(this.deps.resends.read(caller, resendId));
  }

  /** Stops a recovery that the customer started; what was sent stays so. @throws ApiError `not_found` */
  stopRecovery(tx: Tx, caller: Caller, resendId: string): PortalResend {
    return resendView(this.deps.resends.stop(tx, caller, resendId));
  }

  /** A page of the deliveries of messages to the customer, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  async deliveries(caller: Caller, query: PortalDeliveryQuery): Promise<PortalDeliveryPage> {
    const { deliveries, ...next } = await this.deps.relays.list(caller.project.ref, {
      ...query,
      owner_id: ownerOf(caller),
    });
    return { deliveries: deliveries.map(deliveryView), ...next };
  }

  /** A delivery with its attempts and its payload. @throws ApiError `not_found` */
  delivery(caller: Caller, relayId: string): Reply<200, PortalDelivery> {
    const { relay, row } = this.deps.relays.owned(caller.project.ref, ownerOf(caller), relayId);
    const payload = this.deps.messageRows.content(row.messageRef ?? 0)?.payload ?? null;
    const shown = { ...deliveryView(relay), attempt_log: relay.attempt_log.map(attemptView) };
    return withJson(200, shown, "payload", payload);
  }

  /** The bytes that a delivery sends, which its signature covers. @throws ApiError `not_found` */
  body(caller: Caller, relayId: string): Promise<RelaySentBody> {
    return this.deps.relays.ownedBody(caller.project.ref, ownerOf(caller), relayId);
  }

  /** The order key of a delivery that will be resent, if its payload has it. Called before the unit of work: it takes long. */
  orderKey(caller: Caller, relayId: string): Promise<string | null> {
    return this.deps.relays.orderKey(caller.project.ref, relayId);
  }

  /**
   * Sends a delivered or failed delivery again. One that the account has cancelled stays so. `key`: by {@link orderKey}.
   * @throws ApiError `not_found`; `conflict` when it is not finished, its payload is deleted, or its endpoint is disabled or
   *   deleted.
   */
  resend(tx: Tx, caller: Caller, relayId: string, key: string | null): RelayResent {
    const { dispatch, relays } = this.deps;
    const { relay, row } = relays.owned(caller.project.ref, ownerOf(caller), relayId);
    if (relay.status !== "delivered" && relay.status !== "failed")
      throw new ApiError(
        "conflict",
        `This delivery is ${relay.status}. Only a delivered or failed one can be sent again.`,
      );
    if (!dispatch.restart(tx, row.ref, key))
      throw new ApiError(
        "conflict",
        "This delivery cannot be sent again: its endpoint is disabled or deleted, or its payload is deleted.",
      );
    const target = { type: "delivery", id: relay.relay_id };
    const before = { status: relay.status };
    tx.audit({ summary: "Delivery resent", target, before, after: { status: "scheduled" } });
    return { relay_id: relay.relay_id, status: "scheduled" };
  }
}

function limitExceeded(message: string): ApiError {
  return new ApiError("endpoint_limit_exceeded", message);
}

/** @throws Error for a caller without a portal link, which no route of the portal admits. */
function ownerOf({ portal }: Caller): string {
  if (portal === undefined) throw new Error("this request was not sent with a portal link");
  return portal.ownerId;
}

function endpointView(endpoint: RelayEndpointItem): PortalEndpoint {
  return fieldsOf(endpoint, ENDPOINT_SHOWN);
}

/** An attempt without the headers that the account has given the endpoint, which may name its systems. */
function attemptView(attempt: RelayAttempt): RelayAttempt {
  const { request_headers: sent } = attempt;
  if (sent === null) return attempt;
  const shown = Object.entries(sent).filter(([name]) => isServerHeader(name));
  return { ...attempt, request_headers: Object.fromEntries(shown) };
}

/** A recovery without the balance of the account, which is none of the customer's business. */
function resendView({ kind: _, error, ...shown }: RelayResend): PortalResend {
  return { ...shown, error: error === BULK_ENDS["no-credits"] ? "no more can be sent now" : error };
}

function deliveryView(delivery: RelayItem): PortalDeliveryItem {
  const { relay_id, endpoint_id, message_id, event, target_url: url } = delivery;
  return {
    relay_id,
    endpoint_id: endpoint_id ?? "",
    message_id: message_id ?? "",
    event_type: event ?? "",
    url,
    ...fieldsOf(delivery, DELIVERY_SHOWN),
  };
}
