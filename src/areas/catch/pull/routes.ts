import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import type { EventService } from "../events/events.ts";
import { BucketParams, EventAckBody, EventItem, EventParams } from "../schema.ts";
import { StreamPage, StreamQuery } from "./schema.ts";
import type { EventStream } from "./stream.ts";

interface PullServices {
  readonly stream: EventStream;
  readonly events: EventService;
}

/** Routes that fetch and acknowledge events. */
export function pullRoutes(api: Api, { stream, events }: PullServices) {
  return new Elysia({ tags: ["Catch"] })
    .get(
      "/v1/catch/:bucket_id/stream",
      api.endpoint(
        {
          name: "catch.stream",
          access: "catch:read",
          cost: 1,
          summary: "Fetch a bucket's events in order, or wait for the next one",
          description:
            "Returns immediately if there are events after `after`; otherwise when the next one arrives, or after `wait_ms` without events. " +
            "Continue with the `cursor` of the response. A response without events is free of charge.",
          errors: ["catch.bucket_not_found", "catch.provider_unsupported", "service_unavailable"],
          params: BucketParams,
          query: StreamQuery,
          response: StreamPage,
        },
        ({ call, params, query }) => stream.poll(call, params.bucket_id, query),
      ),
    )
    .post(
      "/v1/catch/:bucket_id/events/:event_id/ack",
      api.endpoint(
        {
          name: "catch.events.ack",
          access: "catch:write",
          summary: "Acknowledge a fetched event",
          description:
            "Requires a bucket with `delivery: pull`. Repeats change nothing; `failed` can still become `delivered`.",
          errors: ["catch.bucket_not_found", "catch.event_not_found", "conflict"],
          example: { result: "delivered", response_status: 200 },
          params: EventParams,
          body: EventAckBody,
          response: EventItem,
        },
        ({ call, params: { bucket_id, event_id }, body }) =>
          call.perform((tx) => events.acknowledge(tx, call.caller.project.ref, bucket_id, event_id, body)),
      ),
    );
}
