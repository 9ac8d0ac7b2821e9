import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import type { Incidents } from "./incidents.ts";
import {
  Incident,
  IncidentCreateBody,
  IncidentPage,
  IncidentParams,
  IncidentPatch,
  IncidentQuery,
  IncidentUpdateBody,
} from "./schema.ts";

const READ = { access: "pulse:read", cost: 1, limit: "monitor" } as const;
const CHANGE = { ...READ, access: "pulse:write", audit: "yes" } as const;

/** Declares the operations of incidents. */
export function incidentRoutes(api: Api, incidents: Incidents) {
  return [readRoutes(api, incidents), changeRoutes(api, incidents), progressRoutes(api, incidents)];
}

function readRoutes(api: Api, incidents: Incidents) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .get(
      "/v1/pulse/incidents",
      ({ call, query }) => call.read(() => incidents.list(call.caller.project.ref, query)),
      {
        op: { name: "monitors.incidents.list", ...READ, summary: "List incidents, newest first" },
        query: IncidentQuery,
        response: IncidentPage,
      },
    )
    .get(
      "/v1/pulse/incidents/:incident_id",
      ({ call, params }) => call.read(() => incidents.get(call.caller.project.ref, params.incident_id)),
      {
        op: {
          name: "monitors.incidents.read",
          ...READ,
          summary: "Get an incident with its updates",
          errors: ["not_found"],
        },
        params: IncidentParams,
        response: Incident,
      },
    );
}

function changeRoutes(api: Api, incidents: Incidents) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .post(
      "/v1/pulse/incidents",
      ({ call, body }) => call.perform((tx) => reply(201, incidents.create(tx, call.caller, body))),
      {
        op: {
          name: "monitors.incidents.create",
          ...CHANGE,
          summary: "Create an incident",
          description: "Monitors open and resolve their incidents automatically; this creates a manual one.",
          errors: ["incident_limit_exceeded"],
          example: { title: "Payments fail", message: "Our provider has an outage.", public: true },
        },
        body: IncidentCreateBody,
        response: { 201: Incident },
      },
    )
    .patch(
      "/v1/pulse/incidents/:incident_id",
      ({ call, params, body }) =>
        call.perform((tx) => incidents.update(tx, call.caller.project.ref, params.incident_id, body)),
      {
        op: {
          name: "monitors.incidents.change",
          ...CHANGE,
          summary: "Update an incident's title and visibility",
          errors: ["not_found"],
          example: { public: true },
        },
        params: IncidentParams,
        body: IncidentPatch,
        response: Incident,
      },
    );
}

function progressRoutes(api: Api, incidents: Incidents) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .post(
      "/v1/pulse/incidents/:incident_id/acknowledge",
      ({ call, params }) => call.perform((tx) => incidents.acknowledge(tx, call.caller, params.incident_id)),
      {
        op: {
          name: "monitors.incidents.acknowledge",
          ...CHANGE,
          summary: "Acknowledge an incident",
          description:
            "Stops the repeated alerts of the incident and notifies channels once. Acknowledging it again changes nothing.",
          errors: ["not_found", "conflict"],
        },
        params: IncidentParams,
        response: Incident,
      },
    )
    .post(
      "/v1/pulse/incidents/:incident_id/updates",
      ({ call, params, body }) =>
        call.perform((tx) =>
          reply(201, incidents.addUpdate(tx, call.caller.project.ref, params.incident_id, body)),
        ),
      {
        op: {
          name: "monitors.incidents.update",
          ...CHANGE,
          summary: "Post an incident update",
          description:
            "`resolved` resolves a manual incident. An automatic incident is resolved by the check that finds its target up.",
          errors: ["not_found", "conflict", "incident_update_limit_exceeded"],
          example: { status: "identified", message: "A certificate has expired." },
        },
        params: IncidentParams,
        body: IncidentUpdateBody,
        response: { 201: Incident },
      },
    );
}
