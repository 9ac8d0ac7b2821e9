import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { oneOf } from "../../kernel/data/schema.ts";
import { ApiError, errorMeaning, invalidField } from "../../kernel/errors.ts";
import { rateLimitHeaders } from "../../kernel/http/access/guard.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { ClientRefusal, renderError } from "../../kernel/http/responses/response.ts";
import { PROXY_FLAGS_MAX, SCOPES_HEADER_BYTES_MAX } from "./domain.ts";
import type { CheckPorts, SchemaOf } from "./ports.ts";
import type { CheckAnswer } from "./schema.ts";
import type { Question } from "./service.ts";

/** What a header says where there is nothing: proxies that copy only what is there would let the client's own pass. */
const EMPTY = "-";
const AUTHORIZATION = "authorization";
const BEARER = /^Bearer +(\S+) *$/i;

/** The query of a proxy, fixed by its configuration. What is misspelt must not go unnoticed. */
export function proxyQuery<Asked>({ keys, meters, flags }: CheckPorts<Asked>) {
  return Type.Object(
    {
      require: given(keys.fields.require, { description: "A scope that the key must have. Repeatable." }),
      cost: given(keys.fields.cost),
      ratelimit: Type.Optional(
        Type.Array(
          Type.String({
            pattern: "^[a-z0-9_.-]{1,64}(:[0-9]{1,7})?$",
            errorMessage: "must be the name of a limit, or name:cost",
          }),
          { maxItems: LIMITS_MAX, description: "A limit of the key, as `name` or `name:cost`. Repeatable." },
        ),
      ),
      deduct: given(meters.fields.amount, { description: "Credits to deduct." }),
      meter: given(meters.fields.meter_id, {
        description: "With `deduct`: the key's `meter_id` unless given, or else its `owner_id`.",
      }),
      flag: Type.Optional(
        Type.Array(flags.key, {
          maxItems: PROXY_FLAGS_MAX,
          errorMessage: `must be given ${PROXY_FLAGS_MAX} times at most`,
          description: "A flag to evaluate. Repeatable.",
        }),
      ),
      header: Type.Optional(
        Type.String({
          pattern: "^[A-Za-z0-9-]{1,64}$",
          errorMessage: "must be the name of a header",
          description:
            "Where the client's key stands, as it is; `authorization` unless given, as a Bearer token.",
        }),
      ),
      deny: Type.Optional(
        oneOf(["exact", "403"], {
          errorMessage: "must be exact or 403",
          description:
            "With `403`, 402 and 429 are sent as 403, for nginx: `X-Check-Status` has the real one.",
        }),
      ),
    },
    { additionalProperties: false },
  );
}
/** What a proxy asks. */
export type ProxyQuery = Static<ReturnType<typeof proxyQuery>>;

/** Limits that a query names: as many as a key can have. */
const LIMITS_MAX = 10;

/** A field of a body as a parameter: it is there, or not, and never null. */
function given<Value>(schema: SchemaOf<Value>, more: object = {}) {
  const [member = schema] = (schema.anyOf ?? []) as TSchema[];
  const { description } = schema;
  const said = { ...(description === undefined ? {} : { description }), ...more };
  return Type.Optional(Type.Unsafe<NonNullable<Value>>({ ...member, ...said }));
}

/** What a proxy asks about its client's request. @throws ApiError `validation_error` */
export function questionOf<Asked>(
  { keys }: CheckPorts<Asked>,
  call: Call,
  { require, cost, ratelimit = [], deduct, meter, flag = [], header = AUTHORIZATION }: ProxyQuery,
): Question<Asked> {
  if (meter !== undefined && deduct === undefined) throw invalidField("meter", "goes with deduct");
  const { headers } = call.request;
  const asked = {
    secret: secretIn(headers, header),
    meta: { ip: call.clientAddress, user_agent: headers.get("user-agent") },
    ...(require === undefined ? {} : { require }),
    ...(cost === undefined ? {} : { cost }),
    ratelimits: ratelimit.map(limitNamed),
  };
  return {
    key: keys.askedOf(asked),
    claim: deduct === undefined ? null : { kind: "deduct", amount: deduct, meter_id: meter },
    flags: flag,
    context: {},
  };
}

/** The key that a client sent; an empty one, which no key is, where it sent none. */
function secretIn(headers: Headers, header: string): string {
  const value = headers.get(header)?.trim() ?? "";
  return header.toLowerCase() === AUTHORIZATION ? (BEARER.exec(value)?.[1] ?? "") : value;
}

function limitNamed(text: string) {
  const [name = "", cost] = text.split(":");
  return cost === undefined ? { name } : { name, cost: Number(cost) };
}

/** The headers of every answer: always all of them. */
export function headersOf(answer: CheckAnswer): Record<string, string> {
  const { code, status, key_id, owner_id, environment, scopes, meter, flags } = answer;
  const listed = scopes?.map((scope) => encoded(scope)).join(" ") ?? "";
  const variants = Object.entries(flags ?? {}).map(([key, { variant }]) => `${key}=${shown(variant)}`);
  return {
    "x-check-code": code,
    "x-check-status": String(status),
    "x-key-id": shown(key_id),
    "x-key-owner": shown(owner_id),
    "x-key-environment": shown(environment),
    "x-key-scopes": listed === "" || listed.length > SCOPES_HEADER_BYTES_MAX ? EMPTY : listed,
    "x-meter-available": meter === null ? EMPTY : String(meter.available),
    "x-flags": variants.length === 0 ? EMPTY : variants.join(","),
    "cache-control": "no-store",
  };
}

function shown(text: string | null | undefined): string {
  return text === null || text === undefined || text === "" ? EMPTY : encoded(text);
}

/** A text that stands in a header and in lists there: what is not printable ASCII, and what separates, is percent-encoded. */
function encoded(text: string): string {
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

/** The refusal that a proxy hands to its client. */
export function clientRefusal(
  answer: CheckAnswer,
  deny: ProxyQuery["deny"],
  requestId: string,
): ClientRefusal {
  const { code, status, retry_after_seconds } = answer;
  if (code === "ok") throw new Error("what is allowed is no refusal");
  const error = new ApiError(code, errorMeaning(code)[1], {
    headers: {
      ...headersOf(answer),
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
      ...exceededHeaders(answer),
    },
    ...(retry_after_seconds === null ? {} : { retryAfterSeconds: retry_after_seconds }),
  });
  const rendered = renderError(error, requestId);
  const isHidden = deny === "403" && (status === 402 || status === 429);
  return new ClientRefusal(isHidden ? { ...rendered, status: 403 } : rendered);
}

/** The limit that keeps a client waiting. */
function exceededHeaders({ ratelimits }: CheckAnswer): Record<string, string> {
  const exceeded = ratelimits?.find((state) => state.exceeded);
  if (exceeded === undefined) return {};
  const { limit, remaining, reset_at } = exceeded;
  return rateLimitHeaders({ limit, remaining, resetAt: Math.ceil(Date.parse(reset_at) / 1_000) });
}
