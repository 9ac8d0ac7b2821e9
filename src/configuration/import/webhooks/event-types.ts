import type { SourceObject } from "../source.ts";
import { isObject } from "../source.ts";

/** Names that messages can have. */
const NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** Keywords that a server does not accept, since it runs no expression of others and fetches nothing. */
const REJECTED: ReadonlySet<string> = new Set(["pattern", "patternProperties", "$dynamicRef", "$id"]);
/** Keywords whose members are schemas by name: a property can be called `pattern`. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
/** Keywords whose values are data. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "example", "examples"]);

/** An event type before it is written. */
export interface NewEventType {
  readonly name: string;
  readonly description: string | null;
  /** JSON Schema of the payloads; null for none. */
  readonly schema: unknown;
  /** Whether no new messages of the type are described. */
  readonly archived: boolean;
}

/** Adds an event type. Keywords of its schema that a server rejects are left out, and noted. */
export function addEventType(type: SourceObject, { name, schema, ...values }: NewEventType): void {
  if (!NAME.test(name) || name.startsWith("ninefold.")) {
    type.noteLoss(
      "name",
      "has other characters than letters, digits, `_`, `.` and `-`, or begins with ninefold.",
    );
    return;
  }
  if (type.draft.has("event_types", name)) {
    type.noteLoss("name", "is that of another event type");
    return;
  }
  const removed = new Set<string>();
  const accepted = isObject(schema) ? acceptedSchema(schema, removed) : null;
  if (removed.size > 0)
    type.note("schema", `${[...removed].sort().join(", ")} are not carried over: the rest of the schema is`);
  const example = exampleOf(schema);
  type.draft.add({
    section: "event_types",
    name,
    subject: type,
    values: {
      description: values.description,
      schema: accepted === null || Object.keys(accepted).length === 0 ? null : accepted,
      example,
      archived: values.archived ? true : null,
    },
  });
}

function acceptedSchema(
  schema: Readonly<Record<string, unknown>>,
  removed: Set<string>,
): Record<string, unknown> {
  const kept = Object.entries(schema).flatMap(([keyword, value]) => {
    // A declaration of the dialect; what differs between them is not used here.
    if (keyword === "$schema") return [];
    if (REJECTED.has(keyword)) {
      removed.add(keyword);
      return [];
    }
    if (DATA.has(keyword)) return [[keyword, value]];
    if (NAMED.has(keyword) && isObject(value)) {
      const named = Object.entries(value).map(([name, inner]) => [name, acceptedValue(inner, removed)]);
      return [[keyword, Object.fromEntries(named)]];
    }
    return [[keyword, acceptedValue(value, removed)]];
  });
  return Object.fromEntries(kept);
}

function acceptedValue(value: unknown, removed: Set<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => acceptedValue(item, removed));
  return isObject(value) ? acceptedSchema(value, removed) : value;
}

/** The first example of a schema that is an object, as payloads are. */
function exampleOf(schema: unknown): unknown {
  if (!isObject(schema)) return null;
  const { examples, example } = schema;
  const all = [...(Array.isArray(examples) ? examples : []), example];
  return all.find(isObject) ?? null;
}
