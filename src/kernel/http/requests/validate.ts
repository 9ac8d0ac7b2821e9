import { Kind, type Static, type TObject, type TSchema, Type } from "@sinclair/typebox";
import type { TypeCheck, ValueError } from "@sinclair/typebox/compiler";
import { Errors, ValueErrorType } from "@sinclair/typebox/errors";
import { durationUnitOf, readDuration } from "../../data/schema.ts";
import { ApiError, ECHO_LENGTH_MAX, echoed, invalidField } from "../../errors.ts";
import { aliasReader } from "./aliases.ts";
import { compiledCheck } from "./compiled-check.ts";
import { declaredFields } from "./declared-fields.ts";
import { unknownFieldWarnings, unknownParameterWarnings } from "./unknown-names.ts";

/** Checks a value against a schema, and returns it. Nothing is coerced or filled in. */
export type Validator<S extends TSchema> = (value: unknown) => Static<S>;

/** Messages listed for one request: a body with a thousand mistakes needs no thousand lines. */
export const FIELD_ERRORS_MAX = 20;

/**
 * Makes a schema's check. It is compiled when it is used for the first time: compiling the checks of every endpoint
 * would be a tenth of the time that a server takes to start, and most servers never use most of them.
 *
 * The check throws ApiError `validation_error` with the first wrong fields and what would be right.
 */
export function compileValidator<S extends TSchema>(schema: S): Validator<S> {
  let compiled: TypeCheck<S> | undefined;
  return (value) => {
    compiled ??= compiledCheck(schema);
    if (compiled.Check(value)) return value;
    throw validationError(schema, value);
  };
}

function validationError(schema: TSchema, value: unknown): ApiError {
  const fields = fieldMessages(schema, value, (path) => path.replaceAll("/", "."));
  const first = Object.entries(fields)[0];
  const message = first === undefined ? "The request is not valid." : `${first[0]} ${first[1].join(", ")}`;
  return new ApiError("validation_error", message, { fields });
}

/**
 * What a schema finds wrong with a value, at most {@link FIELD_ERRORS_MAX} fields of it: the search ends with the last of
 * them. `nameOf`: what a path such as `a/0/b` is called.
 */
export function fieldMessages(
  schema: TSchema,
  value: unknown,
  nameOf: (path: string) => string,
): Record<string, string[]> {
  const fields: Record<string, string[]> = {};
  const paths = new Set<string>();
  for (const error of errorsIn(schema, "", value)) {
    paths.add(error.path);
    // Whatever is behind the part that is shown is not worth naming: a name in a body may be a megabyte long.
    const path = error.path.slice(1, ECHO_LENGTH_MAX + 2);
    const name = error.path === "" ? "body" : echoed(nameOf(path));
    // A missing field also fails its type: the first message of a field is the one that says what to do.
    if (!Object.hasOwn(fields, name))
      Object.defineProperty(fields, name, { value: [describe(error)], enumerable: true });
    if (paths.size >= FIELD_ERRORS_MAX) break;
  }
  return fields;
}

/**
 * Finds what is wrong with a value, one error after another. The library's own search walks every member of a value, also
 * the correct ones and those beyond the number allowed, at a hundredth of the speed of a compiled check. Here compiled
 * checks decide which members to look into, and a container with too many members has no other error.
 *
 * For a value that may be null and is not, the errors are those of what it may be in addition, where the schema has no words
 * of its own.
 */
function* errorsIn(schema: TSchema, path: string, value: unknown): Generator<ValueError> {
  if (compiledCheck(schema).Check(value)) return;
  const kind = schema[Kind];
  if (kind === "Union" && isNullableAlone(schema)) yield* errorsIn(schema.anyOf[0], path, value);
  else if (kind === "Array" && Array.isArray(value)) yield* errorsInItems(schema, path, value);
  else if (kind === "Object" && isMembers(value)) yield* errorsInMembers(schema, path, value);
  else if (kind === "Record" && isMembers(value)) yield* errorsInRecord(schema, path, value);
  else yield* libraryErrors(schema, path, value);
}

function isNullableAlone({ anyOf, errorMessage }: TSchema): boolean {
  return anyOf.length === 2 && anyOf[1].type === "null" && errorMessage === undefined;
}

/** Members of an object by name. */
type Members = Readonly<Record<string, unknown>>;

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(count: number, min = 0, max = Number.POSITIVE_INFINITY): boolean {
  return count >= min && count <= max;
}

function hasCount({ minProperties, maxProperties }: TSchema, members: Members): boolean {
  return isCount(Object.keys(members).length, minProperties, maxProperties);
}

function* errorsInItems(schema: TSchema, path: string, items: readonly unknown[]): Generator<ValueError> {
  if (!isCount(items.length, schema.minItems, schema.maxItems)) return yield* firstError(schema, path, items);
  let isEachRight = true;
  for (const [index, item] of items.entries()) {
    for (const error of errorsIn(schema.items, `${path}/${index}`, item)) {
      isEachRight = false;
      yield error;
    }
  }
  // What is left is wrong with the list as a whole, such as an item that occurs twice.
  if (isEachRight) yield* libraryErrors(schema, path, items);
}

function* errorsInMembers(schema: TSchema, path: string, members: Members): Generator<ValueError> {
  if (!hasCount(schema, members)) return yield* firstError(schema, path, members);
  const { properties = {}, additionalProperties } = schema;
  const unchecked: Record<string, TSchema> = {};
  for (const [name, property] of Object.entries<TSchema>(properties))
    unchecked[name] = { ...property, [Kind]: "Any" };
  // Missing members, and those that may not be there.
  yield* libraryErrors(
    { ...schema, properties: unchecked, additionalProperties: additionalProperties !== false },
    path,
    members,
  );
  if (typeof additionalProperties === "object") {
    for (const name of Object.keys(members)) {
      if (!Object.hasOwn(properties, name))
        yield* errorsIn(additionalProperties, `${path}/${pointerPart(name)}`, members[name]);
    }
  }
  for (const [name, property] of Object.entries<TSchema>(properties)) {
    if (members[name] !== undefined) yield* errorsIn(property, `${path}/${pointerPart(name)}`, members[name]);
  }
}

function* errorsInRecord(schema: TSchema, path: string, members: Members): Generator<ValueError> {
  if (!hasCount(schema, members)) return yield* firstError(schema, path, members);
  const [pattern, memberSchema] = Object.entries<TSchema>(schema.patternProperties)[0] ?? ["", schema];
  const fitting = compiledCheck(Type.String({ pattern }));
  for (const [name, member] of Object.entries(members)) {
    if (fitting.Check(name)) yield* errorsIn(memberSchema, `${path}/${pointerPart(name)}`, member);
  }
  const unchecked = { [pattern]: { ...memberSchema, [Kind]: "Any" } };
  yield* libraryErrors({ ...schema, patternProperties: unchecked }, path, members);
}

/** What the library's own search finds, with the path of the value before it. */
function* libraryErrors(schema: TSchema, path: string, value: unknown): Generator<ValueError> {
  for (const error of Errors(schema, [], value)) yield { ...error, path: `${path}${error.path}` };
}

/** The first of them: for a container with a wrong number of members that is this number. */
function* firstError(schema: TSchema, path: string, value: unknown): Generator<ValueError> {
  for (const error of libraryErrors(schema, path, value)) return yield error;
}

/** A name as one part of a path, as JSON pointers write it. */
function pointerPart(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function describe(error: ValueError): string {
  const wanted: unknown = error.schema.errorMessage;
  if (error.type === ValueErrorType.ObjectRequiredProperty) {
    return typeof wanted === "string" ? `is required: it ${wanted}` : "is required";
  }
  if (typeof wanted === "string") return wanted;
  if (error.type === ValueErrorType.StringMaxLength)
    return `must have at most ${error.schema["maxLength"]} characters`;
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
  /** Reads the query of a URL: numbers, booleans and defaults. @throws ApiError `validation_error` */
  readonly query: ((url: string, warnings: Warnings) => Record<string, unknown>) | null;
  /** Checks a body, and returns its declared fields. @throws ApiError `validation_error` */
  readonly body: ((value: unknown, warnings: Warnings) => Static<TObject>) | null;
}

/** Receives warnings about names in a request that its endpoint does not declare. */
export interface Warnings {
  addWarnings(warnings: readonly string[]): void;
}

/** Makes the checks of an endpoint. */
export function inputChecks({ params, query, body }: InputSchemas): InputChecks {
  return {
    params: params === undefined ? null : compileValidator(params),
    query: query === undefined ? null : queryReader(query),
    body: body === undefined ? null : bodyReader(body),
  };
}

/** The parts of a reader are made at the first body, like the check: a start would make them for every endpoint. */
function bodyReader(schema: TObject): NonNullable<InputChecks["body"]> {
  const check = compileValidator(schema);
  let parts:
    | { rename: ReturnType<typeof aliasReader>; declared: ReturnType<typeof declaredFields> }
    | undefined;
  return (value, warnings) => {
    parts ??= { rename: aliasReader(schema), declared: declaredFields(schema) };
    const named = parts.rename === null ? value : parts.rename(value);
    const checked = check(named);
    const state = { hasUnknown: false };
    const read = parts.declared(checked, state) as Static<TObject>;
    if (state.hasUnknown) warnings.addWarnings(unknownFieldWarnings(schema, checked));
    return read;
  };
}

function queryReader(schema: TObject): NonNullable<InputChecks["query"]> {
  const check = compileValidator(schema);
  const names = Object.keys(schema.properties);
  return (url, warnings) => {
    const query = queryOf(url);
    const values = check(readParameters(query, schema));
    if (query !== "") warnings.addWarnings(unknownParameterWarnings(query, names));
    return values;
  };
}

/** The query of a URL without its question mark; empty without one. */
export function queryOf(url: string): string {
  const mark = url.indexOf("?");
  return mark < 0 ? "" : url.slice(mark + 1);
}

function readParameters(text: string, schema: TObject): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  const parameters = new URLSearchParams(text);
  if (schema.additionalProperties === false) assertKnown(parameters.keys(), schema);
  for (const [name, property] of Object.entries(schema.properties)) {
    const [value, ...more] = parameters.getAll(name);
    if (property.type === "array") {
      if (value !== undefined) values[name] = [value, ...more].map((item) => readValue(item, property.items));
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

/** Texts that do not look like the expected type stay texts, which the schema rejects with its own message. */
function readValue(text: string, schema: TSchema): unknown {
  if (schema.type === "integer" && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (schema.type === "boolean" && (text === "true" || text === "false")) return text === "true";
  const unit = durationUnitOf(schema);
  return unit === null ? text : readDuration(text, unit);
}
