import type { TSchema } from "@sinclair/typebox";
import { version } from "../../../package.json" with { type: "json" };
import { type ErrorCode, STATUS_BY_CODE } from "../errors.ts";
import { type Operation, operationNamed } from "./operations.ts";
import type { DeclaredRoute } from "./route.ts";

/** A piece of an OpenAPI document. */
type Json = { readonly [key: string]: unknown };

const MEANING: Readonly<Record<ErrorCode, string>> = {
  validation_error: "The body or a parameter is not valid; see `fields`.",
  invalid_request: "The request is well-formed, but its values are not acceptable.",
  unauthorized: "No key, or one that is malformed, unknown, revoked or expired.",
  insufficient_balance: "Not enough credits.",
  forbidden: "The key may not do this; the message says why.",
  not_found: "There is no such thing, or it is not yours.",
  timeout: "The wait ended before there was an answer.",
  conflict: "It contradicts what is there; the message says how.",
  request_too_large: "The body is larger than 1 MiB.",
  rate_limit_exceeded: "Too many requests; `Retry-After` says when to try again.",
  internal_error: "A defect of the server. Nothing was charged.",
  service_unavailable: "The server cannot do this now. Nothing was changed.",
  "gate.rule_invalid": "`enabled` is not true or false.",
  "gate.feature_not_found": "There is no flag with this key.",
  flag_not_found: "There is no flag with this key.",
  "gate.evaluation_failed": "The flag could not be evaluated. Nothing was charged.",
  "catch.bucket_not_found": "There is no such bucket, or it is not yours.",
  "catch.event_not_found": "The bucket has no such event.",
  "catch.provider_unsupported": "The provider is not one of `stripe`, `github`, `shopify`, `svix`.",
  "catch.signature_invalid": "The event's signature did not hold, so it is not sent on.",
  "catch.replay_failed": "The target gave no answer. Nothing was charged.",
  bucket_limit_exceeded: "The account has as many buckets as its tier allows.",
  bucket_paused: "The bucket is paused; set its state to `live` first.",
};

/** The OpenAPI 3.1 document of all endpoints of the API. */
export function openApiDocument(routes: readonly DeclaredRoute[]): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    if (operationNamed(route.spec.operation).monitoring) continue;
    const path = route.path.replace(/:([A-Za-z_]+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationObject(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Ninefold",
      version,
      summary: "Nine backend services in one binary, on one SQLite file.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: { Error: ERROR_SCHEMA },
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description: "A platform key, or a managed key with the prefix `sm`.",
        },
      },
    },
  };
}

const ERROR_SCHEMA: Json = {
  type: "object",
  required: ["error", "code", "request_id"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message"],
      properties: { code: { type: "string" }, message: { type: "string" } },
    },
    code: { type: "string", enum: Object.keys(STATUS_BY_CODE) },
    request_id: { type: "string", format: "uuid" },
    fields: {
      type: "object",
      description: "With `validation_error`: what is wrong with each field.",
      additionalProperties: { type: "array", items: { type: "string" } },
    },
    balance: { type: "integer", description: "With `insufficient_balance`: what there is." },
    user_id: {
      type: "string",
      description: "With `insufficient_balance`: whose balance it is, if it is the account's.",
    },
    meter_id: { type: "string", description: "With `insufficient_balance`: the meter, if it is one." },
  },
};

function operationObject({ method, path, spec }: DeclaredRoute): Json {
  const operation = operationNamed(spec.operation);
  const isPublic = operation.access === "public";
  const parameters = parametersOf(spec, operation, method);
  return {
    operationId: spec.operation,
    summary: spec.summary,
    ...(spec.description === undefined ? {} : { description: spec.description }),
    tags: [tagOf(path)],
    security: isPublic ? [] : [{ key: [] }],
    "x-scope": isPublic ? null : operation.access,
    "x-cost": operation.cost,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBodyOf(spec),
    responses: { ...successes(spec), ...failures(spec, operation, method) },
  };
}

/** The second segment of the path, or the first outside /v1. */
function tagOf(path: string): string {
  const segments = path.split("/").filter((segment) => segment !== "");
  return (segments[0] === "v1" ? segments[1] : segments[0]) ?? "system";
}

function parametersOf(spec: DeclaredRoute["spec"], operation: Operation, method: string): Json[] {
  const list = (schema: TSchema | undefined, place: "path" | "query"): Json[] =>
    Object.entries<TSchema>(schema?.properties ?? {}).map(([name, property]) => ({
      name,
      in: place,
      required: place === "path" || isRequired(schema, name),
      schema: plain(property),
    }));
  const all = [...list(spec.params, "path"), ...list(spec.query, "query")];
  if (!operation.idempotent || method === "GET") return all;
  return [
    ...all,
    {
      name: "Idempotency-Key",
      in: "header",
      required: false,
      description:
        "A repeat with the same key gets the first answer again, for 24 hours, and changes nothing.",
      schema: { type: "string", minLength: 1, maxLength: 255 },
    },
  ];
}

function isRequired(schema: TSchema | undefined, name: string): boolean {
  const required: unknown = schema?.required;
  return Array.isArray(required) && required.includes(name);
}

function requestBodyOf(spec: DeclaredRoute["spec"]): Json {
  if (spec.anyBody !== undefined) {
    return { requestBody: { description: spec.anyBody, required: false, content: { "*/*": {} } } };
  }
  return spec.body === undefined ? {} : { requestBody: jsonBody(spec) };
}

function jsonBody(spec: DeclaredRoute["spec"]): Json {
  const { body, example } = spec;
  const required = Array.isArray(body?.required) && body.required.length > 0;
  return {
    required,
    content: { "application/json": { schema: plain(body), ...(example === undefined ? {} : { example }) } },
  };
}

function successes(spec: DeclaredRoute["spec"]): Json {
  const responses: Record<string, Json> = {};
  for (const [status, schema] of Object.entries(spec.answers)) {
    const content = status === "204" ? {} : { content: { "application/json": { schema: plain(schema) } } };
    responses[status] = { description: "Success", headers: { "X-Request-Id": REQUEST_ID }, ...content };
  }
  return responses;
}

const REQUEST_ID: Json = { description: "Unique per request.", schema: { type: "string", format: "uuid" } };
const RETRY_AFTER: Json = { description: "Whole seconds.", schema: { type: "integer" } };

function failures(spec: DeclaredRoute["spec"], operation: Operation, method: string): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodes(spec, operation, method)) {
    const status = STATUS_BY_CODE[code];
    const known = byStatus.get(status) ?? [];
    if (!known.includes(code)) byStatus.set(status, [...known, code]);
  }
  const responses: Record<string, Json> = {};
  for (const [status, codes] of byStatus) {
    responses[String(status)] = {
      description: codes.map((code) => `\`${code}\`: ${MEANING[code]}`).join("\n\n"),
      headers: { "X-Request-Id": REQUEST_ID, ...(status === 429 ? { "Retry-After": RETRY_AFTER } : {}) },
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    };
  }
  return responses;
}

function errorCodes(spec: DeclaredRoute["spec"], operation: Operation, method: string): ErrorCode[] {
  const codes: ErrorCode[] = [];
  const checksInput = spec.params !== undefined || spec.query !== undefined || spec.body !== undefined;
  // What takes any body takes any input.
  const takesInput = checksInput && spec.anyBody === undefined;
  const changes = operation.idempotent && method !== "GET";
  if (takesInput || changes) codes.push("validation_error");
  if (operation.access !== "public") codes.push("unauthorized", "forbidden", "rate_limit_exceeded");
  // What a public endpoint costs is paid by somebody else: its caller never reads of it.
  if (operation.cost > 0 && operation.access !== "public") codes.push("insufficient_balance");
  if (changes) codes.push("conflict");
  if (spec.body !== undefined || changes) codes.push("request_too_large");
  codes.push(...(spec.errors ?? []), "internal_error");
  if (changes || operation.cost > 0) codes.push("service_unavailable");
  return codes;
}

/** A schema without what is for our own checks only. */
function plain(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, (key, value) => (key === "errorMessage" ? undefined : value)));
}
