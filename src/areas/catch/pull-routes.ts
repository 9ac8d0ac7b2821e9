import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { EventAckBody, StreamPage, StreamQuery } from "./pull-schema.ts";
import { BucketParams, EventItem, EventParams } from "./schema.ts";
import type { EventService } from "./service.ts";
import type { EventStream } from "./stream.ts";

/** What the endpoints are made of. */
interface PullServices {
  readonly stream: EventStream;
  readonly events: EventService;
}

/** Declares how events are fetched instead of being sent on. */
export function pullRoutes(api: Api, { stream, events }: PullServices) {
  return [
    new Elysia({ tags: ["Catch"] })
      .use(api)
      .get(
        "/v1/catch/:bucket_id/stream",
        ({ call, params, query }) => stream.poll(call, params.bucket_id, query),
        {
          op: {
            name: "catch.stream",
            access: "catch:read",
            cost: 1,
            summary: "Fetch a bucket's events in their order, or wait for the next one",
            description:
              "Answers at once when there are events behind `after`, and else when the next one has come, or after `wait_ms` with none. " +
              "Ask again with the `cursor` of the answer. An answer without events is free.",
            errors: ["catch.bucket_not_found", "catch.provider_unsupported", "service_unavailable"],
          },
          params: BucketParams,
          query: StreamQuery,
          response: StreamPage,
        },
      )
      .post(
        "/v1/catch/:bucket_id/events/:event_id/ack",
        ({ call, params: { bucket_id, event_id }, body }) =>
          call.perform((tx) => events.acknowledge(tx, call.caller.project.ref, bucket_id, event_id, body)),
        {
          op: {
            name: "catch.events.ack",
            access: "catch:write",
            summary: "Say what became of an event that was fetched",
            description:
              "Only in a bucket whose `delivery` is `pull`. The same again changes nothing; `failed` can still become `delivered`.",
            errors: ["catch.bucket_not_found", "catch.event_not_found", "conflict"],
            example: { result: "delivered", response_status: 200 },
          },
          params: EventParams,
          body: EventAckBody,
          response: EventItem,
        },
      ),
  ];
}
