import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

/** A response, read whole. */
interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; empty when there is none. */
  readonly body: unknown;
}

/** A JSON schema of the API document. */
interface Schema {
  readonly [keyword: string]: unknown;
}

interface Media {
  readonly schema?: Schema;
}

interface Described {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, Media>>;
}

interface Operation {
  readonly operationId: string;
  readonly "x-former-operation-id"?: string;
  readonly responses: Readonly<Record<string, Described>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Described>>;
  };
}

/** The name of an operation, by which tests know it: its id in the document can have another form. */
const nameOf = (operation: Operation): string => operation["x-former-operation-id"] ?? operation.operationId;

/** Operations that respond to every method, also below their path: they are described by `POST` at the path itself. */
const EVERY_METHOD: ReadonlySet<string> = new Set(["catch.in", "monitors.ping"]);

const PATH = join(import.meta.dir, "../golden/openapi.json");
let document: Document;
/** An operation with its path, in whose segments null stands for a parameter. */
interface Placed {
  readonly segments: readonly (string | null)[];
  readonly operation: Operation;
}

/** The operations by method and number of segments, and those of every path. Earliest literal segments come first. */
let operations: ReadonlyMap<string, readonly Placed[]>;
let everywhere: readonly Placed[];
describeBy(JSON.parse(readFileSync(PATH, "utf8")));

/** Sets the document that responses are checked with, in place of the golden file: for the run that updates the file. */
export function describeBy(described: unknown): void {
  document = described as Document;
  const placed = Object.entries(document.paths).flatMap(([path, methods]) => {
    const segments = path.split("/").map((part) => (part.startsWith("{") ? null : part));
    return Object.entries(methods).map(([method, operation]) => ({
      place: placeOf(method.toUpperCase(), segments.length),
      segments,
      operation,
    }));
  });
  const rank = ({ segments }: Placed): string => segments.map((part) => (part === null ? "1" : "0")).join("");
  placed.sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
  operations = Map.groupBy(placed, ({ place }) => place);
  everywhere = placed.filter(({ operation }) => EVERY_METHOD.has(nameOf(operation)));
}

function placeOf(method: string, segments: number): string {
  return `${method} ${segments}`;
}

/** Paths of pages that a path of an operation seems to fit. */
const PAGES = /^\/status\/style-/;

/** The operation that a request means: of several that fit, the one with the earliest literal segment. */
function operationOf(method: string, target: string): Operation | undefined {
  const path = target.split("?", 1)[0] ?? "";
  if (PAGES.test(path)) return undefined;
  const segments = path.split("/");
  const fits = (one: Placed): boolean =>
    one.segments.every((part, at) => (part === null ? segments[at] : part === segments[at]));
  const found = operations.get(placeOf(method, segments.length))?.find(fits) ?? everywhere.find(fits);
  return found?.operation;
}

/**
 * What a response has that the API document does not say of it: its status, its media type, a field or a value. Empty
 * for a response that fits, and for one of something that is no operation of the document. A response that an earlier
 * version stored may omit fields that were added later.
 */
export function undocumented(
  method: string,
  target: string,
  response: Received,
  { storedByEarlierVersion = false } = {},
): string[] {
  // The HTTP parser rejects a request with 431 before the API sees it.
  if (method === "HEAD" || method === "OPTIONS" || response.status === 431) return [];
  const operation = operationOf(method, target);
  if (operation === undefined) return [];
  const where = `${nameOf(operation)} ${response.status}`;
  const range = `${String(response.status)[0]}XX`;
  const described = resolve(operation.responses[response.status] ?? operation.responses[range]);
  if (described === undefined) return [`${where}: this status is not described`];
  const type = response.headers.get("content-type");
  if (described.content === undefined)
    return response.text === "" ? [] : [`${where}: a body is not described`];
  if (response.text === "" && type === null) return [];
  const media = mediaOf(described.content, type);
  if (media === undefined) return [`${where}: the media type ${type} is not described`];
  if (media.schema === undefined || !String(type).startsWith("application/json")) return [];
  return mismatches(withoutWarnings(response), media.schema, "")
    .filter((text) => !(storedByEarlierVersion && MISSING.test(text)))
    .map((text) => `${where}: ${text}`);
}

/** Every successful response that is an object can have `warnings`, as the introduction of the document says. */
function withoutWarnings({ status, body }: Received): unknown {
  if (status >= 300 || !isObject(body) || !Array.isArray(body["warnings"])) return body;
  const { warnings, ...described } = body;
  return (warnings as unknown[]).every((warning) =>
    /^(?:(?:Unknown (?:field|query parameter)|The header) `|Keys that this person )/.test(String(warning)),
  )
    ? described
    : body;
}

const MISSING = /^[\w.[\]]+ is missing$/;

function resolve(described: Described | undefined): Described | undefined {
  const name = described?.$ref?.split("/").at(-1);
  return name === undefined ? described : document.components.responses[name];
}

function mediaOf(content: NonNullable<Described["content"]>, type: string | null): Media | undefined {
  const exact = content[type ?? ""] ?? content[(type ?? "").split(";", 1)[0] ?? ""];
  if (exact !== undefined) return exact;
  // A bare media type describes it with any parameters.
  const found = Object.entries(content).find(([name]) => name === "*/*");
  return found?.[1];
}

/** Says of a value all that its schema does not allow. Fields that the schema does not declare are not allowed either. */
function mismatches(value: unknown, schema: Schema, at: string): string[] {
  const { $ref } = schema;
  if (typeof $ref === "string") {
    const named = document.components.schemas[$ref.split("/").at(-1) ?? ""];
    if (named === undefined) return [`${at}: ${$ref} leads nowhere`];
    return mismatches(value, named, at);
  }
  const found: string[] = [];
  for (const [rule, wanted] of rulesOf(schema)) found.push(...rule(value, wanted, at, schema));
  return found;
}

const RULES_OF_SCHEMAS = new WeakMap<Schema, readonly (readonly [rule: Rule, wanted: unknown])[]>();

/** The rules of a schema, which are read once: every response of every test is checked. */
function rulesOf(schema: Schema): readonly (readonly [rule: Rule, wanted: unknown])[] {
  const known = RULES_OF_SCHEMAS.get(schema);
  if (known !== undefined) return known;
  const rules = Object.entries(schema).flatMap(([keyword, wanted]) => {
    const rule = RULES[keyword];
    if (rule === undefined) throw new Error(`the schema keyword ${keyword} is not known to the check`);
    return rule === ALLOWED ? [] : [[rule, wanted] as const];
  });
  RULES_OF_SCHEMAS.set(schema, rules);
  return rules;
}

type Rule = (value: unknown, wanted: unknown, at: string, schema: Schema) => string[];

/** A rule for values that pass it or do not. */
function plain(test: (value: unknown, wanted: never) => boolean, words: string): Rule {
  return (value, wanted, at) =>
    test(value, wanted as never)
      ? []
      : [`${at || "body"} ${words} ${JSON.stringify(wanted)}: ${shown(value)}`];
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "undefined").slice(0, 100);
}

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/,
  uri: /^https?:\/\/\S+$/,
  email: /^\S+@\S+$/,
};

const ALLOWED: Rule = () => [];

const RULES: Readonly<Record<string, Rule>> = {
  description: ALLOWED,
  examples: ALLOWED,
  default: ALLOWED,
  title: ALLOWED,
  writeOnly: ALLOWED,
  "x-resource": ALLOWED,
  "x-secret-if": ALLOWED,
  contentMediaType: ALLOWED,
  required: (value, wanted, at) =>
    isObject(value)
      ? (wanted as string[])
          .filter((name) => !Object.hasOwn(value, name))
          .map((name) => `${at}.${name} is missing`)
      : [],
  properties: (value, wanted, at, schema) =>
    isObject(value) ? ofMembers(value, wanted as never, at, schema) : [],
  patternProperties: (value, _, at, schema) =>
    isObject(value) && schema["properties"] === undefined ? ofMembers(value, {}, at, schema) : [],
  additionalProperties: (value, _, at, schema) =>
    isObject(value) && schema["properties"] === undefined && schema["patternProperties"] === undefined
      ? ofMembers(value, {}, at, schema)
      : [],
  items: (value, wanted, at) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => mismatches(item, wanted as Schema, `${at}[${index}]`))
      : [],
  anyOf: (value, wanted, at) => {
    const tried = (wanted as Schema[]).map((schema) => mismatches(value, schema, at));
    return tried.some((found) => found.length === 0)
      ? []
      : [`${at || "body"} fits none of: ${tried.flat().join("; ")}`];
  },
  not: (value, wanted, at) =>
    mismatches(value, wanted as Schema, at).length === 0
      ? [`${at} is what it must not be: ${shown(value)}`]
      : [],
  type: plain(
    (value, wanted: string | string[]) => [wanted].flat().some((type) => isOfType(value, type)),
    "is not a",
  ),
  enum: plain((value, wanted: unknown[]) => wanted.includes(value), "is not one of"),
  const: plain((value, wanted) => isDeepStrictEqual(value, wanted), "is not"),
  format: plain(
    (value, wanted: string) => !isText(value) || FORMATS[wanted]?.test(value) === true,
    "is not in format",
  ),
  pattern: plain(
    (value, wanted: string) => !isText(value) || new RegExp(wanted, "u").test(value),
    "does not match",
  ),
  minLength: plain(
    (value, wanted: number) => !isText(value) || [...value].length >= wanted,
    "is shorter than",
  ),
  maxLength: plain(
    (value, wanted: number) => !isText(value) || [...value].length <= wanted,
    "is longer than",
  ),
  minimum: plain((value, wanted: number) => !isNumber(value) || value >= wanted, "is less than"),
  maximum: plain((value, wanted: number) => !isNumber(value) || value <= wanted, "is more than"),
  exclusiveMinimum: plain((value, wanted: number) => !isNumber(value) || value > wanted, "is not more than"),
  minItems: plain(
    (value, wanted: number) => !Array.isArray(value) || value.length >= wanted,
    "has fewer items than",
  ),
  maxItems: plain(
    (value, wanted: number) => !Array.isArray(value) || value.length <= wanted,
    "has more items than",
  ),
  uniqueItems: plain(
    (value) =>
      !Array.isArray(value) || new Set(value.map((item) => JSON.stringify(item))).size === value.length,
    "has items twice",
  ),
  minProperties: plain(
    (value, wanted: number) => !isObject(value) || Object.keys(value).length >= wanted,
    "has fewer members than",
  ),
  maxProperties: plain(
    (value, wanted: number) => !isObject(value) || Object.keys(value).length <= wanted,
    "has more members than",
  ),
};

function ofMembers(
  value: Record<string, unknown>,
  declared: Record<string, Schema>,
  at: string,
  schema: Schema,
) {
  const patterns = Object.entries((schema["patternProperties"] ?? {}) as Record<string, Schema>);
  const others = schema["additionalProperties"];
  return Object.entries(value).flatMap(([name, member]) => {
    const path = `${at}.${name}`;
    const own = Object.hasOwn(declared, name) ? declared[name] : undefined;
    const ofPattern = () => patterns.find(([pattern]) => new RegExp(pattern, "u").test(name))?.[1];
    const found = own ?? ofPattern() ?? (isObject(others) ? others : undefined);
    if (found !== undefined) return mismatches(member, found, path);
    return others === true ? [] : [`${path} is not described`];
  });
}
