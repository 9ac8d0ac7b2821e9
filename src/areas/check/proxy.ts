import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { listOf, oneOf, text } from "../../kernel/data/schema.ts";
import { ApiError, errorMeaning, invalidField } from "../../kernel/errors.ts";
import { rateLimitHeaders } from "../../kernel/http/access/guard.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { ClientRejection, renderForwardedError } from "../../kernel/http/responses/response.ts";
import { PROXY_FLAGS_MAX, SCOPES_HEADER_BYTES_MAX } from "./domain.ts";
import type { CheckDeps, KeyRequirement, SchemaOf } from "./ports.ts";
import type { CheckResult } from "./schema.ts";
import type { CheckRequest } from "./service.ts";

/** Value of an empty header. A proxy that copies only headers that exist would otherwise forward those of its client. */
const EMPTY = "-";
const AUTHORIZATION = "authorization";
const BEARER = /^Bearer +(\S+) *$/i;

/** Creates the query of a proxy. It comes from the proxy's configuration, so that unknown parameters are errors. */
export function proxyQuery<KeyRequest>({ keys, meters, flags }: CheckDeps<KeyRequest>) {
  return Type.Object(
    {
      require: Type.Optional(
        listOf(text({ min: 1, max: REQUIRE_LENGTH_MAX }), {
          min: 1,
          max: REQUIRE_MAX,
          of: "texts",
          description:
            'Scope or permission that the key must have. Repeatable. Or one combination of them as JSON, such as `{"or":["orders:read","admin"]}`.',
        }),
      ),
      cost: queryParameter(keys.fields.cost),
      ratelimit: Type.Optional(
        Type.Array(
          Type.String({
            pattern: "^[a-z0-9_.-]{1,64}(:[0-9]{1,7})?$",
            errorMessage: "must be the name of a limit, or name:cost",
          }),
          {
            maxItems: LIMITS_MAX,
            description: "Rate limit of the key, as `name` or `name:cost`. Repeatable.",
          },
        ),
      ),
      deduct: queryParameter(meters.fields.amount, { description: "Number of credits to deduct." }),
      meter: queryParameter(meters.fields.meter_id, {
        description: "Meter for `deduct`; by default the key's `meter_id`, or its `owner_id` if it has none.",
      }),
      flag: Type.Optional(
        Type.Array(flags.key, {
          maxItems: PROXY_FLAGS_MAX,
          errorMessage: `must occur at most ${PROXY_FLAGS_MAX} times`,
          description: "Flag to evaluate. Repeatable.",
        }),
      ),
      header: Type.Optional(
        Type.String({
          pattern: "^[A-Za-z0-9-]{1,64}$",
          errorMessage: "must be the name of a header",
          description:
            "Name of the header with the client's key; by default `authorization` with a Bearer token.",
        }),
      ),
      deny: Type.Optional(
        oneOf(["exact", "403"], {
          errorMessage: "must be exact or 403",
          description:
            "`403` replaces the statuses 402 and 429 by 403, for nginx; `X-Check-Status` has the original status.",
        }),
      ),
    },
    { additionalProperties: false },
  );
}
export type ProxyQuery = Static<ReturnType<typeof proxyQuery>>;

/** Required scopes per query, the same as per body. */
const REQUIRE_MAX = 20;
/** Longest `require`: a combination as JSON. All headers and the path together stay below the limits of proxies. */
const REQUIRE_LENGTH_MAX = 4_096;
/** Rate limits per query, the same as per key. */
const LIMITS_MAX = 10;

/** Converts the schema of a body's field to that of an optional parameter, which is never null. */
function queryParameter<Value>(schema: SchemaOf<Value>, more: object = {}) {
  const [member = schema] = (schema.anyOf ?? []) as TSchema[];
  const { description } = schema;
  const annotations = { ...(description === undefined ? {} : { description }), ...more };
  return Type.Optional(Type.Unsafe<NonNullable<Value>>({ ...member, ...annotations }));
}

/** Creates the check of a proxy's client. @throws ApiError `validation_error` */
export function checkRequestOf<KeyRequest>(
  { keys }: CheckDeps<KeyRequest>,
  call: Call,
  { require, cost, ratelimit = [], deduct, meter, flag = [], header = AUTHORIZATION }: ProxyQuery,
): CheckRequest<KeyRequest> {
  if (meter !== undefined && deduct === undefined) throw invalidField("meter", "requires deduct");
  const { headers } = call.request;
  const terms = {
    secret: readSecret(headers, header),
    meta: { ip: call.clientAddress, user_agent: headers.get("user-agent") },
    ...(require === undefined ? {} : { require: requirementOf(require) }),
    ...(cost === undefined ? {} : { cost }),
    ratelimits: ratelimit.map(parseLimit),
  };
  return {
    key: keys.requestOf(terms),
    charge: deduct === undefined ? null : { kind: "deduct", amount: deduct, meter_id: meter },
    flags: flag,
    context: {},
  };
}

/** One text that begins with `{` is a combination as JSON. @throws ApiError `validation_error` */
function requirementOf(texts: string[]): KeyRequirement {
  const [only = ""] = texts;
  if (texts.length !== 1 || !only.startsWith("{")) return texts;
  try {
    return JSON.parse(only) as KeyRequirement;
  } catch {
    throw invalidField("require", "begins with { but is not JSON");
  }
}

/** Reads the client's key. An empty text stands for none and is never a valid key. */
function readSecret(headers: Headers, header: string): string {
  const value = headers.get(header)?.trim() ?? "";
  return header.toLowerCase() === AUTHORIZATION ? (BEARER.exec(value)?.[1] ?? "") : value;
}

function parseLimit(text: string) {
  const [name = "", cost] = text.split(":");
  return cost === undefined ? { name } : { name, cost: Number(cost) };
}

/** Returns the headers of a response. All of them are always set. */
export function headersOf(result: CheckResult): Record<string, string> {
  const { code, status, key_id, owner_id, environment, scopes, meter, flags } = result;
  const scopeList = scopes?.map((scope) => encodeForHeader(scope)).join(" ") ?? "";
  const variants = Object.entries(flags ?? {}).map(([key, { variant }]) => `${key}=${headerValue(variant)}`);
  return {
    "x-check-code": code,
    "x-check-status": String(status),
    "x-key-id": headerValue(key_id),
    "x-key-owner": headerValue(owner_id),
    "x-key-environment": headerValue(environment),
    "x-key-scopes": scopeList === "" || scopeList.length > SCOPES_HEADER_BYTES_MAX ? EMPTY : scopeList,
    "x-meter-available": meter === null ? EMPTY : String(meter.available),
    "x-flags": variants.length === 0 ? EMPTY : variants.join(","),
    "cache-control": "no-store",
  };
}

function headerValue(text: string | null | undefined): string {
  return text === null || text === undefined || text === "" ? EMPTY : encodeForHeader(text);
}

/** Percent-encodes all characters of a text that are separators or not printable ASCII. */
function encodeForHeader(text: string): string {
  if (text === EMPTY) return "%2D";
  return text
    .toWellFormed()
    .replace(/[^!-$&-+\--<>-~]/gu, (character) =>
      Array.from(
        Buffer.from(character),
        (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
      ).join(""),
    );
}

/** Creates the rejection that a proxy forwards to its client. */
export function clientRejection(
  result: CheckResult,
  deny: ProxyQuery["deny"],
  requestId: string,
): ClientRejection {
  const { code, status, retry_after_seconds } = result;
  if (code === "ok") throw new Error("an allowed request cannot be rejected");
  const error = new ApiError(code, errorMeaning(code)[1], {
    headers: {
      ...headersOf(result),
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
      ...exceededHeaders(result),
    },
    ...(retry_after_seconds === null ? {} : { retryAfterSeconds: retry_after_seconds }),
  });
  const rendered = renderForwardedError(error, requestId);
  const isHidden = deny === "403" && (status === 402 || status === 429);
  return new ClientRejection(isHidden ? { ...rendered, status: 403 } : rendered);
}

/** Returns the headers of the exceeded rate limit. */
function exceededHeaders({ ratelimits }: CheckResult): Record<string, string> {
  const exceeded = ratelimits?.find((state) => state.exceeded);
  if (exceeded === undefined) return {};
  const { limit, remaining, reset_at } = exceeded;
  return rateLimitHeaders({ limit, remaining, resetAt: Math.ceil(Date.parse(reset_at) / 1_000) });
}
