import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/operation.ts";
import { exactMember } from "../../../kernel/http/requests/body.ts";
import type { FileFacts } from "../../../kernel/http/resource-facts.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { assertDescribable, type EventTypes } from "./event-types.ts";
import {
  RelayEventType,
  RelayEventTypeBody,
  RelayEventTypePage,
  RelayEventTypeParams,
  RelayEventTypeQuery,
  RelayEventTypesImportBody,
  RelayEventTypesImported,
} from "./schema.ts";

const PATH = "/v1/relay/event-types";
const EXAMPLE = {
  description: "An invoice was paid in full.",
  schema: { type: "object", required: ["amount"], properties: { amount: { type: "number" } } },
  example: { amount: 120 },
};

/** How event types stand in a configuration file. */
const EVENT_TYPE_FILE: FileFacts = {
  section: "event_types",
  name: "name",
  isPut: true,
  archivedField: "archived",
  defaults: { enforce: false, archived: false },
  check: assertDescribable,
};

const OPENAPI = {
  openapi: "3.1.0",
  webhooks: {
    "invoice.paid": {
      post: { requestBody: { content: { "application/json": { schema: { type: "object" } } } } },
    },
  },
};

/** Routes of event types. */
export function eventTypeRoutes(api: Api, types: EventTypes) {
  return new Elysia({ tags: ["Relay"] })
    .put(
      `${PATH}/:name`,
      api.endpoint(
        {
          name: "relay.event_types.save",
          access: "relay:write",
          audit: "yes",
          summary: "Create or replace an event type",
          description:
            "Describes the messages with this `event_type`: for your customers in the portal, and with a `schema` that their payloads are checked by. Omitted fields get their defaults. An archived type comes back.",
          example: EXAMPLE,
          file: EVENT_TYPE_FILE,
          errors: ["event_type_limit_exceeded"],
          bodyLimits: largeBody(1),
          params: RelayEventTypeParams,
          body: RelayEventTypeBody,
          response: { 201: RelayEventType, 200: RelayEventType },
        },
        async ({ call, params, body }) => {
          const schema = exactMember("schema", body, call.bodyText);
          const example = exactMember("example", body, call.bodyText);
          const prepared = await types.prepare(params.name, {
            ...body,
            ...(schema === undefined ? {} : { schema }),
            ...(example === undefined ? {} : { example }),
          });
          return call.perform((tx) => types.save(tx, call.caller, params.name, prepared));
        },
      ),
    )
    .post(
      `${PATH}/import`,
      api.endpoint(
        {
          name: "relay.event_types.import",
          access: "relay:write",
          audit: "yes",
          summary: "Import event types from an OpenAPI document",
          description:
            "Takes description, schema and example of each webhook from the JSON body of its `post`. References are resolved within the document. `enforce` and archived types stay as they are. What cannot be imported is listed with a reason.",
          example: { openapi: OPENAPI },
          bodyLimits: largeBody(1),
          body: RelayEventTypesImportBody,
          response: RelayEventTypesImported,
        },
        async ({ call, body }) => {
          const document = exactMember("openapi", body, call.bodyText);
          const prepared = await types.prepareImport(document);
          return call.perform((tx) => types.importAll(tx, call.caller, prepared, body.dry_run === true));
        },
      ),
    )
    .get(
      PATH,
      api.endpoint(
        {
          name: "relay.event_types.list",
          access: "relay:read",
          summary: "List event types, newest first",
          description:
            "Use it for a catalogue of your messages. A page with long schemas may have fewer items than `limit`, and still a `cursor`.",
          query: RelayEventTypeQuery,
          response: RelayEventTypePage,
        },
        ({ call, query }) => types.list(call.caller.project.ref, query, call.receivedAt),
      ),
    )
    .get(
      `${PATH}/:name`,
      api.endpoint(
        {
          name: "relay.event_types.read",
          access: "relay:read",
          summary: "Get an event type",
          description:
            "Also returns an archived one. `invalid_24h` shows whether its messages fit the schema.",
          errors: ["not_found"],
          params: RelayEventTypeParams,
          response: RelayEventType,
        },
        ({ call, params }) => types.read(call.caller.project.ref, params.name, call.receivedAt),
      ),
    )
    .delete(
      `${PATH}/:name`,
      api.endpoint(
        {
          name: "relay.event_types.delete",
          access: "relay:write",
          audit: "yes",
          summary: "Archive an event type",
          description:
            "Its messages are sent as before, and not checked any more; the portal does not show it. A `PUT` brings it back. The types that were archived first are removed when there are more than the tier allows.",
          errors: ["not_found"],
          params: RelayEventTypeParams,
          response: { 204: Type.Object({}) },
        },
        ({ call, params }) =>
          call.perform((tx) => {
            types.archive(tx, call.caller, params.name);
            return reply(204, {});
          }),
      ),
    );
}
