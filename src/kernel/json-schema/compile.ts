import { isExactNumber } from "../../json-text.ts";
import { MISSING, memberAt, pointerSteps } from "../data/json-pointer.ts";
import { invalidField } from "../errors.ts";
import { canonicalText, isNumber, type JsonNumber } from "./values.ts";

/** Longest schema, as JSON, in bytes. */
export const SCHEMA_BYTES_MAX = 64 * 1024;
/** Levels of schemas within each other. */
export const SCHEMA_LEVELS_MAX = 32;
/** Schemas within a schema. */
export const SUBSCHEMAS_MAX = 1_000;

/** The only dialect. */
const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** Keywords that would run an expression of a tenant, or lead out of the document. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  pattern: "is not supported: no expression of a schema is run",
  patternProperties: "is not supported: no expression of a schema is run",
  $dynamicRef: "is not supported: use $ref",
  $id: "is not supported: nothing outside of the schema is read",
};

const TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"] as const;
export type JsonType = (typeof TYPES)[number];

/** Keywords whose value is a schema. */
const SCHEMA_KEYWORDS = [
  ...["not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames"],
  ...["unevaluatedItems", "unevaluatedProperties"],
] as const;
const LIST_KEYWORDS = ["allOf", "anyOf", "oneOf", "prefixItems"] as const;
const MAP_KEYWORDS = ["properties", "dependentSchemas", "$defs"] as const;
const COUNT_KEYWORDS = [
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
  ...["minContains", "maxContains"],
] as const;
const NUMBER_KEYWORDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] as const;

type Schemas<Keywords extends readonly string[], Value> = { [Name in Keywords[number]]?: Value };

/** A schema, read. */
export interface SchemaNode
  extends Schemas<typeof SCHEMA_KEYWORDS, SchemaNode>,
    Schemas<typeof LIST_KEYWORDS, readonly SchemaNode[]>,
    Schemas<typeof MAP_KEYWORDS, ReadonlyMap<string, SchemaNode>>,
    Schemas<typeof COUNT_KEYWORDS, number>,
    Schemas<typeof NUMBER_KEYWORDS, JsonNumber> {
  /** False where nothing is valid. */
  admits: boolean;
  type?: readonly JsonType[];
  /** Texts of the values that are allowed, as {@link canonicalText} writes them. */
  enum?: ReadonlySet<string>;
  /** The length of the longest of them. */
  enumLength?: number;
  required?: readonly string[];
  dependentRequired?: ReadonlyMap<string, readonly string[]>;
  uniqueItems?: boolean;
  reference?: SchemaNode;
}

/** A schema that can be applied. */
export interface CompiledSchema {
  readonly root: SchemaNode;
  /** Whether a schema depends on what others have evaluated. */
  readonly tracksEvaluated: boolean;
}

/**
 * Reads a JSON Schema (2020-12). `format` and unknown keywords are notes. `field`: its name in errors.
 * @throws ApiError `validation_error` for what is not a schema, a keyword that is not supported, or one that is too large
 */
export function compileSchema(field: string, schema: unknown): CompiledSchema {
  const bytes = Buffer.byteLength(JSON.stringify(schema) ?? "");
  if (bytes > SCHEMA_BYTES_MAX)
    throw invalidField(field, `must be at most ${SCHEMA_BYTES_MAX} bytes as JSON`);
  return new SchemaReader(field, schema).compile();
}

/** A reference that is resolved when all schemas are read. */
interface Pending {
  readonly node: SchemaNode;
  readonly reference: string;
  readonly field: string;
  readonly level: number;
}

class SchemaReader {
  private readonly nodes = new Map<unknown, SchemaNode>();
  private readonly anchors = new Map<string, SchemaNode>();
  private readonly pending: Pending[] = [];
  private schemas = 0;
  private tracksEvaluated = false;

  constructor(
    private readonly field: string,
    private readonly document: unknown,
  ) {}

  compile(): CompiledSchema {
    const root = this.read(this.document, this.field, 1);
    // A target may be a schema that was not read yet, with references of its own.
    for (let at = 0; at < this.pending.length; at += 1) this.resolve(this.pending[at] as Pending);
    return { root, tracksEvaluated: this.tracksEvaluated };
  }

  private read(schema: unknown, field: string, level: number): SchemaNode {
    if (typeof schema === "boolean") return { admits: schema };
    if (!isObject(schema)) throw invalidField(field, "must be a schema: an object, true or false");
    const known = this.nodes.get(schema);
    if (known !== undefined) return known;
    if (level > SCHEMA_LEVELS_MAX)
      throw invalidField(this.field, `must have at most ${SCHEMA_LEVELS_MAX} levels of schemas`);
    // The schema itself is none of its subschemas.
    if (this.schemas > SUBSCHEMAS_MAX)
      throw invalidField(this.field, `must have at most ${SUBSCHEMAS_MAX} subschemas`);
    this.schemas += 1;
    const node: SchemaNode = { admits: true };
    this.nodes.set(schema, node);
    for (const [name, value] of Object.entries(schema)) {
      const problem = Object.hasOwn(FORBIDDEN, name) ? FORBIDDEN[name] : undefined;
      if (problem !== undefined) throw invalidField(`${field}.${name}`, problem);
      this.readKeyword(node, name, value, `${field}.${name}`, level);
    }
    return node;
  }

  private readKeyword(node: SchemaNode, name: string, value: unknown, field: string, level: number): void {
    if (isOneOf(SCHEMA_KEYWORDS, name)) {
      this.tracksEvaluated ||= name === "unevaluatedItems" || name === "unevaluatedProperties";
      node[name] = this.read(value, field, level + 1);
    } else if (isOneOf(LIST_KEYWORDS, name)) {
      if (!Array.isArray(value) || value.length === 0)
        throw invalidField(field, "must be a list of schemas that is not empty");
      node[name] = value.map((schema, at) => this.read(schema, `${field}.${at}`, level + 1));
    } else if (isOneOf(MAP_KEYWORDS, name)) {
      if (!isObject(value)) throw invalidField(field, "must be an object of schemas");
      const members = Object.entries(value);
      node[name] = new Map(
        members.map(([member, schema]) => [member, this.read(schema, `${field}.${member}`, level + 1)]),
      );
    } else if (isOneOf(COUNT_KEYWORDS, name)) {
      if (typeof value !== "number" || !Number.isInteger(value) || value < 0)
        throw invalidField(field, "must be a whole number of at least 0");
      node[name] = value;
    } else if (isOneOf(NUMBER_KEYWORDS, name)) node[name] = numberIn(name, value, field);
    else this.readOther(node, name, value, field, level);
  }

  private readOther(node: SchemaNode, name: string, value: unknown, field: string, level: number): void {
    if (name === "type") node.type = typesIn(value, field);
    else if (name === "const") restrict(node, [canonicalText(value)]);
    else if (name === "enum") {
      if (!Array.isArray(value)) throw invalidField(field, "must be a list of values");
      restrict(node, value.map(canonicalText));
    } else if (name === "required") node.required = namesIn(value, field);
    else if (name === "dependentRequired") {
      if (!isObject(value)) throw invalidField(field, "must be an object of lists of names");
      const members = Object.entries(value);
      node.dependentRequired = new Map(
        members.map(([member, names]) => [member, namesIn(names, `${field}.${member}`)]),
      );
    } else if (name === "uniqueItems") {
      if (typeof value !== "boolean") throw invalidField(field, "must be true or false");
      node.uniqueItems = value;
    } else if (name === "$schema") {
      if (value !== DIALECT && value !== `${DIALECT}#`)
        throw invalidField(field, `must be ${DIALECT}, or omitted`);
    } else if (name === "$anchor" || name === "$dynamicAnchor") {
      if (typeof value !== "string") throw invalidField(field, "must be a name");
      this.anchors.set(value, node);
    } else if (name === "$ref") {
      if (typeof value !== "string" || !value.startsWith("#"))
        throw invalidField(field, "must begin with #: references lead to places in the same schema");
      this.pending.push({ node, reference: value, field, level });
    }
  }

  private resolve({ node, reference, field, level }: Pending): void {
    const place = decoded(reference.slice(1));
    const anchor = place === null ? undefined : this.anchors.get(place);
    if (anchor !== undefined) {
      node.reference = anchor;
      return;
    }
    const steps = place === null || !/^(\/|$)/.test(place) ? null : pointerSteps(place);
    const target = steps === null ? MISSING : memberAt(this.document, steps);
    if (target === MISSING) throw invalidField(field, "leads to no place in this schema");
    node.reference = this.read(target, field, level);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}

function isOneOf<const Names extends readonly string[]>(names: Names, name: string): name is Names[number] {
  return names.includes(name);
}

function numberIn(name: string, value: unknown, field: string): JsonNumber {
  if (!isNumber(value)) throw invalidField(field, "must be a number");
  if (name === "multipleOf" && !(Number(isExactNumber(value) ? value.rawJSON : value) > 0))
    throw invalidField(field, "must be a number above 0");
  return value;
}

function typesIn(value: unknown, field: string): JsonType[] {
  const names: unknown[] = Array.isArray(value) ? value : [value];
  return names.map((name) => {
    const found = TYPES.find((type) => type === name);
    if (found === undefined) throw invalidField(field, `must be one or some of ${TYPES.join(", ")}`);
    return found;
  });
}

function namesIn(value: unknown, field: string): string[] {
  if (Array.isArray(value) && value.every((name) => typeof name === "string")) return value;
  throw invalidField(field, "must be a list of names");
}

/** Restricts the values that are allowed to those with some texts. */
function restrict(node: SchemaNode, texts: readonly string[]): void {
  const known = node.enum;
  node.enum = new Set(known === undefined ? texts : texts.filter((text) => known.has(text)));
  node.enumLength = texts.reduce((longest, { length }) => Math.max(longest, length), 0);
}

/** A fragment without percent encoding; null where that is wrong. */
function decoded(fragment: string): string | null {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return null;
  }
}
