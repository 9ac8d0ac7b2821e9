import { Elysia } from "elysia";
import { reply } from "../../kernel/http/answer.ts";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/body.ts";
import {
  Relay,
  RelayBody,
  RelayCancelled,
  RelayPage,
  RelayParams,
  RelayQuery,
  RelayScheduled,
} from "./schema.ts";
import type { RelayService } from "./service.ts";

/** Declares the scheduling of deliveries, and what can be seen of them. */
export function relayRoutes(api: Api, relays: RelayService) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .post(
      "/v1/relay",
      ({ call, body }) => {
        const ready = relays.prepare(body, call.bodyText);
        return call.perform((tx) => reply(201, relays.schedule(tx, call.caller, ready)));
      },
      {
        op: {
          name: "relay.schedule",
          access: "relay:write",
          cost: 1,
          summary: "Schedule a signed webhook",
          description:
            "The payload is sent to `target_url` after `delay`, at least once, always with the same `X-Svc-Delivery-Id`.",
          example: {
            target_url: "https://example.com/hooks",
            method: "POST",
            delay: "15m",
            payload: { reminder: "trial ends" },
            headers: { "X-Source": "billing" },
          },
          bodyBounds: largeBody(1),
        },
        body: RelayBody,
        response: { 201: RelayScheduled },
      },
    )
    .get("/v1/relay", ({ call, query }) => relays.list(call.caller.project.ref, query), {
      op: { name: "relay.list", access: "relay:read", summary: "List deliveries, newest first" },
      query: RelayQuery,
      response: RelayPage,
    })
    .get("/v1/relay/:relay_id", ({ call, params }) => relays.read(call.caller.project.ref, params.relay_id), {
      op: {
        name: "relay.read",
        access: "relay:read",
        summary: "Read a delivery with each of its attempts",
        errors: ["not_found"],
      },
      params: RelayParams,
      response: Relay,
    })
    .delete(
      "/v1/relay/:relay_id",
      ({ call, params }) => call.perform((tx) => relays.cancel(tx, call.caller.project.ref, params.relay_id)),
      {
        op: {
          name: "relay.cancel",
          audit: "yes",
          access: "relay:write",
          summary: "Cancel a delivery whose first attempt has not begun",
          errors: ["not_found", "conflict"],
        },
        params: RelayParams,
        response: RelayCancelled,
      },
    );
}
