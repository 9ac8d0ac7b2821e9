import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { parseDateTime } from "../../kernel/date-time.ts";
import { invalidField } from "../../kernel/errors.ts";
import { reply } from "../../kernel/http/answer.ts";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/body.ts";
import type { BucketService } from "./bucket-service.ts";
import type { Buckets } from "./buckets.ts";
import type { Delivery } from "./delivery.ts";
import type { EventService } from "./event-service.ts";
import type { Ingestion } from "./ingestion.ts";
import type { Removal } from "./removal.ts";
import {
  BucketCreateBody,
  BucketList,
  BucketParams,
  BucketSchema,
  BucketUpdateBody,
  DeletedEvents,
  DeleteQuery,
  EVENTS_LIMIT,
  EventPage,
  EventParams,
  EventQuery,
  FullEvent,
  IngestAnswerSchema,
  PublicBucketParams,
  Replayed,
} from "./schema.ts";

/** What the endpoints are made of. */
export interface CatchServices {
  readonly buckets: BucketService;
  readonly events: EventService;
  readonly ingestion: Ingestion;
  readonly removal: Removal;
  readonly delivery: Delivery;
  readonly owned: Buckets;
}

/** Declares buckets, their public path, and their events. */
export function catchRoutes(api: Api, services: CatchServices) {
  return [
    bucketRoutes(api, services.buckets),
    bucketChangeRoutes(api, services.buckets),
    ingestRoute(api, services.ingestion),
    eventReadRoutes(api, services.events),
    replayRoute(api, services),
    eventDeleteRoute(api, services),
  ];
}

function bucketRoutes(api: Api, buckets: BucketService) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .post(
      "/v1/catch/buckets",
      ({ call, body }) => call.perform((tx) => reply(201, buckets.create(tx, call.caller, body))),
      {
        op: {
          name: "catch.buckets.create",
          access: "catch:write",
          summary: "Create a bucket",
          description:
            "It begins paused: it stores what it is sent, and sends nothing on until it is set live.",
          errors: ["catch.provider_unsupported", "bucket_limit_exceeded"],
          example: {
            target_url: "https://example.com/webhooks",
            provider: "stripe",
            signing_secret: "whsec_0123456789",
          },
          bodyBounds: largeBody(),
        },
        body: BucketCreateBody,
        response: { 201: BucketSchema },
      },
    )
    .get("/v1/catch/buckets", ({ call }) => buckets.list(call.caller.project.ref), {
      op: { name: "catch.buckets.list", access: "catch:read", summary: "List buckets, newest first" },
      response: BucketList,
    })
    .get(
      "/v1/catch/buckets/:bucket_id",
      ({ call, params }) => buckets.get(call.caller.project.ref, params.bucket_id),
      {
        op: {
          name: "catch.buckets.get",
          access: "catch:read",
          summary: "Read a bucket",
          errors: ["catch.bucket_not_found"],
        },
        params: BucketParams,
        response: BucketSchema,
      },
    );
}

function bucketChangeRoutes(api: Api, buckets: BucketService) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .patch(
      "/v1/catch/buckets/:bucket_id",
      ({ call, params, body }) =>
        call.perform((tx) => buckets.update(tx, call.caller.project.ref, params.bucket_id, body)),
      {
        op: {
          name: "catch.buckets.update",
          access: "catch:write",
          summary: "Change a bucket",
          description:
            "What is left out stays. Once it is `live`, pending events are sent on in the order in which they came.",
          errors: ["catch.bucket_not_found"],
          example: { state: "live" },
          bodyBounds: largeBody(),
        },
        params: BucketParams,
        body: BucketUpdateBody,
        response: BucketSchema,
      },
    )
    .delete(
      "/v1/catch/buckets/:bucket_id",
      ({ call, params }) =>
        call.perform((tx) => {
          buckets.delete(tx, call.caller.project.ref, params.bucket_id);
          return reply(204, {});
        }),
      {
        op: {
          name: "catch.buckets.delete",
          access: "catch:write",
          summary: "Delete a bucket and all its events",
          errors: ["catch.bucket_not_found"],
        },
        params: BucketParams,
        response: { 204: Type.Object({}) },
      },
    );
}

function ingestRoute(api: Api, ingestion: Ingestion) {
  return new Elysia({ tags: ["Catch"] }).use(api).post(
    "/v1/catch/:bucket_id",
    async ({ call, params }) => {
      const { headers } = call.request;
      const answer = await ingestion.receive(params.bucket_id, {
        headers,
        readBytes: () => call.readBytes(),
      });
      // As with a 413, the rest of the body is not waited for.
      if (answer.status === "too_large") call.headers = { connection: "close" };
      return answer;
    },
    {
      open: {
        name: "catch.ingest",
        cost: 1,
        summary: "Send a webhook to a bucket",
        description:
          "The path to hand to a provider. Always 200; `status` says what became of the request. What is `accepted` has " +
          "been stored. The bucket's account pays for it.",
        anyBody: "Anything, up to 1 MiB. The exact bytes are kept.",
        bodyBounds: largeBody(),
      },
      params: PublicBucketParams,
      response: IngestAnswerSchema,
    },
  );
}

function eventReadRoutes(api: Api, events: EventService) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .get(
      "/v1/catch/:bucket_id/events",
      ({ call, params, query }) =>
        call.perform(() => {
          const { limit = EVENTS_LIMIT, cursor, provider, status } = query;
          const wanted = { limit, cursor, provider, status };
          return events.list(call.caller.project.ref, params.bucket_id, wanted);
        }),
      {
        op: {
          name: "catch.events.list",
          access: "catch:read",
          cost: 1,
          summary: "List a bucket's events, newest first",
          errors: ["catch.bucket_not_found", "catch.provider_unsupported"],
        },
        params: BucketParams,
        query: EventQuery,
        response: EventPage,
      },
    )
    .get(
      "/v1/catch/:bucket_id/events/:event_id",
      ({ call, params }) =>
        call.perform(() => events.get(call.caller.project.ref, params.bucket_id, params.event_id)),
      {
        op: {
          name: "catch.events.get",
          access: "catch:read",
          cost: 1,
          summary: "Read an event with its payload and headers",
          errors: ["catch.bucket_not_found", "catch.event_not_found"],
        },
        params: EventParams,
        response: FullEvent,
      },
    );
}

function replayRoute(api: Api, { events, delivery }: CatchServices) {
  return new Elysia({ tags: ["Catch"] }).use(api).post(
    "/v1/catch/:bucket_id/events/:event_id/replay",
    ({ call, params }) =>
      call.performAcross({
        claim: () => events.claimReplay(call.caller.project.ref, params.bucket_id, params.event_id),
        outside: ({ bucket, event }) => delivery.send(bucket, event),
        settle: (tx, replay, result, refund) => events.settleReplay(tx, replay, result, refund),
      }),
    {
      op: {
        name: "catch.events.replay",
        access: "catch:write",
        cost: 1,
        summary: "Send an event to the target once more",
        description: "Only a replay that the target answers with 2xx costs anything.",
        errors: [
          "catch.bucket_not_found",
          "catch.event_not_found",
          "bucket_paused",
          "catch.signature_invalid",
          "catch.replay_failed",
        ],
      },
      params: EventParams,
      response: Replayed,
    },
  );
}

function eventDeleteRoute(api: Api, { owned, removal }: CatchServices) {
  return new Elysia({ tags: ["Catch"] }).use(api).delete(
    "/v1/catch/:bucket_id/events",
    ({ call, params, query }) =>
      // Many events are removed in many small units of work, so that nobody else has to wait for them.
      call.performAcross({
        claim: () => {
          const before = readTime(query.before);
          return { bucket: owned.ofProject(call.caller.project.ref, params.bucket_id), before };
        },
        outside: ({ bucket, before }) => removal.removeBefore(bucket, before),
        settle: (_tx, _claim, deleted) => ({ deleted_count: deleted }),
      }),
    {
      op: {
        name: "catch.events.delete",
        access: "catch:write",
        summary: "Delete the events received before a time",
        errors: ["catch.bucket_not_found"],
      },
      params: BucketParams,
      query: DeleteQuery,
      response: DeletedEvents,
    },
  );
}

/** A `+` that was not encoded arrives as a space. @throws ApiError `validation_error` */
function readTime(text: string): number {
  const moment = parseDateTime(text.replace(/ (\d\d:\d\d)$/, "+$1"));
  if (moment !== null) return moment;
  throw invalidField("before", "must be an ISO 8601 time such as 2026-03-10T12:00:00Z");
}
