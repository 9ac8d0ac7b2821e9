import { Elysia } from "elysia";
import { idParams } from "../../../kernel/data/schema.ts";
import type { Api } from "../../../kernel/http/api.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { resourceRoutes } from "../../../kernel/resources/routes.ts";
import type { Schedules } from "./schedules.ts";
import { ScheduleRun } from "./schema.ts";

/** Routes of schedules. */
export function scheduleRoutes(api: Api, schedules: Schedules) {
  return [resourceRoutes(api, schedules.resource), runRoute(api, schedules)];
}

function runRoute(api: Api, schedules: Schedules) {
  return new Elysia({ tags: ["Relay"] }).post(
    "/v1/relay/schedules/:schedule_id/run",
    api.endpoint(
      {
        name: "relay.schedules.run",
        access: "relay:write",
        audit: "yes",
        cost: 1,
        summary: "Run a schedule now, in addition to its times",
        description:
          "For tests, and to make up for a missed run. Also works while the schedule is paused; the next time does not change. With `event_type` it costs 1 more credit for each endpoint.",
        errors: ["not_found"],
        params: idParams("schedule"),
        response: { 201: ScheduleRun },
      },
      async ({ call, params: { schedule_id } }) => {
        const { ref } = call.caller.project;
        const errors = await schedules.assertFits(ref, schedule_id);
        return call.perform((tx) => reply(201, schedules.run(tx, ref, schedule_id, errors)));
      },
    ),
  );
}
