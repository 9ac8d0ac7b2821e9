import { type TSchema, Kind as TypeKind } from "@sinclair/typebox";
import { EXACT_NUMBER_PROBLEM, isExactNumber } from "../json-text.ts";
import { nearestName } from "../kernel/data/nearest-name.ts";
import { durationUnitOf, isSecret, notNull, readDuration } from "../kernel/data/schema.ts";
import { rejectionBy } from "../kernel/errors.ts";
import { fieldMessages } from "../kernel/http/requests/validate.ts";
import { isTimeZone } from "../kernel/scheduler/calendar.ts";
import { SECRET_NAMES } from "../kernel/secrets/secret-names.ts";
import { FileError, type FileMap, type FileValue, type Place, parseDocuments, plainOf } from "./document.ts";
import { aliasesIn, type Field, fileName, isFree, isHeaders, type Kind } from "./kinds.ts";
import { currentValue } from "./shown.ts";

/** The field of a resource with its former name. */
export const RENAMED_FROM = "renamed_from";
/** Longest name for which a similar one is searched. */
const NAME_LENGTH_MAX = 100;

/** A resource as a file has it. */
export interface FileResource {
  readonly kind: Kind;
  readonly name: string;
  /** Its name before; null where the file does not name one. */
  readonly renamedFrom: { readonly name: string; readonly at: Place } | null;
  readonly at: Place;
  /** Values by field, with names in place of ids. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Fields whose values came from the environment or from files. */
  readonly sensitive: ReadonlySet<string>;
  /** Where its fields stand, by name. */
  readonly places: ReadonlyMap<string, Place>;
}

/** Names of a project's time zone, as of other fields with one. */
const TIME_ZONE_NAMES = ["time_zone", "timezone", "tz"] as const;

/** A project as a file has it. */
export interface FileProject {
  readonly at: Place;
  /** Null: the project of the key. */
  readonly slug: string | null;
  readonly name: string | null;
  readonly description: string | null | undefined;
  /** Undefined: as it is. */
  readonly review: boolean | undefined;
  /** IANA name; undefined: as it is. */
  readonly timeZone: string | undefined;
  /** In the order of changes. */
  readonly resources: readonly FileResource[];
}

/** Reads what a file refers to. */
export interface SecretSource {
  /** The value of an environment variable; undefined where it is not set. */
  variable(name: string): string | undefined;
  /** The text of a file, by its path relative to the file that names it. @throws StartupError */
  file(path: string): string;
}

/**
 * Reads a configuration file.
 * @throws FileError with line and column for everything that a server would not accept, as far as schemas tell.
 */
export function readConfiguration(
  file: string,
  text: string,
  kinds: readonly Kind[],
  secrets: SecretSource,
): FileProject[] {
  const documents = parseDocuments(file, text);
  const [first] = documents;
  if (first === undefined) throw new FileError(file, { line: 1, column: 1 }, "is empty");
  const reader = new Reader(file, kinds, secrets);
  const projects = documents.map((document, index) => reader.project(document, index === 0));
  reader.assertVariablesSet();
  const slugs = new Set<string | null>();
  for (const { slug, at } of projects) {
    if (slugs.has(slug)) throw new FileError(file, at, `the project ${slug ?? "of the key"} occurs twice`);
    slugs.add(slug);
  }
  return projects;
}

/** Where a value of a resource is read. */
interface Reading {
  /** Places by JSON pointer of the request. */
  readonly places: Map<string, Place>;
  readonly sensitive: Set<string>;
  /** The field of the resource. */
  readonly field: string;
}

/** A variable that a file reads and that is not set. */
interface UnsetVariable {
  readonly name: string;
  readonly at: Place;
}

class Reader {
  private readonly unset: UnsetVariable[] = [];

  constructor(
    private readonly file: string,
    private readonly kinds: readonly Kind[],
    private readonly secrets: SecretSource,
  ) {}

  project(document: FileValue, isFirst: boolean): FileProject {
    const map = this.mapOf(document, "a document");
    const sections = [...new Set(this.kinds.map(({ section }) => section.split(".")[0] ?? section))];
    const known = ["ninefold", "project", "name", "description", "review", ...TIME_ZONE_NAMES, ...sections];
    this.assertKnown(map, known, "section");
    const version = map.entries.get("ninefold");
    if (version === undefined && isFirst)
      throw this.error(map.at, "the version of the format is missing: write ninefold: 1");
    if (version !== undefined && plainOf(version.value) !== 1)
      throw this.error(
        version.value.at,
        "this version of Ninefold reads format 1 alone: write ninefold: 1, or use a version that reads the format of the file",
      );
    const text = (name: string) => {
      const entry = map.entries.get(name);
      return entry === undefined ? undefined : this.textOf(entry.value, name);
    };
    const slug = text("project") ?? null;
    const project = map.entries.get("project");
    if (slug !== null && !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(slug))
      throw this.error(
        project?.value.at ?? map.at,
        "project must be a slug: lower-case letters, digits and dashes",
      );
    const resources = this.kinds.flatMap((kind) => this.section(map, kind));
    return {
      at: project?.at ?? map.at,
      slug,
      name: text("name") ?? null,
      description: text("description"),
      review: this.switchIn(map, "review"),
      timeZone: this.timeZoneIn(map),
      resources,
    };
  }

  private timeZoneIn(map: FileMap): string | undefined {
    const [name, another] = TIME_ZONE_NAMES.filter((candidate) => map.entries.has(candidate));
    const entry = name === undefined ? undefined : map.entries.get(name);
    if (name === undefined || entry === undefined) return undefined;
    if (another !== undefined) throw this.error(entry.value.at, `${another} is ${name}: write one of them`);
    const zone = this.textOf(entry.value, name);
    if (zone !== null && isTimeZone(zone)) return zone;
    throw this.error(entry.value.at, `${name} must be the IANA name of a time zone, such as Europe/Berlin`);
  }

  private switchIn(map: FileMap, name: string): boolean | undefined {
    const entry = map.entries.get(name);
    const value = entry && plainOf(entry.value);
    if (entry === undefined || typeof value === "boolean") return value as boolean | undefined;
    throw this.error(entry.value.at, `${name} must be true or false`);
  }

  private section(document: FileMap, kind: Kind): FileResource[] {
    const [outer = "", inner] = kind.section.split(".");
    const entry = document.entries.get(outer);
    if (entry === undefined || isNull(entry.value)) return [];
    const section = this.mapOf(entry.value, outer);
    if (inner !== undefined) {
      this.assertKnown(
        section,
        this.kinds.flatMap((kind) => kind.section.split(".")[1] ?? []),
        "field",
      );
      const single = section.entries.get(inner);
      return single === undefined ? [] : [this.resource(kind, inner, single.at, single.value)];
    }
    return [...section.entries].map(([name, { at, value }]) => this.resource(kind, name, at, value));
  }

  private resource(kind: Kind, name: string, at: Place, value: FileValue): FileResource {
    const whole = this.mapOf(isNull(value) ? { kind: "map", at: value.at, entries: new Map() } : value, name);
    const { renamedFrom, map: given } = this.withoutFormerName(kind, name, whole);
    const map = this.renamed(given, aliasesIn(kind));
    const unsetBefore = this.unset.length;
    const names = [...kind.fields.keys()];
    const more = [
      ...(hasGroups(kind) ? ["monitors"] : []),
      ...(kind.facts.isSingle === true ? [] : [RENAMED_FROM]),
    ];
    this.assertKnown(map, [...names, ...more], "field");
    const short = map.entries.get("monitors");
    if (short !== undefined && hasGroups(kind) && map.entries.has("groups"))
      throw this.error(short.at, "monitors is short for one group: use either monitors or groups");
    const entries = [...expanded(map, kind).entries];
    const beside = Object.fromEntries(entries.map(([field, entry]) => [field, plainOf(entry.value)]));
    const places = new Map<string, Place>([["", at]]);
    const sensitive = new Set<string>();
    const values: Record<string, unknown> = {};
    for (const [fieldName, { at: keyAt, value: given }] of entries) {
      const field = kind.fields.get(fieldName) as Field;
      const pointer = field.isFlattened ? `/${kind.facts.flattened}/${field.apiName}` : `/${field.apiName}`;
      places.set(pointer, keyAt);
      const reading = { places, sensitive, field: fieldName };
      const value = this.value(given, field.schema, fieldName, { pointer, beside, reading });
      values[fieldName] = currentValue(kind, field, value);
    }
    const { archivedField } = kind.facts;
    if (archivedField !== undefined) values[archivedField] ??= false;
    // A value that is missing cannot be checked; what is unset is an error in any case.
    if (this.unset.length === unsetBefore) this.check(kind, name, values, places);
    const valuePlaces = entries.map(([field, entry]) => [field, entry.value.at] as const);
    return { kind, name, renamedFrom, at, values, sensitive, places: new Map(valuePlaces) };
  }

  /** @throws FileError naming all variables that are not set */
  assertVariablesSet(): void {
    const [first] = this.unset;
    if (first === undefined) return;
    const names = [...new Set(this.unset.map(({ name }) => name))];
    const message =
      names.length === 1
        ? `the environment variable ${first.name} is not set`
        : `${names.length} environment variables are not set: ${names.join(", ")}`;
    throw this.error(first.at, message);
  }

  /** A resource's fields without `renamed_from`, which is no field of the API. */
  private withoutFormerName(kind: Kind, name: string, map: FileMap) {
    const entry = map.entries.get(RENAMED_FROM);
    if (entry === undefined || kind.facts.isSingle === true) return { renamedFrom: null, map };
    if (!isRenamable(kind))
      throw this.error(
        entry.value.at,
        `the name of one of ${kind.section} cannot change: remove ${RENAMED_FROM}`,
      );
    const former = this.textOf(entry.value, RENAMED_FROM);
    if (former === name)
      throw this.error(entry.value.at, `${RENAMED_FROM} must be the former name, not ${name} itself`);
    const entries = new Map([...map.entries].filter(([field]) => field !== RENAMED_FROM));
    return { renamedFrom: { name: former, at: entry.value.at }, map: { ...map, entries } };
  }

  /** A mapping whose fields have their own names in place of other ones. */
  private renamed(map: FileMap, aliases: ReadonlyMap<string, string>): FileMap {
    if (aliases.size === 0) return map;
    const entries: Map<string, { at: Place; value: FileValue }> = new Map();
    for (const [name, entry] of map.entries) {
      const field = aliases.get(name) ?? name;
      if (entries.has(field))
        throw this.error(
          entry.at,
          `${name} is another name of ${field}, which stands here too: remove one of them`,
        );
      entries.set(field, entry);
    }
    return { ...map, entries };
  }

  /** Checks a request with the schema of the creation, or of the change for fields that only that has. */
  private check(
    kind: Kind,
    name: string,
    values: Readonly<Record<string, unknown>>,
    places: ReadonlyMap<string, Place>,
  ): void {
    const problem = problemOf(kind, name, values);
    if (problem === null) return;
    const { pointer, field, message } = problem;
    throw this.error(placeOf(places, pointer), `${kind.section}.${name}: ${field} ${message}`);
  }

  /** A value as a request has it, except for ids, in whose place names stand. */
  private value(
    found: FileValue,
    schema: TSchema,
    name: string,
    at: {
      readonly pointer: string;
      readonly beside: Readonly<Record<string, unknown>>;
      readonly reading: Reading;
    },
  ): unknown {
    const { pointer, beside, reading } = at;
    if (isNull(found)) return null;
    const members = notNull(schema);
    const secret = isSecret(schema, beside);
    if (acceptsText(members)) {
      const referred = this.referred(found);
      if (referred !== null) {
        reading.sensitive.add(reading.field);
        return referred;
      }
      if (secret)
        throw this.error(
          found.at,
          `${name} is a secret: write {env: NAME} or {file: PATH} in place of the text`,
        );
    }
    if (found.kind === "scalar") {
      if (isExactNumber(found.value))
        throw this.error(found.at, `${name} ${EXACT_NUMBER_PROBLEM}, as "${found.source}"`);
      const unit = members.length === 1 && members[0] !== undefined ? durationUnitOf(members[0]) : null;
      if (unit !== null) return readDuration(found.value, unit);
      const isOnlyText = members.every(({ type }) => type === "string");
      if (isOnlyText && typeof found.value !== "string")
        throw this.error(found.at, `${name} must be a text: quote it, as "${found.source}"`);
      return found.value;
    }
    const [typed] = members.filter(({ type }) => type === (found.kind === "list" ? "array" : "object"));
    if (typed === undefined || isFree(typed)) return plainOf(found);
    if (found.kind === "list") {
      return found.items.map((item, index) => {
        const inner = `${pointer}/${index}`;
        reading.places.set(inner, item.at);
        return this.value(item, typed["items"], name, { ...at, pointer: inner });
      });
    }
    const isMap = typed["patternProperties"] !== undefined;
    const properties: Record<string, TSchema> = typed["properties"] ?? {};
    const byName = new Map(
      Object.entries(properties).map(([key, property]) => [
        fileName(key, property),
        [key, property] as const,
      ]),
    );
    if (!isMap) this.assertKnown(found, [...byName.keys()], "field");
    const besideInner = Object.fromEntries(
      [...found.entries].map(([key, entry]) => [key, plainOf(entry.value)]),
    );
    const entries = [...found.entries].map(([key, entry]) => {
      const [apiName, inner] = byName.get(key) ?? [
        key,
        Object.values<TSchema>(typed["patternProperties"] ?? {})[0],
      ];
      const path = `${pointer}/${apiName}`;
      reading.places.set(path, entry.at);
      const isHeader = isHeaders(name, schema);
      const marked = isHeader && SECRET_NAMES.has(key.toLowerCase()) ? { ...inner, writeOnly: true } : inner;
      return [
        apiName,
        this.value(entry.value, (marked ?? {}) as TSchema, key, {
          pointer: path,
          beside: besideInner,
          reading,
        }),
      ];
    });
    return Object.fromEntries(entries);
  }

  /** The text that `{env: NAME}` or `{file: PATH}` refers to; null for anything else. */
  private referred(wanted: FileValue): string | null {
    if (wanted.kind !== "map" || wanted.entries.size !== 1) return null;
    const [[source, entry]] = [...wanted.entries] as [[string, { at: Place; value: FileValue }]];
    if (source !== "env" && source !== "file") return null;
    const target = this.textOf(entry.value, source);
    if (source === "file") return this.secrets.file(target).replace(/\r?\n$/, "");
    const value = this.secrets.variable(target);
    if (value === undefined) this.unset.push({ name: target, at: entry.at });
    return value ?? "";
  }

  private mapOf(value: FileValue, name: string): FileMap {
    if (value.kind === "map") return value;
    throw this.error(value.at, `${name} must be a mapping of names to values`);
  }

  private textOf(value: FileValue, name: string): string {
    if (value.kind === "scalar" && typeof value.value === "string") return value.value;
    const quoted = value.kind === "scalar" ? `: quote it, as "${value.source}"` : "";
    throw this.error(value.at, `${name} must be a text${quoted}`);
  }

  private assertKnown(map: FileMap, names: readonly string[], what: string): void {
    for (const [name, { at }] of map.entries) {
      if (names.includes(name)) continue;
      const near = name.length > NAME_LENGTH_MAX ? null : nearestName(name, names);
      throw this.error(
        at,
        `there is no ${what} ${name.slice(0, NAME_LENGTH_MAX)}.${near === null ? "" : ` Did you mean ${near}?`}`,
      );
    }
  }

  private error(at: Place, message: string): FileError {
    return new FileError(this.file, at, message);
  }
}

/** What a server would not accept of a resource. */
export interface Problem {
  /** JSON pointer in the request. */
  readonly pointer: string;
  readonly field: string;
  /** Such as `must be an integer`. */
  readonly message: string;
}

/** The first problem of a resource with the schemas of creation and change; null if there is none. */
export function problemOf(
  kind: Kind,
  name: string,
  values: Readonly<Record<string, unknown>>,
): Problem | null {
  const fields = [...kind.fields.values()].filter((field) => field.name in values);
  const identity = kind.facts.isSingle === true ? {} : { [kind.facts.name]: name };
  for (const route of [kind.create, kind.change]) {
    if (route?.body === undefined) continue;
    const isCreate = route === kind.create;
    const body = requestOf(
      kind,
      fields.filter((field) => (isCreate ? field.inCreate : field.inChange)),
      values,
    );
    let found: string | undefined;
    const messages = fieldMessages(typed(route.body), isCreate ? { ...identity, ...body } : body, (path) => {
      found ??= path;
      return path.replaceAll("/", ".");
    });
    const all = isCreate ? { ...identity, ...body } : body;
    const rejected = isCreate && Object.keys(messages).length === 0 ? checkedBy(kind, all) : messages;
    const [first] = Object.entries(rejected);
    if (first === undefined) continue;
    const [field, [message = ""] = []] = first;
    return { pointer: `/${found ?? field.replaceAll(".", "/")}`, field, message };
  }
  return null;
}

/** What the service finds wrong with a creation that the schema accepts, by field. */
function checkedBy({ facts }: Kind, body: object): Readonly<Record<string, readonly string[]>> {
  return rejectionBy(() => facts.check?.(body as never))?.details.fields ?? {};
}

/** The body of a request with some fields. */
export function requestOf(
  { facts: { flattened } }: Kind,
  fields: readonly Field[],
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  const inner: Record<string, unknown> = {};
  for (const { name, apiName, isFlattened } of fields) {
    if (isFlattened) inner[apiName] = values[name];
    else body[apiName] = values[name];
  }
  return flattened === undefined || Object.keys(inner).length === 0 ? body : { ...body, [flattened]: inner };
}

function isNull(value: FileValue): boolean {
  return value.kind === "scalar" && value.value === null;
}

function acceptsText(members: readonly TSchema[]): boolean {
  return members.length > 0 && members.every(({ type }) => type === "string");
}

/** Whether a kind shows groups of monitors, for which `monitors` is short. */
function hasGroups({ fields }: Kind): boolean {
  const items =
    fields.get("groups")?.schema["items"] ?? fields.get("groups")?.schema["anyOf"]?.[0]?.["items"];
  return items?.["properties"]?.["monitor_ids"] !== undefined && !fields.has("monitors");
}

/** `monitors: […]` of a status page as one group without a heading. */
function expanded(map: FileMap, kind: Kind): FileMap {
  const monitors = map.entries.get("monitors");
  if (monitors === undefined || !hasGroups(kind)) return map;
  const { at } = monitors;
  const heading: FileValue = { kind: "scalar", at, value: "", source: "" };
  const group: FileValue = {
    kind: "map",
    at,
    entries: new Map([
      ["name", { at, value: heading }],
      ["monitors", monitors],
    ]),
  };
  const entries = new Map([...map.entries].filter(([name]) => name !== "monitors"));
  entries.set("groups", { at, value: { kind: "list", at, items: [group] } });
  return { ...map, entries };
}

/** The place of a pointer, or of the nearest one above it. */
function placeOf(places: ReadonlyMap<string, Place>, pointer: string): Place {
  for (let path = pointer; path !== ""; path = path.slice(0, path.lastIndexOf("/"))) {
    const found = places.get(path);
    if (found !== undefined) return found;
  }
  return places.get("") ?? { line: 1, column: 1 };
}

const TYPES: Readonly<Record<string, string>> = {
  boolean: "Boolean",
  string: "String",
  integer: "Integer",
  number: "Number",
  array: "Array",
};

/** By the schema of the body: a schema is compiled once, not for each resource. */
const typedSchemas = new WeakMap<TSchema, TSchema>();

/** A body's schema whose fields are checked by their types, also those that the service checks itself. */
function typed(schema: TSchema): TSchema {
  const known = typedSchemas.get(schema);
  if (known !== undefined) return known;
  const properties = Object.entries<TSchema>(schema["properties"]).map(([name, property]) => {
    if (property[TypeKind] !== "Any") return [name, property];
    return [name, { ...property, [TypeKind]: kindOf(property) }];
  });
  const typed = { ...schema, properties: Object.fromEntries(properties) };
  typedSchemas.set(schema, typed);
  return typed;
}

function kindOf(schema: TSchema): string {
  if (schema["anyOf"] !== undefined) return "Union";
  if (schema["patternProperties"] !== undefined) return "Record";
  if (schema["type"] === "object") return "Object";
  return TYPES[String(schema["type"])] ?? "Any";
}

/** Whether a change can give a resource of a kind another name. A flag is saved under its new key. */
export function isRenamable({ facts, change }: Kind): boolean {
  if (facts.isPut === true) return false;
  return facts.isSave === true || Object.hasOwn(change?.body?.properties ?? {}, facts.name);
}
