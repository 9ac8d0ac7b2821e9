import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/call.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { LedgerPage } from "../../kernel/ledger-entry.ts";
import { assertPositive } from "./domain.ts";
import type { OwnBalances } from "./ports.ts";
import { AmountBody, MeterBalance, MeterParams, OwnBalance, ResetBody } from "./schema.ts";
import type { MeterChange, MeterService } from "./service.ts";

/** Entries on a page of history unless asked otherwise. */
const HISTORY_LIMIT = 50;

/** The own balance. */
export function ownBalanceRoutes(api: Api, own: OwnBalances) {
  return new Elysia({ prefix: "/v1/meter", tags: ["Meter"] })
    .use(api)
    .get("/balance", ({ call }) => own.read(call.caller.account.ref), {
      op: { name: "meter.own.balance", access: "meter:read", summary: "Read the own credit balance" },
      response: OwnBalance,
    })
    .get(
      "/history",
      ({ call, query }) => own.history(call.caller.account.ref, query.limit ?? HISTORY_LIMIT, query.cursor),
      {
        op: {
          name: "meter.own.history",
          access: "meter:read",
          summary: "Read the own balance's ledger, newest first",
          description: "Request costs are one entry per operation and hour, amounts summed.",
        },
        query: pageQuery(HISTORY_LIMIT),
        response: LedgerPage,
      },
    )
    .post(
      "/deduct",
      ({ call, body: { amount } }) =>
        call.perform((tx) => {
          assertPositive(amount);
          return own.deduct(tx, call.caller.account.ref, amount, call.requestId);
        }),
      {
        op: {
          name: "meter.own.deduct",
          access: "meter:write",
          accountOnly: true,
          changesProject: false,
          summary: "Deduct credits from the own balance",
          errors: ["insufficient_balance", "invalid_request"],
          example: { amount: 5 },
        },
        body: AmountBody,
        response: OwnBalance,
      },
    )
    .post(
      "/refill",
      ({ call, body: { amount } }) =>
        call.perform((tx) => {
          assertPositive(amount);
          return own.refill(tx, call.caller.account.ref, amount, call.requestId);
        }),
      {
        op: {
          name: "meter.own.refill",
          access: "meter:write",
          accountOnly: true,
          changesProject: false,
          summary: "Add credits to the own balance",
          errors: ["invalid_request"],
          example: { amount: 100 },
        },
        body: AmountBody,
        response: OwnBalance,
      },
    );
}

/** The tenant meters. */
export function meterRoutes(api: Api, meters: MeterService) {
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
    )
    .post(
      "/deduct",
      ({ call, params, body }) =>
        call.perform((tx) => meters.deduct(tx, changeOf(call, params.meterId), body.amount)),
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
      ({ call, params, body }) =>
        call.perform((tx) => meters.refill(tx, changeOf(call, params.meterId), body.amount)),
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
