import { isDeepStrictEqual } from "node:util";
import type { TSchema } from "@sinclair/typebox";
import { type ScalarTag, stringify, type Tags } from "yaml";
import type { JsonObject } from "../api/http-api.ts";
import { isExactNumber } from "../json-text.ts";
import { SECRET } from "../kernel/audit/redaction.ts";
import { isSecret, notNull } from "../kernel/data/schema.ts";
import { SECRET_NAMES } from "../kernel/secrets/secret-names.ts";
import { UTC } from "../kernel/time/zone.ts";
import { fileName, isFree, isHeaders, type Kind } from "./kinds.ts";
import type { ProjectApi, ServerProject } from "./server.ts";
import { replaced, shownValue } from "./shown.ts";
import { Variables } from "./variables.ts";

/** An exported project. */
export interface Exported {
  /** The document, without its version. */
  readonly document: JsonObject;
  /** Environment variables that it reads. */
  readonly variables: readonly string[];
  /** What could not be exported, in sentences. */
  readonly notes: readonly string[];
}

/** Reads everything of a project that a file can have. @throws StartupError */
export async function exportProject(api: ProjectApi, all: readonly Kind[]): Promise<Exported> {
  const kinds = all.filter(({ facts }) => facts.isRecord !== true);
  const named = new Map<string, ReadonlyMap<string, JsonObject>>();
  const notes: string[] = [];
  for (const kind of kinds) {
    const items = await api.list(kind);
    const whole = kind.onlyRead.length === 0 ? items : await api.readAll(kind, items);
    named.set(kind.section, byName(kind, whole, notes));
    if (kind.facts.createOnly === true) notes.push(...(await notesOfKeys(api, kind, items.length)));
  }
  const nameOf = (section: string, id: string): string => {
    const kind = kinds.find((kind) => kind.section === section);
    const found = [...(named.get(section) ?? [])].find(([, item]) => item[kind?.idKey ?? ""] === id);
    return found?.[0] ?? id;
  };
  const variables = new Variables();
  const document: Record<string, unknown> = describe(api.project);
  for (const kind of kinds) {
    const items = named.get(kind.section) ?? new Map<string, JsonObject>();
    if (items.size === 0) continue;
    const [outer = "", inner] = kind.section.split(".");
    const entries = [...items].map(([name, item]) => {
      const place = { section: kind.section, name: inner === undefined ? name : null };
      return [name, resourceOf(kind, item, { ...place, path: [], variables, nameOf })] as const;
    });
    document[outer] = { ...(document[outer] as object | undefined), ...Object.fromEntries(entries) };
  }
  return { document, variables: variables.names, notes };
}

async function notesOfKeys(api: ProjectApi, kind: Kind, exported: number): Promise<string[]> {
  const ofAccount = await api.countOfAccount(kind);
  return [
    ...(exported === 0
      ? []
      : ["Keys are exported without their secrets: apply creates those that are missing, with new secrets."]),
    ...(ofAccount === 0
      ? []
      : [
          `${ofAccount} ${kind.section} of the account were not exported: a file has the keys of projects alone.`,
        ]),
  ];
}

/** The text of a file with these projects. */
export function textOf(exported: readonly Exported[]): string {
  return exported
    .map(({ document }) =>
      stringify({ ninefold: 1, ...document }, { lineWidth: 0, customTags: withExactNumbers }),
    )
    .join("---\n");
}

function describe({
  slug,
  name,
  description,
  review,
  time_zone = UTC,
}: ServerProject): Record<string, unknown> {
  return {
    project: slug,
    ...(name === slug ? {} : { name }),
    ...(description === null ? {} : { description }),
    ...(time_zone === UTC ? {} : { time_zone }),
    ...(review === true ? { review } : {}),
  };
}

function byName(kind: Kind, items: readonly JsonObject[], notes: string[]): ReadonlyMap<string, JsonObject> {
  const named = new Map<string, JsonObject>();
  const twice = new Set<string>();
  let unnamed = 0;
  // Lists begin with the newest.
  for (const item of items.toReversed()) {
    const name = kind.facts.isSingle === true ? kind.section.split(".")[1] : item[kind.facts.name];
    if (typeof name !== "string") unnamed += 1;
    else if (named.has(name)) twice.add(name);
    else named.set(name, item);
  }
  if (unnamed > 0) notes.push(`${unnamed} ${kind.section} without a name were not exported.`);
  for (const name of twice) {
    named.delete(name);
    notes.push(`Several ${kind.section} have the name ${name}: they were not exported.`);
  }
  return named;
}

interface Writing {
  readonly section: string;
  /** The name of the resource; null for one without a name. */
  readonly name: string | null;
  /** The members that lead to the value. */
  readonly path: readonly string[];
  readonly variables: Variables;
  readonly nameOf: (section: string, id: string) => string;
}

function resourceOf(kind: Kind, item: JsonObject, writing: Writing): JsonObject {
  const { defaults = {}, computed, meaningfulNulls } = kind.facts;
  const nulls = meaningfulNulls?.(item) ?? [];
  const absent = computed?.(item) ?? [];
  const digests = (item["secret_digest"] ?? {}) as JsonObject;
  const entries = [...kind.fields.values()].flatMap((field): [string, unknown][] => {
    const { name, apiName, schema } = field;
    const isHidden = isSecret(schema, item);
    if (absent.includes(apiName)) return [];
    if (isHidden) return name in digests ? [[name, reference(writing, name)]] : [];
    // Responses to reads have only the names of some headers.
    const names = apiName === "headers" ? (item["header_names"] as readonly string[] | undefined) : undefined;
    const value =
      names === undefined || names.length === 0
        ? shownValue(kind, field, item)
        : Object.fromEntries(names.map((header) => [header, SECRET]));
    if (value === null && nulls.includes(apiName)) return [[name, null]];
    if ((value ?? null) === null || isDeepStrictEqual(value, defaults[apiName])) return [];
    const shown = replaced(schema, value, writing.nameOf);
    if (isHeaders(name, schema)) return [[name, headersOf(shown as JsonObject, writing)]];
    return [[name, written(schema, shown, { ...writing, path: [name] }, digests, name)]];
  });
  return Object.fromEntries(entries);
}

/** Values that look like credentials as references. */
function headersOf(headers: JsonObject, writing: Writing): JsonObject {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const isHidden = value === SECRET || SECRET_NAMES.has(name.toLowerCase());
      return [name, isHidden ? reference(writing, name) : value];
    }),
  );
}

/** A value without members that have their defaults, and with the names of its members in files. */
function written(
  schema: TSchema,
  value: unknown,
  writing: Writing,
  digests: JsonObject,
  path: string,
): unknown {
  const type = Array.isArray(value) ? "array" : typeof value;
  const typed =
    schema["anyOf"] === undefined ? schema : notNull(schema).find((member) => member["type"] === type);
  if (typed === undefined || isFree(typed) || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value))
    return value.map((item, index) =>
      written(typed["items"] ?? {}, item, writing, digests, `${path}.${index}`),
    );
  const properties: Readonly<Record<string, TSchema>> | undefined = typed["properties"];
  if (properties === undefined) return value;
  const members = value as JsonObject;
  const entries = Object.entries(properties).flatMap(([name, property]): [string, unknown][] => {
    const inner = `${path}.${name}`;
    if (isSecret(property, members)) return inner in digests ? [[name, reference(writing, name)]] : [];
    const member = members[name];
    if ((member ?? null) === null && !isRequiredNull(typed, name, member)) return [];
    if (property["default"] !== undefined && isDeepStrictEqual(member, property["default"])) return [];
    return [[fileName(name, property), written(property, member, writing, digests, inner)]];
  });
  return Object.fromEntries(entries);
}

function isRequiredNull(schema: TSchema, name: string, member: unknown): boolean {
  return member === null && (schema["required"] as readonly string[] | undefined)?.includes(name) === true;
}

/** `{env: NAME}` with a name of its own. */
function reference({ section, name, path, variables }: Writing, member: string): { env: string } {
  return { env: variables.nameFor(section, name, [...path, member]) };
}

/** Numbers that a double does not hold are written as the server has them. */
const EXACT_NUMBER: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  identify: isExactNumber,
  resolve: (text) => JSON.rawJSON(text),
  stringify: ({ value }) => (isExactNumber(value) ? value.rawJSON : String(value)),
};

const withExactNumbers = (tags: Tags): Tags => [EXACT_NUMBER, ...tags];
