import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { assertNoLoop } from "../forwarding/exchange.ts";
import { BucketParams } from "../schema.ts";
import type { Replays } from "./replays.ts";
import { CatchReplay, ReplayBody, ReplayMatched, ReplayParams, ReplayStarted } from "./schema.ts";

/** Routes of bulk replays. */
export function replayRoutes(api: Api, replays: Replays) {
  return new Elysia({ tags: ["Catch"] })
    .post(
      "/v1/catch/:bucket_id/replays",
      api.endpoint(
        {
          name: "catch.replays.start",
          role: "responder",
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
          description:
            "Poll it until `status` is no longer `running`. Replayed events are attempted after they are queued, so their own status may change later. Stored for 7 days.",
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
          role: "responder",
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
