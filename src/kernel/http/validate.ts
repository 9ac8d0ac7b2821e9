import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler, type ValueError } from "@sinclair/typebox/compiler";
import { ValueErrorType } from "@sinclair/typebox/errors";
import { ApiError, echoed, invalidField } from "../errors.ts";

/** Checks a value against a schema. The value itself comes back: nothing is coerced, filled in or stripped. */
export type Validator<S extends TSchema> = (value: unknown) => Static<S>;

/** Messages listed for one request: a body with a thousand mistakes needs no thousand lines. */
export const FIELD_ERRORS_MAX = 20;

/**
 * Makes a schema's check. It is compiled when it is used for the first time: compiling the checks of every endpoint
 * would be a tenth of the time that a server takes to start, and most servers never use most of them.
 *
 * The check throws ApiError `validation_error` with every wrong field and what would be right.
 */
export function compileValidator<S extends TSchema>(schema: S): Validator<S> {
  let compiled: TypeCheck<S> | undefined;
  return (value) => {
    compiled ??= TypeCompiler.Compile(schema);
    if (compiled.Check(value)) return value;
    throw validationError(compiled.Errors(value));
  };
}

function validationError(errors: Iterable<ValueError>): ApiError {
  const fields = fieldMessages(errors, (path) => path.replaceAll("/", "."));
  const first = Object.entries(fields)[0];
  const message = first === undefined ? "The request is not valid." : `${first[0]} ${first[1].join(", ")}`;
  return new ApiError("validation_error", message, { fields });
}

/** What a schema finds wrong, at most {@link FIELD_ERRORS_MAX} fields of it. `nameOf`: what a path such as `a/0/b` is called. */
export function fieldMessages(
  errors: Iterable<ValueError>,
  nameOf: (path: string) => string,
): Record<string, string[]> {
  const fields: Record<string, string[]> = {};
  for (const error of innermost(errors)) {
    const name = error.path === "" ? "body" : echoed(nameOf(error.path.slice(1)));
    // A missing field also fails its type: the first message of a field is the one that says what to do.
    if (Object.hasOwn(fields, name)) continue;
    Object.defineProperty(fields, name, { value: [describe(error)], enumerable: true });
    if (Object.keys(fields).length >= FIELD_ERRORS_MAX) break;
  }
  return fields;
}

/** The same errors; for a value that may be null and is not, those of what it may be besides, where the schema has no words of its own. */
function* innermost(errors: Iterable<ValueError>): Generator<ValueError> {
  for (const error of errors) {
    const [first] = error.errors;
    const { errorMessage, anyOf } = error.schema;
    const isNullable = error.type === ValueErrorType.Union && anyOf.length === 2 && anyOf[1].type === "null";
    if (isNullable && errorMessage === undefined && first !== undefined) yield* innermost(first);
    else yield error;
  }
}

function describe(error: ValueError): string {
  const wanted: unknown = error.schema.errorMessage;
  if (error.type === ValueErrorType.ObjectRequiredProperty) {
    return typeof wanted === "string" ? `is required: it ${wanted}` : "is required";
  }
  if (typeof wanted === "string") return wanted;
  const said = error.message.replace(/^Expected /, "must be ");
  return said.charAt(0).toLowerCase() + said.slice(1);
}

/** What a route can say of its input. */
export interface InputSchemas {
  readonly params?: TObject | undefined;
  readonly query?: TObject | undefined;
  readonly body?: TObject | undefined;
}

/** Checks of path parameters, query and body of an endpoint; null for what it does not take. */
export interface InputChecks {
  readonly params: Validator<TObject> | null;
  /** The query of a URL, with numbers and booleans read and defaults filled in. @throws ApiError `validation_error` */
  readonly query: ((url: string) => Record<string, unknown>) | null;
  readonly body: Validator<TObject> | null;
}

/** Makes the checks of an endpoint. */
export function inputChecks({ params, query, body }: InputSchemas): InputChecks {
  return {
    params: params === undefined ? null : compileValidator(params),
    query: query === undefined ? null : queryReader(query),
    body: body === undefined ? null : compileValidator(body),
  };
}

function queryReader(schema: TObject): (url: string) => Record<string, unknown> {
  const check = compileValidator(schema);
  return (url) => {
    const mark = url.indexOf("?");
    return check(readParameters(mark < 0 ? "" : url.slice(mark + 1), schema));
  };
}

function readParameters(text: string, schema: TObject): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  const parameters = new URLSearchParams(text);
  if (schema.additionalProperties === false) assertKnown(parameters.keys(), schema);
  for (const [name, property] of Object.entries(schema.properties)) {
    const [value, ...more] = parameters.getAll(name);
    if (property.type === "array") {
      if (value !== undefined) values[name] = [value, ...more].map((one) => readValue(one, property.items));
      continue;
    }
    if (more.length > 0) throw invalidField(name, "is given more than once");
    if (value !== undefined) values[name] = readValue(value, property);
    else if (property.default !== undefined) values[name] = property.default;
  }
  return values;
}

/** Where a parameter that is misspelt must not go unnoticed. */
function assertKnown(names: Iterable<string>, { properties }: TObject): void {
  for (const name of names) {
    if (!Object.hasOwn(properties, name)) throw invalidField(name, "is no parameter of this endpoint");
  }
}

/** Texts that do not look like the wanted type stay texts, for the schema to refuse with its own message. */
function readValue(text: string, schema: TSchema): unknown {
  if (schema.type === "integer" && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (schema.type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}
