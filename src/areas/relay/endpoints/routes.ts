import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api, EndpointSpec } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/operation.ts";
import { exactMember } from "../../../kernel/http/requests/body.ts";
import type { FileFacts } from "../../../kernel/http/resource-facts.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { ANY_TARGET } from "../../../kernel/outbound/target.ts";
import { assertSendable, reservedHeaderWarnings } from "../deliveries/reserved-headers.ts";
import { payloadText } from "../payload.ts";
import { checkedSettings, type Endpoints } from "./endpoints.ts";
import {
  ENDPOINT_DEFAULTS,
  RelayEndpoint,
  RelayEndpointBody,
  RelayEndpointCreated,
  RelayEndpointItem,
  RelayEndpointPage,
  RelayEndpointParams,
  RelayEndpointPatch,
  RelayEndpointQuery,
  RelayEndpointSecretRotateBody,
  RelayEndpointSecretRotated,
  RelayEndpointTestBody,
  RelayEndpointTested,
  RelayPreview,
  RelayPreviewBody,
} from "./schema.ts";
import { INITIAL_SECRETS } from "./secret-settings.ts";

const CHANGE = { access: "relay:write", audit: "yes" } as const;
const READ = { access: "relay:read" } as const;
/** How endpoints stand in a configuration file. */
const ENDPOINT_FILE: FileFacts = {
  section: "endpoints",
  name: "name",
  defaults: { ...ENDPOINT_DEFAULTS, owner_id: null, metadata: {}, ...INITIAL_SECRETS, state: "live" },
  fixed: { owner_id: undefined },
  check(body: RelayEndpointBody): void {
    assertSendable(body.headers);
    checkedSettings(body, ANY_TARGET);
  },
};

/** The operations of endpoints. The portal has the same for a customer's. */
export const ENDPOINT_OPERATIONS = {
  create: {
    name: "relay.endpoints.create",
    ...CHANGE,
    secret: true,
    summary: "Create an endpoint for messages",
    description:
      "Only this response contains the endpoint's signing secret. With a `signature` of `ed25519`, `public_key` replaces it.",
    example: { url: "https://example.com/hooks", event_types: ["invoice.*"] },
    file: ENDPOINT_FILE,
    errors: ["endpoint_limit_exceeded", "endpoint_name_taken"],
    body: RelayEndpointBody,
    response: { 201: RelayEndpointCreated },
  },
  list: {
    name: "relay.endpoints.list",
    ...READ,
    summary: "List endpoints, newest first",
    description:
      "Lists your own endpoints and those of all customers: `owner_id` selects one customer. `state` finds disabled endpoints, which receive no messages.",
    query: RelayEndpointQuery,
    response: RelayEndpointPage,
  },
  read: {
    name: "relay.endpoints.read",
    ...READ,
    summary: "Get an endpoint with its health and counts",
    description:
      "Use it to see why a customer receives nothing: `health` says whether the circuit breaker is open or the endpoint is disabled, and why. The signing secret is not returned.",
    errors: ["not_found"],
    params: RelayEndpointParams,
    response: RelayEndpoint,
  },
  change: {
    name: "relay.endpoints.change",
    ...CHANGE,
    summary: "Update an endpoint",
    description:
      "Omitted fields keep their values. `state: live` also enables a disabled endpoint and closes its breaker. Without the scope `*`, a `url` of another origin requires the `headers` again (else 409).",
    example: { description: "Bookkeeping" },
    errors: ["not_found", "endpoint_name_taken", "conflict"],
    params: RelayEndpointParams,
    body: RelayEndpointPatch,
    response: RelayEndpointItem,
  },
  remove: {
    name: "relay.endpoints.delete",
    ...CHANGE,
    summary: "Delete an endpoint",
    description:
      "Cancels its pending deliveries. An endpoint that is a target of a bucket cannot be deleted: change the bucket first.",
    errors: ["not_found", "endpoint_in_use"],
    params: RelayEndpointParams,
    response: { 204: Type.Object({}) },
  },
  rotate: {
    name: "relay.endpoints.secret.rotate",
    role: "admin",
    stepUp: true,
    ...CHANGE,
    cost: 1,
    secret: true,
    summary: "Rotate an endpoint's signing secret",
    description:
      "For `grace_hours`, messages are also signed with the old secret; by `hmac-*`, only with the one that `signature.grace` selects.",
    errors: ["not_found"],
    params: RelayEndpointParams,
    body: RelayEndpointSecretRotateBody,
    response: RelayEndpointSecretRotated,
  },
  test: {
    name: "relay.endpoints.test",
    access: "relay:write",
    cost: 1,
    summary: "Send a test event to an endpoint",
    description:
      "Sends the event regardless of the endpoint's types and filter. Without a `payload`, the example of the event type is sent.",
    errors: ["not_found", "conflict"],
    params: RelayEndpointParams,
    body: RelayEndpointTestBody,
    response: { 201: RelayEndpointTested },
  },
  preview: {
    name: "relay.endpoints.preview",
    access: "relay:read",
    summary: "Preview the body that an endpoint receives",
    description:
      "Makes the body of a message by the endpoint's `template`, or by one to try, and sends nothing. Give `event_type` and `payload`, or the `message_id` of a stored message.",
    example: { event_type: "order.paid", payload: { id: "o_17" }, template: { order: { $: "/data/id" } } },
    errors: ["not_found", "conflict"],
    bodyLimits: largeBody(1),
    params: RelayEndpointParams,
    body: RelayPreviewBody,
    response: RelayPreview,
  },
} as const satisfies Readonly<Record<string, EndpointSpec>>;

/** Routes of endpoints. */
export function endpointRoutes(api: Api, endpoints: Endpoints) {
  return new Elysia({ tags: ["Relay"] })
    .post(
      "/v1/relay/endpoints",
      api.endpoint(ENDPOINT_OPERATIONS.create, ({ call, body }) => {
        const input = endpoints.prepare({ ...body, ...exactTemplate(body, call.bodyText) });
        call.addWarnings(reservedHeaderWarnings(body.headers));
        return call.perform((tx) => reply(201, endpoints.create(tx, call.caller, body, input)));
      }),
    )
    .get(
      "/v1/relay/endpoints",
      api.endpoint(ENDPOINT_OPERATIONS.list, ({ call, query }) => endpoints.list(call.caller, query)),
    )
    .get(
      "/v1/relay/endpoints/:endpoint_id",
      api.endpoint(ENDPOINT_OPERATIONS.read, ({ call, params }) =>
        endpoints.read(call.caller, params.endpoint_id, call.receivedAt),
      ),
    )
    .use(changeRoutes(api, endpoints))
    .use(useRoutes(api, endpoints));
}

function changeRoutes(api: Api, endpoints: Endpoints) {
  return new Elysia({ tags: ["Relay"] })
    .patch(
      "/v1/relay/endpoints/:endpoint_id",
      api.endpoint(ENDPOINT_OPERATIONS.change, ({ call, params, body }) => {
        const input = endpoints.prepare({ ...body, ...exactTemplate(body, call.bodyText) });
        call.addWarnings(reservedHeaderWarnings(body.headers));
        return call.perform((tx) =>
          endpoints.change(tx, call.caller, params.endpoint_id, input, call.ownUrls),
        );
      }),
    )
    .delete(
      "/v1/relay/endpoints/:endpoint_id",
      api.endpoint(ENDPOINT_OPERATIONS.remove, ({ call, params }) =>
        call.perform((tx) => {
          endpoints.remove(tx, call.caller, params.endpoint_id);
          return reply(204, {});
        }),
      ),
    );
}

/** The template of a body, with all digits of its numbers. */
function exactTemplate(body: Pick<RelayEndpointPatch, "template">, bodyText: string) {
  const template = body.template === undefined ? undefined : exactMember("template", body, bodyText);
  return template === undefined ? {} : { template };
}

function useRoutes(api: Api, endpoints: Endpoints) {
  return new Elysia({ tags: ["Relay"] })
    .post(
      "/v1/relay/endpoints/:endpoint_id/secret/rotate",
      api.endpoint(ENDPOINT_OPERATIONS.rotate, ({ call, params, body }) =>
        call.perform((tx) => endpoints.rotate(tx, call.caller, params.endpoint_id, body)),
      ),
    )
    .post(
      "/v1/relay/endpoints/:endpoint_id/test",
      api.endpoint(ENDPOINT_OPERATIONS.test, async ({ call, params, body }) => {
        const { payload } = body;
        const text = payload && (await payloadText(call.bodyText, payload));
        return call.perform((tx) =>
          reply(201, endpoints.test(tx, call.caller, params.endpoint_id, body, text)),
        );
      }),
    )
    .post(
      "/v1/relay/endpoints/:endpoint_id/preview",
      api.endpoint(ENDPOINT_OPERATIONS.preview, async ({ call, params, body }) => {
        const { payload } = body;
        const text = payload && (await payloadText(call.bodyText, payload));
        const tried = { ...body, ...exactTemplate(body, call.bodyText) };
        return endpoints.preview(call.caller, params.endpoint_id, tried, text, call.receivedAt);
      }),
    );
}
