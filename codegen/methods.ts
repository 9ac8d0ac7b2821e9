import { type ApiOperation, type Document, operationsOf, type Schema } from "./document.ts";
import { AREAS, BOUND, FORMER, OBJECTS, PUBLISHED, VERBS, WITHOUT_METHOD, WRITTEN } from "./method-names.ts";
import { referenceOf } from "./types.ts";

/** A value that a method sends. */
export interface Argument {
  /** In camel case. */
  readonly name: string;
  /** Where it goes: a path parameter, a field of the body, or the whole body or query. */
  readonly place: "path" | "field" | "body" | "query";
  /** Name in the API. */
  readonly field: string;
  readonly isOptional: boolean;
  /** Whether the API rejects requests without it. */
  readonly isRequired: boolean;
}

/** A method of the client. */
export interface Method {
  readonly operation: ApiOperation;
  /** Object of the client below `nf`, such as `relay.endpoints`; empty for `nf` itself. */
  readonly object: string;
  readonly name: string;
  /** Former name, which continues to work; null without one. */
  readonly former: string | null;
  readonly args: readonly Argument[];
  /** Member of a page that contains the items of a list; null for an operation that is no list. */
  readonly items: string | null;
  /** Arguments as the guides show them, of a method that is not generated. */
  readonly written: string | null;
}

/** An object of the client with its methods by name. */
export interface ClientObject {
  readonly path: string;
  readonly className: string;
  readonly description: string;
  readonly methods: readonly Method[];
  /** Whether a class in `src/client/` extends the generated one: for methods of its own, or fields of such objects. */
  readonly isExtended: boolean;
}

/** The client's objects. @throws Error if two operations have the same method. */
export function objectsOf(document: Document): ClientObject[] {
  const methods = operationsOf(document)
    .filter(({ id }) => !WITHOUT_METHOD.includes(id))
    .map((operation) => methodOf(operation, document));
  const byObject = Map.groupBy(methods, ({ object }) => object);
  const paths = new Set([...byObject.keys()].flatMap(withParents));
  return [...paths].sort(byOrder).map((path) => {
    const own = (byObject.get(path) ?? []).sort((a, b) => (a.name < b.name ? -1 : 1));
    const names = own.map(({ name }) => name);
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw new Error(`two operations have the method ${path}.${twice}`);
    const [className, description] = OBJECTS[path] ?? [pascal(path), `Methods of \`nf.${path}\`.`];
    const within = methods.filter(({ object }) => path === "" || `${object}.`.startsWith(`${path}.`));
    const isExtended = within.some(({ written }) => written !== null);
    return { path, className, description, methods: own, isExtended };
  });
}

/** Whether an object is a field of another one. One that is extended is a field of its parent's extension. */
export function isField({ path, isExtended }: ClientObject, parent: string): boolean {
  if (path === "" || isExtended || BOUND[path] !== undefined) return false;
  return path.slice(0, Math.max(path.lastIndexOf("."), 0)) === parent;
}

function withParents(path: string): string[] {
  const parts = path.split(".");
  return ["", ...parts.map((_, at) => parts.slice(0, at + 1).join("."))];
}

/** Objects with a row first, in the order of the rows. */
function byOrder(a: string, b: string): number {
  const rows = Object.keys(OBJECTS);
  const rowOf = (path: string): number => (path in OBJECTS ? rows.indexOf(path) : rows.length);
  return rowOf(a) - rowOf(b) || (a < b ? -1 : 1);
}

function methodOf(operation: ApiOperation, document: Document): Method {
  const written = WRITTEN[operation.id];
  const [, path = "", list] = /^([\w.]+)(?:\((.*)\))?$/s.exec(
    written ?? PUBLISHED[operation.id] ?? derivedPath(operation),
  ) ?? ["", derivedPath(operation)];
  const at = path.lastIndexOf(".");
  const object = path.slice(0, Math.max(at, 0));
  const names = written === undefined ? (list?.split(", ") ?? derivedArguments(operation, object)) : [];
  return {
    operation,
    object,
    name: path.slice(at + 1),
    former: FORMER[operation.id] ?? null,
    args: names.map((name) => argumentOf(name, operation, document)),
    items: written === undefined ? itemsOf(operation, document) : null,
    written: written === undefined ? null : (list ?? ""),
  };
}

/**
 * Object and method by the operation's name: `relay.endpoints.read` is `relay.endpoints.get`, and `meter.peak.read` with a
 * parameter `meterId` is `meter.getPeak`.
 */
export function derivedPath({ id, params }: ApiOperation): string {
  const [area = "", ...rest] = id.split(".");
  const verb = rest.pop();
  if (verb === undefined) return camel(area);
  const bound = Object.entries(BOUND).find(([, parameter]) => params?.properties?.[parameter] !== undefined);
  const name = VERBS[verb] ?? verb;
  if (bound !== undefined) return `${bound[0]}.${camel([name, ...rest].join("_"))}`;
  return [AREAS[area] ?? area, ...rest, name].map(camel).join(".");
}

/** Path parameters in their order, then the body or the query. */
function derivedArguments(operation: ApiOperation, object: string): string[] {
  const { params, query, body, method, isBodyRequired, hasBodyExample } = operation;
  const path = Object.keys(params?.properties ?? {}).filter((name) => name !== BOUND[object]);
  if (query !== null) path.push((query.required ?? []).length > 0 ? "query" : "query?");
  if (body !== null) path.push(isBodyRequired || hasBodyExample || method !== "POST" ? "body" : "body?");
  return path;
}

function argumentOf(text: string, { id, params, body }: ApiOperation, document: Document): Argument {
  const field = text.replace("?", "");
  const isOptional = text.endsWith("?");
  if (params?.properties?.[field] !== undefined)
    return { name: camel(field), place: "path", field, isOptional, isRequired: true };
  if (field === "query" || field === "body")
    return { name: field, place: field, field, isOptional, isRequired: !isOptional };
  const fields = body === null ? undefined : componentOf(body, document);
  if (fields?.properties?.[field] === undefined)
    throw new Error(`${id} has neither a path parameter nor a field ${field}`);
  const isRequired = fields.required?.includes(field) === true;
  return { name: camel(field), place: "field", field, isOptional, isRequired };
}

function componentOf(schema: Schema, document: Document): Schema {
  const name = referenceOf(schema);
  return (name === null ? undefined : document.components.schemas[name]) ?? schema;
}

/** A list has pages: a limit and a cursor in its query, and one array of items in its response. */
function itemsOf({ id, query, successes }: ApiOperation, document: Document): string | null {
  if (query?.properties?.["limit"] === undefined || query.properties["cursor"] === undefined) return null;
  const [page] = Object.values(successes);
  const members = page == null ? {} : (componentOf(page, document).properties ?? {});
  const items = Object.keys(members).find((name) => members[name]?.type === "array" && name !== "warnings");
  if (items === undefined) throw new Error(`the pages of ${id} have no array of items`);
  return items;
}

/** `grace_hours` and `login-links` in camel case. */
export function camel(name: string): string {
  return name.replace(/[_-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

function pascal(path: string): string {
  return path
    .split(".")
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join("");
}
