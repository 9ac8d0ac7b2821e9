import { Elysia } from "elysia";
import type { Api, EndpointSpec } from "../../../kernel/http/api.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import {
  RelayParams,
  RelayRecoverBody,
  RelayRecoverParams,
  RelayResend,
  RelayResendBody,
  RelayResendMatched,
  RelayResendParams,
  RelayResendStarted,
  RelayResent,
} from "../deliveries/schema.ts";
import type { RelayService } from "../deliveries/service.ts";
import type { BulkResends } from "./bulk-resends.ts";
import type { Recoveries } from "./recoveries.ts";

/** The operations of resends and recoveries that the portal has for a customer's endpoints. */
export const RESEND_OPERATIONS = {
  resend: {
    name: "relay.resend",
    role: "responder",
    audit: "yes",
    access: "relay:write",
    cost: 1,
    summary: "Resend a failed delivery",
    description:
      "Sends the delivery immediately, under the same ids and with all its retries. The numbers of its attempts continue.",
    errors: ["not_found", "conflict"],
    params: RelayParams,
    response: { 202: RelayResent },
  },
  read: {
    name: "relay.resends.read",
    access: "relay:read",
    summary: "Get the progress of a bulk resend",
    description:
      "`skipped` counts matches that were not sent, such as those that another request had resent. A resend without credits has the status `cancelled` with an `error`. Stored for 7 days.",
    errors: ["not_found"],
    params: RelayResendParams,
    response: RelayResend,
  },
  stop: {
    name: "relay.resends.stop",
    role: "responder",
    audit: "yes",
    access: "relay:write",
    summary: "Stop a bulk resend",
    description:
      "Deliveries that were resent already are still attempted and charged; the others stay failed. Stopping a resend that has ended changes nothing.",
    errors: ["not_found"],
    params: RelayResendParams,
    response: RelayResend,
  },
  recover: {
    name: "relay.endpoints.recover",
    role: "responder",
    audit: "yes",
    access: "relay:write",
    summary: "Send an endpoint the messages that it missed",
    description:
      "Sends every message of a time that matches the endpoint now and was never delivered to it: it was disabled, created later, or the delivery failed. Oldest first, each once, for 1 credit when it is sent. Progress and stop: `/v1/relay/resends/{resend_id}`.",
    example: { since: 1_795_232_116_928, dry_run: true },
    errors: ["not_found", "conflict"],
    params: RelayRecoverParams,
    body: RelayRecoverBody,
    response: { 202: RelayResendStarted, 200: RelayResendMatched },
  },
} as const satisfies Readonly<Record<string, EndpointSpec>>;

/** Routes that resend failed deliveries. */
export function resendRoutes(api: Api, relays: RelayService, resends: BulkResends) {
  return new Elysia({ tags: ["Relay"] })
    .post(
      "/v1/relay/:relay_id/resend",
      api.endpoint(RESEND_OPERATIONS.resend, async ({ call, params: { relay_id } }) => {
        const key = await relays.orderKey(call.caller.project.ref, relay_id);
        return call.perform((tx) => reply(202, relays.resend(tx, call.caller, relay_id, key)));
      }),
    )
    .post(
      "/v1/relay/resend",
      api.endpoint(
        {
          name: "relay.resends.start",
          role: "responder",
          audit: "yes",
          access: "relay:write",
          summary: "Resend many failed deliveries",
          description:
            "Requires `since`, `endpoint_id` or `relay_ids`. Each delivery costs 1 credit when it is sent.",
          example: { since: 1_795_232_116_928 },
          errors: ["conflict"],
          body: RelayResendBody,
          response: { 202: RelayResendStarted, 200: RelayResendMatched },
        },
        ({ call, body }) => call.performAcross(resends.start(call.caller, body)),
      ),
    )
    .get(
      "/v1/relay/resends/:resend_id",
      api.endpoint(RESEND_OPERATIONS.read, ({ call, params }) => resends.read(call.caller, params.resend_id)),
    )
    .delete(
      "/v1/relay/resends/:resend_id",
      api.endpoint(RESEND_OPERATIONS.stop, ({ call, params }) =>
        call.perform((tx) => resends.stop(tx, call.caller, params.resend_id)),
      ),
    );
}

/** The route that sends an endpoint what it missed. */
export function recoverRoute(api: Api, recoveries: Recoveries) {
  return new Elysia({ tags: ["Relay"] }).post(
    "/v1/relay/endpoints/:endpoint_id/recover",
    api.endpoint(RESEND_OPERATIONS.recover, ({ call, params, body }) =>
      call.performAcross(recoveries.start(call.caller, params.endpoint_id, body)),
    ),
  );
}
