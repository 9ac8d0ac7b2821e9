import { Elysia } from "elysia";
import type { Charger } from "../../../kernel/callers/caller.ts";
import { assertPositive } from "../../../kernel/data/ledger.ts";
import type { Api } from "../../../kernel/http/api.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { MeterParams } from "../schema.ts";
import type { MeterService } from "../service.ts";
import type { AlertTarget, PlanService } from "./plans.ts";
import { AlertBody, MeterAlert, MeterPlan, PlanBody, TermRemoved } from "./schema.ts";

/** Credits for a meter that is created by setting a plan or an alert, the same as by a refill. */
const CREATION_COST = 1;
const CREATES_METER = {
  note: " A meter that does not exist is created with a balance of 0, which costs 1 credit.",
  errors: ["insufficient_balance"],
} as const;
const FREE = { note: "", errors: [] } as const;
const REMOVED = { success: true } as const;

/** Declares the routes of refill plans and alerts. */
export function planAndAlertRoutes(api: Api, meters: MeterService, plans: PlanService, charger: Charger) {
  return [
    planRoutes(api, meters, plans, charger),
    alertRoutes(api, plans, charger, {
      path: "/v1/meter/alert",
      name: "meter.alert.project",
      what: "the project's alert, which applies to meters without their own",
      reading: "A project without this alert is 404, even if single meters have their own.",
      deleting:
        "Meters with their own alert keep it; all others cause no alert from then on. Without an alert nothing changes and the response is the same.",
      params: undefined,
    }),
    alertRoutes(api, plans, charger, {
      path: "/v1/meter/:meterId/alert",
      name: "meter.alert",
      what: "a meter's alert",
      reading:
        "Returns the meter's own alert only: 404 if it has none, even if the alert of the project applies to it. The meter's balance says which one applies.",
      deleting:
        "The alert of the project, if there is one, applies to the meter again. Without an alert nothing changes and the response is the same.",
      params: MeterParams,
    }),
  ];
}

function planRoutes(api: Api, meters: MeterService, plans: PlanService, charger: Charger) {
  return new Elysia({ prefix: "/v1/meter/:meterId", tags: ["Meter"] })
    .get(
      "/plan",
      api.endpoint(
        {
          name: "meter.plan.read",
          access: "meter:read",
          summary: "Get a meter's refill plan",
          description:
            "Use it to show a customer when and by how much the meter is refilled next. A meter without a plan is 404.",
          errors: ["not_found"],
          params: MeterParams,
          response: MeterPlan,
        },
        ({ call, params: { meterId } }) => {
          const { ref } = call.caller.project;
          return meters.readSettled(ref, [meterId], () => plans.plan(ref, meterId));
        },
      ),
    )
    .put(
      "/plan",
      api.endpoint(
        {
          name: "meter.plan.set",
          audit: "yes",
          access: "meter:write",
          summary: "Set a meter's refill plan",
          description:
            "Refills at 00:00 UTC. Refills missed during a downtime are applied later: once with the mode `raise`, each of them with `add`. A meter that does not exist is created with a balance of 0, which costs 1 credit.",
          errors: ["invalid_request", "insufficient_balance"],
          example: { amount: 1000, every: "month" },
          params: MeterParams,
          body: PlanBody,
          response: MeterPlan,
        },
        ({ call, params, body }) => {
          assertPositive(body.amount);
          return call.perform((tx) =>
            plans.setPlan(tx, { ...contextOf(call), ...params }, body, payment(tx, call, charger)),
          );
        },
      ),
    )
    .delete(
      "/plan",
      api.endpoint(
        {
          name: "meter.plan.delete",
          audit: "yes",
          access: "meter:write",
          summary: "Delete a meter's refill plan",
          description:
            "Stops future refills; the balance and past refills stay. Without a plan nothing changes and the response is the same.",
          params: MeterParams,
          response: TermRemoved,
        },
        ({ call, params }) =>
          call.perform((tx) => {
            plans.removePlan(tx, { ...contextOf(call), ...params });
            return REMOVED;
          }),
      ),
    );
}

interface AlertRoute<Params> {
  readonly path: string;
  readonly name: string;
  readonly what: string;
  /** Descriptions of its operations. */
  readonly reading: string;
  readonly deleting: string;
  readonly params: Params;
}

function alertRoutes(
  api: Api,
  plans: PlanService,
  charger: Charger,
  { path, name, what, reading, deleting, params }: AlertRoute<typeof MeterParams | undefined>,
) {
  const input = params === undefined ? {} : { params };
  const costs = params === undefined ? FREE : CREATES_METER;
  return new Elysia({ tags: ["Meter"] })
    .get(
      path,
      api.endpoint(
        {
          name: `${name}.read`,
          access: "meter:read",
          summary: `Get ${what}`,
          description: reading,
          errors: ["not_found"],
          ...input,
          response: MeterAlert,
        },
        ({ call, params }) => {
          const { projectRef, meterId } = alertOf(call, params);
          return plans.alert(projectRef, meterId);
        },
      ),
    )
    .put(
      path,
      api.endpoint(
        {
          name: `${name}.set`,
          audit: "yes",
          access: "meter:write",
          summary: `Set ${what}`,
          description: `Sends a webhook when the available credits fall below the threshold, signed and retried like a monitor's alert.${costs.note}`,
          errors: costs.errors,
          example: { threshold: 100, webhook_url: "https://example.com/low" },
          ...input,
          body: AlertBody,
          response: MeterAlert,
        },
        ({ call, params, body }) => {
          plans.assertAlert(body);
          const { ref } = call.caller.account;
          return call.perform((tx) =>
            plans.setAlert(tx, alertOf(call, params), ref, body, payment(tx, call, charger)),
          );
        },
      ),
    )
    .delete(
      path,
      api.endpoint(
        {
          name: `${name}.delete`,
          audit: "yes",
          access: "meter:write",
          summary: `Delete ${what}`,
          description: deleting,
          ...input,
          response: TermRemoved,
        },
        ({ call, params }) =>
          call.perform((tx) => {
            plans.removeAlert(tx, alertOf(call, params));
            return REMOVED;
          }),
      ),
    );
}

/** Charges the creation of a meter. */
function payment(tx: Tx, { caller, operation }: Call, charger: Charger): () => void {
  return () => charger.charge(tx, caller.account, operation.name, CREATION_COST);
}

function contextOf({ caller, requestId }: Call) {
  return { projectRef: caller.project.ref, requestId };
}

function alertOf(call: Call, params: { readonly meterId?: string } | undefined): AlertTarget {
  return { ...contextOf(call), meterId: params?.meterId ?? null };
}
