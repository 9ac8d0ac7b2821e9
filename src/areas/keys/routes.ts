import type { Static } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { parseDateTime } from "../../kernel/date-time.ts";
import { invalidField } from "../../kernel/errors.ts";
import { reply } from "../../kernel/http/answer.ts";
import type { Api } from "../../kernel/http/api.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { GRACE_HOURS_DEFAULT, METADATA_LENGTH_MAX, USER_AGENT_KEPT } from "./domain.ts";
import {
  Key,
  KeyCreateBody,
  KeyCreated,
  KeyPage,
  KeyParams,
  KeyProjectParams,
  KeyRevoked,
  KeyRotateBody,
  KeyRotated,
  KeyVerdict,
  KeyVerifyBody,
} from "./schema.ts";
import type { KeyService, KeyTerms } from "./service.ts";
import type { ClientMeta } from "./uses.ts";

/** Keys on a page unless asked otherwise. */
const KEYS_LIMIT = 20;

const CREATE_DESCRIPTION =
  "The secret is in this answer and never again. A key with the prefix `sm` is a Bearer credential of this API and carries only scopes that the caller's key has; with any other prefix it is for verify alone, with scopes of your own. A key that ends makes none that ends later.";

/** Declares the endpoints of managed keys. */
export function keyRoutes(api: Api, keys: KeyService) {
  return [
    createRoutes(api, keys),
    readRoutes(api, keys),
    changeRoutes(api, keys),
    new Elysia({ tags: ["Keys"] }).use(api).post(
      "/v1/keys/verify",
      ({ call, body }) => {
        const client = readClient(body.meta);
        return call.perform((tx) => keys.verify(tx, call.caller, body.secret, client));
      },
      {
        op: {
          name: "keys.verify",
          access: "keys:read",
          cost: 1,
          summary: "Verify the secret of a managed key",
          description:
            "Answers 200 for every well-formed request. Whatever is not a key of yours is `invalid_key`; a key of one project knows the keys of that project alone.",
          example: { secret: "acme_live_zyxw", meta: { ip: "203.0.113.7", user_agent: "curl/8.5" } },
        },
        body: KeyVerifyBody,
        response: KeyVerdict,
      },
    ),
  ];
}

function createRoutes(api: Api, keys: KeyService) {
  const example = { prefix: "acme_live", name: "Warehouse", scopes: ["orders:read"], environment: "live" };
  return new Elysia({ tags: ["Keys"] })
    .use(api)
    .post(
      "/v1/keys",
      ({ call, body }) => {
        const terms = readTerms(body, call.receivedAt);
        keys.check(terms);
        return call.perform((tx) => reply(201, keys.create(tx, call.caller, terms)));
      },
      {
        op: {
          name: "keys.create",
          access: "keys:write",
          cost: 1,
          secret: true,
          changesProject: false,
          summary: "Create a managed key",
          description: `${CREATE_DESCRIPTION} A key of one project makes keys of that project.`,
          errors: ["key_limit_exceeded"],
          example,
        },
        body: KeyCreateBody,
        response: { 201: KeyCreated },
      },
    )
    .post(
      "/v1/projects/:id/keys",
      ({ call, params, body }) => {
        const terms = readTerms(body, call.receivedAt);
        keys.check(terms);
        return call.perform((tx) => reply(201, keys.createInProject(tx, call.caller, params.id, terms)));
      },
      {
        op: {
          name: "projects.keys.create",
          access: "keys:write",
          cost: 1,
          secret: true,
          changesProject: false,
          summary: "Create a managed key for one project",
          description: `${CREATE_DESCRIPTION} It works in that project only. A project other than the caller's own takes the scope \`*\`.`,
          errors: ["not_found", "key_limit_exceeded"],
          example,
        },
        params: KeyProjectParams,
        body: KeyCreateBody,
        response: { 201: KeyCreated },
      },
    );
}

function readRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .use(api)
    .get(
      "/v1/keys",
      ({ call, query }) => {
        const before = readCursor(query.cursor);
        const limit = query.limit ?? KEYS_LIMIT;
        return call.perform((tx) => keys.list(call.caller, tx.now, limit, before));
      },
      {
        op: {
          name: "keys.list",
          access: "keys:read",
          cost: 1,
          summary: "List managed keys, newest first",
          description: "A key of one project sees the keys of that project.",
          openCursor: true,
        },
        query: pageQuery(KEYS_LIMIT),
        response: KeyPage,
      },
    )
    .get(
      "/v1/keys/:id",
      ({ call, params }) => call.perform((tx) => keys.get(call.caller, params.id, tx.now)),
      {
        op: {
          name: "keys.get",
          access: "keys:read",
          cost: 1,
          summary: "Read a managed key",
          errors: ["not_found"],
        },
        params: KeyParams,
        response: Key,
      },
    );
}

function changeRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .use(api)
    .post(
      "/v1/keys/:id/rotate",
      ({ call, params, body }) => {
        const graceHours = body.grace_hours ?? GRACE_HOURS_DEFAULT;
        return call.perform((tx) => keys.rotate(tx, call.caller, params.id, graceHours));
      },
      {
        op: {
          name: "keys.rotate",
          access: "keys:write",
          cost: 1,
          secret: true,
          changesProject: false,
          summary: "Rotate a managed key",
          description:
            "Makes a key like this one, with a new id and secret. The old key works until its grace has passed, or its own end if that comes first. The caller's key needs its scopes, and must not end before it; a key of a project other than the caller's own takes the scope `*`.",
          errors: ["not_found", "conflict", "key_limit_exceeded"],
          example: { grace_hours: 48 },
        },
        params: KeyParams,
        body: KeyRotateBody,
        response: KeyRotated,
      },
    )
    .delete(
      "/v1/keys/:id",
      ({ call, params }) => call.perform((tx) => keys.revoke(tx, call.caller, params.id)),
      {
        op: {
          name: "keys.revoke",
          access: "keys:write",
          cost: 1,
          changesProject: false,
          summary: "Revoke a managed key",
          description:
            "Works for the very next request. The record is kept for 30 days. The caller's key needs the scopes of the revoked one.",
          errors: ["not_found"],
        },
        params: KeyParams,
        response: KeyRevoked,
      },
    );
}

/**
 * The terms in a creation's body, with the checks that a schema cannot make.
 * @throws ApiError `validation_error`
 */
function readTerms(body: Static<typeof KeyCreateBody>, now: number): KeyTerms {
  const { prefix, name, scopes, environment = null, metadata = null, expires_at = null } = body;
  if (metadata !== null && JSON.stringify(metadata).length > METADATA_LENGTH_MAX) {
    throw invalidField("metadata", `must have at most ${METADATA_LENGTH_MAX} characters as JSON`);
  }
  return { prefix, name, scopes, environment, metadata, expiresAt: readExpiry(expires_at, now) };
}

function readExpiry(text: string | null, now: number): number | null {
  if (text === null) return null;
  const moment = parseDateTime(text);
  if (moment === null) {
    throw invalidField("expires_at", "must be an RFC 3339 date-time, such as 2030-01-31T12:00:00Z");
  }
  if (moment <= now) throw invalidField("expires_at", "must be in the future");
  return moment;
}

/** The moment before which a page's keys were made: its cursor is the last `created_at` of the page before. */
function readCursor(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  const moment = parseDateTime(cursor);
  if (moment === null)
    throw invalidField("cursor", "must be the next_cursor of the page before, a date-time");
  return moment;
}

/** The client that a verification names. */
function readClient(meta: Static<typeof KeyVerifyBody>["meta"]): ClientMeta {
  const agent = meta?.user_agent ?? null;
  return { ip: meta?.ip ?? null, userAgent: agent === null ? null : kept(agent) };
}

/** Cut so that no character is halved, and lone surrogates replaced: the file cannot hold them. */
function kept(agent: string): string {
  const whole = agent.toWellFormed();
  return whole.length <= USER_AGENT_KEPT
    ? whole
    : [...whole.slice(0, 2 * USER_AGENT_KEPT)].slice(0, USER_AGENT_KEPT).join("").toWellFormed();
}
