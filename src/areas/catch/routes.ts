import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/requests/body.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { aboutBucket, type Buckets, bucketView, termsOf } from "./buckets/buckets.ts";
import type { Removal } from "./buckets/removal.ts";
import { RESPONSE_TYPES } from "./buckets/settings-schema.ts";
import type { EventService } from "./events/events.ts";
import { SEARCH_MS_MAX, SEARCHED_EVENTS_MAX } from "./events/search.ts";
import type { Ingestion } from "./ingestion/ingestion.ts";
import {
  Bucket,
  BucketCreateBody,
  BucketList,
  BucketParams,
  BucketQuery,
  BucketUpdateBody,
  CaughtEvent,
  EventExportQuery,
  EventPage,
  EventParams,
  EventQuery,
  EventReplayed,
  EventsDeleted,
  EventsDeleteQuery,
  Ingested,
  PublicBucketParams,
} from "./schema.ts";

/** What the endpoints are made of. */
interface CatchServices {
  readonly buckets: Buckets;
  readonly removal: Removal;
  readonly events: EventService;
  readonly ingestion: Ingestion;
}

/** Declares buckets, their public path, and their events. */
export function catchRoutes(api: Api, services: CatchServices) {
  return [
    bucketRoutes(api, services.buckets),
    bucketChangeRoutes(api, services),
    ingestRoutes(api, services.ingestion),
    eventReadRoutes(api, services.events),
    exportRoutes(api, services.events),
    eventChangeRoutes(api, services.events),
  ];
}

function bucketRoutes(api: Api, buckets: Buckets) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .post(
      "/v1/catch/buckets",
      ({ call, body }) =>
        call.perform((tx) => reply(201, bucketView(buckets.create(tx, call.caller, body), call.baseUrl))),
      {
        op: {
          name: "catch.buckets.create",
          audit: "yes",
          access: "catch:write",
          summary: "Create a bucket",
          description:
            "It begins paused: it stores what it is sent, and sends nothing on until it is set live.",
          errors: ["catch.provider_unsupported", "bucket_limit_exceeded", "bucket_name_taken"],
          example: {
            target_url: "https://example.com/webhooks",
            provider: "stripe",
            signing_secret: "whsec_0123456789",
          },
          bodyLimits: largeBody(),
        },
        body: BucketCreateBody,
        response: { 201: Bucket },
      },
    )
    .get(
      "/v1/catch/buckets",
      ({ call, query }) => ({
        buckets: buckets
          .listOfProject(call.caller.project.ref, query.name)
          .map((bucket) => bucketView(bucket, call.baseUrl)),
      }),
      {
        op: { name: "catch.buckets.list", access: "catch:read", summary: "List buckets, newest first" },
        query: BucketQuery,
        response: BucketList,
      },
    )
    .get(
      "/v1/catch/buckets/:bucket_id",
      ({ call, params }) =>
        bucketView(buckets.ofProject(call.caller.project.ref, params.bucket_id), call.baseUrl),
      {
        op: {
          name: "catch.buckets.get",
          access: "catch:read",
          summary: "Read a bucket",
          errors: ["catch.bucket_not_found"],
        },
        params: BucketParams,
        response: Bucket,
      },
    );
}

function bucketChangeRoutes(api: Api, { buckets, removal }: CatchServices) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .patch(
      "/v1/catch/buckets/:bucket_id",
      ({ call, params, body }) =>
        call.perform((tx) =>
          bucketView(buckets.change(tx, call.caller.project.ref, params.bucket_id, body), call.baseUrl),
        ),
      {
        op: {
          name: "catch.buckets.update",
          audit: "yes",
          access: "catch:write",
          summary: "Change a bucket",
          description:
            "What is left out stays. Once it is `live`, pending events are sent on in the order in which they came.",
          errors: ["catch.bucket_not_found", "bucket_name_taken"],
          example: { state: "live" },
          bodyLimits: largeBody(),
        },
        params: BucketParams,
        body: BucketUpdateBody,
        response: Bucket,
      },
    )
    .delete(
      "/v1/catch/buckets/:bucket_id",
      ({ call, params }) =>
        call.perform((tx) => {
          const bucket = buckets.ofProject(call.caller.project.ref, params.bucket_id);
          tx.audit({ ...aboutBucket(bucket, "deleted"), before: termsOf(bucket), after: null });
          removal.deleteBucket(tx, bucket);
          return reply(204, {});
        }),
      {
        op: {
          name: "catch.buckets.delete",
          audit: "yes",
          access: "catch:write",
          summary: "Delete a bucket and all its events",
          errors: ["catch.bucket_not_found"],
        },
        params: BucketParams,
        response: { 204: Type.Object({}) },
      },
    );
}

const STATUSES =
  "200 with what became of the request in `status`, unless the bucket has other answers for what is accepted, for a signature " +
  "that does not hold, or for what it has no room for.";

/** What a bucket's own responses, and its replies to challenges, can be. */
const OWN_CONTENT = Object.fromEntries(RESPONSE_TYPES.map((type) => [type, Type.Unknown()]));
const REPORT = { "application/json": Ingested };
const INVALID = "What `invalid_status` chooses for a signature that is not valid.";
const OVERLOADED = "What `overload_status` chooses for a request beyond the bucket's limits.";

/** Statuses that a bucket's settings choose. */
const CHOSEN_ANSWERS = {
  200: {
    description: "Or the bucket's own `response`, or the reply to a challenge.",
    content: OWN_CONTENT,
  },
  201: { description: "The bucket's own `response`.", content: OWN_CONTENT },
  202: { description: "The bucket's own `response`.", content: OWN_CONTENT },
  204: { description: "The bucket's own `response`." },
  "2XX": {
    description: "The bucket's own `response`, with any status from 200 to 299.",
    content: OWN_CONTENT,
  },
  400: { description: INVALID, content: REPORT },
  401: { description: INVALID, content: REPORT },
  403: { description: INVALID, content: REPORT },
  429: { description: OVERLOADED, content: REPORT },
  503: { description: OVERLOADED, content: REPORT },
} as const;

function ingestRoutes(api: Api, ingestion: Ingestion) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .post("/v1/catch/:bucket_id", ({ call, params }) => ingestion.receive(params.bucket_id, call), {
      open: {
        name: "catch.ingest",
        cost: 1,
        summary: "Send a webhook to a bucket",
        description: `The path to hand to a provider. ${STATUSES} What is \`accepted\` has been stored. The bucket's account pays for it.`,
        anyBody: "Anything, up to 1 MiB. The exact bytes are kept.",
        additionalResponses: CHOSEN_ANSWERS,
        bodyLimits: largeBody(),
      },
      params: PublicBucketParams,
      response: Ingested,
    })
    .post("/v1/in/:bucket_id", ({ call, params }) => ingestion.receive(params.bucket_id, call), {
      open: {
        name: "catch.in",
        cost: 1,
        everyMethod: true,
        summary: "Send a request of any method to a bucket, or to a path below it",
        description:
          `The path for providers that ask by GET before they send anything, and for those that take a path of their own. ${STATUSES} ` +
          "Methods that the bucket does not list are `ignored`.",
        anyBody: "Anything, up to 1 MiB. The exact bytes are kept.",
        additionalResponses: CHOSEN_ANSWERS,
        bodyLimits: largeBody(),
        errors: ["forbidden"],
      },
      params: PublicBucketParams,
      response: Ingested,
    });
}

function eventReadRoutes(api: Api, events: EventService) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .get(
      "/v1/catch/:bucket_id/events",
      ({ call, params: { bucket_id }, query }) =>
        query.q === undefined && query.event_type === undefined && query.verification === undefined
          ? call.read(() => events.list(call.caller.project.ref, bucket_id, query))
          : searched(call, events, bucket_id, query),
      {
        op: {
          name: "catch.events.list",
          access: "catch:read",
          cost: 1,
          summary: "List a bucket's events, newest first",
          description: `With \`q\`, \`event_type\` or \`verification\` a page ends after ${SEARCHED_EVENTS_MAX} events or ${SEARCH_MS_MAX} ms, however few are on it, and says \`partial\`: go on with its \`cursor\`.`,
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
        call.read(() => events.get(call.caller.project.ref, params.bucket_id, params.event_id)),
      {
        op: {
          name: "catch.events.get",
          access: "catch:read",
          cost: 1,
          summary: "Read an event with its payload and headers",
          errors: ["catch.bucket_not_found", "catch.event_not_found"],
        },
        params: EventParams,
        response: CaughtEvent,
      },
    );
}

/** The search is paid before it begins, and ends when nobody waits for it. */
async function searched(
  call: Call,
  events: EventService,
  bucketId: string,
  query: EventQuery,
): Promise<EventPage> {
  const search = await call.read(() => events.search(call.caller.project.ref, bucketId, query));
  return search.run(call.request.signal);
}

/** Never as its sender called it: what looks like a page must not run as one of this server's. */
const RAW = {
  "content-type": "application/octet-stream",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
};
const NDJSON = "application/x-ndjson";

function exportRoutes(api: Api, events: EventService) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .get(
      "/v1/catch/:bucket_id/events/:event_id/raw",
      ({ call, params: { bucket_id, event_id } }) =>
        call.read(() => reply(200, events.raw(call.caller.project.ref, bucket_id, event_id), RAW)),
      {
        op: {
          name: "catch.events.raw",
          access: "catch:read",
          cost: 1,
          summary: "Read the exact bytes of an event's body",
          responseTypes: ["application/octet-stream"],
          errors: ["catch.bucket_not_found", "catch.event_not_found"],
        },
        params: EventParams,
      },
    )
    .get(
      "/v1/catch/:bucket_id/events/export",
      ({ call, params: { bucket_id }, query }) => exported(call, events, bucket_id, query),
      {
        op: {
          name: "catch.events.export",
          access: "catch:read",
          cost: 1,
          openCursor: true,
          summary: "Export a bucket's events, oldest first, one JSON object a line",
          description:
            "A page has at most 8 MiB and 10,000 events. `X-Next-Cursor` leads to the next one; without it there is none.",
          responseTypes: [NDJSON],
          errors: ["catch.bucket_not_found"],
        },
        params: BucketParams,
        query: EventExportQuery,
      },
    );
}

/** Paid before it begins, as a search is. */
async function exported(call: Call, events: EventService, bucketId: string, query: EventExportQuery) {
  const page = await call.read(() => events.export(call.caller.project.ref, bucketId, query));
  const { text, cursor } = await page.run(call.request.signal);
  const next = cursor === null ? {} : { "x-next-cursor": cursor };
  return reply(200, text, { "content-type": NDJSON, ...next });
}

function eventChangeRoutes(api: Api, events: EventService) {
  return new Elysia({ tags: ["Catch"] })
    .use(api)
    .post(
      "/v1/catch/:bucket_id/events/:event_id/replay",
      ({ call, params: { bucket_id, event_id } }) =>
        call.performAcross(events.replay(call.caller.project.ref, bucket_id, event_id)),
      {
        op: {
          name: "catch.events.replay",
          audit: "yes",
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
        response: EventReplayed,
      },
    )
    .delete(
      "/v1/catch/:bucket_id/events",
      ({ call, params, query }) =>
        call.performAcross(events.deleteBefore(call.caller.project.ref, params.bucket_id, query.before)),
      {
        op: {
          name: "catch.events.delete",
          audit: "yes",
          access: "catch:write",
          summary: "Delete the events received before a time",
          errors: ["catch.bucket_not_found"],
        },
        params: BucketParams,
        query: EventsDeleteQuery,
        response: EventsDeleted,
      },
    );
}
