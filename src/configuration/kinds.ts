import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import { notNull, referenceIn } from "../kernel/data/schema.ts";
import type { DeclaredRoute } from "../kernel/http/api.ts";
import { aliasesOf } from "../kernel/http/requests/aliases.ts";
import type { FileFacts } from "../kernel/http/resource-facts.ts";

/** A field of a resource in a file. */
export interface Field {
  /** Its name in the file. */
  readonly name: string;
  /** Its name in requests. */
  readonly apiName: string;
  /** In the object whose fields are flattened. */
  readonly isFlattened: boolean;
  readonly schema: TSchema;
  readonly inCreate: boolean;
  readonly inChange: boolean;
}

/** A kind of resource that a file can have. */
export interface Kind {
  readonly section: string;
  readonly facts: FileFacts;
  /** The fields beside the name, by their names in the file. */
  readonly fields: ReadonlyMap<string, Field>;
  /** Its body has all fields of a file, also those that a request has in its path or leads to by another request. */
  readonly create: DeclaredRoute;
  /** Null if it cannot be changed. */
  readonly change: DeclaredRoute | null;
  readonly remove: DeclaredRoute | null;
  readonly read: DeclaredRoute | null;
  /** Path and query of the list. */
  readonly listPath: string;
  /** Member of a page with the items, and of an item with its id. */
  readonly itemsKey: string;
  readonly idKey: string;
  /** Fields that only the response to a single resource has, by their names in the file. */
  readonly onlyRead: readonly string[];
  /** Sections that its fields refer to. */
  readonly refersTo: ReadonlySet<string>;
}

/** The order of changes: what others refer to comes first. Deletions run in reverse. */
const ORDER = [
  ...["roles", "keys", "notary.storage", "flags", "channels", "event_types", "endpoints", "buckets"],
  ...["probes", "monitors", "maintenance", "incidents", "status_pages", "schedules"],
];

/** The kinds of resources that the endpoints of a server declare, in the order of changes. */
export function kindsOf(routes: readonly DeclaredRoute[]): Kind[] {
  const kinds = routes.flatMap((route) => {
    const { file } = route.operation;
    return file === undefined ? [] : [kindOf(route, file, routes)];
  });
  const rank = ({ section }: Kind) => (ORDER.includes(section) ? ORDER.indexOf(section) : ORDER.length);
  return kinds.sort((a, b) => rank(a) - rank(b));
}

function kindOf(declared: DeclaredRoute, facts: FileFacts, routes: readonly DeclaredRoute[]): Kind {
  const isPut = facts.isPut === true;
  const listPath =
    facts.listPath ?? (isPut ? declared.path.slice(0, declared.path.lastIndexOf("/")) : declared.path);
  const [base = ""] = listPath.split("?", 1);
  // The collection of the items: for keys that is not the path of their creation.
  const items = isPut || (facts.listPath !== undefined && facts.isSave !== true) ? base : declared.path;
  const isOne = ({ path }: DeclaredRoute) =>
    path.startsWith(`${items}/:`) && !path.slice(items.length + 2).includes("/");
  const find = (...methods: string[]) =>
    routes.find((route) => methods.includes(route.method) && isOne(route)) ?? null;
  const list = routes.find(({ method, path }) => method === "GET" && path === base);
  if (list === undefined) throw new Error(`${facts.section} has no list at ${base}`);
  const page = list.responses[200] as TObject;
  const [itemsKey = "", itemsSchema] =
    Object.entries<TSchema>(page.properties).find(([, { type }]) => type === "array") ?? [];
  const item = largestObject(itemsSchema?.["items"] ?? page);
  const create = isPut ? { ...declared, body: bodyInFile(declared, facts, item) } : declared;
  const isChangedByCreation = facts.isSave === true || facts.isSingle === true || isPut;
  const change = isChangedByCreation ? create : find("PATCH", "PUT");
  const single = isChangedByCreation ? null : find("GET");
  const fields = fieldsOf(create.body, change?.body, facts);
  const shown = single === null ? item : (single.responses[200] as TObject);
  const onlyRead = [...fields.values()].filter(
    ({ apiName }) => apiName in shown.properties && !(apiName in item.properties),
  );
  return {
    section: facts.section,
    facts,
    fields,
    create,
    change,
    remove: find("DELETE"),
    read: single,
    listPath,
    itemsKey,
    idKey: "id" in item.properties ? "id" : (Object.keys(item.properties)[0] ?? "id"),
    onlyRead: onlyRead.map(({ name }) => name),
    refersTo: new Set([...fields.values()].flatMap(({ schema }) => referencesIn(schema))),
  };
}

/** The body of a `PUT` with the name of its path, and with what another operation changes. */
function bodyInFile({ body, params }: DeclaredRoute, facts: FileFacts, item: TObject): TObject {
  const { properties, required: _, ...options } = body ?? Type.Object({});
  const { name, archivedField } = facts;
  const added: Record<string, TSchema | undefined> = {
    [name]: params?.properties[name],
    ...(archivedField === undefined ? {} : { [archivedField]: item.properties[archivedField] }),
  };
  const more = Object.entries(added).map(([field, schema]) => [
    field,
    Type.Optional(schema ?? Type.Unknown()),
  ]);
  return Type.Object({ ...properties, ...Object.fromEntries(more) }, options);
}

function largestObject(schema: TSchema): TObject {
  const members: TSchema[] = schema["anyOf"] ?? [schema];
  const sizes = members.map((member) => Object.keys(member["properties"] ?? {}).length);
  return members[sizes.indexOf(Math.max(...sizes))] as TObject;
}

function fieldsOf(
  create: TObject | undefined,
  change: TObject | undefined,
  { name, omitted = [], flattened }: FileFacts,
): ReadonlyMap<string, Field> {
  const fields = new Map<string, Field>();
  const [inCreate, inChange] = [create?.properties ?? {}, change?.properties ?? {}];
  const add = (apiName: string, schema: TSchema, isFlattened: boolean, owner: string) => {
    const field = {
      name: fileName(apiName, schema),
      apiName,
      isFlattened,
      schema,
      inCreate: owner in inCreate,
      inChange: owner in inChange,
    };
    fields.set(field.name, field);
  };
  for (const [apiName, schema] of Object.entries<TSchema>({ ...inCreate, ...inChange, ...inCreate })) {
    // A field that is declared to be rejected.
    if (apiName === name || apiName === "managed_by" || omitted.includes(apiName) || "not" in schema)
      continue;
    if (apiName !== flattened) add(apiName, schema, false, apiName);
    else
      for (const [inner, member] of Object.entries<TSchema>(schema["properties"]))
        add(inner, member, true, apiName);
  }
  return fields;
}

/** The name of a field in a file: `monitors` for `monitor_ids`, since names stand there in place of ids. */
export function fileName(apiName: string, schema: TSchema): string {
  if (referenceOf(schema) === null) return apiName;
  return apiName.replace(/_ids$/, "s").replace(/_id$/, "");
}

/** The section that a text, or the texts of a list, refer to; null for none. */
function referenceOf(schema: TSchema): string | null {
  const direct = referenceIn(schema) ?? referenceIn(schema["items"] ?? {});
  if (direct !== null) return direct;
  const [first] = notNull(schema);
  return schema["anyOf"] === undefined || first === undefined ? null : referenceOf(first);
}

function referencesIn(schema: TSchema): string[] {
  const inner = [schema["items"], ...(schema["anyOf"] ?? []), ...Object.values(schema["properties"] ?? {})];
  const direct = referenceIn(schema);
  const below = inner.flatMap((nested) => (nested === undefined ? [] : referencesIn(nested as TSchema)));
  return direct === null ? below : [direct, ...below];
}

/** Whether a field maps the names of headers to texts. */
export function isHeaders(name: string, schema: TSchema): boolean {
  return name === "headers" && notNull(schema).some((member) => member["patternProperties"] !== undefined);
}

/** Whether a field accepts any JSON: its members are no fields of ours. */
export function isFree(schema: TSchema): boolean {
  const { type, properties, patternProperties, anyOf, additionalProperties } = schema;
  if (anyOf !== undefined) return false;
  if (type === undefined && schema["const"] === undefined) return true;
  if (type !== "object" || patternProperties !== undefined) return false;
  return Object.keys(properties ?? {}).length === 0 && additionalProperties !== false;
}

/** The names in a file of fields that have another name, by that name. */
export function aliasesIn({ fields }: Kind): ReadonlyMap<string, string> {
  const schemas = Object.fromEntries([...fields].map(([name, { schema }]) => [name, schema]));
  return new Map([...aliasesOf(schemas)].map(([name, { field }]) => [name, field]));
}
