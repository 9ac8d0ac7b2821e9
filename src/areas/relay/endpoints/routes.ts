import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { RelaySecretRotateBody, RelaySecretRotated } from "../deliveries/schema.ts";
import type { Endpoints } from "./endpoints.ts";
import {
  RelayEndpoint,
  RelayEndpointBody,
  RelayEndpointCreated,
  RelayEndpointItem,
  RelayEndpointPage,
  RelayEndpointParams,
  RelayEndpointPatch,
  RelayEndpointQuery,
  RelayEndpointTestBody,
  RelayEndpointTested,
} from "./schema.ts";

const CHANGE = { access: "relay:write", audit: "yes" } as const;
const READ = { access: "relay:read" } as const;

/** Declares endpoints, and what is done with one. */
export function endpointRoutes(api: Api, endpoints: Endpoints) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .post(
      "/v1/relay/endpoints",
      ({ call, body }) => {
        const asked = endpoints.prepare(body);
        return call.perform((tx) => reply(201, endpoints.create(tx, call.caller, body, asked)));
      },
      {
        op: {
          name: "relay.endpoints.create",
          ...CHANGE,
          secret: true,
          summary: "Create an endpoint for messages",
          description: "The answer has its signing secret, this once.",
          example: { url: "https://example.com/hooks", event_types: ["invoice.*"] },
          errors: ["endpoint_limit_exceeded", "endpoint_name_taken"],
        },
        body: RelayEndpointBody,
        response: { 201: RelayEndpointCreated },
      },
    )
    .get("/v1/relay/endpoints", ({ call, query }) => endpoints.list(call.caller.project.ref, query), {
      op: { name: "relay.endpoints.list", ...READ, summary: "List endpoints, newest first" },
      query: RelayEndpointQuery,
      response: RelayEndpointPage,
    })
    .get(
      "/v1/relay/endpoints/:endpoint_id",
      ({ call, params }) => endpoints.read(call.caller.project.ref, params.endpoint_id, call.receivedAt),
      {
        op: {
          name: "relay.endpoints.read",
          ...READ,
          summary: "Read an endpoint, its health and its figures",
          errors: ["not_found"],
        },
        params: RelayEndpointParams,
        response: RelayEndpoint,
      },
    )
    .use(changeRoutes(api, endpoints))
    .use(useRoutes(api, endpoints));
}

/** What changes an endpoint. */
function changeRoutes(api: Api, endpoints: Endpoints) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .patch(
      "/v1/relay/endpoints/:endpoint_id",
      ({ call, params, body }) => {
        const asked = endpoints.prepare(body);
        return call.perform((tx) => endpoints.change(tx, call.caller, params.endpoint_id, asked));
      },
      {
        op: {
          name: "relay.endpoints.change",
          ...CHANGE,
          summary: "Change an endpoint",
          description:
            "What is left out stays as it is. `state: live` also enables a disabled one and closes its breaker.",
          example: { description: "Bookkeeping" },
          errors: ["not_found", "endpoint_name_taken"],
        },
        params: RelayEndpointParams,
        body: RelayEndpointPatch,
        response: RelayEndpointItem,
      },
    )
    .delete(
      "/v1/relay/endpoints/:endpoint_id",
      ({ call, params }) =>
        call.perform((tx) => {
          endpoints.remove(tx, call.caller, params.endpoint_id);
          return reply(204, {});
        }),
      {
        op: {
          name: "relay.endpoints.delete",
          ...CHANGE,
          summary: "Delete an endpoint",
          description: "Its waiting deliveries are cancelled.",
          errors: ["not_found"],
        },
        params: RelayEndpointParams,
        response: { 204: Type.Object({}) },
      },
    );
}

/** What is done with an endpoint besides. */
function useRoutes(api: Api, endpoints: Endpoints) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .post(
      "/v1/relay/endpoints/:endpoint_id/secret/rotate",
      ({ call, params, body }) =>
        call.perform((tx) => endpoints.rotate(tx, call.caller, params.endpoint_id, body)),
      {
        op: {
          name: "relay.endpoints.secret.rotate",
          ...CHANGE,
          cost: 1,
          secret: true,
          summary: "Rotate an endpoint's signing secret",
          description: "Its messages are signed with the old one as well for `grace_hours`.",
          errors: ["not_found"],
        },
        params: RelayEndpointParams,
        body: RelaySecretRotateBody,
        response: RelaySecretRotated,
      },
    )
    .post(
      "/v1/relay/endpoints/:endpoint_id/test",
      ({ call, params, body }) =>
        call.perform((tx) => reply(201, endpoints.test(tx, call.caller, params.endpoint_id, body))),
      {
        op: {
          name: "relay.endpoints.test",
          access: "relay:write",
          cost: 1,
          summary: "Send a test event to an endpoint",
          description: "Whatever its types and its filter say.",
          errors: ["not_found", "conflict"],
        },
        params: RelayEndpointParams,
        body: RelayEndpointTestBody,
        response: { 201: RelayEndpointTested },
      },
    );
}
