import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import type { EventService } from "../events/events.ts";
import { assertNoLoop } from "../forwarding/loops.ts";
import type { Replays } from "../forwarding/replays.ts";
import { BucketParams, EventItem, EventParams } from "../schema.ts";
import {
  CatchReplay,
  EventAckBody,
  ReplayBody,
  ReplayMatched,
  ReplayParams,
  ReplayStarted,
  StreamPage,
  StreamQuery,
} from "./schema.ts";
import type { EventStream } from "./stream.ts";

interface PullServices {
  readonly stream: EventStream;
  readonly events: EventService;
  readonly replays: Replays;
}

/** Routes that fetch and acknowledge events, and bulk replays. */
export function pullRoutes(api: Api, services: PullServices) {
  return [streamRoutes(api, services), replayRoutes(api, services)];
}

function streamRoutes(api: Api, { stream, events }: PullServices) {
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

function replayRoutes(api: Api, { replays }: PullServices) {
  return new Elysia({ tags: ["Catch"] })
    .post(
      "/v1/catch/:bucket_id/replays",
      api.endpoint(
        {
          name: "catch.replays.start",
          audit: "yes",
          access: "catch:write",
          summary: "Replay many events to the target",
          description:
            "Replays events in the order of receipt. Each event that the target accepts costs 1 credit.",
          errors: [
            "catch.bucket_not_found",
            "catch.provider_unsupported",
            "bucket_paused",
            "conflict",
            "catch.loop_detected",
          ],
          example: { status: "failed" },
          params: BucketParams,
          body: ReplayBody,
          response: { 202: ReplayStarted, 200: ReplayMatched },
        },
        ({ call, params, body }) => {
          assertNoLoop(call.request.headers);
          return call.performAcross(replays.start(call.caller.project.ref, params.bucket_id, body));
        },
      ),
    )
    .get(
      "/v1/catch/:bucket_id/replays/:replay_id",
      api.endpoint(
        {
          name: "catch.replays.get",
          access: "catch:read",
          summary: "Get the progress of a bulk replay",
          errors: ["catch.bucket_not_found", "not_found"],
          params: ReplayParams,
          response: CatchReplay,
        },
        ({ call, params: { bucket_id, replay_id } }) =>
          replays.read(call.caller.project.ref, bucket_id, replay_id),
      ),
    )
    .delete(
      "/v1/catch/:bucket_id/replays/:replay_id",
      api.endpoint(
        {
          name: "catch.replays.stop",
          audit: "yes",
          access: "catch:write",
          summary: "Stop a bulk replay",
          description: "Events that are already queued are still sent.",
          errors: ["catch.bucket_not_found", "not_found"],
          params: ReplayParams,
          response: CatchReplay,
        },
        ({ call, params: { bucket_id, replay_id } }) =>
          call.perform((tx) => replays.stop(tx, call.caller.project.ref, bucket_id, replay_id)),
      ),
    );
}
