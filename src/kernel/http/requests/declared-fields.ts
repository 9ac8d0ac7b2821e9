import { Kind, type TSchema } from "@sinclair/typebox";
import { compiledCheck } from "./compiled-check.ts";

/** Whether a value had members that its schema does not declare. */
export interface ReadingState {
  hasUnknown: boolean;
}

/** Returns a checked value without the members that its schema does not declare. */
type Reader = (value: unknown, state: ReadingState) => unknown;

/**
 * Makes what a handler reads of a body: the fields that its schema declares, at every level. Clients may send others, such
 * as a whole response that they have read before, and a handler that hands its body on must not hand on those.
 *
 * Free-form values (`additionalProperties` other than false, records, and whatever the schema does not describe) stay as
 * they are, as the same objects. The value must have passed the schema's check.
 */
export function declaredFields(schema: TSchema): Reader {
  return readerOf(schema) ?? ((value) => value);
}

/** Null where every value stays as it is. */
function readerOf(schema: TSchema): Reader | null {
  switch (schema[Kind]) {
    case "Object":
      return objectReader(schema);
    case "Array":
      return arrayReader(schema);
    case "Union":
      return unionReader(schema);
    default:
      return null;
  }
}

function objectReader({ properties, additionalProperties }: TSchema): Reader | null {
  if (additionalProperties !== undefined && additionalProperties !== false) return null;
  const members = Object.entries<TSchema>(properties).map(
    ([name, schema]) => [name, readerOf(schema)] as const,
  );
  return (value, state) => {
    const body = value as Readonly<Record<string, unknown>>;
    const read: Record<string, unknown> = {};
    let count = 0;
    for (const [name, reader] of members) {
      if (!Object.hasOwn(body, name)) continue;
      const member = body[name];
      read[name] = reader === null || member === undefined ? member : reader(member, state);
      count += 1;
    }
    if (!state.hasUnknown && count < Object.keys(body).length) state.hasUnknown = true;
    return read;
  };
}

function arrayReader({ items }: TSchema): Reader | null {
  const reader = readerOf(items);
  return reader === null
    ? null
    : (value, state) => (value as readonly unknown[]).map((item) => reader(item, state));
}

function unionReader({ anyOf }: TSchema): Reader | null {
  const variants = (anyOf as readonly TSchema[]).map((schema) => ({ schema, reader: readerOf(schema) }));
  if (variants.every(({ reader }) => reader === null)) return null;
  return (value, state) => {
    if (typeof value !== "object" || value === null) return value;
    const fitting = variants.find(({ schema }) => compiledCheck(schema).Check(value));
    return fitting?.reader?.(value, state) ?? value;
  };
}
