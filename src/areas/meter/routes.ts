import type { Http } from "../../kernel/http/http.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { LedgerPage } from "../../kernel/ledger-entry.ts";
import { assertPositive } from "./domain.ts";
import type { OwnBalances } from "./ports.ts";
import { AmountBody, MeterBalance, MeterParams, OwnBalance, ResetBody } from "./schema.ts";
import type { MeterService } from "./service.ts";

/** Entries on a page of history unless asked otherwise. */
const HISTORY_LIMIT = 50;

/** Declares the own balance and the tenant meters. */
export function meterRoutes(http: Http, meters: MeterService, own: OwnBalances): void {
  ownBalanceRoutes(http, own);
  tenantReadRoutes(http, meters);
  tenantChangeRoutes(http, meters);
}

function ownBalanceRoutes(http: Http, own: OwnBalances): void {
  http.route(
    "GET",
    "/v1/meter/balance",
    { operation: "meter.own.balance", summary: "Read the own credit balance", answers: { 200: OwnBalance } },
    (call) => own.read(call.caller.account.ref),
  );
  http.route(
    "GET",
    "/v1/meter/history",
    {
      operation: "meter.own.history",
      summary: "Read the own balance's ledger, newest first",
      description: "Request costs are one entry per operation and hour, amounts summed.",
      query: pageQuery(HISTORY_LIMIT),
      answers: { 200: LedgerPage },
    },
    (call) => own.history(call.caller.account.ref, call.query.limit ?? HISTORY_LIMIT, call.query.cursor),
  );
  http.route(
    "POST",
    "/v1/meter/deduct",
    {
      operation: "meter.own.deduct",
      summary: "Deduct credits from the own balance",
      body: AmountBody,
      answers: { 200: OwnBalance },
      errors: ["insufficient_balance", "invalid_request"],
      example: { amount: 5 },
    },
    (call) =>
      call.perform((tx) => {
        assertPositive(call.body.amount);
        return own.deduct(tx, call.caller.account.ref, call.body.amount, call.requestId);
      }),
  );
  http.route(
    "POST",
    "/v1/meter/refill",
    {
      operation: "meter.own.refill",
      summary: "Add credits to the own balance",
      body: AmountBody,
      answers: { 200: OwnBalance },
      errors: ["invalid_request"],
      example: { amount: 100 },
    },
    (call) =>
      call.perform((tx) => {
        assertPositive(call.body.amount);
        return own.refill(tx, call.caller.account.ref, call.body.amount, call.requestId);
      }),
  );
}

function tenantReadRoutes(http: Http, meters: MeterService): void {
  http.route(
    "GET",
    "/v1/meter/:meterId/balance",
    {
      operation: "meter.balance",
      summary: "Read a tenant meter",
      description: "A meter that does not exist has the balance 0; reading creates nothing.",
      params: MeterParams,
      answers: { 200: MeterBalance },
    },
    (call) => meters.balance(call.caller.project.ref, call.params.meterId),
  );
  http.route(
    "GET",
    "/v1/meter/:meterId/history",
    {
      operation: "meter.history",
      summary: "Read a tenant meter's ledger, newest first",
      params: MeterParams,
      query: pageQuery(HISTORY_LIMIT),
      answers: { 200: LedgerPage },
    },
    (call) => {
      const { limit = HISTORY_LIMIT, cursor } = call.query;
      return meters.history(call.caller.project.ref, call.params.meterId, limit, cursor);
    },
  );
}

function tenantChangeRoutes(http: Http, meters: MeterService): void {
  http.route(
    "POST",
    "/v1/meter/:meterId/deduct",
    {
      operation: "meter.deduct",
      summary: "Deduct from a tenant meter",
      description:
        "Atomic. A deduction that would overdraw changes nothing and answers 402 with the balance.",
      params: MeterParams,
      body: AmountBody,
      answers: { 200: MeterBalance },
      errors: ["insufficient_balance", "invalid_request"],
      example: { amount: 1 },
    },
    (call) => call.perform((tx) => meters.deduct(tx, changeOf(call), call.body.amount)),
  );
  http.route(
    "POST",
    "/v1/meter/:meterId/refill",
    {
      operation: "meter.refill",
      summary: "Add to a tenant meter",
      description: "The first refill or reset creates the meter.",
      params: MeterParams,
      body: AmountBody,
      answers: { 200: MeterBalance },
      errors: ["invalid_request"],
      example: { amount: 1000 },
    },
    (call) => call.perform((tx) => meters.refill(tx, changeOf(call), call.body.amount)),
  );
  http.route(
    "POST",
    "/v1/meter/:meterId/reset",
    {
      operation: "meter.reset",
      summary: "Set a tenant meter's balance",
      params: MeterParams,
      body: ResetBody,
      answers: { 200: MeterBalance },
      example: { balance: 500 },
    },
    (call) => call.perform((tx) => meters.reset(tx, changeOf(call), call.body.balance)),
  );
}

function changeOf(call: {
  caller: { project: { ref: number } };
  params: { meterId: string };
  requestId: string;
}): { projectRef: number; meterId: string; requestId: string } {
  return { projectRef: call.caller.project.ref, meterId: call.params.meterId, requestId: call.requestId };
}
