import {
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
  options: SchemaOptions = { errorMessage: `must be one of ${names.join(", ")}` },
): TUnion<{ -readonly [Index in keyof Names]: TLiteral<Names[Index]> }> {
  return Type.Union(
    names.map((name) => Type.Literal(name)),
    options,
  ) as never;
}

/** The same, or null. */
export function orNull<Schema extends TSchema>(
  schema: Schema,
  options: SchemaOptions = {},
): TUnion<[Schema, TNull]> {
  return Type.Union([schema, Type.Null()], options);
}

const KIND = "Characters";

/** A text's schema, with its bounds as JSON Schema means them. */
interface CharactersSchema extends TSchema {
  readonly minLength: number;
  readonly maxLength: number;
}

TypeRegistry.Set<CharactersSchema>(KIND, ({ minLength, maxLength }, value) => {
  if (typeof value !== "string" || value.length < minLength) return false;
  // A lone surrogate is no character: it would come back from the file as another one.
  if (!value.isWellFormed()) return false;
  if (value.length <= maxLength) return true;
  return value.length <= 2 * maxLength && [...value].length <= maxLength;
});

/** Bounds and notes of a free text. */
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
