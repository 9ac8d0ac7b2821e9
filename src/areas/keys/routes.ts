import type { Static } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { momentOf } from "../../kernel/date-time.ts";
import { reply } from "../../kernel/http/answer.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/call.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { GRACE_HOURS_DEFAULT, USER_AGENT_KEPT } from "./domain.ts";
import type { ClientMeta } from "./registry.ts";
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
import type { KeyService } from "./service.ts";

/** Keys on a page unless asked otherwise. */
const KEYS_LIMIT = 20;

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
export function keyRoutes(api: Api, keys: KeyService) {
  return [createRoutes(api, keys), readRoutes(api, keys), changeRoutes(api, keys), verifyRoutes(api, keys)];
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
      ({ call, query: { limit = KEYS_LIMIT, cursor } }) => {
        // The last `created_at` of the page before.
        const wanted = "must be the next_cursor of the page before, a date-time";
        const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : momentOf("cursor", cursor, wanted);
        return call.read((tx) => keys.list(call.caller, tx.now, limit, before));
      },
      {
        op: {
          ...READ,
          name: "keys.list",
          summary: "List managed keys, newest first",
          description: "A key of one project sees the keys of that project.",
          openCursor: true,
        },
        query: pageQuery(KEYS_LIMIT),
        response: KeyPage,
      },
    )
    .get("/v1/keys/:id", ({ call, params }) => call.read((tx) => keys.get(call.caller, params.id, tx.now)), {
      op: { ...READ, name: "keys.get", summary: "Read a managed key", errors: ["not_found"] },
      params: KeyParams,
      response: Key,
    });
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
    );
}

function verifyRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] }).use(api).post(
    "/v1/keys/verify",
    ({ call, body }) => {
      const client = readClient(body.meta);
      return call.read((tx) => keys.verify(tx, call.caller, body.secret, client));
    },
    {
      op: {
        ...READ,
        name: "keys.verify",
        summary: "Verify the secret of a managed key",
        description:
          "Answers 200 for every well-formed request. Whatever is not a key of yours is `invalid_key`; a key of one project knows the keys of that project alone.",
        example: { secret: "acme_live_zyxw", meta: { ip: "203.0.113.7", user_agent: "curl/8.5" } },
      },
      body: KeyVerifyBody,
      response: KeyVerdict,
    },
  );
}

/** The client that a verification names. */
function readClient(meta: Static<typeof KeyVerifyBody>["meta"]): ClientMeta {
  const { ip = null, user_agent = null } = meta ?? {};
  return { ip, ua: user_agent === null ? null : kept(user_agent) };
}

/** Cut so that no character is halved, and lone surrogates replaced: the file cannot hold them. */
function kept(agent: string): string {
  const whole = agent.toWellFormed();
  if (whole.length <= USER_AGENT_KEPT) return whole;
  return [...whole.slice(0, 2 * USER_AGENT_KEPT)].slice(0, USER_AGENT_KEPT).join("").toWellFormed();
}
