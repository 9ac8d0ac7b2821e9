import type { TSchema } from "@sinclair/typebox";
import { version } from "../../../package.json" with { type: "json" };
import { type ErrorCode, STATUS_BY_CODE } from "../errors.ts";
import { API_AREAS, areaOfPath } from "./api-areas.ts";
import { exampleOf } from "./examples.ts";
import { type Operation, operationNamed } from "./operations.ts";
import type { DeclaredRoute } from "./route.ts";
import { type Json, publicSchema } from "./schema-text.ts";

const MEANING: Readonly<Record<ErrorCode, string>> = {
  validation_error: "The body or a parameter is not valid; see `fields`.",
  invalid_request: "The request is well-formed, but its values are not acceptable.",
  unauthorized: "No key, or one that is malformed, unknown, revoked or expired.",
  insufficient_balance: "Not enough credits.",
  forbidden: "The key may not do this; the message says why.",
  not_found: "There is no such thing, or it is not yours.",
  timeout: "The wait ended before there was an answer.",
  conflict: "It contradicts what is there; the message says how.",
  request_too_large:
    "The body is larger than 64 KiB; for flags, deliveries, buckets and the notary than 1 MiB.",
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
  project_limit_exceeded: "The account has as many projects as its tier allows.",
  key_limit_exceeded: "The account has as many managed keys as its tier allows.",
  monitor_limit_exceeded: "The account has as many monitors as its tier allows.",
  bucket_paused: "The bucket is paused; set its state to `live` first.",
};

const INTRODUCTION = `
Everything is JSON over HTTP; answers are flat objects without an envelope. Every answer carries \`X-Request-Id\`.

**Keys.** Send one with every request: \`Authorization: Bearer sm_…\`. Each operation names the scope that its key needs;
the account's platform key has all of them. Operations marked *public* need no key.

**Errors.** Every error has the same body, with a \`code\` for programs and a \`message\` that says what would be right.
A request is refused at the first gate that it does not pass (401, 404, 403, 429, 400 or 413, 402), and then costs nothing.
Any request can end in \`internal_error\` (500), which changes nothing and costs nothing either.

**Credits.** Some operations cost credits: each says how many. Price and effect are one transaction: what ends in 400, 402 or
5xx costs nothing; a 403, 404, 408 or 409 that the work itself finds is paid.

**Doing something once.** A change takes an \`Idempotency-Key\`: a repeat with the same key gets the first answer again, for
24 hours, is not charged and changes nothing.

**Rate limits.** Each key has a bucket of tokens of its tier's requests per minute, and each account one of ten times as many
for all its keys. Who is refused reads in \`Retry-After\` when to come back.
`.trim();

/** The OpenAPI 3.1 document of all endpoints of the API. */
export function openApiDocument(routes: readonly DeclaredRoute[]): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    if (operationNamed(route.spec.operation).monitoring) continue;
    const path = templateOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationObject(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Ninefold",
      version,
      summary: "Nine backend services in one binary, on one SQLite file.",
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: API_AREAS,
    paths,
    components: {
      schemas: { Error: ERROR_SCHEMA },
      headers: { RequestId: REQUEST_ID, RetryAfter: RETRY_AFTER },
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      responses: errorResponses(),
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
      properties: {
        code: { type: "string", description: "The same code once more." },
        message: { type: "string", description: "What was wrong, and what would be right." },
      },
    },
    code: { type: "string", enum: Object.keys(STATUS_BY_CODE) },
    request_id: { type: "string", format: "uuid", description: "As in `X-Request-Id`." },
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

const REQUEST_ID: Json = {
  description: "Unique per request.",
  schema: { type: "string", format: "uuid" },
};
const RETRY_AFTER: Json = { description: "Whole seconds.", schema: { type: "integer" } };
const IDEMPOTENCY_KEY: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "A repeat with the same key gets the first answer again, for 24 hours, and changes nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};
const ANSWER_HEADERS: Json = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };

/** With parameters in braces. */
function templateOf({ path }: DeclaredRoute): string {
  return path.replace(/:([A-Za-z_]+)/g, "{$1}");
}

function operationObject(route: DeclaredRoute): Json {
  const { method, path, spec } = route;
  const operation = operationNamed(spec.operation);
  const isPublic = operation.access === "public";
  const area = areaOfPath(path).name;
  const parameters = parametersOf(spec, area);
  const all = takesKey(operation, method)
    ? [...parameters, { $ref: "#/components/parameters/IdempotencyKey" }]
    : parameters;
  return {
    operationId: spec.operation,
    summary: spec.summary,
    description: [spec.description, termsOf(operation)].filter((text) => text !== undefined).join("\n\n"),
    tags: [area],
    security: isPublic ? [] : [{ key: [] }],
    "x-scope": isPublic ? null : operation.access,
    "x-cost": operation.cost,
    "x-codeSamples": [{ lang: "Shell", label: "curl", source: curlOf(route, parameters) }],
    ...(all.length === 0 ? {} : { parameters: all }),
    ...requestBodyOf(spec),
    responses: { ...successes(spec, area), ...failures(spec, operation, method) },
  };
}

function takesKey(operation: Operation, method: string): boolean {
  return operation.idempotent && method !== "GET";
}

/** What an operation asks of its caller, in one paragraph. */
function termsOf({ access, cost, limit, accountOnly, grantsEverything }: Operation): string {
  const price = cost === 0 ? "free" : `${cost} credit${cost === 1 ? "" : "s"}`;
  const terms = [`**Cost** ${price}`];
  if (access === "public") terms.push("**Public**");
  else if (access === "operator") terms.push("**Key** of the operator's account");
  else terms.push(`**Scope** \`${grantsEverything ? "*" : access}\``);
  if (limit === "monitor") terms.push("**Rate limit** the monitors' own");
  if (accountOnly) terms.push("**Not** for keys of one project");
  return terms.join(" · ");
}

interface Parameter extends Json {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly example?: unknown;
}

function parametersOf(spec: DeclaredRoute["spec"], area: string): Parameter[] {
  const list = (schema: TSchema | undefined, place: "path" | "query"): Parameter[] =>
    Object.entries<TSchema>(schema?.properties ?? {}).map(([name, property]) => {
      const { description, ...shown } = publicSchema(property);
      const required = place === "path" || isRequired(schema, name);
      return {
        name,
        in: place,
        required,
        ...(description === undefined ? {} : { description }),
        schema: shown,
        // An optional one is left out unless there is a reason to give it.
        ...(required ? { example: exampleOf(shown, area, name) } : {}),
      };
    });
  return [...list(spec.params, "path"), ...list(spec.query, "query")];
}

function isRequired(schema: TSchema | undefined, name: string): boolean {
  const required: unknown = schema?.required;
  return Array.isArray(required) && required.includes(name);
}

/** The request as one line for a shell: `$NINEFOLD_URL` and `$NINEFOLD_KEY` stand for what every caller has. */
function curlOf({ method, path, spec }: DeclaredRoute, parameters: readonly Parameter[]): string {
  const valueFor = (name: string): string => {
    const found = parameters.find((parameter) => parameter.name === name);
    return encodeURIComponent(String(found?.example ?? name));
  };
  const query = parameters.filter(({ in: place, required }) => place === "query" && required);
  const target =
    path.replace(/:([A-Za-z_]+)/g, (_, name: string) => valueFor(name)) +
    (query.length === 0 ? "" : `?${query.map(({ name }) => `${name}=${valueFor(name)}`).join("&")}`);
  const parts = ["curl"];
  if (method !== "GET") parts.push(`-X ${method}`);
  parts.push(`"$NINEFOLD_URL${target}"`);
  if (operationNamed(spec.operation).access !== "public")
    parts.push('-H "Authorization: Bearer $NINEFOLD_KEY"');
  const body = spec.anyBody === undefined ? spec.example : { order: 1042 };
  if (body !== undefined) {
    // The way to write an apostrophe within apostrophes of a shell.
    const text = JSON.stringify(body).replaceAll("'", String.raw`'\''`);
    parts.push('-H "Content-Type: application/json"', `-d '${text}'`);
  }
  return parts.join(" ");
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
  const schema = publicSchema(body);
  return {
    required,
    content: { "application/json": { schema, ...(example === undefined ? {} : { example }) } },
  };
}

const MEANING_OF_SUCCESS: Readonly<Record<string, string>> = {
  "200": "Done; the answer.",
  "201": "Made.",
  "202": "Taken in; it will be done.",
  "204": "Done; there is nothing to say.",
};

function successes(spec: DeclaredRoute["spec"], area: string): Json {
  const responses: Record<string, Json> = {};
  for (const [status, answer] of Object.entries(spec.answers)) {
    const schema = publicSchema(answer);
    const content = { "application/json": { schema, example: exampleOf(schema, area) } };
    responses[status] = {
      description: MEANING_OF_SUCCESS[status] ?? "Done.",
      headers: ANSWER_HEADERS,
      ...(status === "204" ? {} : { content }),
    };
  }
  return responses;
}

/** Errors that stand alone on their status are described once for all operations, under the name of their code. */
function errorResponses(): Json {
  const codes = Object.keys(STATUS_BY_CODE) as ErrorCode[];
  return Object.fromEntries(codes.map((code) => [code, errorResponse(STATUS_BY_CODE[code], [code])]));
}

function errorResponse(status: number, codes: readonly ErrorCode[]): Json {
  const retry = status === 429 ? { "Retry-After": { $ref: "#/components/headers/RetryAfter" } } : {};
  const examples = codes.map((code) => [code, { value: errorExample(code) }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${MEANING[code]}`).join("\n\n"),
    headers: { ...ANSWER_HEADERS, ...retry },
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/Error" },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function errorExample(code: ErrorCode): Json {
  const fields = { name: ["is required: it must be a text"] };
  return {
    error: {
      code,
      message: code === "validation_error" ? "name is required: it must be a text" : MEANING[code],
    },
    code,
    request_id: "0199f0a2-7c1e-7b3a-9d52-0c8f6f0f5e11",
    ...(code === "validation_error" ? { fields } : {}),
  };
}

function failures(spec: DeclaredRoute["spec"], operation: Operation, method: string): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodes(spec, operation, method)) {
    const status = STATUS_BY_CODE[code];
    const known = byStatus.get(status) ?? [];
    if (!known.includes(code)) byStatus.set(status, [...known, code]);
  }
  const responses: Record<string, Json> = {};
  for (const [status, codes] of byStatus) {
    responses[String(status)] =
      codes.length === 1 ? { $ref: `#/components/responses/${codes[0]}` } : errorResponse(status, codes);
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
