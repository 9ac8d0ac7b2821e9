import { Elysia } from "elysia";
import type { Api, EndpointSpec } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/operation.ts";
import type { ProjectSecrets } from "./project-secrets.ts";
import { reservedHeaderWarnings } from "./reserved-headers.ts";
import {
  Relay,
  RelayBody,
  RelayCancelled,
  RelayDeduplicated,
  RelayPage,
  RelayParams,
  RelayQuery,
  RelayScheduled,
  RelaySecret,
  RelaySecretRotateBody,
  RelaySecretRotated,
  RelaySentBody,
  RelayStats,
  RelayStatsQuery,
} from "./schema.ts";
import type { PreparedRelay, RelayService, ScheduleResult } from "./service.ts";
import { STATS_ROWS_MAX } from "./stats.ts";

/** The operations of deliveries that the portal has for a customer's. */
export const DELIVERY_OPERATIONS = {
  list: {
    name: "relay.list",
    access: "relay:read",
    summary: "List deliveries, newest first",
    description:
      "Alerts and callbacks are deliveries too; `filter` separates them. `status=failed` lists those without retries left. A filtered page may be short or empty and still have a `cursor`: continue until there is none.",
    query: RelayQuery,
    response: RelayPage,
  },
  read: {
    name: "relay.read",
    access: "relay:read",
    summary: "Get a delivery with its attempts",
    description:
      "Use it to find out why a webhook did not arrive: `attempt_log` has request, response and error of each attempt. Values that may be secret are `[secret]`. Deleted 7 days after the delivery is finished.",
    errors: ["not_found"],
    params: RelayParams,
    response: Relay,
  },
  body: {
    name: "relay.body",
    access: "relay:read",
    summary: "Get the body that a delivery sends",
    description:
      "Stored until the delivery succeeds or is cancelled; of failed deliveries for 7 days. To endpoints, as long as the message or event. Bodies of notifications to chat and on-call services are not returned, since they may contain secrets.",
    errors: ["not_found"],
    params: RelayParams,
    response: RelaySentBody,
  },
} as const satisfies Readonly<Record<string, EndpointSpec>>;

/** Routes that schedule, list, read and cancel deliveries. */
export function relayRoutes(api: Api, relays: RelayService) {
  return new Elysia({ tags: ["Relay"] })
    .post(
      "/v1/relay",
      api.endpoint(
        {
          name: "relay.schedule",
          access: "relay:write",
          cost: 1,
          summary: "Schedule a signed webhook",
          description:
            "Sends the payload to `target_url` after `delay`, or at the time `at`, at least once. `X-Svc-Delivery-Id` and `webhook-id` are the same in every attempt.",
          example: {
            target_url: "https://example.com/hooks",
            method: "POST",
            delay: "15m",
            payload: { reminder: "trial ends" },
            headers: { "X-Source": "billing" },
          },
          bodyLimits: largeBody(1),
          body: RelayBody,
          response: { 201: RelayScheduled, 200: RelayDeduplicated },
        },
        ({ call, body }) => {
          const schedule = (ready: PreparedRelay): Promise<ScheduleResult> =>
            call.perform((tx, waiveCharge) => relays.schedule(tx, call.caller, ready, waiveCharge));
          const prepared = relays.prepare(body, call.bodyText);
          call.addWarnings(reservedHeaderWarnings(body.headers));
          const scheduled: Promise<ScheduleResult> =
            prepared instanceof Promise ? prepared.then(schedule) : schedule(prepared);
          return scheduled;
        },
      ),
    )
    .get(
      "/v1/relay",
      api.endpoint(DELIVERY_OPERATIONS.list, ({ call, query: { q, ...query } }) =>
        q === undefined
          ? relays.list(call.caller.project.ref, query)
          : relays.search(call.caller.project.ref, { ...query, q }),
      ),
    )
    .get(
      "/v1/relay/stats",
      api.endpoint(
        {
          name: "relay.stats",
          access: "relay:read",
          summary: "Count deliveries by status and over time",
          description: `Counts the newest ${STATS_ROWS_MAX / 1_000},000 deliveries of each status.`,
          query: RelayStatsQuery,
          response: RelayStats,
        },
        ({ call, query }) => relays.stats(call.caller.project.ref, query),
      ),
    )
    .get(
      "/v1/relay/:relay_id",
      api.endpoint(DELIVERY_OPERATIONS.read, ({ call, params }) =>
        relays.read(call.caller.project.ref, params.relay_id),
      ),
    )
    .get(
      "/v1/relay/:relay_id/body",
      api.endpoint(DELIVERY_OPERATIONS.body, ({ call, params }) =>
        relays.sentBody(call.caller.project.ref, params.relay_id),
      ),
    )
    .delete(
      "/v1/relay/:relay_id",
      api.endpoint(
        {
          name: "relay.cancel",
          audit: "yes",
          access: "relay:write",
          summary: "Cancel a delivery before its first attempt",
          description:
            "Only while its status is `scheduled`: after the first attempt the response is 409, although retries may follow. Cancelling again returns 200. The credit is not refunded, and no callback is sent.",
          errors: ["not_found", "conflict"],
          params: RelayParams,
          response: RelayCancelled,
        },
        ({ call, params }) =>
          call.perform((tx) => relays.cancel(tx, call.caller.project.ref, params.relay_id)),
      ),
    );
}

/** Routes of a project's signing secret. */
export function secretRoutes(api: Api, secrets: ProjectSecrets) {
  return new Elysia({ tags: ["Relay"] })
    .post(
      "/v1/relay/secret",
      api.endpoint(
        {
          name: "relay.secret.reveal",
          role: "admin",
          stepUp: true,
          audit: "yes",
          access: "relay:write",
          secret: true,
          summary: "Reveal the project's signing secret",
          description:
            "Returns the secret that receivers verify deliveries with, by any Standard Webhooks library. It is created on first use.",
          response: RelaySecret,
        },
        ({ call }) => call.perform((tx) => secrets.reveal(tx, call.caller.project)),
      ),
    )
    .post(
      "/v1/relay/secret/rotate",
      api.endpoint(
        {
          name: "relay.secret.rotate",
          role: "admin",
          stepUp: true,
          audit: "yes",
          access: "relay:write",
          cost: 1,
          secret: true,
          summary: "Rotate the project's signing secret",
          description:
            "For `grace_hours`, deliveries are also signed with the old secret. At most three secrets are valid.",
          body: RelaySecretRotateBody,
          response: RelaySecretRotated,
        },
        ({ call, body }) => call.perform((tx) => secrets.rotate(tx, call.caller.project, body)),
      ),
    );
}
