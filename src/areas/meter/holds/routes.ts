import { Elysia } from "elysia";
import { assertPositive } from "../../../kernel/data/ledger.ts";
import type { Api } from "../../../kernel/http/api.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { assertCapture } from "../domain.ts";
import { MeterParams } from "../schema.ts";
import type { MeterService } from "../service.ts";
import { assertMetadata, type HoldChange, type HoldService } from "./holds.ts";
import { CaptureBody, ExtendBody, HoldBody, HoldParams, HoldQuery, HoldsPage, MeterHold } from "./schema.ts";

/** Holds of tenant meters. */
export function holdRoutes(api: Api, meters: MeterService, holds: HoldService) {
  return [makingRoutes(api, meters, holds), endingRoutes(api, holds)];
}

function makingRoutes(api: Api, meters: MeterService, holds: HoldService) {
  return new Elysia({ prefix: "/v1/meter/:meterId/holds", tags: ["Meter"] })
    .use(api)
    .post(
      "",
      ({ call, params, body }) => {
        assertPositive(body.amount);
        assertMetadata(body);
        return call.perform((tx) => {
          const change = { ...placeOf(call), meterId: params.meterId };
          const { isNew, hold } = holds.create(tx, change, body);
          return isNew ? reply(201, hold) : reply(200, hold);
        });
      },
      {
        op: {
          name: "meter.holds.create",
          access: "meter:write",
          cost: 1,
          summary: "Hold an amount of a tenant meter",
          description:
            "Takes it from what is available, not from the balance. The same `hold_id` again, with the same terms, answers 200 with the hold as it is now.",
          errors: ["insufficient_balance", "conflict", "invalid_request"],
          example: { amount: 60, ttl_seconds: 300 },
        },
        params: MeterParams,
        body: HoldBody,
        response: { 201: MeterHold, 200: MeterHold },
      },
    )
    .get(
      "",
      ({ call, params: { meterId }, query }) => {
        const { ref } = call.caller.project;
        return meters.reading(ref, [meterId], () => holds.list(ref, meterId, query));
      },
      {
        op: { name: "meter.holds.list", access: "meter:read", summary: "List a meter's holds, newest first" },
        params: MeterParams,
        query: HoldQuery,
        response: HoldsPage,
      },
    )
    .get(
      "/:hold_id",
      ({ call, params: { meterId, hold_id } }) => {
        const { ref } = call.caller.project;
        return meters.reading(ref, [meterId], () => holds.read(ref, meterId, hold_id));
      },
      {
        op: { name: "meter.holds.read", access: "meter:read", summary: "Read a hold", errors: ["not_found"] },
        params: HoldParams,
        response: MeterHold,
      },
    );
}

function endingRoutes(api: Api, holds: HoldService) {
  return new Elysia({ prefix: "/v1/meter/:meterId/holds/:hold_id", tags: ["Meter"] })
    .use(api)
    .post(
      "/capture",
      ({ call, params, body }) => {
        assertCapture(body);
        return call.perform((tx) => holds.capture(tx, holdOf(call, params), body));
      },
      {
        op: {
          name: "meter.holds.capture",
          access: "meter:write",
          summary: "Deduct what was used of a hold",
          description: "One ledger entry. What is left is free, unless `final` is false.",
          errors: ["not_found", "conflict", "invalid_request"],
          example: { amount: 45 },
        },
        params: HoldParams,
        body: CaptureBody,
        response: MeterHold,
      },
    )
    .post("/release", ({ call, params }) => call.perform((tx) => holds.release(tx, holdOf(call, params))), {
      op: {
        name: "meter.holds.release",
        access: "meter:write",
        summary: "Free a hold",
        errors: ["not_found", "conflict"],
      },
      params: HoldParams,
      response: MeterHold,
    })
    .post(
      "/extend",
      ({ call, params, body }) =>
        call.perform((tx) => holds.extend(tx, holdOf(call, params), body.ttl_seconds)),
      {
        op: {
          name: "meter.holds.extend",
          access: "meter:write",
          summary: "Let a hold last from now on",
          errors: ["not_found", "conflict"],
          example: { ttl_seconds: 300 },
        },
        params: HoldParams,
        body: ExtendBody,
        response: MeterHold,
      },
    );
}

function placeOf({ caller, requestId }: Call) {
  return { projectRef: caller.project.ref, requestId };
}

function holdOf(call: Call, params: { readonly meterId: string; readonly hold_id: string }): HoldChange {
  return { ...placeOf(call), meterId: params.meterId, holdId: params.hold_id };
}
