import type { TObject, TSchema } from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import { compileValidator, type Validator } from "./validate.ts";

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
