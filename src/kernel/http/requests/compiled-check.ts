import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";

/** The compiled checks of schemas and of their parts. */
const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** The check of a schema, compiled when it is used for the first time. */
export function compiledCheck<S extends TSchema>(schema: S): TypeCheck<S> {
  const known = checks.get(schema);
  if (known !== undefined) return known as TypeCheck<S>;
  const compiled = TypeCompiler.Compile(schema);
  checks.set(schema, compiled);
  return compiled;
}
