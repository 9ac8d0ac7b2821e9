import { Elysia } from "elysia";
import type { Charger } from "../../kernel/callers/caller.ts";
import { AmountBody, assertPositive, HISTORY_LIMIT, LedgerPage } from "../../kernel/data/ledger.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import type { MeterChange } from "./book.ts";
import type { HoldService } from "./holds/holds.ts";
import { holdRoutes } from "./holds/routes.ts";
import type { PlanService } from "./plans/plans.ts";
import { planAndAlertRoutes } from "./plans/routes.ts";
import {
  METERS_LIMIT,
  MeterBalance,
  MeterPage,
  MeterParams,
  MeterQuery,
  MeterState,
  ResetBody,
} from "./schema.ts";
import type { MeterService } from "./service.ts";
import { MeterUsage, ProjectUsage, UsageQuery } from "./usage/schema.ts";
import type { UsageService } from "./usage/usage.ts";

export interface MeterServices {
  readonly meters: MeterService;
  readonly holds: HoldService;
  readonly plans: PlanService;
  readonly usage: UsageService;
  readonly charger: Charger;
}

/** Declares the routes of tenant meters. */
export function meterRoutes(api: Api, { meters, holds, plans, usage, charger }: MeterServices) {
  return [
    projectRoutes(api, meters, usage),
    readRoutes(api, meters, usage),
    balanceRoutes(api, meters),
    ...holdRoutes(api, meters, holds),
    ...planAndAlertRoutes(api, meters, plans, charger),
  ];
}

function projectRoutes(api: Api, meters: MeterService, usage: UsageService) {
  return new Elysia({ tags: ["Meter"] })
    .get(
      "/v1/meter",
      api.endpoint(
        {
          name: "meter.list",
          access: "meter:read",
          summary: "List tenant meters by id",
          description:
            "Use it to find meters or to page through all of them. `available` excludes the credits that open holds reserve. Meters that were never refilled or reset do not exist and are not listed.",
          query: MeterQuery,
          response: MeterPage,
        },
        ({ call, query: { prefix = "", limit = METERS_LIMIT, cursor } }) =>
          meters.list(call.caller.project.ref, prefix, limit, cursor),
      ),
    )
    .get(
      "/v1/meter/usage",
      api.endpoint(
        {
          name: "meter.usage.project",
          access: "meter:read",
          summary: "Get the usage of all tenant meters by hour, day or month",
          description:
            "Use it for reports and charts: the sum over all meters of the project, in UTC buckets. Buckets without entries are omitted, and a series has at most 1,000 buckets. Captures count as deducted, and refills of plans as refilled.",
          query: UsageQuery,
          response: ProjectUsage,
        },
        ({ call, query }) => usage.ofProject(call.caller.project.ref, query),
      ),
    );
}

function readRoutes(api: Api, meters: MeterService, usage: UsageService) {
  return new Elysia({ prefix: "/v1/meter/:meterId", tags: ["Meter"] })
    .get(
      "/balance",
      api.endpoint(
        {
          name: "meter.balance",
          access: "meter:read",
          summary: "Get a tenant meter's balance",
          description: "A meter that does not exist has the balance 0; reading creates nothing.",
          params: MeterParams,
          response: MeterState,
        },
        ({ call, params: { meterId } }) => meters.readBalance(call.caller.project.ref, meterId),
      ),
    )
    .get(
      "/history",
      api.endpoint(
        {
          name: "meter.history",
          access: "meter:read",
          summary: "List a tenant meter's ledger entries, newest first",
          description:
            "Every change of the balance is an entry, which never changes, and the amounts add up to the balance. A hold and its release are not entries; a capture is one, with its `hold_id`. A meter that does not exist has an empty history.",
          params: MeterParams,
          query: pageQuery(HISTORY_LIMIT),
          response: LedgerPage,
        },
        ({ call, params: { meterId }, query: { limit = HISTORY_LIMIT, cursor } }) => {
          const { ref } = call.caller.project;
          return meters.readSettled(ref, [meterId], () => meters.history(ref, meterId, limit, cursor));
        },
      ),
    )
    .get(
      "/usage",
      api.endpoint(
        {
          name: "meter.usage",
          access: "meter:read",
          summary: "Get a tenant meter's usage by hour, day or month",
          description:
            "Buckets are in UTC. Empty buckets are omitted. Default: the last 30 days, by day; maximum: 1,000 buckets.",
          params: MeterParams,
          query: UsageQuery,
          response: MeterUsage,
        },
        ({ call, params: { meterId }, query }) => {
          const { ref } = call.caller.project;
          return meters.readSettled(ref, [meterId], () => usage.ofMeter(ref, meterId, query));
        },
      ),
    );
}

function balanceRoutes(api: Api, meters: MeterService) {
  return new Elysia({ prefix: "/v1/meter/:meterId", tags: ["Meter"] })
    .post(
      "/deduct",
      api.endpoint(
        {
          name: "meter.deduct",
          access: "meter:write",
          cost: 1,
          summary: "Deduct from a tenant meter",
          description:
            "Atomic. A deduction above the available credits changes nothing and returns 402 with the balance.",
          errors: ["insufficient_balance", "invalid_request"],
          example: { amount: 1 },
          params: MeterParams,
          body: AmountBody,
          response: MeterBalance,
        },
        ({ call, params, body: { amount } }) => {
          assertPositive(amount);
          return call.perform((tx) => meters.deduct(tx, changeOf(call, params.meterId), amount));
        },
      ),
    )
    .post(
      "/refill",
      api.endpoint(
        {
          name: "meter.refill",
          access: "meter:write",
          cost: 1,
          summary: "Refill a tenant meter",
          description: "The first refill or reset creates the meter.",
          errors: ["invalid_request"],
          example: { amount: 1000 },
          params: MeterParams,
          body: AmountBody,
          response: MeterBalance,
        },
        ({ call, params, body: { amount } }) => {
          assertPositive(amount);
          return call.perform((tx) => meters.refill(tx, changeOf(call, params.meterId), amount));
        },
      ),
    )
    .post(
      "/reset",
      api.endpoint(
        {
          name: "meter.reset",
          audit: "yes",
          access: "meter:write",
          cost: 1,
          summary: "Set a tenant meter's balance",
          description: "The balance cannot be less than the held credits.",
          errors: ["conflict"],
          example: { balance: 500 },
          params: MeterParams,
          body: ResetBody,
          response: MeterBalance,
        },
        ({ call, params, body }) =>
          call.perform((tx) => meters.reset(tx, changeOf(call, params.meterId), body.balance)),
      ),
    );
}

function changeOf({ caller, requestId }: Call, meterId: string): MeterChange {
  return { projectRef: caller.project.ref, meterId, requestId };
}
