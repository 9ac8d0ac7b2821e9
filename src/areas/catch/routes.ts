import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/operation.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import type { FileFacts } from "../../kernel/http/resource-facts.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { bodyStream } from "../../kernel/http/responses/text-stream.ts";
import { isPieces, type PieceBody } from "../../kernel/outbound/piece-body.ts";
import { aboutBucket, type Buckets, termsOf } from "./buckets/buckets.ts";
import type { Removal } from "./buckets/removal.ts";
import { checkNew } from "./buckets/settings.ts";
import type { EventService } from "./events/events.ts";
import { SEARCH_MS_MAX, SEARCHED_EVENTS_MAX } from "./events/search.ts";
import { assertNoLoop } from "./forwarding/exchange.ts";
import type { Confirmations } from "./ingestion/confirmations.ts";
import type { Ingestion } from "./ingestion/ingestion.ts";
import {
  Bucket,
  BucketCreateBody,
  BucketList,
  BucketParams,
  BucketQuery,
  BucketUpdateBody,
  CaughtEvent,
  EventConfirmed,
  EventExportQuery,
  EventPage,
  EventParams,
  EventQuery,
  EventReplayed,
  EventReplayQueued,
  EventsDeleted,
  EventsDeleteQuery,
  Ingested,
  PublicBucketParams,
} from "./schema.ts";
import { DEFAULT_METHODS, RESPONSE_TYPES } from "./settings-schema.ts";

interface CatchServices {
  readonly buckets: Buckets;
  readonly removal: Removal;
  readonly events: EventService;
  readonly ingestion: Ingestion;
  readonly confirmations: Confirmations;
}

/** Routes of buckets, their public path, and their events. */
export function catchRoutes(api: Api, services: CatchServices) {
  return [
    bucketRoutes(api, services.buckets),
    bucketChangeRoutes(api, services),
    ingestRoutes(api, services.ingestion),
    eventReadRoutes(api, services.events),
    exportRoutes(api, services.events),
    eventChangeRoutes(api, services.events),
    confirmRoutes(api, services.confirmations),
  ];
}

/** How buckets stand in a configuration file. */
const BUCKET_FILE: FileFacts = {
  section: "buckets",
  name: "name",
  check: checkNew,
  alternatives: ["target_url", "targets"],
  urls: [{ field: "ingest_url", isSecret: false }],
  defaults: {
    delivery: "push",
    state: "paused",
    verification_mode: "mark",
    invalid_status: 200,
    overload_status: 200,
    deduplicate_hours: 0,
    methods: DEFAULT_METHODS,
    auto_confirm: false,
    targets: [],
  },
};

function bucketRoutes(api: Api, buckets: Buckets) {
  return new Elysia({ tags: ["Catch"] })
    .post(
      "/v1/catch/buckets",
      api.endpoint(
        {
          name: "catch.buckets.create",
          file: BUCKET_FILE,
          audit: "yes",
          access: "catch:write",
          summary: "Create a bucket",
          description:
            "A new bucket is paused unless `state` is `live`: it stores events and forwards none until its state is `live`.",
          errors: ["catch.provider_unsupported", "bucket_limit_exceeded", "bucket_name_taken"],
          example: {
            target_url: "https://example.com/webhooks",
            provider: "stripe",
            signing_secret: "whsec_0123456789",
          },
          bodyLimits: largeBody(),
          body: BucketCreateBody,
          response: { 201: Bucket },
        },
        ({ call, body }) =>
          call.perform((tx) => reply(201, buckets.view(buckets.create(tx, call.caller, body), call))),
      ),
    )
    .get(
      "/v1/catch/buckets",
      api.endpoint(
        {
          name: "catch.buckets.list",
          access: "catch:read",
          summary: "List buckets, newest first",
          description:
            "All buckets of the project in one response, without pages, with the numbers of their events by status. Secrets are not returned.",
          query: BucketQuery,
          response: BucketList,
        },
        ({ call, query }) => ({
          buckets: buckets
            .listOfProject(call.caller.project.ref, query.name)
            .map((bucket) => buckets.view(bucket, call)),
        }),
      ),
    )
    .get(
      "/v1/catch/buckets/:bucket_id",
      api.endpoint(
        {
          name: "catch.buckets.get",
          access: "catch:read",
          summary: "Get a bucket",
          description:
            "Use it to see whether events wait (`events`), and to copy the `ingest_url` for the provider. Its host is the host of your request, unless the server has a public URL. Secrets are not returned.",
          errors: ["catch.bucket_not_found"],
          params: BucketParams,
          response: Bucket,
        },
        ({ call, params }) =>
          buckets.view(buckets.ofProject(call.caller.project.ref, params.bucket_id), call),
      ),
    );
}

function bucketChangeRoutes(api: Api, { buckets, removal }: CatchServices) {
  return new Elysia({ tags: ["Catch"] })
    .patch(
      "/v1/catch/buckets/:bucket_id",
      api.endpoint(
        {
          name: "catch.buckets.update",
          audit: "yes",
          access: "catch:write",
          summary: "Update a bucket",
          description:
            "Omitted fields keep their values. `state: live` forwards pending events in the order of receipt. If events contain the `signing_secret` itself (as from GitLab), a key without `catch:read` must send it with a `target_url` of another origin or a new target (else 409).",
          errors: ["catch.bucket_not_found", "bucket_name_taken", "conflict"],
          example: { state: "live" },
          bodyLimits: largeBody(),
          params: BucketParams,
          body: BucketUpdateBody,
          response: Bucket,
        },
        ({ call, params, body }) =>
          call.perform((tx) => buckets.view(buckets.change(tx, call, params.bucket_id, body), call)),
      ),
    )
    .delete(
      "/v1/catch/buckets/:bucket_id",
      api.endpoint(
        {
          name: "catch.buckets.delete",
          audit: "yes",
          access: "catch:write",
          summary: "Delete a bucket and all its events",
          description:
            "Requests of the provider are `ignored` from then on, with 200, so that it does not report errors. Pending events are not forwarded. The events are removed in the background and cannot be restored.",
          errors: ["catch.bucket_not_found"],
          params: BucketParams,
          response: { 204: Type.Object({}) },
        },
        ({ call, params }) =>
          call.perform((tx) => {
            const bucket = buckets.ofProject(call.caller.project.ref, params.bucket_id);
            tx.audit({ ...aboutBucket(bucket, "deleted"), before: termsOf(bucket), after: null });
            removal.deleteBucket(tx, bucket);
            return reply(204, {});
          }),
      ),
    );
}

const STATUSES =
  "Returns 200 with the result in `status`, unless the bucket defines other responses for accepted requests, invalid signatures " +
  "or exceeded limits.";

/** Content types of a bucket's `response`, and of responses to challenges. */
const RESPONSE_CONTENT = Object.fromEntries(RESPONSE_TYPES.map((type) => [type, Type.Unknown()]));
const REPORT = { "application/json": Ingested };
const INVALID = "Response to an invalid signature, if `invalid_status` selects this status.";
const OVERLOADED = "Response beyond the bucket's limits, if `overload_status` selects this status.";

/** Statuses that a bucket's settings select. */
const SETTINGS_RESPONSES = {
  200: {
    // Not as a range (`2XX`), from which several generators of clients make code that does not compile.
    description:
      "Or the bucket's `response`, which can have any status from 200 to 299, or the response to a challenge.",
    content: RESPONSE_CONTENT,
  },
  201: { description: "The bucket's `response`.", content: RESPONSE_CONTENT },
  202: { description: "The bucket's `response`.", content: RESPONSE_CONTENT },
  204: { description: "The bucket's `response`." },
  400: { description: INVALID, content: REPORT },
  401: { description: INVALID, content: REPORT },
  403: { description: INVALID, content: REPORT },
  413: {
    description: "The body is too large. Nothing is stored; the bucket counts it in `too_large`.",
    content: REPORT,
  },
  429: { description: OVERLOADED, content: REPORT },
  503: { description: OVERLOADED, content: REPORT },
  508: {
    description: "The webhook is in a loop: it was forwarded too often (`X-Ninefold-Hops` is 8 or more).",
    content: REPORT,
  },
} as const;

function ingestRoutes(api: Api, ingestion: Ingestion) {
  return new Elysia({ tags: ["Catch"] })
    .post(
      "/v1/catch/:bucket_id",
      api.open(
        {
          name: "catch.ingest",
          cost: 1,
          otherMethodsAt: "/v1/in/{bucket_id}",
          summary: "Send a webhook to a bucket",
          description: `Public path for a provider. ${STATUSES} An \`accepted\` event is stored. The bucket's account is charged.`,
          anyBody: "Any content, up to 1, 5 or 25 MiB by tier. The exact bytes are stored.",
          additionalResponses: SETTINGS_RESPONSES,
          bodyLimits: largeBody(),
          params: PublicBucketParams,
          response: Ingested,
        },
        ({ call, params }) => ingestion.receive(params.bucket_id, call),
      ),
    )
    .post(
      "/v1/in/:bucket_id",
      api.open(
        {
          name: "catch.in",
          cost: 1,
          everyMethod: true,
          summary: "Send a request of any method to a bucket, or to a path below it",
          description:
            `Public path for providers that send a GET challenge, or that append a path. ${STATUSES} ` +
            "Methods that the bucket does not list are `ignored`.",
          anyBody: "Any content, up to 1, 5 or 25 MiB by tier. The exact bytes are stored.",
          additionalResponses: SETTINGS_RESPONSES,
          bodyLimits: largeBody(),
          errors: ["forbidden"],
          params: PublicBucketParams,
          response: Ingested,
        },
        ({ call, params }) => ingestion.receive(params.bucket_id, call),
      ),
    );
}

function eventReadRoutes(api: Api, events: EventService) {
  return new Elysia({ tags: ["Catch"] })
    .get(
      "/v1/catch/:bucket_id/events",
      api.endpoint(
        {
          name: "catch.events.list",
          access: "catch:read",
          cost: 1,
          summary: "List a bucket's events, newest first",
          description: `With \`q\`, \`event_type\` or \`verification\` a page ends after ${SEARCHED_EVENTS_MAX} events or ${SEARCH_MS_MAX} ms, even if it is not full, and has \`partial\`. Continue with its \`cursor\`.`,
          errors: ["catch.bucket_not_found", "catch.provider_unsupported"],
          params: BucketParams,
          query: EventQuery,
          response: EventPage,
        },
        ({ call, params: { bucket_id }, query }) =>
          query.q === undefined && query.event_type === undefined && query.verification === undefined
            ? call.read(() => events.list(call.caller.project.ref, bucket_id, query))
            : searched(call, events, bucket_id, query),
      ),
    )
    .get(
      "/v1/catch/:bucket_id/events/:event_id",
      api.endpoint(
        {
          name: "catch.events.get",
          access: "catch:read",
          cost: 1,
          summary: "Get an event with its payload and headers",
          description:
            "Use it to see what the provider sent and how the forwarding went. `payload` is parsed for reading; `payload_base64` has the exact bytes. Headers that may be secret are decrypted for this response.",
          errors: ["catch.bucket_not_found", "catch.event_not_found"],
          params: EventParams,
          response: CaughtEvent,
        },
        ({ call, params }) =>
          call.read(() => events.get(call.caller.project.ref, params.bucket_id, params.event_id)),
      ),
    );
}

/** Charges a search before it starts, and stops it when the client disconnects. */
async function searched(
  call: Call,
  events: EventService,
  bucketId: string,
  query: EventQuery,
): Promise<EventPage> {
  const search = await call.read(() => events.search(call.caller.project.ref, bucketId, query));
  return search.run(call.request.signal);
}

/** Never with the sender's content type: a body must not run as a page of this origin. */
const RAW = {
  "content-type": "application/octet-stream",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
};
const NDJSON = "application/x-ndjson";

/** Charges the body before it is sent; one in pieces is sent as fast as it is read. */
async function rawBody(call: Call, read: () => Uint8Array | PieceBody) {
  const { body } = await call.read(() => ({ body: read() }));
  return reply(200, isPieces(body) ? bodyStream(call, body) : body, RAW);
}

function exportRoutes(api: Api, events: EventService) {
  return new Elysia({ tags: ["Catch"] })
    .get(
      "/v1/catch/:bucket_id/events/:event_id/raw",
      api.endpoint(
        {
          name: "catch.events.raw",
          access: "catch:read",
          cost: 1,
          summary: "Get the exact bytes of an event's body",
          description:
            "For verifying a signature yourself, or for bodies that are not text: always `application/octet-stream`, whatever the sender declared, so that no browser renders it.",
          responseTypes: ["application/octet-stream"],
          errors: ["catch.bucket_not_found", "catch.event_not_found"],
          params: EventParams,
        },
        ({ call, params: { bucket_id, event_id } }) =>
          rawBody(call, () => events.raw(call.caller.project.ref, bucket_id, event_id)),
      ),
    )
    .get(
      "/v1/catch/:bucket_id/events/export",
      api.endpoint(
        {
          name: "catch.events.export",
          access: "catch:read",
          cost: 1,
          openCursor: true,
          summary: "Export a bucket's events, oldest first, one JSON object per line",
          description:
            "A page has at most 8 MiB and 10,000 events. `X-Next-Cursor` is the cursor of the next page; the last page has none.",
          responseTypes: [NDJSON],
          errors: ["catch.bucket_not_found"],
          params: BucketParams,
          query: EventExportQuery,
        },
        ({ call, params: { bucket_id }, query }) => exported(call, events, bucket_id, query),
      ),
    );
}

/** Charges an export before it starts. */
async function exported(call: Call, events: EventService, bucketId: string, query: EventExportQuery) {
  const page = await call.read(() => events.export(call.caller.project.ref, bucketId, query));
  const { text, cursor } = await page.run(call.request.signal);
  const next = cursor === null ? {} : { "x-next-cursor": cursor };
  return reply(200, text, { "content-type": NDJSON, ...next });
}

function eventChangeRoutes(api: Api, events: EventService) {
  return new Elysia({ tags: ["Catch"] })
    .post(
      "/v1/catch/:bucket_id/events/:event_id/replay",
      api.endpoint(
        {
          name: "catch.events.replay",
          role: "responder",
          audit: "yes",
          access: "catch:write",
          cost: 1,
          summary: "Replay an event to the target",
          description:
            "Costs 1 credit if the target responds with 2xx; otherwise free of charge. In a bucket with `targets` it queues new deliveries, for 1 credit each, and returns 202.",
          errors: [
            "conflict",
            "catch.bucket_not_found",
            "catch.event_not_found",
            "bucket_paused",
            "catch.signature_invalid",
            "catch.replay_failed",
            "catch.loop_detected",
          ],
          params: EventParams,
          response: { 200: EventReplayed, 202: EventReplayQueued },
        },
        ({ call, params: { bucket_id, event_id } }) => {
          assertNoLoop(call.request.headers);
          return call.performAcross(events.replay(call.caller.project.ref, bucket_id, event_id));
        },
      ),
    )
    .delete(
      "/v1/catch/:bucket_id/events",
      api.endpoint(
        {
          name: "catch.events.delete",
          audit: "yes",
          access: "catch:write",
          summary: "Delete the events received before a time",
          description:
            "Deletes them whatever their status, pending ones included, which are then not forwarded. Use it to free space or to delete personal data early: events expire without it.",
          errors: ["catch.bucket_not_found"],
          params: BucketParams,
          query: EventsDeleteQuery,
          response: EventsDeleted,
        },
        ({ call, params, query }) =>
          call.performAcross(events.deleteBefore(call.caller.project.ref, params.bucket_id, query.before)),
      ),
    );
}

function confirmRoutes(api: Api, confirmations: Confirmations) {
  return new Elysia({ tags: ["Catch"] }).post(
    "/v1/catch/:bucket_id/events/:event_id/confirm",
    api.endpoint(
      {
        name: "catch.events.confirm",
        audit: "yes",
        access: "catch:write",
        cost: 1,
        summary: "Confirm the subscription to a topic of Amazon SNS",
        description:
          "Requests the `SubscribeURL` of an event of the type `SubscriptionConfirmation` whose signature is valid. Free of charge unless it is confirmed.",
        errors: [
          "conflict",
          "catch.bucket_not_found",
          "catch.event_not_found",
          "catch.signature_invalid",
          "catch.confirmation_failed",
        ],
        params: EventParams,
        response: EventConfirmed,
      },
      ({ call, params: { bucket_id, event_id } }) =>
        call.performAcross(confirmations.confirm(call.caller.project.ref, bucket_id, event_id)),
    ),
  );
}
