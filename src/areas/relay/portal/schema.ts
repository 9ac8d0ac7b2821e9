import { type Static, Type } from "@sinclair/typebox";
import { PER_SECOND } from "../../../kernel/bulk/bulk.ts";
import {
  fieldsOf,
  integer,
  NextCursor,
  named,
  OwnerId,
  oneOf,
  orNull,
  textDuration,
} from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import {
  LIST_LIMIT,
  RELAY_STATUSES,
  Relay,
  RelayItem,
  RelayRecoverBody,
  RelayResend,
} from "../deliveries/schema.ts";
import {
  RelayEndpoint,
  RelayEndpointBody,
  RelayEndpointPatch,
  RelayEndpointSecretRotateBody,
  RelayEndpointTestBody,
  ShownSecret,
} from "../endpoints/schema.ts";
import { RelayMessage } from "../messages/schema.ts";

/** Default lifetime of a link: a working day. */
export const PORTAL_EXPIRES_IN = "24h";
/** Endpoints of a customer that the portal can add: one customer must not use up the endpoints of a project. */
export const PORTAL_ENDPOINTS_MAX = 20;

/** Messages per second that a customer's recovery sends, each for a credit of the account: the default of an account's own. */
export const PORTAL_PER_SECOND_MAX = PER_SECOND;

/** What a customer sets of an endpoint. */
export const ENDPOINT_SETTINGS = ["url", "description", "event_types", "state"] as const;
/** What a customer sees of an endpoint: not what only the account sets. */
export const ENDPOINT_SHOWN = [
  "endpoint_id",
  ...ENDPOINT_SETTINGS,
  "order_by",
  "template",
  "signature",
  "public_key",
  "health",
  "created_at",
  "updated_at",
] as const;
/** What a customer sees of a delivery under the same name. */
export const DELIVERY_SHOWN = [
  "status",
  "attempts",
  "response_status",
  "error",
  "scheduled_for",
  "next_attempt_at",
  "finished_at",
  "created_at",
] as const;

const ExpiresAt = Type.Integer({ description: "Time at which the link expires, in epoch milliseconds." });

/** What is wrong with a lifetime that cannot be read or is outside the limits. */
export const LIFETIME_EXPECTED =
  'must be a text such as "30m", "24h" or "7d", or whole seconds in milliseconds such as 1800000: from 1m to 7d';

/** Body of a new link. */
export const PortalLinkBody = named("PortalLinkBody", {
  owner_id: Type.Unsafe<string>({
    ...OwnerId,
    description: "Id of the customer who manages its endpoints with the link.",
  }),
  expires_in: Type.Optional(
    textDuration({
      errorMessage: LIFETIME_EXPECTED,
      description: `Lifetime of the link, from \`1m\` to \`7d\`. Default: \`${PORTAL_EXPIRES_IN}\`; at most that of your key.`,
      examples: ["2h"],
    }),
  ),
  event_types: Type.Optional(
    Type.Unsafe<string[]>({
      ...RelayEndpointBody.properties.event_types,
      description: "Event types that the page offers to choose from. Default: the customer enters them.",
      examples: [["order.paid", "order.refunded"]],
    }),
  ),
});
export type PortalLinkBody = Static<typeof PortalLinkBody>;

export const PortalLinkCreated = named("PortalLinkCreated", {
  url: Type.String({
    description: "Address of the page, with the token of the link in its fragment.",
    examples: ["https://hooks.example.com/portal/#token=portal_…"],
  }),
  expires_at: ExpiresAt,
});
export type PortalLinkCreated = Static<typeof PortalLinkCreated>;

/** Body of a revocation. */
export const PortalLinksRevokeBody = named("PortalLinksRevokeBody", { owner_id: OwnerId });

export const PortalLinksRevoked = named("PortalLinksRevoked", {
  revoked: Type.Integer({ description: "Number of links that this request revoked.", examples: [2] }),
});
export type PortalLinksRevoked = Static<typeof PortalLinksRevoked>;

/** The link that a request of the page is sent with. */
export const PortalLink = named("PortalLink", {
  owner_id: OwnerId,
  expires_at: ExpiresAt,
  event_types: Type.Array(Type.String({ examples: ["order.paid"] }), {
    description: "Event types that the page offers; empty if the customer enters them.",
  }),
  endpoints_max: Type.Integer({
    description: "Maximum number of endpoints.",
    examples: [PORTAL_ENDPOINTS_MAX],
  }),
});
export type PortalLink = Static<typeof PortalLink>;

/** Body of a new endpoint. */
export const PortalEndpointBody = named(
  "PortalEndpointBody",
  fieldsOf(RelayEndpointBody.properties, ENDPOINT_SETTINGS),
);
export type PortalEndpointBody = Static<typeof PortalEndpointBody>;

/** Body of an update. */
export const PortalEndpointPatch = named(
  "PortalEndpointPatch",
  fieldsOf(RelayEndpointPatch.properties, ENDPOINT_SETTINGS),
);
export type PortalEndpointPatch = Static<typeof PortalEndpointPatch>;

const ENDPOINT = fieldsOf(RelayEndpoint.properties, ENDPOINT_SHOWN);

/** An endpoint as its customer sees it. */
export const PortalEndpoint = named("PortalEndpoint", ENDPOINT);
export type PortalEndpoint = Static<typeof PortalEndpoint>;

export const PortalEndpointCreated = named("PortalEndpointCreated", {
  ...ENDPOINT,
  secret: ShownSecret,
});
export type PortalEndpointCreated = Static<typeof PortalEndpointCreated>;

export const PortalEndpointRead = named("PortalEndpointRead", {
  ...ENDPOINT,
  counts: RelayEndpoint.properties.counts,
  recovery_id: Type.Optional(
    Type.String({
      description:
        "`resend_id` of the recovery that the customer started for this endpoint, while it is running.",
      examples: [],
    }),
  ),
});
export type PortalEndpointRead = Static<typeof PortalEndpointRead>;

/** Query of a list of endpoints. */
export const PortalEndpointQuery = named("PortalEndpointQuery", pageQuery(LIST_LIMIT).properties);
export type PortalEndpointQuery = Static<typeof PortalEndpointQuery>;

/** A page of endpoints, newest first. */
export const PortalEndpointPage = named("PortalEndpointPage", {
  endpoints: Type.Array(PortalEndpoint),
  cursor: NextCursor,
});
export type PortalEndpointPage = Static<typeof PortalEndpointPage>;

export const PortalTestBody = named(
  "PortalTestBody",
  fieldsOf(RelayEndpointTestBody.properties, ["event_type"]),
);
export type PortalTestBody = Static<typeof PortalTestBody>;

/** Body of a rotation. */
export const PortalRotateBody = named("PortalRotateBody", RelayEndpointSecretRotateBody.properties);

const recover = RelayRecoverBody.properties;

/** Body of the recovery of an endpoint. */
export const PortalRecoverBody = named("PortalRecoverBody", {
  since: recover.since,
  until: recover.until,
  per_second: Type.Optional(
    integer({
      min: 1,
      max: PORTAL_PER_SECOND_MAX,
      default: PORTAL_PER_SECOND_MAX,
      description: "Maximum number sent per second.",
    }),
  ),
  dry_run: recover.dry_run,
});

const { kind: _, ...RESEND } = RelayResend.properties;

/** The progress of a recovery. */
export const PortalResend = named("PortalResend", RESEND);
export type PortalResend = Static<typeof PortalResend>;

const item = RelayItem.properties;
const DELIVERY = {
  relay_id: item.relay_id,
  endpoint_id: Type.String({ examples: ["ep_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  message_id: Type.String({
    description: "ID of the message, also sent as `webhook-id`.",
    examples: ["msg_01a1fc2c30c071d9bf080e3cb4a7b202"],
  }),
  event_type: Type.String({ description: "Type of the event.", examples: ["order.paid"] }),
  url: item.target_url,
  ...fieldsOf(item, DELIVERY_SHOWN),
};

export const PortalDeliveryItem = named("PortalDeliveryItem", DELIVERY);
export type PortalDeliveryItem = Static<typeof PortalDeliveryItem>;

/** A delivery with its attempts and its payload. */
export const PortalDelivery = named("PortalDelivery", {
  ...DELIVERY,
  payload: orNull(Type.Object({}, { additionalProperties: true }), {
    description: RelayMessage.properties.payload.description ?? "",
    examples: [{ order: "o_17" }],
  }),
  attempt_log: Relay.properties.attempt_log,
});
export type PortalDelivery = Static<typeof PortalDelivery>;

/** Query of a list of deliveries. */
export const PortalDeliveryQuery = named("PortalDeliveryQuery", {
  endpoint_id: Type.Optional(
    Type.String({
      maxLength: 64,
      errorMessage: "must be an id",
      description: "Only deliveries to this endpoint.",
      examples: [],
    }),
  ),
  status: Type.Optional(oneOf(RELAY_STATUSES)),
  ...pageQuery(LIST_LIMIT).properties,
});
export type PortalDeliveryQuery = Static<typeof PortalDeliveryQuery>;

/** A page of deliveries, newest first. */
export const PortalDeliveryPage = named("PortalDeliveryPage", {
  deliveries: Type.Array(PortalDeliveryItem),
  cursor: NextCursor,
});
export type PortalDeliveryPage = Static<typeof PortalDeliveryPage>;
