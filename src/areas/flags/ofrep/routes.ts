import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { exactMember } from "../../../kernel/http/requests/body.ts";
import { EVENT_STREAM_HEADERS } from "../../../kernel/http/responses/event-stream.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { BULK, type Ofrep } from "./ofrep.ts";
import { CONTEXT_BODY, ofrepExtras } from "./rejections.ts";
import { Evaluation, Evaluations, OfrepBody, OfrepEventsQuery, OfrepParams } from "./schema.ts";
import type { OfrepStreams } from "./streams.ts";

const TAGS = { tags: ["OpenFeature"] };
const PAID = {};
const EXAMPLE = { context: { targetingKey: "user-1", plan: "pro" } };

/** Properties of both evaluations. */
const TERMS = {
  access: "ofrep:read",
  cost: 1,
  idempotent: false,
  takesApiKeyHeader: true,
  bodyLimits: CONTEXT_BODY,
  rejectionFields: ofrepExtras,
  example: EXAMPLE,
} as const;

/** Declares the OpenFeature Remote Evaluation Protocol. */
export function ofrepRoutes(api: Api, ofrep: Ofrep, streams: OfrepStreams) {
  return [evaluationRoutes(api, ofrep), eventsRoute(api, streams)];
}

function evaluationRoutes(api: Api, ofrep: Ofrep) {
  return new Elysia(TAGS)
    .post(
      "/ofrep/v1/evaluate/flags/:key",
      api.endpoint(
        {
          ...TERMS,
          name: "ofrep.evaluate",
          summary: "Evaluate a flag for a context",
          description:
            "For OpenFeature's providers. The key can also be sent as `X-API-Key`. If the response has no `value`, the caller uses its own default. Errors also have `key`, `errorCode` and `errorDetails`.",
          errors: ["gate.feature_not_found", "gate.evaluation_failed"],
          params: OfrepParams,
          body: OfrepBody,
          response: Evaluation,
        },
        ({ call, params, body }) => {
          const context = exactMember("context", body, call.bodyText);
          return call.read(() => ofrep.evaluate(call.caller, params.key, context));
        },
      ),
    )
    .post(
      "/ofrep/v1/evaluate/flags",
      api.endpoint(
        {
          ...TERMS,
          ...BULK,
          tagged: true,
          summary: "Evaluate all flags for a context",
          description:
            "For OpenFeature's providers in browsers. With the `ETag` of an earlier response in `If-None-Match`, the response is 304 while nothing has changed, at the same cost. Errors also have `errorCode` and `errorDetails`.",
          errors: ["gate.evaluation_failed"],
          body: OfrepBody,
          response: { 200: Evaluations },
        },
        async ({ call, body }) => {
          // Charged before it starts, because it runs in many slices of the event loop.
          await call.read(() => PAID);
          return ofrep.evaluateAll(call, exactMember("context", body, call.bodyText));
        },
      ),
    );
}

function eventsRoute(api: Api, streams: OfrepStreams) {
  return new Elysia(TAGS).get(
    "/ofrep/v1/events",
    api.open(
      {
        name: "ofrep.events",
        summary: "Stream notifications of flag changes",
        description:
          "Server-Sent Events: `refetchEvaluation` after changes of flags, without values. The token is part of `eventStreams` in a bulk evaluation and is valid as long as its key. Each key can have 1,000 streams.",
        responseTypes: ["text/event-stream"],
        errors: ["unauthorized", "forbidden", "rate_limit_exceeded", "service_unavailable"],
        query: OfrepEventsQuery,
      },
      ({ call, query }) => reply(200, streams.begin(call, query), EVENT_STREAM_HEADERS),
    ),
  );
}
