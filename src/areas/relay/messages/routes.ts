import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/operation.ts";
import type { MessageResends } from "./message-resends.ts";
import type { Messages } from "./messages.ts";
import type { MessageRequests } from "./requests.ts";
import {
  RelayMessage,
  RelayMessageBody,
  RelayMessageDeduplicated,
  RelayMessagePage,
  RelayMessageParams,
  RelayMessageQuery,
  RelayMessageResendBody,
  RelayMessageResent,
  RelayMessageSent,
  RelayMessagesBody,
  RelayMessagesSent,
} from "./schema.ts";

const EXAMPLE = { event_type: "invoice.paid", payload: { invoice: "in_1042", amount: 120 } };

/** Routes of messages. */
export function messageRoutes(
  api: Api,
  messages: Messages,
  requests: MessageRequests,
  resends: MessageResends,
) {
  return new Elysia({ tags: ["Relay"] })
    .post(
      "/v1/relay/messages",
      api.endpoint(
        {
          name: "relay.messages.send",
          access: "relay:write",
          cost: 1,
          summary: "Send a message to the matching endpoints",
          description:
            "Costs 1 credit, and 1 for each delivery. Either all deliveries are scheduled, or none.",
          example: EXAMPLE,
          bodyLimits: largeBody(1),
          body: RelayMessageBody,
          response: { 201: RelayMessageSent, 200: RelayMessageDeduplicated },
        },
        async ({ call, body }) => {
          const ready = await requests.prepare(call.caller, body, call.bodyText);
          const sent = await call.perform((tx, waiveCharge) =>
            requests.sendOne(tx, call.caller, ready, waiveCharge),
          );
          await requests.completed(ready);
          return sent;
        },
      ),
    )
    .post(
      "/v1/relay/messages/batch",
      api.endpoint(
        {
          name: "relay.messages.batch",
          access: "relay:write",
          cost: 1,
          summary: "Send up to 100 messages",
          description:
            "Equivalent to single requests, but either all messages are sent, or none. Costs their sum.",
          example: { messages: [EXAMPLE] },
          bodyLimits: largeBody(3),
          body: RelayMessagesBody,
          response: { 201: RelayMessagesSent },
        },
        async ({ call, body }) => {
          const ready = await requests.prepareMany(call.caller, body, call.bodyText);
          const sent = await call.perform((tx, waiveCharge) =>
            requests.sendMany(tx, call.caller, ready, waiveCharge),
          );
          await requests.completed(ready);
          return sent;
        },
      ),
    )
    .use(sentRoutes(api, messages, resends));
}

/** Routes that list, read and resend messages. */
function sentRoutes(api: Api, messages: Messages, resends: MessageResends) {
  return new Elysia({ tags: ["Relay"] })
    .get(
      "/v1/relay/messages",
      api.endpoint(
        {
          name: "relay.messages.list",
          access: "relay:read",
          summary: "List messages, newest first",
          description:
            "Use it to find the `message_id` of a message to resend. Lists have no payloads and no deliveries: a single message has them.",
          query: RelayMessageQuery,
          response: RelayMessagePage,
        },
        ({ call, query }) => messages.list(call.caller.project.ref, query),
      ),
    )
    .get(
      "/v1/relay/messages/:message_id",
      api.endpoint(
        {
          name: "relay.messages.read",
          access: "relay:read",
          summary: "Get a message with its deliveries",
          description:
            "Shows which endpoints the message went to, and how each delivery ended. The payload is null once its retention has passed, 7 days by default.",
          errors: ["not_found"],
          params: RelayMessageParams,
          response: RelayMessage,
        },
        ({ call, params }) => messages.read(call.caller.project.ref, params.message_id),
      ),
    )
    .post(
      "/v1/relay/messages/:message_id/resend",
      api.endpoint(
        {
          name: "relay.messages.resend",
          role: "responder",
          access: "relay:write",
          audit: "yes",
          cost: 1,
          summary: "Resend a message to endpoints where it failed",
          description:
            "Costs 1 credit for each delivery. With `endpoint_id`, sends to that endpoint, whether the delivery failed or not, and also if it has none because the endpoint was disabled, did not match, or was created later.",
          errors: ["not_found", "conflict"],
          params: RelayMessageParams,
          body: RelayMessageResendBody,
          response: { 202: RelayMessageResent },
        },
        ({ call, params, body }) => call.performAcross(resends.start(call.caller, params.message_id, body)),
      ),
    );
}
