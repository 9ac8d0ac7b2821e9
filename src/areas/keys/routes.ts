import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { reply, unkept } from "../../kernel/http/responses/response.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { momentOf } from "../../kernel/time/date-time.ts";
import { type Admission, askedOf } from "./admission.ts";
import { GRACE_HOURS_DEFAULT, REVOKED_AT_ONCE_MAX } from "./domain.ts";
import {
  KEYS_LIMIT,
  Key,
  KeyCreateBody,
  KeyCreated,
  KeyPage,
  KeyParams,
  KeyPatchBody,
  KeyProjectParams,
  KeyRevoked,
  KeyRotateBody,
  KeyRotated,
  KeysQuery,
  KeysRevokeBody,
  KeysRevoked,
  KeyUsage,
  KeyUsageQuery,
} from "./schema.ts";
import type { KeyService } from "./service.ts";
import { KeyVerdict, KeyVerifyBody } from "./verify-schema.ts";

const READ = { access: "keys:read", cost: 1 } as const;
/** Which project changes is the service's to say. */
const CHANGE = { access: "keys:write", cost: 1, changesProject: false } as const;
const CREATE = {
  ...CHANGE,
  secret: true,
  example: { prefix: "acme_live", name: "Warehouse", scopes: ["orders:read"], environment: "live" },
} as const;
const CREATE_DESCRIPTION =
  "The secret is in this answer and never again. A key with the prefix `sm` is a Bearer credential of this API and carries only scopes that the caller's key has; with any other prefix it is for verify alone, with scopes of your own. A key that ends makes none that ends later.";

/** Declares the endpoints of managed keys. */
export function keyRoutes(api: Api, keys: KeyService, admission: Admission) {
  return [
    ...[createRoutes(api, keys), readRoutes(api, keys)],
    ...[changeRoutes(api, keys), revokeRoutes(api, keys), verifyRoutes(api, admission)],
  ];
}

function createRoutes(api: Api, keys: KeyService) {
  const create = (call: Call, body: KeyCreateBody, projectId: string | null = null) => {
    const terms = keys.termsOf(body, call.receivedAt);
    return call.perform((tx) => reply(201, keys.create(tx, call.caller, terms, projectId)));
  };
  return new Elysia({ tags: ["Keys"] })
    .use(api)
    .post("/v1/keys", ({ call, body }) => create(call, body), {
      op: {
        ...CREATE,
        name: "keys.create",
        audit: "yes",
        summary: "Create a managed key",
        description: `${CREATE_DESCRIPTION} A key of one project makes keys of that project.`,
        errors: ["key_limit_exceeded"],
      },
      body: KeyCreateBody,
      response: { 201: KeyCreated },
    })
    .post("/v1/projects/:id/keys", ({ call, params, body }) => create(call, body, params.id), {
      op: {
        ...CREATE,
        name: "projects.keys.create",
        audit: "yes",
        summary: "Create a managed key for one project",
        description: `${CREATE_DESCRIPTION} It works in that project only. A project other than the caller's own takes the scope \`*\`.`,
        errors: ["not_found", "key_limit_exceeded"],
      },
      params: KeyProjectParams,
      body: KeyCreateBody,
      response: { 201: KeyCreated },
    });
}

function readRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .use(api)
    .get(
      "/v1/keys",
      ({ call, query: { limit = KEYS_LIMIT, cursor, ...filter } }) => {
        // The last `created_at` of the page before.
        const wanted = "must be the next_cursor of the page before, a date-time";
        const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : momentOf("cursor", cursor, wanted);
        return call.read((tx) => keys.list(call.caller, tx.now, limit, before, filter));
      },
      {
        op: {
          ...READ,
          name: "keys.list",
          summary: "List managed keys, newest first",
          description:
            "A key of one project sees the keys of that project. With `environment`, and with large keys, a page may have fewer keys than `limit`, or none, and `has_more` all the same.",
          openCursor: true,
        },
        query: KeysQuery,
        response: KeyPage,
      },
    )
    .get("/v1/keys/:id", ({ call, params }) => call.read((tx) => keys.get(call.caller, params.id, tx.now)), {
      op: { ...READ, name: "keys.get", summary: "Read a managed key", errors: ["not_found"] },
      params: KeyParams,
      response: Key,
    })
    .get(
      "/v1/keys/:id/usage",
      ({ call, params, query }) => call.read((tx) => keys.usage(call.caller, params.id, tx.now, query)),
      {
        op: {
          ...READ,
          name: "keys.usage",
          summary: "Read how often a managed key was used",
          description:
            "Verifications by outcome, and requests with a key of the prefix `sm`. Kept for 90 days; after a crash the last few seconds may be missing.",
          errors: ["not_found"],
        },
        params: KeyParams,
        query: KeyUsageQuery,
        response: KeyUsage,
      },
    );
}

function changeRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .use(api)
    .post(
      "/v1/keys/:id/rotate",
      ({ call, params, body: { grace_hours = GRACE_HOURS_DEFAULT } }) =>
        call.perform((tx) => keys.rotate(tx, call.caller, params.id, grace_hours)),
      {
        op: {
          ...CHANGE,
          name: "keys.rotate",
          audit: "yes",
          secret: true,
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
    .patch(
      "/v1/keys/:id",
      ({ call, params, body }) => call.perform((tx) => keys.patch(tx, call.caller, params.id, body)),
      {
        op: {
          ...CHANGE,
          name: "keys.patch",
          audit: "yes",
          summary: "Change a managed key",
          description:
            "What is left out stays as it is, null clears it. Holds for the very next request; the secret stays. The caller's key needs the key's scopes, those of before and those of after, and must not end before it.",
          errors: ["not_found", "conflict"],
          example: { name: "Warehouse 2", enabled: true },
        },
        params: KeyParams,
        body: KeyPatchBody,
        response: Key,
      },
    );
}

function revokeRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .use(api)
    .delete(
      "/v1/keys/:id",
      ({ call, params }) => call.perform((tx) => keys.revoke(tx, call.caller, params.id)),
      {
        op: {
          ...CHANGE,
          name: "keys.revoke",
          audit: "yes",
          summary: "Revoke a managed key",
          description:
            "Works for the very next request. The record is kept for 30 days. The caller's key needs the scopes of the revoked one.",
          errors: ["not_found"],
        },
        params: KeyParams,
        response: KeyRevoked,
      },
    )
    .post(
      "/v1/keys/revoke",
      ({ call, body }) => call.performAcross(keys.revokeOwned(call.caller, body.owner_id)),
      {
        op: {
          ...CHANGE,
          name: "keys.revoke_owned",
          audit: "yes",
          summary: "Revoke all keys of an owner",
          description: `Those that the caller's key sees, ${REVOKED_AT_ONCE_MAX} at most: with \`more\`, call again. When it lacks a scope of one of them, none is revoked.`,
          example: { owner_id: "acme" },
        },
        body: KeysRevokeBody,
        response: KeysRevoked,
      },
    );
}

function verifyRoutes(api: Api, admission: Admission) {
  return new Elysia({ tags: ["Keys"] }).use(api).post(
    "/v1/keys/verify",
    ({ call, body }) => {
      const asked = askedOf(body);
      const judge = (tx: Tx) => {
        const verdict = admission.verify(tx, call.caller, asked);
        // Stored, a refusal would go on for a day after what caused it has ended.
        return verdict.valid ? verdict : unkept(verdict);
      };
      return admission.takesUses(call.caller, asked) ? call.perform(judge) : call.read(judge);
    },
    {
      op: {
        ...READ,
        name: "keys.verify",
        summary: "Verify the secret of a managed key",
        description:
          "Answers 200 for every well-formed request. Whatever is not a key of yours is `invalid_key`; a key of one project knows the keys of that project alone. Tokens and uses are taken only when everything passes. A refusal is not stored under an `Idempotency-Key`.",
        example: { secret: "acme_live_zyxw", meta: { ip: "203.0.113.7", user_agent: "curl/8.5" } },
      },
      body: KeyVerifyBody,
      response: KeyVerdict,
    },
  );
}
