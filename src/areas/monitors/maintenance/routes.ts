import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { MonitorDeleted } from "../schema.ts";
import type { MaintenanceService } from "./maintenance.ts";
import {
  Maintenance,
  MaintenanceCreateBody,
  MaintenancePage,
  MaintenanceParams,
  MaintenanceQuery,
  MaintenanceUpdateBody,
} from "./schema.ts";

const READ = { access: "pulse:read", cost: 1, limit: "monitor" } as const;
const CHANGE = { ...READ, access: "pulse:write", audit: "yes" } as const;

/** Declares the operations of maintenance. */
export function maintenanceRoutes(api: Api, maintenance: MaintenanceService) {
  return [readRoutes(api, maintenance), changeRoutes(api, maintenance)];
}

function readRoutes(api: Api, maintenance: MaintenanceService) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .get(
      "/v1/pulse/maintenance",
      ({ call, query }) => call.read((tx) => maintenance.list(call.caller.project.ref, query, tx.now)),
      {
        op: { name: "monitors.maintenance.list", ...READ, summary: "List maintenance, newest first" },
        query: MaintenanceQuery,
        response: MaintenancePage,
      },
    )
    .get(
      "/v1/pulse/maintenance/:maintenance_id",
      ({ call, params }) =>
        call.read((tx) => maintenance.read(call.caller.project.ref, params.maintenance_id, tx.now)),
      {
        op: {
          name: "monitors.maintenance.read",
          ...READ,
          summary: "Get a maintenance entry",
          errors: ["not_found"],
        },
        params: MaintenanceParams,
        response: Maintenance,
      },
    );
}

function changeRoutes(api: Api, maintenance: MaintenanceService) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .post(
      "/v1/pulse/maintenance",
      ({ call, body }) => call.perform((tx) => reply(201, maintenance.create(tx, call.caller, body))),
      {
        op: {
          name: "monitors.maintenance.create",
          ...CHANGE,
          summary: "Create a maintenance window",
          description:
            "A single window from `starts_at` to `ends_at`, or recurring windows by `schedule` and `duration_ms`. Failures during a window cause no alerts.",
          errors: ["maintenance_limit_exceeded"],
          example: {
            title: "Move to a larger machine",
            starts_at: "2030-01-31T22:00:00Z",
            ends_at: "2030-01-31T23:00:00Z",
          },
        },
        body: MaintenanceCreateBody,
        response: { 201: Maintenance },
      },
    )
    .patch(
      "/v1/pulse/maintenance/:maintenance_id",
      ({ call, params, body }) =>
        call.perform((tx) => maintenance.update(tx, call.caller.project.ref, params.maintenance_id, body)),
      {
        op: {
          name: "monitors.maintenance.update",
          ...CHANGE,
          summary: "Update a maintenance window",
          description:
            "Omitted fields stay unchanged. A single window cannot become recurring, or the reverse.",
          errors: ["not_found"],
          example: { message: "It takes an hour longer." },
        },
        params: MaintenanceParams,
        body: MaintenanceUpdateBody,
        response: Maintenance,
      },
    )
    .delete(
      "/v1/pulse/maintenance/:maintenance_id",
      ({ call, params }) =>
        call.perform((tx) => maintenance.delete(tx, call.caller.project.ref, params.maintenance_id)),
      {
        op: {
          name: "monitors.maintenance.delete",
          ...CHANGE,
          summary: "Delete a maintenance window",
          description: "An open window ends immediately.",
          errors: ["not_found"],
        },
        params: MaintenanceParams,
        response: MonitorDeleted,
      },
    );
}
