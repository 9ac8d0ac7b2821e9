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

/** Declares the routes of holds. */
export function holdRoutes(api: Api, meters: MeterService, holds: HoldService) {
  return [createRoutes(api, meters, holds), changeRoutes(api, holds)];
}

function createRoutes(api: Api, meters: MeterService, holds: HoldService) {
  return new Elysia({ prefix: "/v1/meter/:meterId/holds", tags: ["Meter"] })
    .post(
      "",
      api.endpoint(
        {
          name: "meter.holds.create",
          access: "meter:write",
          cost: 1,
          summary: "Create a hold on a tenant meter",
          description:
            "A hold reduces the available credits, not the balance. Repeating the request with the same `hold_id` and terms returns 200 with the current hold.",
          errors: ["insufficient_balance", "conflict", "invalid_request"],
          example: { amount: 60, ttl_seconds: 300 },
          params: MeterParams,
          body: HoldBody,
          response: { 201: MeterHold, 200: MeterHold },
        },
        ({ call, params, body }) => {
          assertPositive(body.amount);
          assertMetadata(body);
          return call.perform((tx) => {
            const change = { ...contextOf(call), meterId: params.meterId };
            const { isNew, hold } = holds.create(tx, change, body);
            return isNew ? reply(201, hold) : reply(200, hold);
          });
        },
      ),
    )
    .get(
      "",
      api.endpoint(
        {
          name: "meter.holds.list",
          access: "meter:read",
          summary: "List a meter's holds, newest first",
          description:
            "Use it to find open holds that reduce the available credits. Closed holds (`captured`, `released`, `expired`) are stored for 7 days.",
          params: MeterParams,
          query: HoldQuery,
          response: HoldsPage,
        },
        ({ call, params: { meterId }, query }) => {
          const { ref } = call.caller.project;
          return meters.readSettled(ref, [meterId], () => holds.list(ref, meterId, query));
        },
      ),
    )
    .get(
      "/:hold_id",
      api.endpoint(
        {
          name: "meter.holds.read",
          access: "meter:read",
          summary: "Get a hold",
          description:
            "Use it to learn what became of a hold after a lost response. A hold expires exactly at `expires_at`, and is 404 from 7 days after it was closed.",
          errors: ["not_found"],
          params: HoldParams,
          response: MeterHold,
        },
        ({ call, params: { meterId, hold_id } }) => {
          const { ref } = call.caller.project;
          return meters.readSettled(ref, [meterId], () => holds.read(ref, meterId, hold_id));
        },
      ),
    );
}

function changeRoutes(api: Api, holds: HoldService) {
  return new Elysia({ prefix: "/v1/meter/:meterId/holds/:hold_id", tags: ["Meter"] })
    .post(
      "/capture",
      api.endpoint(
        {
          name: "meter.holds.capture",
          access: "meter:write",
          summary: "Capture a hold",
          description:
            "Deducts the amount as one ledger entry. The rest is released, unless `final` is false.",
          errors: ["not_found", "conflict", "invalid_request"],
          example: { amount: 45 },
          params: HoldParams,
          body: CaptureBody,
          response: MeterHold,
        },
        ({ call, params, body }) => {
          assertCapture(body);
          return call.perform((tx) => holds.capture(tx, holdOf(call, params), body));
        },
      ),
    )
    .post(
      "/release",
      api.endpoint(
        {
          name: "meter.holds.release",
          access: "meter:write",
          summary: "Release a hold",
          description:
            "Makes the held credits available again when the work was not done; what was captured before stays deducted. A hold that is released or expired already returns 200, and a captured one 409.",
          errors: ["not_found", "conflict"],
          params: HoldParams,
          response: MeterHold,
        },
        ({ call, params }) => call.perform((tx) => holds.release(tx, holdOf(call, params))),
      ),
    )
    .post(
      "/extend",
      api.endpoint(
        {
          name: "meter.holds.extend",
          access: "meter:write",
          summary: "Extend a hold",
          description:
            "For work that takes longer than expected: the hold expires `ttl_seconds` from now, which can be earlier than before. A hold that is no longer open, such as an expired one, is 409.",
          errors: ["not_found", "conflict"],
          example: { ttl_seconds: 300 },
          params: HoldParams,
          body: ExtendBody,
          response: MeterHold,
        },
        ({ call, params, body }) =>
          call.perform((tx) => holds.extend(tx, holdOf(call, params), body.ttl_seconds)),
      ),
    );
}

function contextOf({ caller, requestId }: Call) {
  return { projectRef: caller.project.ref, requestId };
}

function holdOf(call: Call, params: { readonly meterId: string; readonly hold_id: string }): HoldChange {
  return { ...contextOf(call), meterId: params.meterId, holdId: params.hold_id };
}
