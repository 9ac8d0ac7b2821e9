import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import { version } from "../../../../package.json" with { type: "json" };
import { slices } from "../../background/time-slices.ts";
import { DURATION_PATTERN } from "../../data/duration-text.ts";
import { BALANCE_EXTRAS } from "../../data/ledger.ts";
import { durationUnitOf, oneOf, uuid } from "../../data/schema.ts";
import {
  ApiError,
  type ErrorCode,
  errorFields,
  errorMeaning,
  invalidField,
  knownErrors,
} from "../../errors.ts";
import { isoTime } from "../../time/date-time.ts";
import { PROXY_KEY_HEADER } from "../access/guard.ts";
import type { ApiPart, DeclaredRoute } from "../api.ts";
import type { AdditionalResponse, Operation } from "../operation.ts";
import { renderError } from "../responses/response.ts";
import { EXAMPLE_KEY, OWN_PAGE_HEADER, SECURITY_SCHEMES, securityOf } from "./openapi-security.ts";
import { operationIdOf } from "./operation-ids.ts";

/** A parameter in a path of Elysia. */
const PATH_PARAMETER = /:([A-Za-z_]+)/g;

const INTRODUCTION = `
Everything is JSON over HTTP. Responses are flat objects without an envelope, and each carries \`X-Request-Id\`.

**Keys.** Send one with every request: \`Authorization: Bearer sm_…\`. Each operation names the scope that its key needs;
the account's platform key has all of them. Operations marked *public* need no key. The example requests use
\`$URL\` for the server's address and \`$AUTH\` for the key's header: \`AUTH='Authorization: Bearer sm_…'\`.

**Errors.** Every error has the same body, with a \`code\` for programs and a \`message\` that says what is wrong and what to do.
A request is rejected by the first gate that it does not pass (401, 404, 403, 429, 400 or 413, 402), free of charge.
Any request can return \`internal_error\` (500), which changes nothing and is free of charge.

**Credits.** Some operations cost credits; each states its price. Charge and effect are one transaction: a 400, 402 or 5xx is
free of charge; errors detected while executing (403, 404, 408, 409) are charged, but change nothing.

**Idempotency.** Changes accept an \`Idempotency-Key\`: for 24 hours, a repeat with the same key returns the first response,
is not charged and changes nothing.

**Warnings.** Unknown fields and query parameters are ignored. A successful response that is an object then has \`warnings\`,
an array of at most ten strings: \`\`"Unknown field \`period_s\`. Did you mean \`period_ms\`?"\`\`.

**Rate limits.** Each key has a token bucket with its tier's requests per minute, and each account also has a bucket ten times that size,
shared by its keys. A 429 carries \`Retry-After\`, in seconds.
`.trim();

/** The OpenAPI 3.1 document of all endpoints of the API, at `publicUrl` or the origin that serves it. It is made in slices, since it takes some 50 ms. */
export async function openApiDocument(
  routes: readonly DeclaredRoute[],
  parts: readonly ApiPart[],
  publicUrl: string | null,
) {
  const paths: Record<string, Record<string, Json>> = {};
  const named: Components = new Map();
  publicSchema(errorSchema(), named);
  for (const route of routes) {
    if (route.operation.monitoring) continue;
    if (slices.isOver) await slices.next();
    const path = route.path.replace(PATH_PARAMETER, "{$1}");
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
    servers: [{ url: publicUrl ?? "/" }],
    tags: parts.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      schemas: Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: { RequestId: REQUEST_ID, RetryAfter: RETRY_AFTER },
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      responses: Object.fromEntries(
        knownErrors().map((code) => {
          const [status, , remedy] = errorMeaning(code);
          return [code, { ...errorResponse(status, [code]), "x-status": status, "x-remedy": remedy }];
        }),
      ),
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

/** Made with the document, not with this module: the areas, loaded after it, have codes of their own. */
function errorSchema() {
  return Type.Object(
    {
      error: Type.Object({
        code: Type.String({ description: "The same code as in `error`." }),
        message: Type.String({ description: "What is wrong, then what to do." }),
        docs: Type.Optional(
          Type.String({
            description: "Path of a page about the error on this server: `/docs/errors/<code>`.",
          }),
        ),
      }),
      code: oneOf(knownErrors(), {}),
      request_id: uuid({ description: "As in `X-Request-Id`." }),
      fields: Type.Optional(
        Type.Record(Type.String(), Type.Array(Type.String()), {
          description: "What is wrong with each rejected field, by field name.",
        }),
      ),
      ...BALANCE_EXTRAS,
      leader: Type.Optional(
        Type.Union([Type.String(), Type.Null()], {
          description: "With `not_leader`: URL of the node that leads; null if none does, or it has none.",
        }),
      ),
      outcome: Type.Optional(
        Type.Union([Type.Literal("none"), Type.Literal("unknown")], {
          description: "With `not_leader`: `none`, nothing was changed. With `unconfirmed`: `unknown`.",
        }),
      ),
      carried_out: Type.Optional(
        Type.Literal(true, {
          description:
            "With `service_unavailable`: the request took effect, but its outcome could not be stored.",
        }),
      ),
      ...Object.fromEntries(
        Object.entries(errorFields()).map(([name, schema]) => [name, Type.Optional(schema)]),
      ),
    },
    { $id: "Error" },
  );
}

const REQUEST_ID: Json = { description: "Unique per request.", schema: { type: "string", format: "uuid" } };
const RETRY_AFTER: Json = { description: "Whole seconds.", schema: { type: "integer" } };
const IDEMPOTENCY_KEY: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "For 24 hours, a repeat with the same key returns the first response and changes nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};
const RESPONSE_HEADERS: Json = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };
const TAGGED_HEADERS: Json = {
  ...RESPONSE_HEADERS,
  ETag: { description: "Tag of this response, for `If-None-Match`.", schema: { type: "string" } },
};
const IF_NONE_MATCH: Json = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "The `ETag` of an earlier response: if nothing has changed, the response is 304.",
  schema: { type: "string" },
};

const OWN_PAGE: Json = {
  name: OWN_PAGE_HEADER,
  in: "header",
  required: true,
  description: "Set by pages of this server; a page of another site cannot set it.",
  schema: { type: "string", const: "1" },
};

function operationObject(route: DeclaredRoute, named: Components): Json {
  const { operation, tag, params, query } = route;
  const isPublic = operation.access === "public";
  const operationId = operationIdOf(operation.name);
  const parameters = [...parametersOf("path", params), ...parametersOf("query", query)];
  const all = [
    ...parameters,
    ...(takesKey(route) ? [{ $ref: "#/components/parameters/IdempotencyKey" }] : []),
    ...(operation.tagged ? [IF_NONE_MATCH] : []),
    ...(operation.fromOwnPage ? [OWN_PAGE] : []),
  ];
  return {
    operationId,
    "x-former-operation-id": operationId === operation.name ? undefined : operation.name,
    summary: operation.summary,
    description: [operation.description ?? [], termsOf(operation)].flat().join("\n\n"),
    tags: [tag],
    security: isPublic ? [] : securityOf(operation),
    "x-scope": isPublic || operation.byPortal ? null : operation.access,
    "x-cost": operation.cost,
    "x-role": operation.role,
    ...(operation.stepUp ? { "x-step-up": true } : {}),
    ...(operation.ofAccount ? { "x-account": true } : {}),
    "x-codeSamples": [{ lang: "Shell", label: "curl", source: curlOf(route, parameters) }],
    parameters: all.length === 0 ? undefined : all,
    requestBody: requestBodyOf(route, named),
    responses: responsesOf(route, named),
  };
}

function responsesOf(route: DeclaredRoute, named: Components): Json {
  const also = route.operation.additionalResponses ?? {};
  const described: Record<string, unknown> = { ...successes(route, named), ...failures(route) };
  for (const [status, response] of Object.entries(also)) {
    described[status] = withAlso(described[status] as Json | undefined, response, named);
  }
  return described;
}

/** A response with more content. What two describe of one media type is either of them. */
function withAlso(
  response: Json | undefined,
  { description, content }: AdditionalResponse,
  named: Components,
): Json {
  const isNew = response === undefined;
  const { content: known = {}, description: meaning, ...rest } = response ?? { headers: RESPONSE_HEADERS };
  const joined: Record<string, Json> = { ...(known as Record<string, Json>) };
  for (const [type, schema] of Object.entries(content ?? {})) {
    const added = schema === null ? { type: "string" } : responseSchema(schema, named);
    const { schema: present, ...shown } = joined[type] ?? {};
    joined[type] = { schema: present === undefined ? added : { anyOf: [present, added] }, ...shown };
  }
  return {
    description: [meaning ?? [], description].flat().join("\n\n"),
    ...rest,
    ...(isNew ? { "x-by-settings": true } : {}),
    content: content === undefined && isNew ? undefined : joined,
  };
}

/** Whether it is a change under an `Idempotency-Key`. */
function takesKey({ operation, method }: DeclaredRoute): boolean {
  return operation.idempotent && method !== "GET";
}

/** What an operation requires of its caller, in one paragraph. */
function termsOf(operation: Operation): string {
  const { access, cost, limit, accountOnly, grantsEverything, byPortal, role, stepUp } = operation;
  const price = cost === 0 ? "free" : `${cost} credit${cost === 1 ? "" : "s"}`;
  const terms = [`**Cost** ${price}`];
  if (access === "public") terms.push("**Public**");
  else if (byPortal) terms.push("**Token** of a portal link");
  else if (access === "operator") terms.push("**Key** of the operator's account");
  else if (access === "any") terms.push("**Key** any");
  else terms.push(`**Scope** \`${grantsEverything ? "*" : access}\``);
  if (role !== null) terms.push(`**Role** ${role}`);
  if (stepUp) terms.push("**Login** within the last 15 minutes");
  if (limit === "monitor") terms.push("**Rate limit** of monitors");
  if (accountOnly) terms.push("**Not** for keys of one project");
  return terms.join(" · ");
}

interface Parameter extends Json {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly example?: unknown;
}

function parametersOf(place: Parameter["in"], schema: TObject | undefined): Parameter[] {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { description, ...shown } = publicSchema(property);
    const required = schema?.required?.includes(name) === true;
    // An optional one is omitted unless there is a reason to give it.
    const example = required ? exampleOf(shown) : undefined;
    return { name, in: place, required, description, schema: shown, example };
  });
}

/** What a proxy passes on of its client's request. */
const PROXIED = '-H "Authorization: Bearer acme_live_zyxw"';

/** The request as one line for a shell: `$URL` and `$AUTH` stand for what every caller has, as in all guides. */
function curlOf({ method, path, operation }: DeclaredRoute, parameters: readonly Parameter[]): string {
  const valueFor = (name: string): string => {
    const found = parameters.find((parameter) => parameter.name === name);
    return encodeURIComponent(String(found?.example ?? name));
  };
  const query = parameters.filter(({ in: place, required }) => place === "query" && required);
  const target =
    path.replace(PATH_PARAMETER, (_, name: string) => valueFor(name)) +
    (query.length === 0 ? "" : `?${query.map(({ name }) => `${name}=${valueFor(name)}`).join("&")}`);
  const parts = ["curl --globoff"];
  if (method !== "GET") parts.push(`-X ${method}`);
  parts.push(`"$URL${target}"`);
  if (operation.forProxies) parts.push(`-H "${PROXY_KEY_HEADER}: \${AUTH##* }"`, PROXIED);
  else if (operation.byPortal) parts.push('-H "Authorization: Bearer $TOKEN"');
  else if (operation.access !== "public") parts.push('-H "$AUTH"');
  if (operation.fromOwnPage) parts.push(`-H "${OWN_PAGE_HEADER}: 1"`);
  const body = operation.anyBody === undefined ? operation.example : { order: 1042 };
  if (body !== undefined) {
    // The way to write an apostrophe within apostrophes of a shell.
    const text = JSON.stringify(body).replaceAll("'", String.raw`'\''`);
    const withKey = text.replaceAll(EXAMPLE_KEY, `'"\${AUTH##* }"'`);
    parts.push('-H "Content-Type: application/json"', `--data-raw '${withKey}'`);
  }
  return parts.join(" ");
}

function requestBodyOf({ operation, body }: DeclaredRoute, named: Components): Json | undefined {
  const { anyBody, example } = operation;
  if (anyBody !== undefined) return { description: anyBody, required: false, content: { "*/*": {} } };
  if (body === undefined) return undefined;
  const schema = publicSchema(body, named);
  return { required: body.required !== undefined, content: { "application/json": { schema, example } } };
}

const MEANING_OF_SUCCESS: Readonly<Record<string, string>> = {
  "200": "Success.",
  "201": "Created.",
  "202": "Accepted; the work is pending.",
  "204": "Success, without a body.",
};

function successes({ responses, operation }: DeclaredRoute, named: Components): Json {
  const { responseTypes, textResponses, tagged } = operation;
  const known = tagged ? { "304": { description: "Not modified.", headers: TAGGED_HEADERS } } : {};
  if (textResponses !== undefined) {
    const content = { "text/plain": { schema: { type: "string" } } };
    const described = Object.entries(textResponses).map(([status, description]) => [
      status,
      { description, headers: RESPONSE_HEADERS, content },
    ]);
    return Object.fromEntries(described);
  }
  if (responseTypes !== undefined) {
    const content = Object.fromEntries(responseTypes.map((type) => [type, { schema: { type: "string" } }]));
    const headers = tagged ? TAGGED_HEADERS : RESPONSE_HEADERS;
    return { "200": { description: MEANING_OF_SUCCESS["200"], headers, content }, ...known };
  }
  const described = Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const example = exampleOf(responseSchema(response));
      const content = { "application/json": { schema: responseSchema(response, named), example } };
      const description = MEANING_OF_SUCCESS[status] ?? "Done.";
      return [
        status,
        {
          description,
          headers: tagged ? TAGGED_HEADERS : RESPONSE_HEADERS,
          content: status === "204" ? undefined : content,
        },
      ];
    }),
  );
  return { ...described, ...known };
}

/** Without a route it is a component, which many operations refer to. */
function errorResponse(
  status: number,
  codes: readonly ErrorCode[],
  route: DeclaredRoute | null = null,
): Json {
  const retry = status === 429 ? { "Retry-After": { $ref: "#/components/headers/RetryAfter" } } : {};
  const examples = codes.map((code) => [code, { value: errorExample(code, route) }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${errorMeaning(code)[1]}`).join("\n\n"),
    headers: { ...RESPONSE_HEADERS, ...retry },
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/Error" },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function errorExample(code: ErrorCode, route: DeclaredRoute | null): Json {
  const error = code === "validation_error" ? mistakeIn(route) : new ApiError(code, errorMeaning(code)[1]);
  return JSON.parse(renderError(error, UUID).text);
}

/** An error that a request to an operation can have: of its first required field, or of the first one with a rule. */
function mistakeIn(route: DeclaredRoute | null): ApiError {
  if (route === null) return invalidField("name", "is required: it must be a text");
  const { body, query, params } = route;
  const inputs = [body, query, params].filter((input) => input !== undefined);
  const fields = inputs.flatMap((input) =>
    Object.entries<TSchema>(input.properties).flatMap(([name, schema]) => {
      const rule: unknown = schema["errorMessage"];
      const isRequired = input.required?.includes(name) === true && input !== params;
      return typeof rule === "string" ? [{ name, rule, isRequired }] : [];
    }),
  );
  const required = fields.find(({ isRequired }) => isRequired);
  if (required !== undefined) return invalidField(required.name, `is required: it ${required.rule}`);
  const [first] = fields;
  if (first !== undefined) return invalidField(first.name, first.rule);
  return invalidField("Idempotency-Key", "must be a text of 1 to 255 characters");
}

function failures(route: DeclaredRoute): Json {
  const byStatus = Map.groupBy(new Set(errorCodes(route)), (code) => errorMeaning(code)[0]);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      codes.length === 1 && route.operation.additionalResponses?.[status] === undefined
        ? { $ref: `#/components/responses/${codes[0]}` }
        : errorResponse(status, codes, route),
    ]),
  );
}

function errorCodes(route: DeclaredRoute): ErrorCode[] {
  const { operation, params, query, body } = route;
  if (operation.forProxies) return [...(operation.errors ?? []), "service_unavailable"];
  const codes: ErrorCode[] = [];
  const changes = takesKey(route);
  // What takes any body takes any input.
  const takesInput = (params ?? query ?? body) !== undefined && operation.anyBody === undefined;
  if (takesInput || changes) codes.push("validation_error");
  if (operation.byPortal) codes.push("unauthorized", "forbidden", "rate_limit_exceeded");
  else if (operation.access !== "public")
    codes.push("unauthorized", "forbidden", "not_found", "rate_limit_exceeded");
  if (operation.stepUp) codes.push("login_required");
  // What a public endpoint costs is paid by somebody else: its caller never reads of it.
  if (operation.cost > 0 && operation.access !== "public" && !operation.byPortal)
    codes.push("insufficient_balance");
  if (changes) codes.push("conflict");
  if (body !== undefined || changes) codes.push("request_too_large");
  codes.push(...(operation.errors ?? []), "internal_error");
  const isPortalChange = operation.byPortal && route.method !== "GET";
  if (changes || isPortalChange || operation.cost > 0) codes.push("service_unavailable");
  return codes;
}

/** A piece of an OpenAPI document. */
export type Json = { readonly [key: string]: unknown };

/** Named schemas of a description, by name: each stands there once, wherever it is used. */
export type Components = Map<string, Json>;

/**
 * The schema of a part of requests as the API's description shows it: without what is for our own checks only, a union of
 * constants as an `enum`, "or null" as a second type, and durations with both forms. With `components`, a schema that has
 * an `$id` is put there, and a reference stands in its place.
 */
export function publicSchema(schema: unknown, components: Components | null = null): Json {
  return simplified(JSON.parse(JSON.stringify(schema)), { components, inForms: true }) as Json;
}

/** The same for a part of responses, whose durations have one form. */
function responseSchema(schema: unknown, components: Components | null = null): Json {
  return simplified(JSON.parse(JSON.stringify(schema)), { components, inForms: false }) as Json;
}

interface Simplifying {
  readonly components: Components | null;
  /** Whether values can have the other forms that requests accept. */
  readonly inForms: boolean;
}

function simplified(value: unknown, way: Simplifying): unknown {
  if (Array.isArray(value)) return value.map((part) => simplified(part, way));
  if (typeof value !== "object" || value === null) return value;
  const { errorMessage: _, $id: name, ...rest } = value as { [key: string]: unknown };
  const plain: Json = Object.fromEntries(
    Object.entries(rest).map(([key, part]) => [key, simplified(part, way)]),
  );
  const shown = Array.isArray(plain["anyOf"]) ? union(plain, plain["anyOf"]) : asMap(inForms(plain, way));
  const { components } = way;
  if (typeof name !== "string" || components === null) return shown;
  const known = components.get(name);
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(shown))
    throw new Error(`requests and responses have different forms of ${name}: give them schemas of their own`);
  components.set(name, shown);
  return { $ref: `#/components/schemas/${name}` };
}

/** A schema without what marks durations and time zones for this server. */
function withoutMarks(schema: Json): Json {
  const { "x-duration": _duration, "x-time-zone": _zone, ...plain } = schema;
  return plain;
}

/** A duration of a request as number or text. The limits hold for numbers, the pattern for texts. */
function inForms(schema: Json, way: Simplifying): Json {
  const unit = durationUnitOf(schema);
  const plain = withoutMarks(schema);
  if (unit === null || !way.inForms) return plain;
  return unit === "text"
    ? { ...plain, type: [plain["type"], "integer"] }
    : { ...plain, type: [plain["type"], "string"], pattern: DURATION_PATTERN };
}

/** The pattern by which TypeBox means any name. As JSON Schema reads it, a name with a line break does not match. */
const ANY_NAME = "^(.*)$";

/** A map with values of one schema, as others write it. */
function asMap(schema: Json): Json {
  const { patternProperties, ...rest } = schema;
  const values = (patternProperties as Json | undefined)?.[ANY_NAME];
  return values === undefined ? schema : { ...rest, additionalProperties: values };
}

function union({ anyOf: _, ...rest }: Json, members: readonly Json[]): Json {
  const values = members.filter(({ type }) => type !== "null");
  const joined = values.length === 1 ? values[0] : enumOf(values);
  if (joined === undefined) return { ...rest, anyOf: members };
  const nullable = values.length < members.length ? orNull(joined) : joined;
  return nullable === undefined ? { ...rest, anyOf: members } : { ...nullable, ...rest };
}

/** One schema for constants of one type; undefined for anything else. */
function enumOf(members: readonly Json[]): Json | undefined {
  const [first] = members;
  if (
    first === undefined ||
    !members.every((member) => "const" in member && member["type"] === first["type"])
  )
    return undefined;
  return { type: first["type"], enum: members.map((member) => member["const"]) };
}

/** The same with null; undefined where a second type does not express it, since an object's rules are next to its type. */
function orNull(schema: Json): Json | undefined {
  const { type } = schema;
  const types = [type].flat();
  if (type === undefined || types.includes("object") || types.includes("array") || "const" in schema)
    return undefined;
  const names = schema["enum"];
  return { ...schema, type: [...types, "null"], ...(Array.isArray(names) ? { enum: [...names, null] } : {}) };
}

const UUID = "0199f0a2-7c1e-7b3a-9d52-0c8f6f0f5e11";
const AT_MS = Date.UTC(2026, 2, 10, 12);

/**
 * A value as it could stand in a response: the schema's own example, or one of its type. Fields whose `examples` are
 * empty occur in special cases only, and in no example.
 */
export function exampleOf(schema: Json): unknown {
  if ("const" in schema) return schema["const"];
  const [example] = [schema["examples"] ?? [], schema["enum"] ?? []].flat();
  if (example !== undefined) return example;
  const [member] = [schema["anyOf"] ?? []].flat();
  if (member !== undefined) return exampleOf(member as Json);
  switch ([schema["type"]].flat()[0]) {
    case "object":
      return objectOf((schema["properties"] ?? {}) as Record<string, Json>);
    case "array":
      return [exampleOf(schema["items"] as Json)];
    case "string":
      return textOf(schema);
    case "boolean":
      return true;
    case "integer":
    case "number":
      return numberOf(schema);
    default:
      return null;
  }
}

function objectOf(properties: Record<string, Json>): Json {
  const shown = Object.entries(properties).filter(
    ([, { examples }]) => !(Array.isArray(examples) && examples.length === 0),
  );
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property)]));
}

function textOf({ format }: Json): string {
  if (format === "uuid") return UUID;
  return format === "date-time" ? isoTime(AT_MS) : "text";
}

/** Timestamps differ from other numbers by the unit in their description. */
function numberOf({ description = "" }: Json): number {
  if (/Epoch milliseconds|Milliseconds since/.test(String(description))) return AT_MS;
  return /Unix seconds/.test(String(description)) ? AT_MS / 1_000 : 1;
}
