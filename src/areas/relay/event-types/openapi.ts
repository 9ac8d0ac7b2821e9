import { isExactNumber } from "../../../json-text.ts";
import { MISSING, memberAt, pointerSteps } from "../../../kernel/data/json-pointer.ts";
import { ApiError } from "../../../kernel/errors.ts";
import { SUBSCHEMAS_MAX } from "../../../kernel/json-schema/compile.ts";

/** References that are followed one after another: nobody's document has more. */
const REFERENCES_MAX = 20;
/** Longest reference, in characters: it is searched for from the root of the document. */
export const REFERENCE_LENGTH_MAX = 1_000;
/** Values of one schema, with all that it refers to: a schema of this size is rejected for its bytes anyway. */
const VALUES_MAX = 20_000;
/** Values of all schemas of a document, each with all that it refers to: many webhooks may share a large one. */
const ALL_VALUES_MAX = 1_000_000;

/** A webhook of an OpenAPI document. */
export interface Webhook {
  readonly name: string;
  readonly description: string | null;
  readonly schema: object | null;
  readonly example: object | null;
}

/** A webhook that cannot be read. */
export interface Unreadable {
  readonly name: string;
  readonly reason: string;
}

/** The webhooks of an OpenAPI document, in its order, one by one. References are resolved within the document. */
export function* webhooksOf(document: object): Generator<Webhook | Unreadable> {
  const copied: Copied = { values: 0 };
  for (const [name, item] of Object.entries(objectAt(document, "webhooks") ?? {})) {
    try {
      yield webhookOf(document, name, item, copied);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      yield { name, reason: error.message };
    }
  }
}

/** Values that were copied of a document. */
interface Copied {
  values: number;
}

function webhookOf(document: object, name: string, item: unknown, copied: Copied): Webhook {
  const post = objectAt(resolved(document, item), "post");
  if (post === null) throw unreadable("has no post");
  const content = objectAt(resolved(document, memberOf(post, "requestBody")), "content");
  const json = content === null ? null : objectAt(content, "application/json");
  if (json === null) throw unreadable("has no body of application/json");
  const text = [memberOf(post, "description"), memberOf(post, "summary")].find(
    (value) => typeof value === "string",
  );
  return {
    name,
    description: typeof text === "string" ? text : null,
    schema: new SchemaCopy(document, copied).of(memberOf(json, "schema")),
    example: exampleOf(document, json),
  };
}

function exampleOf(document: object, json: object): object | null {
  const [first] = Object.values(objectAt(json, "examples") ?? {});
  const example =
    memberOf(json, "example") ??
    (first === undefined ? undefined : memberOf(resolved(document, first), "value"));
  return isObject(example) ? example : null;
}

/** Copies a schema with everything that it refers to, which then stands in its `$defs`. */
class SchemaCopy {
  /** Names in `$defs`, by reference, and all of them. */
  private readonly names = new Map<string, string>();
  private readonly taken = new Set<string>();
  /** Numbers below it are taken. */
  private numbered = 0;
  private values = 0;

  constructor(
    private readonly document: object,
    private readonly copied: Copied,
  ) {}

  of(schema: unknown): object | null {
    if (!isObject(schema)) return null;
    const copy = this.copy(schema);
    if (!isObject(copy)) return null;
    const definitions: [name: string, schema: unknown][] = [];
    // A copy may add further references, after those that are known.
    for (const [reference, name] of this.names)
      definitions.push([name, this.copy(targetOf(this.document, reference))]);
    return definitions.length === 0 ? copy : { ...copy, $defs: Object.fromEntries(definitions) };
  }

  private copy(value: unknown): unknown {
    this.values += 1;
    this.copied.values += 1;
    if (this.values > VALUES_MAX) throw unreadable("has a schema that is too large");
    if (this.copied.values > ALL_VALUES_MAX)
      throw unreadable("is in a document whose schemas are too large together: import it in parts");
    if (Array.isArray(value)) return value.map((item) => this.copy(item));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        name === "$ref" && typeof member === "string" ? this.reference(member) : this.copy(member),
      ]),
    );
  }

  /** The reference to the copy of what a reference leads to, which {@link of} makes. */
  private reference(reference: string): string {
    const known = this.names.get(reference);
    if (known !== undefined) return `#/$defs/${known}`;
    // Each leads to a subschema.
    if (this.names.size >= SUBSCHEMAS_MAX)
      throw unreadable(`has a schema with more than ${SUBSCHEMAS_MAX} references`);
    const name = this.nameFor(reference);
    this.names.set(reference, name);
    this.taken.add(name);
    return `#/$defs/${name}`;
  }

  private nameFor(reference: string): string {
    const last = reference.split("/").at(-1) ?? "";
    const name = last.replace(/[^A-Za-z0-9_.-]/g, "_");
    if (name !== "" && !this.taken.has(name)) return name;
    while (this.taken.has(`schema${this.numbered}`)) this.numbered += 1;
    return `schema${this.numbered}`;
  }
}

/** An object, or the one that its `$ref` leads to. @throws ApiError for a reference that leads to nothing */
function resolved(document: object, value: unknown): object {
  let at = value;
  for (let followed = 0; followed < REFERENCES_MAX; followed += 1) {
    if (!isObject(at)) return {};
    const reference = memberOf(at, "$ref");
    if (typeof reference !== "string") return at;
    at = targetOf(document, reference);
  }
  throw unreadable("has references that do not end");
}

function targetOf(document: object, reference: string): unknown {
  if (reference.length > REFERENCE_LENGTH_MAX)
    throw unreadable(`has a reference of more than ${REFERENCE_LENGTH_MAX} characters`);
  const steps = reference.startsWith("#/") ? pointerSteps(decoded(reference.slice(1))) : null;
  const target = steps === null ? MISSING : memberAt(document, steps);
  if (target === MISSING) throw unreadable(`refers to ${reference}, which is not in the document`);
  return target;
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}

function memberOf(value: object, name: string): unknown {
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function objectAt(value: object, name: string): object | null {
  const member = memberOf(value, name);
  return isObject(member) ? member : null;
}

function unreadable(reason: string): ApiError {
  return new ApiError("validation_error", reason);
}
