import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/requests/body.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import type { Schedules } from "./schedules.ts";
import {
  Schedule,
  ScheduleBody,
  SchedulePage,
  ScheduleParams,
  ScheduleQuery,
  ScheduleRun,
  ScheduleUpdateBody,
} from "./schema.ts";

/** Routes of schedules. */
export function scheduleRoutes(api: Api, schedules: Schedules) {
  return [changeRoutes(api, schedules), otherRoutes(api, schedules)];
}

const CHANGE = { audit: "yes", access: "relay:write" } as const;
const READ = { access: "relay:read" } as const;

function changeRoutes(api: Api, schedules: Schedules) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .post(
      "/v1/relay/schedules",
      async ({ call, body }) => {
        const change = await schedules.prepare(body, call.bodyText);
        return call.perform((tx) => schedules.create(tx, call.caller, body, change));
      },
      {
        op: {
          name: "relay.schedules.create",
          ...CHANGE,
          summary: "Create a schedule that sends a webhook at the times of a cron expression",
          description:
            "Each run sends a delivery and costs 1 credit. With `event_type` it sends a message, which costs 1 more credit for each endpoint.",
          errors: ["schedule_limit_exceeded", "schedule_name_taken"],
          example: {
            name: "nightly",
            cron: "30 2 * * *",
            time_zone: "Europe/Berlin",
            target_url: "https://example.com/hooks",
            payload: { job: "report" },
          },
          bodyLimits: largeBody(1),
        },
        body: ScheduleBody,
        response: { 201: Schedule },
      },
    )
    .patch(
      "/v1/relay/schedules/:schedule_id",
      async ({ call, params, body }) => {
        const change = await schedules.prepare(body, call.bodyText);
        return call.perform((tx) =>
          schedules.update(tx, call.caller.project.ref, params.schedule_id, change),
        );
      },
      {
        op: {
          name: "relay.schedules.update",
          ...CHANGE,
          summary: "Update a schedule",
          description: "Omitted fields keep their values. `state: paused` stops the runs.",
          errors: ["not_found", "schedule_name_taken"],
          example: { state: "paused" },
          bodyLimits: largeBody(1),
        },
        params: ScheduleParams,
        body: ScheduleUpdateBody,
        response: Schedule,
      },
    );
}

function otherRoutes(api: Api, schedules: Schedules) {
  return new Elysia({ tags: ["Relay"] })
    .use(api)
    .get("/v1/relay/schedules", ({ call, query }) => schedules.list(call.caller.project.ref, query), {
      op: { name: "relay.schedules.list", ...READ, summary: "List schedules, newest first" },
      query: ScheduleQuery,
      response: SchedulePage,
    })
    .get(
      "/v1/relay/schedules/:schedule_id",
      ({ call, params }) => schedules.read(call.caller.project.ref, params.schedule_id),
      {
        op: {
          name: "relay.schedules.read",
          ...READ,
          summary: "Get a schedule with its next runs",
          errors: ["not_found"],
        },
        params: ScheduleParams,
        response: Schedule,
      },
    )
    .post(
      "/v1/relay/schedules/:schedule_id/run",
      ({ call, params }) =>
        call.perform((tx) => reply(201, schedules.run(tx, call.caller.project.ref, params.schedule_id))),
      {
        op: {
          name: "relay.schedules.run",
          ...CHANGE,
          cost: 1,
          summary: "Run a schedule now, in addition to its times",
          errors: ["not_found"],
        },
        params: ScheduleParams,
        response: { 201: ScheduleRun },
      },
    )
    .delete(
      "/v1/relay/schedules/:schedule_id",
      ({ call, params }) =>
        call.perform((tx) => {
          schedules.delete(tx, call.caller.project.ref, params.schedule_id);
          return reply(204, {});
        }),
      {
        op: {
          name: "relay.schedules.delete",
          ...CHANGE,
          summary: "Delete a schedule",
          description: "Deliveries of earlier runs are not affected.",
          errors: ["not_found"],
        },
        params: ScheduleParams,
        response: { 204: Type.Object({}) },
      },
    );
}
