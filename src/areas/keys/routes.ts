import type { Http } from "../../kernel/http/http.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { GRACE_HOURS_DEFAULT } from "./domain.ts";
import { readClient, readKeyCursor, readTerms } from "./input.ts";
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

const CREATE_DESCRIPTION =
  "The secret is in this answer and never again. A key with the prefix `sm` is a Bearer credential of this API and carries only scopes that the caller's key has; with any other prefix it is for verify alone, with scopes of your own. A key that ends makes none that ends later.";

/** Declares the endpoints of managed keys. */
export function keyRoutes(http: Http, keys: KeyService): void {
  createRoutes(http, keys);
  readRoutes(http, keys);
  changeRoutes(http, keys);
  http.route(
    "POST",
    "/v1/keys/verify",
    {
      operation: "keys.verify",
      summary: "Verify the secret of a managed key",
      description:
        "Answers 200 for every well-formed request. Whatever is not a key of yours is `invalid_key`; a key of one project knows the keys of that project alone.",
      body: KeyVerifyBody,
      answers: { 200: KeyVerdict },
      example: { secret: "acme_live_zyxw", meta: { ip: "203.0.113.7", user_agent: "curl/8.5" } },
    },
    (call) => {
      const client = readClient(call.body.meta);
      return call.perform((tx) => keys.verify(tx, call.caller, call.body.secret, client));
    },
  );
}

function createRoutes(http: Http, keys: KeyService): void {
  const example = { prefix: "acme_live", name: "Warehouse", scopes: ["orders:read"], environment: "live" };
  http.route(
    "POST",
    "/v1/keys",
    {
      operation: "keys.create",
      summary: "Create a managed key",
      description: `${CREATE_DESCRIPTION} A key of one project makes keys of that project.`,
      status: 201,
      body: KeyCreateBody,
      answers: { 201: KeyCreated },
      errors: ["key_limit_exceeded"],
      example,
    },
    (call) => {
      const terms = readTerms(call.body, call.receivedAt);
      keys.check(terms);
      return call.perform((tx) => keys.create(tx, call.caller, terms));
    },
  );
  http.route(
    "POST",
    "/v1/projects/:id/keys",
    {
      operation: "projects.keys.create",
      summary: "Create a managed key for one project",
      description: `${CREATE_DESCRIPTION} It works in that project only. A project other than the caller's own takes the scope \`*\`.`,
      status: 201,
      params: KeyProjectParams,
      body: KeyCreateBody,
      answers: { 201: KeyCreated },
      errors: ["not_found", "key_limit_exceeded"],
      example,
    },
    (call) => {
      const terms = readTerms(call.body, call.receivedAt);
      keys.check(terms);
      return call.perform((tx) => keys.createInProject(tx, call.caller, call.params.id, terms));
    },
  );
}

function readRoutes(http: Http, keys: KeyService): void {
  http.route(
    "GET",
    "/v1/keys",
    {
      operation: "keys.list",
      summary: "List managed keys, newest first",
      description: "A key of one project sees the keys of that project.",
      query: pageQuery(KEYS_LIMIT),
      openCursor: true,
      answers: { 200: KeyPage },
    },
    (call) => {
      const before = readKeyCursor(call.query.cursor);
      const limit = call.query.limit ?? KEYS_LIMIT;
      return call.perform((tx) => keys.list(call.caller, tx.now, limit, before));
    },
  );
  http.route(
    "GET",
    "/v1/keys/:id",
    {
      operation: "keys.get",
      summary: "Read a managed key",
      params: KeyParams,
      answers: { 200: Key },
      errors: ["not_found"],
    },
    (call) => call.perform((tx) => keys.get(call.caller, call.params.id, tx.now)),
  );
}

function changeRoutes(http: Http, keys: KeyService): void {
  http.route(
    "POST",
    "/v1/keys/:id/rotate",
    {
      operation: "keys.rotate",
      summary: "Rotate a managed key",
      description:
        "Makes a key like this one, with a new id and secret. The old key works until its grace has passed, or its own end if that comes first. The caller's key needs its scopes, and must not end before it; a key of a project other than the caller's own takes the scope `*`.",
      params: KeyParams,
      body: KeyRotateBody,
      answers: { 200: KeyRotated },
      errors: ["not_found", "conflict", "key_limit_exceeded"],
      example: { grace_hours: 48 },
    },
    (call) => {
      const graceHours = call.body.grace_hours ?? GRACE_HOURS_DEFAULT;
      return call.perform((tx) => keys.rotate(tx, call.caller, call.params.id, graceHours));
    },
  );
  http.route(
    "DELETE",
    "/v1/keys/:id",
    {
      operation: "keys.revoke",
      summary: "Revoke a managed key",
      description:
        "Works for the very next request. The record is kept for 30 days. The caller's key needs the scopes of the revoked one.",
      params: KeyParams,
      answers: { 200: KeyRevoked },
      errors: ["not_found"],
    },
    (call) => call.perform((tx) => keys.revoke(tx, call.caller, call.params.id)),
  );
}
