import {
  type SchemaOptions,
  type TLiteral,
  type TNull,
  type TSchema,
  type TUnion,
  Type,
} from "@sinclair/typebox";

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
