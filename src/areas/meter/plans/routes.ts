import { Elysia } from "elysia";
import { assertPositive } from "../../../kernel/data/ledger.ts";
import type { Charger } from "../../../kernel/http/access/caller.ts";
import type { Api } from "../../../kernel/http/api.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { MeterParams } from "../schema.ts";
import type { MeterService } from "../service.ts";
import type { AlertPlace, TermsService } from "./plans.ts";
import { AlertBody, MeterAlert, MeterPlan, PlanBody, TermRemoved } from "./schema.ts";

/** Credits for a meter that is created by setting a plan or an alert, as by a refill. */
const CREATION_COST = 1;
const CREATES_METER = {
  note: " A meter that does not exist begins with 0, which costs 1 credit.",
  errors: ["insufficient_balance"],
} as const;
const FREE = { note: "", errors: [] } as const;
const REMOVED = { success: true } as const;

/** Refill plans and alerts of tenant meters. */
export function termsRoutes(api: Api, meters: MeterService, terms: TermsService, charger: Charger) {
  return [
    planRoutes(api, meters, terms, charger),
    alertRoutes(api, terms, charger, {
      path: "/v1/meter/alert",
      name: "meter.alert.project",
      what: "the alert of all meters that have none of their own",
      params: undefined,
    }),
    alertRoutes(api, terms, charger, {
      path: "/v1/meter/:meterId/alert",
      name: "meter.alert",
      what: "a meter's own alert",
      params: MeterParams,
    }),
  ];
}

function planRoutes(api: Api, meters: MeterService, terms: TermsService, charger: Charger) {
  return new Elysia({ prefix: "/v1/meter/:meterId", tags: ["Meter"] })
    .use(api)
    .get(
      "/plan",
      ({ call, params: { meterId } }) => {
        const { ref } = call.caller.project;
        return meters.reading(ref, [meterId], () => terms.plan(ref, meterId));
      },
      {
        op: {
          name: "meter.plan.read",
          access: "meter:read",
          summary: "Read a meter's refill plan",
          errors: ["not_found"],
        },
        params: MeterParams,
        response: MeterPlan,
      },
    )
    .put(
      "/plan",
      ({ call, params, body }) => {
        assertPositive(body.amount);
        return call.perform((tx) =>
          terms.setPlan(tx, { ...placeOf(call), ...params }, body, payment(tx, call, charger)),
        );
      },
      {
        op: {
          name: "meter.plan.set",
          audit: "yes",
          access: "meter:write",
          summary: "Refill a meter again and again",
          description:
            "At 00:00 UTC. What was missed while the server was down is made up for: once where it raises, each time where it adds. A meter that does not exist begins with 0, which costs 1 credit.",
          errors: ["invalid_request", "insufficient_balance"],
          example: { amount: 1000, every: "month" },
        },
        params: MeterParams,
        body: PlanBody,
        response: MeterPlan,
      },
    )
    .delete(
      "/plan",
      ({ call, params }) =>
        call.perform((tx) => {
          terms.removePlan(tx, { ...placeOf(call), ...params });
          return REMOVED;
        }),
      {
        op: {
          name: "meter.plan.delete",
          audit: "yes",
          access: "meter:write",
          summary: "Take a meter's refill plan away",
        },
        params: MeterParams,
        response: TermRemoved,
      },
    );
}

interface AlertRoute<Params> {
  readonly path: string;
  readonly name: string;
  readonly what: string;
  readonly params: Params;
}

function alertRoutes(
  api: Api,
  terms: TermsService,
  charger: Charger,
  { path, name, what, params }: AlertRoute<typeof MeterParams | undefined>,
) {
  const input = params === undefined ? {} : { params };
  const costs = params === undefined ? FREE : CREATES_METER;
  return new Elysia({ tags: ["Meter"] })
    .use(api)
    .get(
      path,
      ({ call, params }) => {
        const { projectRef, meterId } = alertOf(call, params);
        return terms.alert(projectRef, meterId);
      },
      {
        op: { name: `${name}.read`, access: "meter:read", summary: `Read ${what}`, errors: ["not_found"] },
        ...input,
        response: MeterAlert,
      },
    )
    .put(
      path,
      ({ call, params, body }) => {
        terms.assertAlert(body);
        const { ref } = call.caller.account;
        return call.perform((tx) =>
          terms.setAlert(tx, alertOf(call, params), ref, body, payment(tx, call, charger)),
        );
      },
      {
        op: {
          name: `${name}.set`,
          audit: "yes",
          access: "meter:write",
          summary: `Set ${what}`,
          description: `A webhook when what is available falls below the threshold, signed and retried like a monitor's.${costs.note}`,
          errors: costs.errors,
          example: { threshold: 100, webhook_url: "https://example.com/low" },
        },
        ...input,
        body: AlertBody,
        response: MeterAlert,
      },
    )
    .delete(
      path,
      ({ call, params }) =>
        call.perform((tx) => {
          terms.removeAlert(tx, alertOf(call, params));
          return REMOVED;
        }),
      {
        op: { name: `${name}.delete`, audit: "yes", access: "meter:write", summary: `Take ${what} away` },
        ...input,
        response: TermRemoved,
      },
    );
}

/** Takes what the creation of a meter costs. */
function payment(tx: Tx, { caller, operation }: Call, charger: Charger): () => void {
  return () => charger.charge(tx, caller.account, operation.name, CREATION_COST);
}

function placeOf({ caller, requestId }: Call) {
  return { projectRef: caller.project.ref, requestId };
}

function alertOf(call: Call, params: { readonly meterId?: string } | undefined): AlertPlace {
  return { ...placeOf(call), meterId: params?.meterId ?? null };
}
