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
  const fields: Record<string, string[]> = {};
  let count = 0;
  for (const error of errors) {
    const name = error.path === "" ? "body" : echoed(error.path.slice(1).replaceAll("/", "."));
    // A missing field also fails its type: the first message of a field is the one that says what to do.
    if (Object.hasOwn(fields, name)) continue;
    Object.defineProperty(fields, name, { value: [describe(error)], enumerable: true });
    count += 1;
    if (count >= FIELD_ERRORS_MAX) break;
  }
  const first = Object.entries(fields)[0];
  const message = first === undefined ? "The request is not valid." : `${first[0]} ${first[1].join(", ")}`;
  return new ApiError("validation_error", message, { fields });
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

/** Checks path parameters, query and body of an endpoint against their schemas. */
export class InputChecks<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TObject = TObject,
> {
  readonly params: Validator<P> | null;
  readonly body: Validator<B> | null;
  /** Whether there is a query to read: building a request's URL is not free. */
  readonly takesQuery: boolean;
  private readonly query: Validator<Q> | null;
  private readonly querySchema: Q | null;

  constructor(spec: { readonly params?: P; readonly query?: Q; readonly body?: B }) {
    this.params = spec.params === undefined ? null : compileValidator(spec.params);
    this.body = spec.body === undefined ? null : compileValidator(spec.body);
    this.query = spec.query === undefined ? null : compileValidator(spec.query);
    this.querySchema = spec.query ?? null;
    this.takesQuery = spec.query !== undefined;
  }

  /**
   * The query of a URL, with numbers and booleans read and defaults filled in.
   * @throws ApiError `validation_error`
   */
  readQuery(url: string): Record<string, unknown> {
    if (this.query === null || this.querySchema === null) return {};
    const mark = url.indexOf("?");
    const given = mark < 0 ? {} : readParameters(url.slice(mark + 1), this.querySchema);
    return this.query(withDefaults(given, this.querySchema));
  }
}

/** Of endpoints that take nothing. */
export const NO_CHECKS = new InputChecks({});

function readParameters(text: string, schema: TObject): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  const parameters = new URLSearchParams(text);
  for (const [name, property] of Object.entries(schema.properties)) {
    const [value, ...more] = parameters.getAll(name);
    if (value === undefined) continue;
    if (more.length > 0) throw invalidField(name, "is given more than once");
    values[name] = readValue(value, property);
  }
  return values;
}

/** Texts that do not look like the wanted type stay texts, for the schema to refuse with its own message. */
function readValue(text: string, schema: TSchema): unknown {
  if (schema.type === "integer" && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (schema.type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

function withDefaults(values: Record<string, unknown>, schema: TObject): Record<string, unknown> {
  for (const [name, property] of Object.entries(schema.properties)) {
    if (values[name] === undefined && property.default !== undefined) values[name] = property.default;
  }
  return values;
}
