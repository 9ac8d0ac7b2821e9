import { type Api, Routes } from "../../kernel/http/api.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { resourceRoutes } from "../../kernel/resources/routes.ts";
import { MONITOR_FILE } from "./file.ts";
import { assertAssertionHeld } from "./options.ts";
import {
  Monitor,
  MonitorCreateBody,
  MonitorDeleted,
  MonitorHistory,
  MonitorHistoryQuery,
  MonitorPage,
  MonitorParams,
  MonitorQuery,
  MonitorStatus,
  MonitorUpdateBody,
} from "./schema.ts";
import type { MonitorService } from "./service.ts";

/** Every request costs 1 credit and counts towards the rate limit of monitors. */
const READ = { access: "pulse:read", cost: 1, limit: "monitor" } as const;
const WRITE = { ...READ, access: "pulse:write" } as const;
const CHANGE = { ...WRITE, audit: "yes" } as const;

/** Declares the operations of monitors. */
export function monitorRoutes(api: Api, monitors: MonitorService) {
  return [
    readRoutes(api, monitors),
    changeRoutes(api, monitors),
    resourceRoutes(api, monitors.maintenance.resource),
  ].flat();
}

function readRoutes(api: Api, monitors: MonitorService) {
  return new Routes({ tags: ["Monitors"] })
    .use(api)
    .get("/v1/pulse", ({ call, query }) => call.read(() => monitors.list(call, query)), {
      op: {
        name: "monitors.list",
        ...READ,
        summary: "List monitors with their current status, newest first",
      },
      query: MonitorQuery,
      response: MonitorPage,
    })
    .get(
      "/v1/pulse/:monitorId",
      ({ call, params }) => call.read(() => monitors.status(call, params.monitorId)),
      {
        op: {
          name: "monitors.read",
          ...READ,
          summary: "Get a monitor with its current status",
          errors: ["not_found"],
        },
        params: MonitorParams,
        response: MonitorStatus,
      },
    )
    .get(
      "/v1/pulse/:monitorId/history",
      ({ call, params, query }) =>
        call.read((tx) => monitors.history(call.caller.project.ref, params.monitorId, tx.now, query)),
      {
        op: {
          name: "monitors.history",
          ...READ,
          summary: "List a monitor's checks, newest first, with its uptime and outages",
          description: "Checks are stored for 30 days, daily counts for 400 days.",
          errors: ["not_found"],
        },
        params: MonitorParams,
        query: MonitorHistoryQuery,
        response: MonitorHistory,
      },
    );
}

function changeRoutes(api: Api, monitors: MonitorService) {
  return new Routes({ tags: ["Monitors"] })
    .use(api)
    .post(
      "/v1/pulse",
      ({ call, body }) => {
        assertAssertionHeld(call.bodyText);
        monitors.assertTerms(call.caller, body);
        return call.perform((tx) => reply(201, monitors.create(tx, call, body)));
      },
      {
        op: {
          name: "monitors.create",
          ...CHANGE,
          summary: "Create a monitor",
          description: "The first check runs within 5 seconds. A heartbeat waits for its first ping.",
          errors: ["monitor_limit_exceeded", "monitor_name_taken", "monitor_slug_taken"],
          example: { url: "https://example.com/health", interval: 60_000 },
          file: MONITOR_FILE,
        },
        body: MonitorCreateBody,
        response: { 201: Monitor },
      },
    )
    .put(
      "/v1/pulse/:monitorId",
      ({ call, params, body }) => {
        assertAssertionHeld(call.bodyText);
        monitors.assertSettings(call.caller, body);
        return call.perform((tx) => monitors.update(tx, call, params.monitorId, body));
      },
      {
        op: {
          name: "monitors.update",
          ...CHANGE,
          summary: "Update a monitor",
          description:
            "Omitted fields stay unchanged. `active: false` stops the checks; the status stays. Without the scope `*`, a `url` of another origin requires the `headers` again (else 409), and the response covers the values of headers that the request does not set.",
          errors: ["not_found", "monitor_name_taken", "monitor_slug_taken", "conflict"],
          example: { interval: 30_000 },
        },
        params: MonitorParams,
        body: MonitorUpdateBody,
        response: Monitor,
      },
    )
    .delete(
      "/v1/pulse/:monitorId",
      ({ call, params }) =>
        call.perform((tx) => monitors.delete(tx, call.caller.project.ref, params.monitorId)),
      {
        op: {
          name: "monitors.delete",
          ...CHANGE,
          summary: "Delete a monitor and its history",
          errors: ["not_found"],
        },
        params: MonitorParams,
        response: MonitorDeleted,
      },
    )
    .post("/v1/pulse/:monitorId/check", ({ call, params }) => monitors.checkNow(call, params.monitorId), {
      op: {
        name: "monitors.check",
        ...WRITE,
        summary: "Check a monitor immediately",
        description: "The check counts like a scheduled one, but causes no alerts. Not for heartbeats.",
        errors: ["not_found", "invalid_request"],
      },
      params: MonitorParams,
      response: MonitorStatus,
    });
}
