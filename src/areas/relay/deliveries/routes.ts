import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/requests/body.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import type { ProjectSecrets } from "../endpoints/secrets.ts";
import type { Resends } from "../resends/resends.ts";
import {
  Relay,
  RelayBody,
  RelayCancelled,
  RelayDeduplicated,
  RelayPage,
  RelayParams,
  RelayQuery,
  RelayResend,
  RelayResendBody,
  RelayResendMatched,
  RelayResendParams,
  RelayResendStarted,
  RelayResent,
  RelayScheduled,
  RelaySecret,
  RelaySecretRotateBody,
  RelaySecretRotated,
} from "./schema.ts";
import type { RelayService } from "./service.ts";

/** Declares the scheduling of deliveries, and what can be seen of them. */
export function relayRoutes(api: Api, relays: RelayService) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .post(
      "/v1/relay",
      async ({ call, body }) => {
        const ready = await relays.prepare(body, call.bodyText);
        return call.perform((tx, forNothing) => relays.schedule(tx, call.caller, ready, forNothing));
      },
      {
        op: {
          name: "relay.schedule",
          access: "relay:write",
          cost: 1,
          summary: "Schedule a signed webhook",
          description:
            "The payload is sent to `target_url` after `delay`, or `at` a moment, at least once, always with the same `X-Svc-Delivery-Id` and `webhook-id`.",
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
        response: { 201: RelayScheduled, 200: RelayDeduplicated },
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

/** Declares the resends of failed deliveries. */
export function resendRoutes(api: Api, relays: RelayService, resends: Resends) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .post(
      "/v1/relay/:relay_id/resend",
      ({ call, params }) =>
        call.perform((tx) => reply(202, relays.resend(tx, call.caller.project.ref, params.relay_id))),
      {
        op: {
          name: "relay.resend",
          audit: "yes",
          access: "relay:write",
          cost: 1,
          summary: "Send a failed delivery again",
          description: "At once, under the same ids, with all its retries. Its attempts count on.",
          errors: ["not_found", "conflict"],
        },
        params: RelayParams,
        response: { 202: RelayResent },
      },
    )
    .post("/v1/relay/resend", ({ call, body }) => call.performAcross(resends.start(call.caller, body)), {
      op: {
        name: "relay.resends.start",
        audit: "yes",
        access: "relay:write",
        summary: "Send many failed deliveries again",
        description: "`since` is required. 1 credit for each delivery, when it is sent.",
        example: { since: 1_795_232_116_928 },
        errors: ["conflict"],
      },
      body: RelayResendBody,
      response: { 202: RelayResendStarted, 200: RelayResendMatched },
    })
    .get(
      "/v1/relay/resends/:resend_id",
      ({ call, params }) => resends.read(call.caller.project.ref, params.resend_id),
      {
        op: {
          name: "relay.resends.read",
          access: "relay:read",
          summary: "Read how far a resend of many has come",
          errors: ["not_found"],
        },
        params: RelayResendParams,
        response: RelayResend,
      },
    )
    .delete(
      "/v1/relay/resends/:resend_id",
      ({ call, params }) => call.perform((tx) => resends.stop(tx, call.caller.project.ref, params.resend_id)),
      {
        op: {
          name: "relay.resends.stop",
          audit: "yes",
          access: "relay:write",
          summary: "Stop a resend of many",
          errors: ["not_found"],
        },
        params: RelayResendParams,
        response: RelayResend,
      },
    );
}

/** Declares what is done with a project's signing secret. */
export function secretRoutes(api: Api, secrets: ProjectSecrets) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .post("/v1/relay/secret", ({ call }) => call.perform((tx) => secrets.reveal(tx, call.caller.project)), {
      op: {
        name: "relay.secret.reveal",
        audit: "yes",
        access: "relay:write",
        secret: true,
        summary: "Reveal the project's signing secret",
        description:
          "What receivers verify deliveries with, by any library for Standard Webhooks. It is made on first use.",
      },
      response: RelaySecret,
    })
    .post(
      "/v1/relay/secret/rotate",
      ({ call, body }) => call.perform((tx) => secrets.rotate(tx, call.caller.project, body)),
      {
        op: {
          name: "relay.secret.rotate",
          audit: "yes",
          access: "relay:write",
          cost: 1,
          secret: true,
          summary: "Rotate the project's signing secret",
          description:
            "Deliveries are signed with the old one as well for `grace_hours`; three are valid at most.",
        },
        body: RelaySecretRotateBody,
        response: RelaySecretRotated,
      },
    );
}
