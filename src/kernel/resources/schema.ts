import { type TObject, type TOptional, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { named } from "../data/schema.ts";

type Patch<Properties extends TProperties, Fixed extends keyof Properties> = TObject<{
  [Name in Exclude<keyof Properties, Fixed>]: TOptional<Properties[Name]>;
}>;

/** The body of a change: the fields of the body of the creation, each optional and without a default. `fixed`: cannot change. */
export function patchOf<Properties extends TProperties, Fixed extends keyof Properties & string = never>(
  $id: string,
  { properties }: TObject<Properties>,
  fixed: readonly Fixed[] = [],
): Patch<Properties, Fixed> {
  const changing = Object.entries<TSchema>(properties).filter(([name]) => !fixed.includes(name as Fixed));
  const optional = changing.map(([name, { default: _, ...schema }]) => [
    name,
    Type.Optional(schema as TSchema),
  ]);
  return named($id, Object.fromEntries(optional)) as never;
}
