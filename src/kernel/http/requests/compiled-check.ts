import type { TSchema } from "@sinclair/typebox";
import type { TypeCheck } from "@sinclair/typebox/compiler";

/** The compiled checks of schemas and of their parts. */
const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** What compiles schemas and finds errors. Loaded by the first value that is checked: a start checks none. */
export function schemaCompiler(): typeof import("./schema-compiler.ts") {
  return require("./schema-compiler.ts");
}

/** The check of a schema, compiled when it is used for the first time. */
export function compiledCheck<S extends TSchema>(schema: S): TypeCheck<S> {
  const known = checks.get(schema);
  if (known !== undefined) return known as TypeCheck<S>;
  const compiled = schemaCompiler().TypeCompiler.Compile(schema);
  checks.set(schema, compiled);
  return compiled;
}
