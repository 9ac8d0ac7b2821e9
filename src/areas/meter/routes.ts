import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/call.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { AmountBody, assertPositive, HISTORY_LIMIT, LedgerPage } from "../../kernel/ledger.ts";
import { METERS_LIMIT, MeterBalance, MeterPage, MeterParams, MeterQuery, ResetBody } from "./schema.ts";
import type { MeterChange, MeterService } from "./service.ts";

/** The tenant meters. */
export function meterRoutes(api: Api, meters: MeterService) {
  return [listRoute(api, meters), readingRoutes(api, meters), changingRoutes(api, meters)];
}

function listRoute(api: Api, meters: MeterService) {
  return new Elysia({ tags: ["Meter"] })
    .use(api)
    .get(
      "/v1/meter",
      ({ call, query: { prefix = "", limit = METERS_LIMIT, cursor } }) =>
        meters.list(call.caller.project.ref, prefix, limit, cursor),
      {
        op: { name: "meter.list", access: "meter:read", summary: "List tenant meters by id" },
        query: MeterQuery,
        response: MeterPage,
      },
    );
}

function readingRoutes(api: Api, meters: MeterService) {
  return new Elysia({ prefix: "/v1/meter/:meterId", tags: ["Meter"] })
    .use(api)
    .get("/balance", ({ call, params }) => meters.balance(call.caller.project.ref, params.meterId), {
      op: {
        name: "meter.balance",
        access: "meter:read",
        summary: "Read a tenant meter",
        description: "A meter that does not exist has the balance 0; reading creates nothing.",
      },
      params: MeterParams,
      response: MeterBalance,
    })
    .get(
      "/history",
      ({ call, params, query: { limit = HISTORY_LIMIT, cursor } }) =>
        meters.history(call.caller.project.ref, params.meterId, limit, cursor),
      {
        op: {
          name: "meter.history",
          access: "meter:read",
          summary: "Read a tenant meter's ledger, newest first",
        },
        params: MeterParams,
        query: pageQuery(HISTORY_LIMIT),
        response: LedgerPage,
      },
    );
}

function changingRoutes(api: Api, meters: MeterService) {
  return new Elysia({ prefix: "/v1/meter/:meterId", tags: ["Meter"] })
    .use(api)
    .post(
      "/deduct",
      ({ call, params, body: { amount } }) => {
        assertPositive(amount);
        return call.perform((tx) => meters.deduct(tx, changeOf(call, params.meterId), amount));
      },
      {
        op: {
          name: "meter.deduct",
          access: "meter:write",
          cost: 1,
          summary: "Deduct from a tenant meter",
          description:
            "Atomic. A deduction that would overdraw changes nothing and answers 402 with the balance.",
          errors: ["insufficient_balance", "invalid_request"],
          example: { amount: 1 },
        },
        params: MeterParams,
        body: AmountBody,
        response: MeterBalance,
      },
    )
    .post(
      "/refill",
      ({ call, params, body: { amount } }) => {
        assertPositive(amount);
        return call.perform((tx) => meters.refill(tx, changeOf(call, params.meterId), amount));
      },
      {
        op: {
          name: "meter.refill",
          access: "meter:write",
          cost: 1,
          summary: "Add to a tenant meter",
          description: "The first refill or reset creates the meter.",
          errors: ["invalid_request"],
          example: { amount: 1000 },
        },
        params: MeterParams,
        body: AmountBody,
        response: MeterBalance,
      },
    )
    .post(
      "/reset",
      ({ call, params, body }) =>
        call.perform((tx) => meters.reset(tx, changeOf(call, params.meterId), body.balance)),
      {
        op: {
          name: "meter.reset",
          audit: "yes",
          access: "meter:write",
          cost: 1,
          summary: "Set a tenant meter's balance",
          example: { balance: 500 },
        },
        params: MeterParams,
        body: ResetBody,
        response: MeterBalance,
      },
    );
}

function changeOf({ caller, requestId }: Call, meterId: string): MeterChange {
  return { projectRef: caller.project.ref, meterId, requestId };
}
