import type { TSchema } from "@sinclair/typebox";
import { version } from "../../../package.json" with { type: "json" };
import { type ErrorCode, errorMeaning, knownErrors } from "../errors.ts";
import type { ApiPart, DeclaredRoute } from "./api.ts";
import type { Operation } from "./operation.ts";
import { type Components, exampleOf, type Json, publicSchema } from "./schema-text.ts";

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

/** The document, as far as it must be known. */
export interface OpenApiDocument extends Json {
  readonly openapi: string;
}

/** The OpenAPI 3.1 document of all endpoints of the API. */
export function openApiDocument(
  routes: readonly DeclaredRoute[],
  parts: readonly ApiPart[],
): OpenApiDocument {
  const paths: Record<string, Record<string, Json>> = {};
  const named: Components = new Map([["Error", errorSchema()]]);
  for (const route of routes) {
    if (route.operation.monitoring) continue;
    const path = templateOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationObject(route, named) };
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
    tags: parts.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      schemas: Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))),
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

/** Made with the document, not with this module: the areas, loaded after it, have codes of their own. */
const errorSchema = (): Json => ({
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
    code: { type: "string", enum: knownErrors() },
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
});

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

function operationObject(route: DeclaredRoute, named: Components): Json {
  const { method, operation, tag } = route;
  const isPublic = operation.access === "public";
  const parameters = parametersOf(route);
  const all = takesKey(operation, method)
    ? [...parameters, { $ref: "#/components/parameters/IdempotencyKey" }]
    : parameters;
  return {
    operationId: operation.name,
    summary: operation.summary,
    description: [operation.description, termsOf(operation)]
      .filter((text) => text !== undefined)
      .join("\n\n"),
    tags: [tag],
    security: isPublic ? [] : [{ key: [] }],
    "x-scope": isPublic ? null : operation.access,
    "x-cost": operation.cost,
    "x-codeSamples": [{ lang: "Shell", label: "curl", source: curlOf(route, parameters) }],
    ...(all.length === 0 ? {} : { parameters: all }),
    ...requestBodyOf(route, named),
    responses: { ...successes(route, named), ...failures(route) },
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

function parametersOf({ params, query, tag }: DeclaredRoute): Parameter[] {
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
        ...(required ? { example: exampleOf(shown, tag, name) } : {}),
      };
    });
  return [...list(params, "path"), ...list(query, "query")];
}

function isRequired(schema: TSchema | undefined, name: string): boolean {
  const required: unknown = schema?.required;
  return Array.isArray(required) && required.includes(name);
}

/** The request as one line for a shell: `$NINEFOLD_URL` and `$NINEFOLD_KEY` stand for what every caller has. */
function curlOf({ method, path, operation }: DeclaredRoute, parameters: readonly Parameter[]): string {
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
  if (operation.access !== "public") parts.push('-H "Authorization: Bearer $NINEFOLD_KEY"');
  const body = operation.anyBody === undefined ? operation.example : { order: 1042 };
  if (body !== undefined) {
    // The way to write an apostrophe within apostrophes of a shell.
    const text = JSON.stringify(body).replaceAll("'", String.raw`'\''`);
    parts.push('-H "Content-Type: application/json"', `-d '${text}'`);
  }
  return parts.join(" ");
}

function requestBodyOf({ operation: { anyBody, example }, body }: DeclaredRoute, named: Components): Json {
  if (anyBody !== undefined) {
    return { requestBody: { description: anyBody, required: false, content: { "*/*": {} } } };
  }
  return body === undefined ? {} : { requestBody: jsonBody(body, example, named) };
}

function jsonBody(body: TSchema, example: object | undefined, named: Components): Json {
  const required = Array.isArray(body.required) && body.required.length > 0;
  const schema = publicSchema(body, named);
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

function successes({ answers, tag }: DeclaredRoute, named: Components): Json {
  const responses: Record<string, Json> = {};
  for (const [status, answer] of Object.entries(answers)) {
    const example = exampleOf(publicSchema(answer), tag);
    const content = { "application/json": { schema: publicSchema(answer, named), example } };
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
  return Object.fromEntries(
    knownErrors().map((code) => [code, errorResponse(errorMeaning(code)[0], [code])]),
  );
}

function errorResponse(status: number, codes: readonly ErrorCode[]): Json {
  const retry = status === 429 ? { "Retry-After": { $ref: "#/components/headers/RetryAfter" } } : {};
  const examples = codes.map((code) => [code, { value: errorExample(code) }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${errorMeaning(code)[1]}`).join("\n\n"),
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
      message: code === "validation_error" ? "name is required: it must be a text" : errorMeaning(code)[1],
    },
    code,
    request_id: "0199f0a2-7c1e-7b3a-9d52-0c8f6f0f5e11",
    ...(code === "validation_error" ? { fields } : {}),
  };
}

function failures(route: DeclaredRoute): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodes(route)) {
    const [status] = errorMeaning(code);
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

function errorCodes({ operation, method, params, query, body }: DeclaredRoute): ErrorCode[] {
  const codes: ErrorCode[] = [];
  const checksInput = params !== undefined || query !== undefined || body !== undefined;
  // What takes any body takes any input.
  const takesInput = checksInput && operation.anyBody === undefined;
  const changes = operation.idempotent && method !== "GET";
  if (takesInput || changes) codes.push("validation_error");
  if (operation.access !== "public") codes.push("unauthorized", "forbidden", "rate_limit_exceeded");
  // What a public endpoint costs is paid by somebody else: its caller never reads of it.
  if (operation.cost > 0 && operation.access !== "public") codes.push("insufficient_balance");
  if (changes) codes.push("conflict");
  if (body !== undefined || changes) codes.push("request_too_large");
  codes.push(...(operation.errors ?? []), "internal_error");
  if (changes || operation.cost > 0) codes.push("service_unavailable");
  return codes;
}
