import { Elysia } from "elysia";
import { UsageQuery } from "../../kernel/data/usage.ts";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/operation.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import type { FileFacts } from "../../kernel/http/resource-facts.ts";
import { reply, unstored } from "../../kernel/http/responses/response.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { timestampOf } from "../../kernel/time/date-time.ts";
import { type Admission, admissionRequestOf } from "./admission.ts";
import { GRACE_HOURS_DEFAULT, IMPORT_BODY_BYTES_MAX, REVOKED_PER_REQUEST_MAX } from "./domain.ts";
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
  KeysImportBody,
  KeysImported,
  KeysQuery,
  KeysRevokeBody,
  KeysRevoked,
  KeyUsage,
} from "./schema.ts";
import { IMPORT, type KeyService } from "./service.ts";
import { KeyVerdict, KeyVerifyBody } from "./verify-schema.ts";

const READ = { access: "keys:read", cost: 1 } as const;
/** `changesProject` is false because the service records the activity: it knows the project of the key. */
const CHANGE = { access: "keys:write", cost: 1, changesProject: false } as const;
const CREATE = {
  ...CHANGE,
  secret: true,
  example: { prefix: "acme_live", name: "Warehouse", scopes: ["orders:read"], environment: "live" },
} as const;
/** How keys stand in a configuration file. */
const KEY_FILE: FileFacts = {
  section: "keys",
  name: "name",
  listPath: "/v1/keys",
  createOnly: true,
  onceShown: "secret",
  defaults: { enabled: true, ratelimits: [], allowed_ips: [] },
};
const CREATE_DESCRIPTION =
  "Only this response contains the secret. A key with the prefix `sm` is a Bearer credential of this API and can only have scopes that your key has. A key with any other prefix works with verify only and can have any scopes. A key that expires can only create keys that expire no later.";

/** Declares the endpoints of managed keys. */
export function keyRoutes(api: Api, keys: KeyService, admission: Admission) {
  return [
    createRoutes(api, keys),
    importRoutes(api, keys),
    readRoutes(api, keys),
    updateRoutes(api, keys),
    revokeRoutes(api, keys),
    verifyRoutes(api, admission),
  ];
}

function createRoutes(api: Api, keys: KeyService) {
  const create = (call: Call, body: KeyCreateBody, projectId: string | null = null) => {
    const terms = keys.parseCreation(body, call.receivedAt);
    return call.perform((tx) => reply(201, keys.create(tx, call.caller, terms, projectId)));
  };
  return new Elysia({ tags: ["Keys"] })
    .post(
      "/v1/keys",
      api.endpoint(
        {
          ...CREATE,
          name: "keys.create",
          stepUp: true,
          audit: "yes",
          summary: "Create a managed key",
          description: `${CREATE_DESCRIPTION} A key of one project creates keys of that project.`,
          errors: ["key_limit_exceeded"],
          body: KeyCreateBody,
          response: { 201: KeyCreated },
        },
        ({ call, body }) => create(call, body),
      ),
    )
    .post(
      "/v1/projects/:id/keys",
      api.endpoint(
        {
          ...CREATE,
          name: "projects.keys.create",
          stepUp: true,
          audit: "yes",
          summary: "Create a managed key for one project",
          // What is in the past is left to the server.
          file: { ...KEY_FILE, check: (body: KeyCreateBody) => void keys.parseCreation(body, 0) },
          description: `${CREATE_DESCRIPTION} It works in this project only. For a project other than your key's own, the scope \`*\` is required.`,
          errors: ["not_found", "key_limit_exceeded"],
          params: KeyProjectParams,
          body: KeyCreateBody,
          response: { 201: KeyCreated },
        },
        ({ call, params, body }) => create(call, body, params.id),
      ),
    );
}

function importRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] }).post(
    "/v1/keys/import",
    api.endpoint(
      {
        ...CHANGE,
        name: IMPORT,
        stepUp: true,
        audit: "yes",
        summary: "Import keys of another service by the hashes of their secrets",
        description:
          "Your customers keep their secrets: `POST /v1/keys/verify` accepts them from the next request. All keys are imported, or none. A hash that the account already has returns its key unchanged, free of charge; each new key costs 1 credit. Imported keys work with verify only. Hashes are never shown.",
        errors: ["key_limit_exceeded"],
        example: {
          keys: [
            {
              hash: "b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2",
              hash_algorithm: "sha256-hex",
              name: "Warehouse",
              scopes: ["orders:read"],
            },
          ],
        },
        bodyLimits: { ...largeBody(), bytesMax: IMPORT_BODY_BYTES_MAX },
        body: KeysImportBody,
        response: { 201: KeysImported },
      },
      ({ call, body }) => {
        const parsed = keys.parseImport(body.keys, call.receivedAt);
        return call.perform((tx, waiveCharge) =>
          reply(201, keys.importAll(tx, call.caller, parsed, waiveCharge)),
        );
      },
    ),
  );
}

function readRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .get(
      "/v1/keys",
      api.endpoint(
        {
          ...READ,
          name: "keys.list",
          summary: "List managed keys, newest first",
          description:
            "A key of one project lists the keys of that project. With `environment`, and if keys are large, a page can have fewer keys than `limit`, or none, although `has_more` is true.",
          openCursor: true,
          query: KeysQuery,
          response: KeyPage,
        },
        ({ call, query: { limit = KEYS_LIMIT, cursor, ...filter } }) => {
          const message = "must be the next_cursor of the previous page, a date-time";
          const before =
            cursor === undefined ? Number.MAX_SAFE_INTEGER : timestampOf("cursor", cursor, message);
          return call.read((tx) => keys.list(call.caller, tx.now, limit, before, filter));
        },
      ),
    )
    .get(
      "/v1/keys/:id",
      api.endpoint(
        {
          ...READ,
          name: "keys.get",
          summary: "Get a managed key",
          description:
            "Use it to inspect a key by its id, such as its scopes, limits, expiry and last use. The secret is never returned; to check a secret use `POST /v1/keys/verify`.",
          errors: ["not_found"],
          params: KeyParams,
          response: Key,
        },
        ({ call, params }) => call.read((tx) => keys.get(call.caller, params.id, tx.now)),
      ),
    )
    .get(
      "/v1/keys/:id/usage",
      api.endpoint(
        {
          ...READ,
          name: "keys.usage",
          summary: "Get the usage of a managed key",
          description:
            "Counts verifications by outcome, and for a key with the prefix `sm` its requests. Usage is stored for 90 days. After a crash, the last few seconds can be missing.",
          errors: ["not_found"],
          params: KeyParams,
          query: UsageQuery,
          response: KeyUsage,
        },
        ({ call, params, query }) => call.read((tx) => keys.usage(call.caller, params.id, tx.now, query)),
      ),
    );
}

function updateRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .post(
      "/v1/keys/:id/rotate",
      api.endpoint(
        {
          ...CHANGE,
          name: "keys.rotate",
          stepUp: true,
          audit: "yes",
          secret: true,
          summary: "Rotate a managed key",
          description:
            "Creates a copy of the key with a new id and secret. The old key works until the grace period has passed, or until its own `expires_at` if that is earlier. Your key must have the scopes of the key and must not expire before it. For a key of a project other than your key's own, the scope `*` is required.",
          errors: ["not_found", "conflict", "key_limit_exceeded"],
          example: { grace_hours: 48 },
          params: KeyParams,
          body: KeyRotateBody,
          response: KeyRotated,
        },
        ({ call, params, body: { grace_hours = GRACE_HOURS_DEFAULT } }) =>
          call.perform((tx) => keys.rotate(tx, call.caller, params.id, grace_hours)),
      ),
    )
    .patch(
      "/v1/keys/:id",
      api.endpoint(
        {
          ...CHANGE,
          name: "keys.patch",
          stepUp: true,
          audit: "yes",
          summary: "Update a managed key",
          description:
            "Omitted fields keep their value; null clears a field. The update applies from the next request. The secret does not change. Your key must have the scopes of the key before and after the update, and must not expire before it.",
          errors: ["not_found", "conflict"],
          example: { name: "Warehouse 2", enabled: true },
          params: KeyParams,
          body: KeyPatchBody,
          response: Key,
        },
        ({ call, params, body }) => call.perform((tx) => keys.update(tx, call.caller, params.id, body)),
      ),
    );
}

function revokeRoutes(api: Api, keys: KeyService) {
  return new Elysia({ tags: ["Keys"] })
    .delete(
      "/v1/keys/:id",
      api.endpoint(
        {
          ...CHANGE,
          name: "keys.revoke",
          audit: "yes",
          summary: "Revoke a managed key",
          description:
            "Applies from the next request. The record is stored for 30 days. Your key must have the scopes of the revoked key.",
          errors: ["not_found"],
          params: KeyParams,
          response: KeyRevoked,
        },
        ({ call, params }) => call.perform((tx) => keys.revoke(tx, call.caller, params.id)),
      ),
    )
    .post(
      "/v1/keys/revoke",
      api.endpoint(
        {
          ...CHANGE,
          name: "keys.revoke_owned",
          audit: "yes",
          summary: "Revoke all keys of an owner",
          description: `Revokes the keys of the owner that your key can see, at most ${REVOKED_PER_REQUEST_MAX}. If \`more\` is true, send the request again. If your key lacks a scope of one of them, none is revoked.`,
          example: { owner_id: "acme" },
          body: KeysRevokeBody,
          response: KeysRevoked,
        },
        ({ call, body }) => call.performAcross(keys.revokeByOwner(call.caller, body.owner_id)),
      ),
    );
}

function verifyRoutes(api: Api, admission: Admission) {
  return new Elysia({ tags: ["Keys"] }).post(
    "/v1/keys/verify",
    api.endpoint(
      {
        ...READ,
        name: "keys.verify",
        summary: "Verify the secret of a managed key",
        description:
          "Returns 200 for every valid request, whether the key is valid or not. A secret that is not a key of your account is `invalid_key`; a key of one project knows only the keys of that project. Tokens and uses are taken only if every check passes. A rejection is not stored under an `Idempotency-Key`.",
        example: { secret: "acme_live_zyxw", meta: { ip: "203.0.113.7", user_agent: "curl/8.5" } },
        body: KeyVerifyBody,
        response: KeyVerdict,
      },
      ({ call, body }) => {
        const request = admissionRequestOf(body);
        const evaluate = (tx: Tx) => {
          const verdict = admission.verify(tx, call.caller, request);
          // If it were stored, a rejection would be repeated for a day after its cause is gone.
          return verdict.valid ? verdict : unstored(verdict);
        };
        return admission.consumesUses(call.caller, request) ? call.perform(evaluate) : call.read(evaluate);
      },
    ),
  );
}
