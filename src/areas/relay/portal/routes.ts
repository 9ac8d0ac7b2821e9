import { Elysia } from "elysia";
import type { Api, EndpointSpec } from "../../../kernel/http/api.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { DELIVERY_OPERATIONS } from "../deliveries/routes.ts";
import type { Endpoints } from "../endpoints/endpoints.ts";
import { ENDPOINT_OPERATIONS } from "../endpoints/routes.ts";
import { RelayEndpointParams, RelayEndpointSecret } from "../endpoints/schema.ts";
import { PortalEventTypePage, PortalEventTypeQuery } from "../event-types/schema.ts";
import type { Recoveries } from "../resends/recoveries.ts";
import { RESEND_OPERATIONS } from "../resends/routes.ts";
import { LINKS_PER_OWNER_MAX, type PortalLinks } from "./links.ts";
import type { Portal } from "./portal.ts";
import {
  PORTAL_ENDPOINTS_MAX,
  PortalDelivery,
  PortalDeliveryPage,
  PortalDeliveryQuery,
  PortalEndpoint,
  PortalEndpointBody,
  PortalEndpointCreated,
  PortalEndpointPage,
  PortalEndpointPatch,
  PortalEndpointQuery,
  PortalEndpointRead,
  PortalLink,
  PortalLinkBody,
  PortalLinkCreated,
  PortalLinksRevokeBody,
  PortalLinksRevoked,
  PortalRecoverBody,
  PortalResend,
  PortalRotateBody,
  PortalTestBody,
} from "./schema.ts";

const TAGS = { tags: ["Portal"] };

/** The account's operation, for its customers: a declaration has only what differs. The description is the account's. */
function forCustomer<Spec extends EndpointSpec>({ description: _, file: __, ...spec }: Spec) {
  return { ...spec, byPortal: true as const };
}

/** Routes by which an account creates and revokes portal links. */
export function portalLinkRoutes(api: Api, links: PortalLinks) {
  return new Elysia(TAGS)
    .post(
      "/v1/relay/portal",
      api.endpoint(
        {
          name: "relay.portal.create",
          role: "admin",
          stepUp: true,
          access: "relay:write",
          audit: "yes",
          cost: 1,
          secret: true,
          summary: "Create a portal link for a customer",
          description: `With the link, a customer manages the endpoints with its \`owner_id\`: it adds up to ${PORTAL_ENDPOINTS_MAX}, tests them, and sees their secrets and deliveries. Your key must have the scopes \`relay:read\` and \`relay:write\`. The link gives no other rights, and works as long as your key does. A customer has at most ${LINKS_PER_OWNER_MAX} links: a new one revokes the oldest.`,
          example: { owner_id: "acme", expires_in: "2h" },
          body: PortalLinkBody,
          response: { 201: PortalLinkCreated },
        },
        ({ call, body }) => {
          const { caller, keyDigest, baseUrl } = call;
          return call.perform((tx) => reply(201, links.create(tx, { caller, keyDigest, baseUrl }, body)));
        },
      ),
    )
    .post(
      "/v1/relay/portal/revoke",
      api.endpoint(
        {
          name: "relay.portal.revoke",
          access: "relay:write",
          audit: "yes",
          summary: "Revoke the portal links of a customer",
          description: "Applies from the next request of the page.",
          example: { owner_id: "acme" },
          body: PortalLinksRevokeBody,
          response: PortalLinksRevoked,
        },
        ({ call, body }) => call.perform((tx) => links.revoke(tx, call.caller, body.owner_id)),
      ),
    );
}

/** Routes of the customer's endpoints, for the page of the portal. */
export function portalEndpointRoutes(api: Api, links: PortalLinks, portal: Portal) {
  return new Elysia(TAGS)
    .get(
      "/v1/relay/portal",
      api.endpoint(
        {
          name: "relay.portal.read",
          access: "relay:read",
          byPortal: true,
          summary: "Get the portal link of this request",
          description:
            "The first request of a page of your own: shows which customer the token is for, and when it expires. 401 means that the customer needs a new link.",
          response: PortalLink,
        },
        ({ call }) => links.read(call.caller),
      ),
    )
    .get(
      "/v1/relay/portal/event-types",
      api.endpoint(
        {
          name: "relay.portal.event_types.list",
          access: "relay:read",
          byPortal: true,
          summary: "List the event types that the link offers, newest first",
          description:
            "Only types that the link names in `event_types`, wildcards included, and that the account describes. A page with long schemas may have fewer items than `limit`, and still a `cursor`.",
          query: PortalEventTypeQuery,
          response: PortalEventTypePage,
        },
        ({ call, query }) => portal.eventTypes(call.caller, links.read(call.caller).event_types, query),
      ),
    )
    .get(
      "/v1/relay/portal/endpoints",
      api.endpoint(
        {
          ...forCustomer(ENDPOINT_OPERATIONS.list),
          name: "relay.portal.endpoints.list",
          summary: "List the customer's endpoints, newest first",
          description:
            "Includes endpoints that the account created for the customer. Headers, filters, names and metadata, which only the account sets, are not returned.",
          query: PortalEndpointQuery,
          response: PortalEndpointPage,
        },
        ({ call, query }) => portal.list(call.caller, query),
      ),
    )
    .post(
      "/v1/relay/portal/endpoints",
      api.endpoint(
        {
          ...forCustomer(ENDPOINT_OPERATIONS.create),
          name: "relay.portal.endpoints.create",
          summary: "Add an endpoint of the customer",
          description:
            "This response contains the signing secret. A customer can have 20 endpoints, including those that the account created and those deleted in the last 24 hours. No e-mail is sent to the account when it is disabled.",
          example: { url: "https://example.com/hooks", event_types: ["order.paid"] },
          errors: ["endpoint_limit_exceeded"],
          body: PortalEndpointBody,
          response: { 201: PortalEndpointCreated },
        },
        ({ call, body }) => {
          const input = portal.prepare(body);
          return call.perform((tx) => reply(201, portal.create(tx, call.caller, body, input)));
        },
      ),
    )
    .get(
      "/v1/relay/portal/endpoints/:endpoint_id",
      api.endpoint(
        {
          ...forCustomer(ENDPOINT_OPERATIONS.read),
          name: "relay.portal.endpoints.read",
          summary: "Get an endpoint of the customer with its health and counts",
          description:
            "Shows the customer whether its endpoint is healthy, paused or disabled, and why. An endpoint of another customer is 404.",
          response: PortalEndpointRead,
        },
        ({ call, params }) => portal.read(call.caller, params.endpoint_id, call.receivedAt),
      ),
    );
}

/** Routes that change one endpoint of the customer. */
export function portalChangeRoutes(api: Api, endpoints: Endpoints, portal: Portal) {
  return new Elysia(TAGS)
    .patch(
      "/v1/relay/portal/endpoints/:endpoint_id",
      api.endpoint(
        {
          ...forCustomer(ENDPOINT_OPERATIONS.change),
          name: "relay.portal.endpoints.change",
          summary: "Update an endpoint of the customer",
          description:
            "Omitted fields keep their values. `state: live` also enables a disabled endpoint. The URL of an endpoint with headers of the account can only be changed within its origin (else 409).",
          example: { description: "Bookkeeping" },
          errors: ["not_found", "conflict"],
          body: PortalEndpointPatch,
          response: PortalEndpoint,
        },
        ({ call, params, body }) => {
          const input = portal.prepare(body);
          return call.perform((tx) => portal.change(tx, call.caller, params.endpoint_id, input));
        },
      ),
    )
    .delete(
      "/v1/relay/portal/endpoints/:endpoint_id",
      api.endpoint(
        {
          ...forCustomer(ENDPOINT_OPERATIONS.remove),
          name: "relay.portal.endpoints.delete",
          summary: "Delete an endpoint of the customer",
          description: "Cancels its pending deliveries.",
          errors: ["not_found"],
        },
        ({ call, params }) =>
          call.perform((tx) => {
            endpoints.remove(tx, call.caller, params.endpoint_id);
            return reply(204, {});
          }),
      ),
    )
    .post(
      "/v1/relay/portal/endpoints/:endpoint_id/secret",
      api.endpoint(
        {
          name: "relay.portal.endpoints.secret.reveal",
          access: "relay:write",
          byPortal: true,
          audit: "yes",
          secret: true,
          summary: "Reveal the signing secret of an endpoint",
          description:
            "For a customer that has lost the secret or sets up another receiver. The secret does not change. Recorded in the audit log with the customer as the actor.",
          errors: ["not_found"],
          params: RelayEndpointParams,
          response: RelayEndpointSecret,
        },
        ({ call, params }) => call.perform((tx) => endpoints.reveal(tx, call.caller, params.endpoint_id)),
      ),
    );
}

/** Routes that use an endpoint of the customer, for which the account is charged. */
export function portalUseRoutes(api: Api, endpoints: Endpoints, portal: Portal) {
  return new Elysia(TAGS)
    .post(
      "/v1/relay/portal/endpoints/:endpoint_id/secret/rotate",
      api.endpoint(
        {
          ...forCustomer(ENDPOINT_OPERATIONS.rotate),
          name: "relay.portal.endpoints.secret.rotate",
          summary: "Rotate the signing secret of an endpoint",
          description: "For `grace_hours`, messages are also signed with the old secret.",
          body: PortalRotateBody,
        },
        ({ call, params, body }) =>
          call.perform((tx) => endpoints.rotate(tx, call.caller, params.endpoint_id, body)),
      ),
    )
    .post(
      "/v1/relay/portal/endpoints/:endpoint_id/test",
      api.endpoint(
        {
          ...forCustomer(ENDPOINT_OPERATIONS.test),
          name: "relay.portal.endpoints.test",
          audit: "yes",
          summary: "Send a test event to an endpoint of the customer",
          description:
            "The account pays for it, and it counts towards the 20 requests with costs that a customer has per minute. The event is sent regardless of the endpoint's types; a disabled endpoint is 409.",
          body: PortalTestBody,
        },
        ({ call, params, body }) =>
          call.perform((tx) => reply(201, portal.test(tx, call.caller, params.endpoint_id, body))),
      ),
    );
}

/** Routes that send an endpoint of the customer what it missed. */
export function portalRecoverRoutes(api: Api, recoveries: Recoveries, portal: Portal) {
  return new Elysia(TAGS)
    .post(
      "/v1/relay/portal/endpoints/:endpoint_id/recover",
      api.endpoint(
        {
          ...forCustomer(RESEND_OPERATIONS.recover),
          name: "relay.portal.endpoints.recover",
          chargesLater: true,
          summary: "Send an endpoint of the customer the messages that it missed",
          description:
            "Sends every message of a time that matches the endpoint now and was never delivered to it: it was disabled, created later, or the delivery failed. Oldest first, each once, for 1 credit of the account when it is sent. An endpoint has one recovery per hour, of at most 1,000 messages. Progress and stop: `/v1/relay/portal/resends/{resend_id}`.",
          body: PortalRecoverBody,
        },
        ({ call, params, body }) =>
          call.performAcross(recoveries.start(call.caller, params.endpoint_id, body)),
      ),
    )
    .get(
      "/v1/relay/portal/resends/:resend_id",
      api.endpoint(
        {
          ...forCustomer(RESEND_OPERATIONS.read),
          name: "relay.portal.resends.read",
          summary: "Get the progress of a recovery that the customer started",
          description:
            "Only recoveries that were started with the links of this customer; every other id is 404.",
          response: PortalResend,
        },
        ({ call, params }) => portal.recovery(call.caller, params.resend_id),
      ),
    )
    .delete(
      "/v1/relay/portal/resends/:resend_id",
      api.endpoint(
        {
          ...forCustomer(RESEND_OPERATIONS.stop),
          name: "relay.portal.resends.stop",
          summary: "Stop a recovery that the customer started",
          description:
            "What was sent stays sent and charged to the account. Stopping a recovery that has ended changes nothing.",
          response: PortalResend,
        },
        ({ call, params }) => call.perform((tx) => portal.stopRecovery(tx, call.caller, params.resend_id)),
      ),
    );
}

/** Routes of the deliveries of messages to the customer. */
export function portalDeliveryRoutes(api: Api, portal: Portal) {
  return new Elysia(TAGS)
    .get(
      "/v1/relay/portal/deliveries",
      api.endpoint(
        {
          ...forCustomer(DELIVERY_OPERATIONS.list),
          name: "relay.portal.deliveries.list",
          summary: "List the customer's deliveries, newest first",
          description:
            "Only deliveries of messages to this customer, including those to endpoints that it has deleted. Finished deliveries are listed for 7 days.",
          query: PortalDeliveryQuery,
          response: PortalDeliveryPage,
        },
        ({ call, query }) => portal.deliveries(call.caller, query),
      ),
    )
    .get(
      "/v1/relay/portal/deliveries/:relay_id",
      api.endpoint(
        {
          ...forCustomer(DELIVERY_OPERATIONS.read),
          name: "relay.portal.deliveries.read",
          summary: "Get a delivery of the customer with its payload and attempts",
          description:
            "Shows the customer each attempt with the start of its own response, up to 4 KiB. `payload` is null once it is deleted.",
          response: PortalDelivery,
        },
        ({ call, params }) => portal.delivery(call.caller, params.relay_id),
      ),
    )
    .get(
      "/v1/relay/portal/deliveries/:relay_id/body",
      api.endpoint(
        {
          ...forCustomer(DELIVERY_OPERATIONS.body),
          name: "relay.portal.deliveries.body",
          summary: "Get the body that a delivery of the customer sends",
          description:
            "The signature covers exactly these bytes. Stored as long as the payload and the endpoint of the delivery.",
        },
        ({ call, params }) => portal.body(call.caller, params.relay_id),
      ),
    )
    .post(
      "/v1/relay/portal/deliveries/:relay_id/resend",
      api.endpoint(
        {
          ...forCustomer(RESEND_OPERATIONS.resend),
          name: "relay.portal.deliveries.resend",
          summary: "Resend a delivery of the customer",
          description:
            "Sends a delivered or failed delivery immediately, under the same ids and with all its retries.",
        },
        async ({ call, params: { relay_id } }) => {
          const key = await portal.orderKey(call.caller, relay_id);
          return call.perform((tx) => reply(202, portal.resend(tx, call.caller, relay_id, key)));
        },
      ),
    );
}
