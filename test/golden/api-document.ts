import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EXAMPLE_KEY } from "../../src/kernel/http/document/openapi-security.ts";
import type { Answer, Client } from "../support/client.ts";
import { makeResource, queryOf, segmentOf } from "../support/matrix.ts";
import { customerOf, makeOwned, startRecovery } from "../support/portal.ts";
import type { TestServer } from "../support/server.ts";

/** A JSON schema, as far as these tests use it. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly examples?: readonly unknown[];
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly schema: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema; readonly example?: object }>>;
}

/** An operation of the OpenAPI document. */
export interface ApiOperation {
  readonly operationId: string;
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: Schema | null;
  readonly example: object | null;
  /** Documented responses, by status. */
  readonly responses: Readonly<Record<string, Content>>;
  readonly scope: string | null;
  /** Whether reverse proxies send it for their clients, with a separate key. */
  readonly forProxies: boolean;
  readonly byPortal: boolean;
}

interface Document {
  readonly paths: Record<string, Record<string, Record<string, unknown>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

const SCHEMAS = "#/components/schemas/";

/** The document with each reference replaced by its schema. */
function readDocument(): Document {
  const document: Document = JSON.parse(readFileSync(join(import.meta.dir, "openapi.json"), "utf8"));
  const resolved = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(resolved);
    const { $ref } = value as { $ref?: unknown };
    if (typeof $ref === "string" && $ref.startsWith(SCHEMAS)) {
      return resolved(document.components.schemas[$ref.slice(SCHEMAS.length)]);
    }
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, resolved(part)]));
  };
  return resolved(document) as Document;
}

/** Every operation of the golden document, which another test compares with the server's. */
export function readOperations(): ApiOperation[] {
  return Object.entries(readDocument().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): ApiOperation => {
      const content = (operation["requestBody"] as Content | undefined)?.content?.["application/json"];
      return {
        operationId: String(operation["x-former-operation-id"] ?? operation["operationId"]),
        method: method.toUpperCase(),
        path,
        parameters: (operation["parameters"] ?? []) as Parameter[],
        body: content?.schema ?? null,
        example: content?.example === undefined ? null : onLoopback(content.example),
        responses: operation["responses"] as Record<string, Content>,
        scope: operation["x-scope"] as string | null,
        forProxies: JSON.stringify(operation["security"]).includes("proxyKey"),
        byPortal: JSON.stringify(operation["security"]).includes("portalToken"),
      };
    }),
  );
}

/** A closed port: requests to an example's URL fail immediately, and no test leaves this machine. */
export const NOBODY_URL = "https://127.0.0.1:9/";

function onLoopback(example: object): object {
  return JSON.parse(JSON.stringify(example).replace(/https?:\/\/[^/"]+\/?/g, NOBODY_URL));
}

/** The documented statuses of a request: of every operation that matches its path. */
export function documentedStatuses(
  operations: readonly ApiOperation[],
  method: string,
  path: string,
): Set<number> {
  const segments = path.split("/");
  const meant = operations.filter((operation) => {
    if (operation.method !== method) return false;
    const pattern = operation.path.split("/");
    if (pattern.length !== segments.length) return false;
    return pattern.every((part, at) => part.startsWith("{") || part === segments[at]);
  });
  return new Set(meant.flatMap(({ responses }) => Object.keys(responses).map(Number)));
}

/** Headers that the endpoints of sessions require in every request, and all others ignore. */
const OWN_PAGE = { "x-ninefold-session": "1" };

/** Whether a response does not end by itself. */
export function isEndless({ responses }: ApiOperation): boolean {
  return responses["200"]?.content?.["text/event-stream"] !== undefined;
}

/** Sends operations with existing parameters: the resources are created for them. */
export class Explorer {
  private readonly operations: readonly ApiOperation[];
  private readonly server: TestServer;
  private readonly account: Client;

  constructor(operations: readonly ApiOperation[], server: TestServer, account: Client) {
    this.operations = operations;
    this.server = server;
    this.account = account;
  }

  /** The client that may send an operation. */
  clientFor({ scope }: ApiOperation): Client {
    if (scope === null) return this.server.client(null);
    return scope === "operator" ? this.server.operator : this.account;
  }

  /** Sends an operation with the document's example as its body. */
  async send(operation: ApiOperation): Promise<Answer> {
    const values = await this.pathValues(operation);
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
    if (operation.forProxies) return this.sendThroughProxy(operation.method, path);
    const client = operation.byPortal
      ? await customerOf(this.server, this.account)
      : this.clientFor(operation);
    const query = queryOf({ operation: { name: operation.operationId } });
    return client.send(operation.method, path + query, await this.bodyOf(operation), { headers: OWN_PAGE });
  }

  private async sendThroughProxy(method: string, path: string): Promise<Answer> {
    const created = await this.account.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"] });
    const headers = { "x-ninefold-key": this.account.key ?? "" };
    return this.server.client(String(created.body["secret"])).send(method, path, undefined, { headers });
  }

  /** The example with a new e-mail address: some resources can be created only once per address. */
  private async bodyOf(operation: ApiOperation): Promise<unknown> {
    const { example } = operation;
    if (example === null) return undefined;
    if ("fencing_token" in example) {
      // The value cannot be known in advance.
      const path = operation.path.slice(0, operation.path.indexOf("/{"));
      const { body } = await this.clientFor(operation).get(path);
      const [held] = Object.values(body).flat() as { fencing_token?: number }[];
      return { ...example, fencing_token: held?.fencing_token ?? 1 };
    }
    const text = JSON.stringify(example).replaceAll(EXAMPLE_KEY, this.account.key ?? "");
    return JSON.parse(text.replace(/@example\.com/g, `.${crypto.randomUUID()}$&`));
  }

  /** A value for every parameter in the path, from resources created for it. */
  async pathValues({ path, scope, byPortal }: ApiOperation): Promise<Readonly<Record<string, string>>> {
    if (!path.includes("{")) return {};
    if (byPortal)
      return {
        ...(await makeOwned(this.server, this.account, NOBODY_URL)),
        // Each takes an endpoint of the customer, of whom there are few.
        ...(path.includes("{resend_id}") ? await startRecovery(this.server, this.account, NOBODY_URL) : {}),
      };
    const owner = scope === "operator" ? this.server.operator : this.account;
    return makeResource(segmentOf({ path }), owner);
  }
}

/** The schema of the first successful response. */
export function successOf(responses: ApiOperation["responses"]): Schema | undefined {
  const status = Object.keys(responses).find((text) => text.startsWith("2"));
  return responses[status ?? ""]?.content?.["application/json"]?.schema;
}
