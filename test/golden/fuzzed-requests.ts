import fc from "fast-check";
import { type ApiOperation, NOBODY_URL, type Schema } from "./api-document.ts";

/** A malformed or hostile request. */
export interface FuzzedRequest {
  readonly method: string;
  /** Path and query as they are sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
  readonly authorized: boolean;
}

/** Texts that have caused bugs before. */
const HOSTILE = [
  " ",
  "null",
  "NaN",
  "-1",
  "0",
  "1e9",
  "99999999999999999999",
  "__proto__",
  "constructor",
  "toString",
  "' OR 1=1 --",
  '"; DROP TABLE meters; --',
  "../../etc/passwd",
  "a/b",
  "%",
  "%00",
  "\u0000",
  "\r\nX-Injected: 1",
  "\u202e\u{1f4a9}",
  "\ud800",
  "ÿ",
  "<script>",
  "${7*7}",
  "x".repeat(300),
  "x".repeat(5_000),
];

/** Parts of a path with an invalid encoding. */
const MALFORMED_PARTS = ["%", "%zz", "%ff%fe", "%c0%ae", "%u0041", "%2", "a%", "%2e%2e%2f", ".", ".."];

/** As the unit `binary`, without its table of a million characters, which only finds special names; the line above has those. */
const anyCharacter = fc.nat({ max: 0x10ffff }).map((point) => String.fromCodePoint(point).toWellFormed());

const hostileText = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: anyCharacter }),
);

/** Requests to an operation. `values` are path parameters that exist. */
export function requestsFor(
  operation: ApiOperation,
  values: Record<string, string>,
): fc.Arbitrary<FuzzedRequest> {
  const methods = operation.method === "GET" ? ["GET", "GET", "GET", "HEAD"] : [operation.method];
  return fc
    .record({
      method: fc.constantFrom(...methods),
      path: paths(operation, values),
      query: queries(operation),
      headers: headers(),
      body: bodies(operation),
      authorized: fc.oneof(
        { weight: 12, arbitrary: fc.constant(true) },
        { weight: 1, arbitrary: fc.constant(false) },
      ),
    })
    .map(({ path, query, ...rest }) => ({
      ...rest,
      target: path + query,
      body: tamed(operation, rest.body),
    }));
}

function paths({ path }: ApiOperation, values: Record<string, string>): fc.Arbitrary<string> {
  const parts = path.split("/").map((part) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name === undefined) return fc.constant(part);
    const encoded = hostileText
      .filter((text) => text !== "")
      .map((text) => encodeURIComponent(text.toWellFormed()));
    return fc.oneof(
      { weight: 4, arbitrary: fc.constant(encodeURIComponent(values[name] ?? "none")) },
      { weight: 3, arbitrary: encoded },
      { weight: 1, arbitrary: fc.constantFrom(...MALFORMED_PARTS) },
    );
  });
  return fc.tuple(...parts).map((found) => found.join("/"));
}

function queries({ parameters }: ApiOperation): fc.Arbitrary<string> {
  const names = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name);
  const pair = fc
    .tuple(
      fc.constantFrom(...names, "unknown"),
      fc.oneof(hostileText, fc.integer().map(String), fc.constant("")),
    )
    .map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`);
  const some = fc
    .array(pair, { maxLength: 3 })
    .map((pairs) => (pairs.length === 0 ? "" : `?${pairs.join("&")}`));
  return fc.oneof(
    { weight: 6, arbitrary: some },
    { weight: 1, arbitrary: fc.constantFrom("?", "?%zz=%", "?limit", "?&&==&") },
  );
}

/** Header values that HTTP allows; names and line breaks that are not HTTP never reach the server's code. */
const headerText = fc
  .oneof(hostileText, fc.constantFrom("application/json", "text/plain", "k", "*/*"))
  .map((text) => text.replace(/[^\t\x20-\x7e\xa0-\xff]/g, "?"));

/** Rarely the same value twice: a used key, or an address with too many requests, would end a request early. */
const idempotencyKey = fc.oneof({ weight: 8, arbitrary: fc.uuid() }, { weight: 1, arbitrary: headerText });
const forwardedFor = fc.oneof(
  { weight: 8, arbitrary: fc.ipV4() },
  { weight: 1, arbitrary: fc.oneof(headerText, fc.ipV6()) },
);

function headers(): fc.Arbitrary<Record<string, string>> {
  return fc.record(
    {
      "Idempotency-Key": idempotencyKey,
      "Content-Type": headerText,
      "X-Forwarded-For": forwardedFor,
      Origin: headerText,
      Accept: headerText,
      "If-None-Match": headerText,
      Range: fc.constantFrom("bytes=0-0", "bytes=-1", "x"),
      Cookie: headerText,
    },
    { requiredKeys: [] },
  );
}

function bodies(operation: ApiOperation): fc.Arbitrary<string | Uint8Array | null> {
  const value = operation.body === null ? fc.jsonValue() : valueFor(operation.body);
  const example = operation.example ?? {};
  const spoiled = fc
    .tuple(fc.constantFrom(...Object.keys(example), "extra"), fc.oneof(fc.jsonValue(), hostileText, numbers))
    .map(([name, wrong]) => JSON.stringify({ ...example, [name]: wrong }));
  const deep = fc.constantFrom(...Object.keys(example), "extra").map((name) => {
    const levels = 5_000;
    return JSON.stringify({ ...example, [name]: "DEEP" }).replace(
      '"DEEP"',
      "[".repeat(levels) + "]".repeat(levels),
    );
  });
  return fc.oneof(
    { weight: 6, arbitrary: value.map((item) => JSON.stringify(item) ?? "") },
    { weight: 4, arbitrary: spoiled },
    { weight: 1, arbitrary: deep },
    { weight: 1, arbitrary: fc.constant(JSON.stringify(example)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(null, "", "{", "[]", "null", '"text"', "0", "{}{}", "\ufeff{}", "{'a':1}"),
    },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
  );
}

const numbers = fc.constantFrom<unknown>(
  0,
  -0,
  -1,
  0.5,
  1e300,
  -1e300,
  2 ** 53,
  2 ** 53 - 1,
  -(2 ** 63),
  1e-7,
);

/** Values that usually fit a schema. */
function valueFor(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 6, arbitrary: fitting(schema) },
    { weight: 1, arbitrary: fc.oneof(fc.jsonValue(), numbers) },
  );
}

function fitting(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueFor));
  const { type } = schema;
  if (typeof type === "object") return fc.oneof(...type.map((one) => fitting({ ...schema, type: one })));
  switch (type) {
    case "object":
      return objects(schema);
    case "array":
      return fc.array(valueFor(schema.items ?? {}), { maxLength: 4 });
    case "integer":
      return fc.maxSafeInteger().map((number) => clamped(number, schema));
    case "number":
      return fc.double({ noNaN: true }).map((number) => clamped(number, schema));
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "string":
      return texts(schema);
    default:
      return fc.jsonValue();
  }
}

function objects({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
  const fields = Object.entries(properties).map(([name, property]) => [name, valueFor(property)] as const);
  if (fields.length === 0) return fc.dictionary(hostileText, fc.jsonValue(), { maxKeys: 4 });
  return fc.record(Object.fromEntries(fields), {
    requiredKeys: required.filter((name) => name in properties),
  });
}

function texts({ pattern, format, examples = [] }: Schema): fc.Arbitrary<unknown> {
  const known = examples.length === 0 ? [] : [fc.constantFrom(...examples)];
  // Addresses that fail or are rejected: no request of a test leaves this machine.
  if (format === "uri")
    return fc.constantFrom(NOBODY_URL, `${NOBODY_URL}a?b#c`, "http://[::1]:9/", "ftp://127.0.0.1/", "x");
  if (pattern !== undefined) return fc.oneof(fc.stringMatching(new RegExp(pattern)), hostileText, ...known);
  return fc.oneof(hostileText, fc.uuid(), ...known);
}

function clamped(number: number, { minimum, maximum }: Schema): number {
  return Math.min(maximum ?? number, Math.max(minimum ?? number, number));
}

/** A hundred years of hourly work take long: the test clock advances only by short times. */
function tamed({ operationId }: ApiOperation, body: string | Uint8Array | null): string | Uint8Array | null {
  if (operationId !== "admin.clock.advance" || typeof body !== "string") return body;
  return body
    .replace(/("advance_ms":)[\d.]{4,}(e\+?\d+)?/, "$17")
    .replace(/("advance_ms":")\d[^"]*"/, '$17s"');
}
