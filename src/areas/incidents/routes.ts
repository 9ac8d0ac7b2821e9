import { Elysia } from "elysia";
import { idParams } from "../../kernel/data/schema.ts";
import type { Api } from "../../kernel/http/api.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { resourceRoutes } from "../../kernel/resources/routes.ts";
import type { Incidents } from "./lifecycle.ts";
import { Incident, IncidentSnoozeBody, IncidentUpdateBody } from "./schema.ts";

const CHANGE = { access: "pulse:write", audit: "yes", cost: 1, limit: "monitor" } as const;
const PARAMS = idParams("incident");

/** Declares the operations of incidents. */
export function incidentRoutes(api: Api, incidents: Incidents) {
  return [resourceRoutes(api, incidents.resource), progressRoutes(api, incidents)];
}

function progressRoutes(api: Api, incidents: Incidents) {
  return new Elysia({ tags: ["Monitors"] })
    .post(
      "/v1/pulse/incidents/:incident_id/acknowledge",
      api.endpoint(
        {
          name: "monitors.incidents.acknowledge",
          role: "responder",
          ...CHANGE,
          summary: "Acknowledge an incident",
          description:
            "Stops the repeated alerts of the incident and notifies channels once. Acknowledging it again changes nothing.",
          errors: ["not_found", "conflict"],
          params: PARAMS,
          response: Incident,
        },
        ({ call, params }) =>
          call.perform((tx) => incidents.acknowledge(tx, call.caller, params.incident_id)),
      ),
    )
    .post(
      "/v1/pulse/incidents/:incident_id/snooze",
      api.endpoint(
        {
          name: "monitors.incidents.snooze",
          role: "responder",
          ...CHANGE,
          summary: "Snooze an incident",
          description:
            "Nobody is notified again of the outage of a monitor for some time: no reminders, steps of escalations and repeated webhooks. If the target is still down then, its channels are notified. Snoozing it again replaces the time.",
          errors: ["not_found", "conflict"],
          params: PARAMS,
          body: IncidentSnoozeBody,
          response: Incident,
        },
        ({ call, params, body }) =>
          call.perform((tx) => incidents.snoozeFor(tx, call.caller, params.incident_id, body)),
      ),
    )
    .post(
      "/v1/pulse/incidents/:incident_id/updates",
      api.endpoint(
        {
          name: "monitors.incidents.update",
          role: "responder",
          ...CHANGE,
          summary: "Post an incident update",
          description:
            "`resolved` resolves a manual incident. An automatic incident is resolved by the check that finds its target up.",
          errors: ["not_found", "conflict", "incident_update_limit_exceeded"],
          example: { status: "identified", message: "A certificate has expired." },
          params: PARAMS,
          body: IncidentUpdateBody,
          response: { 201: Incident },
        },
        ({ call, params, body }) =>
          call.perform((tx) => reply(201, incidents.addUpdate(tx, call.caller, params.incident_id, body))),
      ),
    );
}
