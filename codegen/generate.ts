import { type ApiOperation, type Document, operationsOf, type Schema } from "./document.ts";
import { type Direction, membersOf, referenceOf, typeOf, written } from "./types.ts";

/** The generated files: the types with the table of operations, the fields of bodies, who may call what, the methods, and the operations that guides link to. */
export const GENERATED_FILES = {
  types: "src/client/generated/api.ts",
  bodies: "src/client/generated/bodies.ts",
  access: "src/client/generated/access.ts",
  methods: "src/client/areas/methods.ts",
  operations: "src/pages/docs/operations.jsonl",
} as const;
/** The generated files of the Python package. */
export const PYTHON_FILES = {
  models: "python/ninefold/models.py",
  methods: "python/ninefold/_methods.py",
  operations: "python/ninefold/_operations.py",
} as const;
/** Generates them, from the repository's root. */
export const GENERATE_COMMAND = "bun codegen/main.ts";

/** First line of a generated file. */
export const HEADER = `// Written by \`${GENERATE_COMMAND}\` from test/golden/openapi.json. Change the schemas of the areas instead.\n`;

/** The client's types and its table of operations. */
export function generate(document: Document): string {
  const operations = operationsOf(document);
  const uses = usesOf(document, operations);
  const types = [...uses].map(([name, use]) => declaration(name, use, document, uses));
  return [HEADER, ...types, codes(document), extras(document), table(operations)].join("\n");
}

/** A use of a component: alone or within another one, in requests or responses, and as a description. */
interface Use {
  readonly isPart: boolean;
  readonly direction: Direction;
  readonly note: string;
}

type Uses = ReadonlyMap<string, Use>;

/** The first use of each component. One that occurs in requests has the form of requests. */
function usesOf(document: Document, operations: readonly ApiOperation[]): Uses {
  const uses = new Map<string, Use>();
  const visit = (schema: Schema | null, direction: Direction, note: string, isPart: boolean): void => {
    if (schema === null) return;
    const name = referenceOf(schema);
    const known = name === null ? undefined : uses.get(name);
    const isNew = known === undefined || (known.direction === "received" && direction === "sent");
    const partSomewhere = isPart || known?.isPart === true;
    if (name !== null) {
      uses.set(name, { ...(isNew ? { direction, note } : known), isPart: partSomewhere });
    }
    if (!isNew) return;
    const target = name === null ? schema : document.components.schemas[name];
    for (const [part, inner] of partsOf(target)) {
      visit(inner, direction, `${note.replace(/\.$/, "")}, \`${part}\`.`, true);
    }
  };
  for (const { method, path, body, successes } of operations) {
    visit(body, "sent", `The body of \`${method} ${path}\`.`, false);
    for (const response of Object.values(successes)) {
      // A response can be one of several.
      for (const one of response?.anyOf ?? [response]) {
        visit(one, "received", `The response of \`${method} ${path}\`.`, false);
      }
    }
  }
  return uses;
}

function partsOf(schema: Schema | undefined): [name: string, Schema][] {
  const others = schema?.additionalProperties;
  return [
    ...Object.entries(schema?.properties ?? {}),
    ...(typeof others === "object" ? [["…", others] as [string, Schema]] : []),
    ...Object.values(schema?.patternProperties ?? {}).map((one): [string, Schema] => ["…", one]),
    ...(schema?.anyOf ?? []).map((one): [string, Schema] => ["one of", one]),
    ...(schema?.items === undefined ? [] : [["[]", schema.items] as [string, Schema]]),
  ];
}

function declaration(name: string, { direction, note }: Use, document: Document, uses: Uses): string {
  const { schemas } = document.components;
  const schema = schemas[name];
  if (schema === undefined) throw new Error(`the document has no schema ${name}`);
  const head = `/** ${schema.description ?? note} */\nexport`;
  const base = baseOf(name, direction, schemas, uses);
  if (base !== null) {
    const own = Object.entries(schema.properties ?? {}).filter(
      ([member]) => schemas[base]?.properties?.[member] === undefined,
    );
    const members = membersOf({ ...schema, properties: Object.fromEntries(own) }, direction);
    return `${head} interface ${name} extends ${base} {\n${members.join(";\n")}\n}\n`;
  }
  const text = written(schema, direction);
  // An interface has lines of its own; a short alias without comments fits on one.
  return text.startsWith("{\n") || (text.startsWith("{") && text.length > ONE_LINE_MAX - name.length)
    ? `${head} interface ${name} ${text}\n`
    : `${head} type ${name} = ${text};\n`;
}

/** Maximum length of a line, without `export type = ;`. */
const ONE_LINE_MAX = 110 - 16;
/** Members that two schemas must share before one extends the other: fewer can be a coincidence. */
const SHARED_MIN = 4;

/** The largest other response or body whose members are all members of this component. */
function baseOf(
  name: string,
  direction: Direction,
  schemas: Document["components"]["schemas"],
  uses: Uses,
): string | null {
  const own = memberTexts(schemas[name]);
  const bases = [...uses].flatMap(([part, use]) => {
    const members = memberTexts(schemas[part]);
    const isBase = use.isPart && use.direction === direction;
    const isSmaller = members.size >= SHARED_MIN && members.size < own.size;
    return isBase && isSmaller && members.isSubsetOf(own) ? [{ part, size: members.size }] : [];
  });
  return bases.sort((a, b) => b.size - a.size)[0]?.part ?? null;
}

function memberTexts({ properties = {}, required = [] }: Schema = {}): Set<string> {
  const members = Object.entries(properties);
  return new Set(members.map(([name, schema]) => JSON.stringify([name, required.includes(name), schema])));
}

const OPERATION_TYPES = `/** A body that is sent as it is. */
export type AnyBody = string | Uint8Array;

/** The method and path of an operation, with the types of its parameters, body and response. */
export type Route<Result, Params extends string = never, Body = undefined, Query = undefined> = string & {
  params: Record<Params, string>;
  query: Query;
  body: Body;
  answer: Result;
};
`;

function table(operations: readonly ApiOperation[]): string {
  const names = (pass: (operation: ApiOperation) => boolean): string =>
    JSON.stringify(operations.filter(pass).map(({ id }) => id));
  const pageQuery = operations.map(({ query }) => pageQueryIn(query)).find((query) => query !== null);
  const rows = operations.map(
    (one) => `${JSON.stringify(one.id)}: "${one.method} ${one.path}" as ${routeOf(one)},\n`,
  );
  return [
    OPERATION_TYPES,
    `/** Which page of a list. */\nexport type PageQuery = ${written(pageQuery ?? {}, "sent")};\n`,
    "/** A list: its response is one of its pages. */",
    "type List<Page, Params extends string = never, More = unknown> = Route<Page, Params, undefined, PageQuery & More>;\n",
    `/** Every operation, by its name. */\nexport const OPERATIONS = {\n${rows.join("")}};\n`,
    "/** The parameters, body and response of each operation. */\nexport type Operations = typeof OPERATIONS;\n",
    "/** Operations that take no key. */",
    `export const PUBLIC: readonly string[] = ${names(({ isPublic }) => isPublic)};\n`,
    "/** Changes that take no `Idempotency-Key`, though they take a key. */",
    `export const WITHOUT_IDEMPOTENCY_KEY: readonly string[] = ${names(takesKeyAlone)};\n`,
  ].join("\n");
}

/** The type of an operation, without arguments at its end that are the default. */
function routeOf({ params, query, body, takesAnyBody, successes }: ApiOperation): string {
  const all = Object.values(successes).map((one) => (one === null ? "undefined" : typeOf(one, "received")));
  const response = [...new Set(all)].join(" | ");
  const names = Object.keys(params?.properties ?? {}).map((name) => JSON.stringify(name));
  const path = names.join(" | ") || "never";
  if (query !== null && pageQueryIn(query) !== null)
    return generic("List", [response, path, moreThanPage(query)]);
  const sent = takesAnyBody ? "AnyBody" : body === null ? "undefined" : typeOf(body, "sent");
  return generic("Route", [response, path, sent, query === null ? "undefined" : written(query, "sent")]);
}

function generic(name: string, types: readonly string[]): string {
  const last = types.findLastIndex((type) => !["never", "undefined", "unknown"].includes(type));
  return `${name}<${types.slice(0, Math.max(last, 0) + 1).join(", ")}>`;
}

const PAGE_MEMBERS = ["limit", "cursor"];

/** The type of a list's query without its page parameters. */
function moreThanPage(query: Schema): string {
  const others = Object.entries(query.properties ?? {}).filter(([name]) => !PAGE_MEMBERS.includes(name));
  if (others.length === 0) return "unknown";
  return written({ ...query, properties: Object.fromEntries(others) }, "sent");
}

/** The page parameters of a query; null if one is missing. */
function pageQueryIn(query: Schema | null): Schema | null {
  const members = Object.entries(query?.properties ?? {}).filter(([name]) => PAGE_MEMBERS.includes(name));
  if (members.length < PAGE_MEMBERS.length) return null;
  return { type: "object", properties: Object.fromEntries(members) };
}

function takesKeyAlone({ isPublic, method, takesIdempotencyKey }: ApiOperation): boolean {
  return !isPublic && method !== "GET" && !takesIdempotencyKey;
}

function codes({ components }: Document): string {
  const all = components.schemas["Error"]?.properties?.["code"]?.enum ?? [];
  return `/** Every code of the API's errors. */\nexport type ErrorCode = ${all.map((code) => JSON.stringify(code)).join(" | ")};\n`;
}

/** Additional fields of some errors. */
function extras({ components }: Document): string {
  const error = components.schemas["Error"];
  const always = new Set([...(error?.required ?? []), "fields"]);
  const members = Object.entries(error?.properties ?? {}).filter(([name]) => !always.has(name));
  const type = written({ type: "object", properties: Object.fromEntries(members) }, "received");
  return `/** Additional fields of errors with some codes. */\nexport interface KnownExtras ${type}\n`;
}
