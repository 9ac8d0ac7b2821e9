import {
  FormatRegistry,
  Kind,
  type SchemaOptions,
  type TLiteral,
  type TNull,
  type TObject,
  type TProperties,
  type TSchema,
  type TUnion,
  Type,
  TypeRegistry,
} from "@sinclair/typebox";
import { isOneLine } from "../one-line.ts";
import { parseDateTime } from "../time/date-time.ts";

/** An object by the name that the API's description and the client give it. */
export function named<Properties extends TProperties>(
  $id: string,
  properties: Properties,
  options: SchemaOptions = {},
): TObject<Properties> {
  return Type.Object(properties, { $id, ...options });
}

/** One of some texts, as a type as well. */
export function oneOf<const Names extends readonly string[]>(
  names: Names,
  options: SchemaOptions = {},
): TUnion<{ -readonly [Index in keyof Names]: TLiteral<Names[Index]> }> {
  return Type.Union(
    names.map((name) => Type.Literal(name)),
    { errorMessage: `must be one of ${names.join(", ")}`, ...options },
  ) as never;
}

/** Marks a text as the id of a resource, by the section of a configuration file: there its name stands in place of the id. */
export function refersTo(section: string) {
  return { "x-resource": section };
}

/** Marks a text as a secret while another field has one of some values; `writeOnly` marks one that always is. */
export function secretOf(field: string, values: readonly string[]) {
  return { "x-secret-if": { field, values } };
}

/** The same, or null. */
export function orNull<Schema extends TSchema>(
  schema: Schema,
  options: SchemaOptions = {},
): TUnion<[Schema, TNull]> {
  return Type.Union([schema, Type.Null()], options);
}

const KIND = "Characters";

/** The characters that {@link name} accepts: no control characters, and none that ends a line. */
const ONE_LINE = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$";

/** Longest name. */
export const NAME_LENGTH_MAX = 100;

/** A text's schema, with its limits as JSON Schema means them. */
interface CharactersSchema extends TSchema {
  readonly minLength: number;
  readonly maxLength: number;
  readonly pattern?: string;
}

TypeRegistry.Set<CharactersSchema>(KIND, ({ minLength, maxLength, pattern }, value) => {
  if (typeof value !== "string" || value.length < minLength) return false;
  if (pattern === ONE_LINE && !isOneLine(value)) return false;
  // A lone surrogate is no character: it would come back from the file as another one.
  if (!value.isWellFormed()) return false;
  if (value.length <= maxLength) return true;
  return value.length <= 2 * maxLength && [...value].length <= maxLength;
});

/** The formats that texts of requests can have. Elysia, which has some of the same names, keeps those that exist. */
export const INPUT_FORMATS = {
  "date-time": (text: string) => parseDateTime(text) !== null,
} as const;
for (const [format, fits] of Object.entries(INPUT_FORMATS)) FormatRegistry.Set(format, fits);

/** Limits and notes of a free text. */
export interface TextOptions {
  readonly min: number;
  readonly max: number;
  readonly description?: string;
  readonly examples?: readonly string[];
}

/**
 * Free text of `min` to `max` characters: Unicode characters, as people and JSON Schema count them, where
 * TypeBox's own strings count UTF-16 units and so half an emoji.
 */
export function text({ min, max, ...more }: TextOptions) {
  const least = min === 0 ? `at most ${max}` : `${min} to ${max}`;
  return Type.Unsafe<string>({
    [Kind]: KIND,
    type: "string",
    minLength: min,
    maxLength: max,
    errorMessage: `must be a text of ${least} characters`,
    ...more,
  });
}

/** A name that users give to what they make: one line, since it stands in subjects of e-mails and in lists. */
export function name(description: string, max: number = NAME_LENGTH_MAX) {
  return Type.Unsafe<string>({
    ...text({ min: 1, max, description, examples: ["shop"] }),
    pattern: ONE_LINE,
    errorMessage: `must be a text of 1 to ${max} characters on one line`,
  });
}

/** Longest name of a time zone: the longest of the IANA database has half of it. */
const TIME_ZONE_LENGTH_MAX = 64;
/** Extension of a schema: the text names a time zone. */
const TIME_ZONE = "x-time-zone";

/** The IANA name of a time zone. Requests and configuration files can name the field `tz`, `timezone` or `time_zone`. */
export function timeZone(description: string, examples: readonly string[]) {
  return Type.Unsafe<string>({
    ...text({ min: 1, max: TIME_ZONE_LENGTH_MAX, description, examples }),
    errorMessage: 'must be the IANA name of a time zone, such as "Europe/Berlin"',
    [TIME_ZONE]: true,
  });
}

/** Whether a schema is one that {@link timeZone} made. */
export function isTimeZone(schema: { readonly [name: string]: unknown }): boolean {
  return schema[TIME_ZONE] === true;
}

/** The fields next to the items of a page when there are more. */
export const NextCursor = Type.Optional(
  Type.String({
    description: "Hand it in to get the next page. Absent on the last one.",
    examples: ["eyJhIjo0Mn0"],
  }),
);
