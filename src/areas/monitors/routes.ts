import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { MONITOR_FILE } from "./file.ts";
import { assertAssertionHeld } from "./options.ts";
import {
  Monitor,
  MonitorCheckQuery,
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
  return [readRoutes(api, monitors), changeRoutes(api, monitors)];
}

function readRoutes(api: Api, monitors: MonitorService) {
  return new Elysia({ tags: ["Monitors"] })
    .get(
      "/v1/pulse",
      api.endpoint(
        {
          name: "monitors.list",
          ...READ,
          summary: "List monitors with their current status, newest first",
          description:
            "Use it for overviews and exports. It reads stored results and checks nothing. `details=true` adds uptime and hours of the last day to each monitor.",
          query: MonitorQuery,
          response: MonitorPage,
        },
        ({ call, query }) => call.read(() => monitors.list(call, query)),
      ),
    )
    .get(
      "/v1/pulse/:monitorId",
      api.endpoint(
        {
          name: "monitors.read",
          ...READ,
          summary: "Get a monitor with its current status",
          description:
            "Reads stored results; to check the target now use `POST /v1/pulse/{monitorId}/check`. `failing` is true while the last check failed, but not enough of them in a row to mark the target as down.",
          errors: ["not_found"],
          params: MonitorParams,
          response: MonitorStatus,
        },
        ({ call, params }) => call.read(() => monitors.status(call, params.monitorId)),
      ),
    )
    .get(
      "/v1/pulse/:monitorId/history",
      api.endpoint(
        {
          name: "monitors.history",
          ...READ,
          summary: "List a monitor's checks, newest first, with its uptime and outages",
          description: "Checks are stored for 30 days, daily counts for 400 days.",
          errors: ["not_found"],
          params: MonitorParams,
          query: MonitorHistoryQuery,
          response: MonitorHistory,
        },
        ({ call, params, query }) =>
          call.read((tx) => monitors.history(call.caller.project.ref, params.monitorId, tx.now, query)),
      ),
    );
}

function changeRoutes(api: Api, monitors: MonitorService) {
  return new Elysia({ tags: ["Monitors"] })
    .post(
      "/v1/pulse",
      api.endpoint(
        {
          name: "monitors.create",
          ...CHANGE,
          summary: "Create a monitor",
          description: "The first check runs within 5 seconds. A heartbeat waits for its first ping.",
          errors: ["monitor_limit_exceeded", "monitor_name_taken", "monitor_slug_taken"],
          example: { url: "https://example.com/health", interval: 60_000 },
          file: MONITOR_FILE,
          body: MonitorCreateBody,
          response: { 201: Monitor },
        },
        ({ call, body }) => {
          assertAssertionHeld(call.bodyText);
          monitors.assertTerms(call.caller, body);
          return call.perform((tx) => reply(201, monitors.create(tx, call, body)));
        },
      ),
    )
    .put(
      "/v1/pulse/:monitorId",
      api.endpoint(
        {
          name: "monitors.update",
          ...CHANGE,
          summary: "Update a monitor",
          description:
            "Omitted fields stay unchanged. `active: false` stops the checks; the status stays. Without the scope `*`, a `url` of another origin requires the `headers` again (else 409), and the response covers the values of headers that the request does not set.",
          errors: ["not_found", "monitor_name_taken", "monitor_slug_taken", "conflict"],
          example: { interval: 30_000 },
          params: MonitorParams,
          body: MonitorUpdateBody,
          response: Monitor,
        },
        ({ call, params, body }) => {
          assertAssertionHeld(call.bodyText);
          monitors.assertSettings(call.caller, body, params.monitorId);
          return call.perform((tx) => monitors.update(tx, call, params.monitorId, body));
        },
      ),
    )
    .delete(
      "/v1/pulse/:monitorId",
      api.endpoint(
        {
          name: "monitors.delete",
          ...CHANGE,
          summary: "Delete a monitor and its history",
          description:
            "Stops its checks, resolves its open incident, and removes it from status pages. The history cannot be restored: to stop the checks and keep it, set `active` to false instead.",
          errors: ["not_found"],
          params: MonitorParams,
          response: MonitorDeleted,
        },
        ({ call, params }) =>
          call.perform((tx) => monitors.delete(tx, call.caller.project.ref, params.monitorId)),
      ),
    )
    .post(
      "/v1/pulse/:monitorId/check",
      api.endpoint(
        {
          name: "monitors.check",
          role: "responder",
          ...WRITE,
          summary: "Check a monitor immediately",
          description:
            "The check counts like a scheduled one, but causes no alerts. The server makes it if it is among the `probes`; otherwise the first probe that is online. Not for heartbeats.",
          errors: ["not_found", "invalid_request", "probe_offline"],
          params: MonitorParams,
          query: MonitorCheckQuery,
          response: MonitorStatus,
        },
        ({ call, params, query }) => monitors.checkNow(call, params.monitorId, query.probe),
      ),
    );
}
