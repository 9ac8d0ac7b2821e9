import { Type } from "@sinclair/typebox";
import { largeBody } from "../../kernel/http/body.ts";
import type { Http } from "../../kernel/http/http.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import type { RelayStatus } from "./domain.ts";
import { Cancelled, Relay, RelayFilter, RelayPage, RelayParams, ScheduleBody, Scheduled } from "./schema.ts";
import type { RelayService } from "./service.ts";

/** Deliveries on a page unless asked otherwise. */
const LIST_LIMIT = 50;

/** Declares the scheduling of deliveries, and what can be seen of them. */
export function relayRoutes(http: Http, relays: RelayService): void {
  http.route(
    "POST",
    "/v1/relay",
    {
      operation: "relay.schedule",
      summary: "Schedule a signed webhook",
      description:
        "The payload is sent to `target_url` after `delay`, at least once, always with the same `X-Svc-Delivery-Id`.",
      body: ScheduleBody,
      bodyBounds: largeBody(1), // around `payload`
      status: 201,
      answers: { 201: Scheduled },
      example: {
        target_url: "https://example.com/hooks",
        method: "POST",
        delay: "15m",
        payload: { reminder: "trial ends" },
        headers: { "X-Source": "billing" },
      },
    },
    (call) => {
      const ready = relays.prepare(call.body, call.bodyText);
      return call.perform((tx) => relays.schedule(tx, call.caller, ready));
    },
  );
  http.route(
    "GET",
    "/v1/relay",
    {
      operation: "relay.list",
      summary: "List deliveries, newest first",
      query: Type.Composite([RelayFilter, pageQuery(LIST_LIMIT)]),
      answers: { 200: RelayPage },
    },
    (call) => {
      const { filter, status, limit = LIST_LIMIT, cursor } = call.query;
      return relays.list(call.caller.project.ref, {
        limit,
        cursor,
        ...(filter === undefined ? {} : { filter }),
        ...(status === undefined ? {} : { status: status as RelayStatus }),
      });
    },
  );
  http.route(
    "GET",
    "/v1/relay/:relay_id",
    {
      operation: "relay.read",
      summary: "Read a delivery with each of its attempts",
      params: RelayParams,
      answers: { 200: Relay },
      errors: ["not_found"],
    },
    (call) => relays.read(call.caller.project.ref, call.params.relay_id),
  );
  http.route(
    "DELETE",
    "/v1/relay/:relay_id",
    {
      operation: "relay.cancel",
      summary: "Cancel a delivery whose first attempt has not begun",
      params: RelayParams,
      answers: { 200: Cancelled },
      errors: ["not_found", "conflict"],
    },
    (call) => call.perform((tx) => relays.cancel(tx, call.caller.project.ref, call.params.relay_id)),
  );
}
