import { Type } from "@sinclair/typebox";
import { parseDateTime } from "../../kernel/date-time.ts";
import { invalidField } from "../../kernel/errors.ts";
import { Reply } from "../../kernel/http/answer.ts";
import { largeBody } from "../../kernel/http/body.ts";
import type { Http } from "../../kernel/http/http.ts";
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
export function catchRoutes(http: Http, services: CatchServices): void {
  bucketRoutes(http, services.buckets);
  bucketChangeRoutes(http, services.buckets);
  ingestRoute(http, services.ingestion);
  eventReadRoutes(http, services.events);
  replayRoute(http, services);
  eventDeleteRoute(http, services);
}

function bucketRoutes(http: Http, buckets: BucketService): void {
  http.route(
    "POST",
    "/v1/catch/buckets",
    {
      operation: "catch.buckets.create",
      summary: "Create a bucket",
      description: "It begins paused: it stores what it is sent, and sends nothing on until it is set live.",
      status: 201,
      body: BucketCreateBody,
      bodyBounds: largeBody(),
      answers: { 201: BucketSchema },
      errors: ["catch.provider_unsupported", "bucket_limit_exceeded"],
      example: {
        target_url: "https://example.com/webhooks",
        provider: "stripe",
        signing_secret: "whsec_0123456789",
      },
    },
    (call) => call.perform((tx) => buckets.create(tx, call.caller, call.body)),
  );
  http.route(
    "GET",
    "/v1/catch/buckets",
    { operation: "catch.buckets.list", summary: "List buckets, newest first", answers: { 200: BucketList } },
    (call) => buckets.list(call.caller.project.ref),
  );
  http.route(
    "GET",
    "/v1/catch/buckets/:bucket_id",
    {
      operation: "catch.buckets.get",
      summary: "Read a bucket",
      params: BucketParams,
      answers: { 200: BucketSchema },
      errors: ["catch.bucket_not_found"],
    },
    (call) => buckets.get(call.caller.project.ref, call.params.bucket_id),
  );
}

function bucketChangeRoutes(http: Http, buckets: BucketService): void {
  http.route(
    "PATCH",
    "/v1/catch/buckets/:bucket_id",
    {
      operation: "catch.buckets.update",
      summary: "Change a bucket",
      description:
        "What is left out stays. Once it is `live`, pending events are sent on in the order in which they came.",
      params: BucketParams,
      body: BucketUpdateBody,
      bodyBounds: largeBody(),
      answers: { 200: BucketSchema },
      errors: ["catch.bucket_not_found"],
      example: { state: "live" },
    },
    (call) =>
      call.perform((tx) => buckets.update(tx, call.caller.project.ref, call.params.bucket_id, call.body)),
  );
  http.route(
    "DELETE",
    "/v1/catch/buckets/:bucket_id",
    {
      operation: "catch.buckets.delete",
      summary: "Delete a bucket and all its events",
      status: 204,
      params: BucketParams,
      answers: { 204: Type.Object({}) },
      errors: ["catch.bucket_not_found"],
    },
    (call) =>
      call.perform((tx) => {
        buckets.delete(tx, call.caller.project.ref, call.params.bucket_id);
        return new Reply(204, {});
      }),
  );
}

function ingestRoute(http: Http, ingestion: Ingestion): void {
  http.publicRoute(
    "POST",
    "/v1/catch/:bucket_id",
    {
      operation: "catch.ingest",
      summary: "Send a webhook to a bucket",
      description:
        "The path to hand to a provider. Always 200; `status` says what became of the request. What is `accepted` has " +
        "been stored. The bucket's account pays for it.",
      params: PublicBucketParams,
      bodyBounds: largeBody(),
      anyBody: "Anything, up to 1 MiB. The exact bytes are kept.",
      answers: { 200: IngestAnswerSchema },
    },
    (call) =>
      ingestion.receive(call.params.bucket_id, { headers: call.request.headers, readBytes: call.readBytes }),
  );
}

function eventReadRoutes(http: Http, events: EventService): void {
  http.route(
    "GET",
    "/v1/catch/:bucket_id/events",
    {
      operation: "catch.events.list",
      summary: "List a bucket's events, newest first",
      params: BucketParams,
      query: EventQuery,
      answers: { 200: EventPage },
      errors: ["catch.bucket_not_found", "catch.provider_unsupported"],
    },
    (call) =>
      call.perform(() => {
        const { limit = EVENTS_LIMIT, cursor, provider, status } = call.query;
        const query = { limit, cursor, provider, status };
        return events.list(call.caller.project.ref, call.params.bucket_id, query);
      }),
  );
  http.route(
    "GET",
    "/v1/catch/:bucket_id/events/:event_id",
    {
      operation: "catch.events.get",
      summary: "Read an event with its payload and headers",
      params: EventParams,
      answers: { 200: FullEvent },
      errors: ["catch.bucket_not_found", "catch.event_not_found"],
    },
    (call) =>
      call.perform(() => events.get(call.caller.project.ref, call.params.bucket_id, call.params.event_id)),
  );
}

function replayRoute(http: Http, { events, delivery }: CatchServices): void {
  http.route(
    "POST",
    "/v1/catch/:bucket_id/events/:event_id/replay",
    {
      operation: "catch.events.replay",
      summary: "Send an event to the target once more",
      description: "Only a replay that the target answers with 2xx costs anything.",
      params: EventParams,
      answers: { 200: Replayed },
      errors: [
        "catch.bucket_not_found",
        "catch.event_not_found",
        "bucket_paused",
        "catch.signature_invalid",
        "catch.replay_failed",
      ],
    },
    (call) =>
      call.performAcross({
        claim: () => events.claimReplay(call.caller.project.ref, call.params.bucket_id, call.params.event_id),
        outside: ({ bucket, event }) => delivery.send(bucket, event),
        settle: (tx, replay, result, refund) => events.settleReplay(tx, replay, result, refund),
      }),
  );
}

function eventDeleteRoute(http: Http, { owned, removal }: CatchServices): void {
  http.route(
    "DELETE",
    "/v1/catch/:bucket_id/events",
    {
      operation: "catch.events.delete",
      summary: "Delete the events received before a time",
      params: BucketParams,
      query: DeleteQuery,
      answers: { 200: DeletedEvents },
      errors: ["catch.bucket_not_found"],
    },
    (call) =>
      // Many events are removed in many small units of work, so that nobody else has to wait for them.
      call.performAcross({
        claim: () => {
          const before = readTime(call.query.before);
          return { bucket: owned.ofProject(call.caller.project.ref, call.params.bucket_id), before };
        },
        outside: ({ bucket, before }) => removal.removeBefore(bucket, before),
        settle: (_tx, _claim, deleted) => ({ deleted_count: deleted }),
      }),
  );
}

/** A `+` that was not encoded arrives as a space. @throws ApiError `validation_error` */
function readTime(text: string): number {
  const moment = parseDateTime(text.replace(/ (\d\d:\d\d)$/, "+$1"));
  if (moment !== null) return moment;
  throw invalidField("before", "must be an ISO 8601 time such as 2026-03-10T12:00:00Z");
}
