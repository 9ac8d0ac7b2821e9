/** A JSON schema, as far as the API's document uses it. */
export interface Schema {
  /** Reference to a component of the document. */
  readonly $ref?: string;
  /** An array if it can be null. */
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly const?: unknown;
  readonly not?: Schema;
  readonly pattern?: string;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly enum?: readonly unknown[];
}

interface Content {
  readonly required?: boolean;
  /** Whether only a user's settings cause this response: the client's types omit it. */
  readonly "x-by-settings"?: boolean;
  readonly content?: Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;
}

/** Reference to a parameter that many operations share. */
interface Reference {
  readonly $ref: string;
}

/** Reference to the header `Idempotency-Key`. */
const IDEMPOTENCY_KEY = "#/components/parameters/IdempotencyKey";

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

/** The parts of the OpenAPI document that are used. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    /** The error responses, by code. */
    readonly responses: Readonly<Record<string, ErrorResponse>>;
  };
}

interface ErrorResponse {
  readonly description: string;
  readonly "x-status": number;
  readonly "x-remedy": string;
}

interface OperationObject {
  readonly operationId: string;
  /** The name of the operation, where its id has another form. */
  readonly "x-former-operation-id"?: string;
  readonly summary: string;
  readonly description?: string;
  readonly "x-cost"?: number;
  readonly "x-scope"?: string | null;
  readonly "x-role"?: string | null;
  readonly "x-account"?: true;
  readonly tags: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

/** An operation, as the client's code is generated from it. */
export interface ApiOperation {
  /** Its name, by which the client is generated: the id in the document can have another form. */
  readonly id: string;
  /** The part of the API that it belongs to. */
  readonly tag: string;
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  readonly summary: string;
  /** Without the line on cost and access; empty if there is nothing to add to the summary. */
  readonly description: string;
  /** Credits per request. */
  readonly cost: number;
  readonly isPublic: boolean;
  /** The scope that a key needs; null without one. */
  readonly scope: string | null;
  /** The least role of people; null for none. */
  readonly role: string | null;
  /** Whether people with roles in single projects are rejected. */
  readonly isOfAccount: boolean;
  readonly takesIdempotencyKey: boolean;
  readonly params: Schema | null;
  readonly query: Schema | null;
  readonly body: Schema | null;
  readonly isBodyRequired: boolean;
  readonly hasBodyExample: boolean;
  readonly takesAnyBody: boolean;
  /** Schemas of the successful responses, by status; null without a body. */
  readonly successes: Readonly<Record<string, Schema | null>>;
}

/** Every operation of a document, by its name. */
export function operationsOf(document: Document): ApiOperation[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => readOperation(method.toUpperCase(), path, one)),
  );
  return operations.sort((a, b) => (a.id < b.id ? -1 : 1));
}

function readOperation(method: string, path: string, one: OperationObject): ApiOperation {
  const all = one.parameters ?? [];
  const parameters = all.filter((parameter): parameter is Parameter => !("$ref" in parameter));
  const content = one.requestBody?.content ?? {};
  const successes = Object.entries(one.responses).filter(
    ([status, response]) => status.startsWith("2") && response["x-by-settings"] !== true,
  );
  return {
    id: one["x-former-operation-id"] ?? one.operationId,
    tag: one.tags[0] ?? "System",
    method,
    path,
    summary: one.summary,
    description: (one.description ?? "").replace(/\n*\*\*Cost\*\*.*$/s, ""),
    cost: one["x-cost"] ?? 0,
    isPublic: (one.security ?? []).length === 0,
    scope: one["x-scope"] ?? null,
    role: one["x-role"] ?? null,
    isOfAccount: one["x-account"] === true,
    takesIdempotencyKey: all.some((parameter) => "$ref" in parameter && parameter.$ref === IDEMPOTENCY_KEY),
    params: objectOf(parameters.filter((parameter) => parameter.in === "path")),
    query: objectOf(parameters.filter((parameter) => parameter.in === "query")),
    body: content["application/json"]?.schema ?? null,
    isBodyRequired: one.requestBody?.required === true,
    hasBodyExample: content["application/json"]?.example !== undefined,
    takesAnyBody: content["*/*"] !== undefined,
    successes: Object.fromEntries(
      successes.map(([status, { content = {} }]) => [status, Object.values(content)[0]?.schema ?? null]),
    ),
  };
}

function objectOf(parameters: readonly Parameter[]): Schema | null {
  if (parameters.length === 0) return null;
  return {
    type: "object",
    properties: Object.fromEntries(
      parameters.map(({ name, description, schema }) => [
        name,
        description === undefined ? schema : { ...schema, description },
      ]),
    ),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  };
}
