import { OPERATIONS, type Operations, PUBLIC, WITHOUT_IDEMPOTENCY_KEY } from "./generated/api.ts";
import { type ChangeOptions, type RequestOptions, readIdempotencyKey } from "./options.ts";
import { Pages } from "./pages.ts";
import type { Answer, Transport, WireRequest } from "./transport.ts";
import { randomUuid } from "./uuid.ts";

export type { PageQuery } from "./generated/api.ts";

/** Name of an operation of the API. */
export type OperationName = keyof Operations;
/** Response body of an operation. */
export type AnswerOf<N extends OperationName> = Operations[N]["answer"];
/** Promise of an operation's response body. */
export type Answers<N extends OperationName> = Promise<AnswerOf<N>>;
/** Query parameters of an operation. */
export type QueryOf<N extends OperationName> = Operations[N]["query"];

type ItemsOf<N extends OperationName, Items extends keyof AnswerOf<N>> = Extract<
  AnswerOf<N>[Items],
  readonly unknown[]
>;
/** The list of an operation; `items` is the member of a page that holds its items. */
export type ListOf<N extends OperationName, Items extends keyof AnswerOf<N>> = Pages<
  ItemsOf<N, Items>[number],
  AnswerOf<N>
>;

/** Parameters of an operation: its path parameters, query and body. */
export type InputOf<N extends OperationName> = Part<"params", Operations[N]["params"]> &
  Part<"query", Operations[N]["query"]> &
  Part<"body", Operations[N]["body"]>;
type Part<Name extends string, T> = [T] extends [undefined]
  ? unknown
  : [keyof T] extends [never]
    ? unknown
    : Record<Name, T>;

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: object | undefined;
  readonly body?: unknown;
}

/** When an operation is retried: see {@link repeatOf}. */
export type Repeat =
  /** Always: it changes nothing, or its token makes repeats harmless. */
  | "free"
  /** With an `Idempotency-Key`. */
  | "keyed"
  /** Only when it was certainly not carried out. */
  | "never";

/** POST requests that change nothing: an `Idempotency-Key` would only make the server store their responses. */
const READS_BY_POST: readonly string[] = ["keys.verify", "witness.verify", "ofrep.evaluate", "ofrep.bulk"];

/** Timeouts of operations that may take longer than the default, in milliseconds. */
export const SLOW_MS: Readonly<Record<string, number>> = {
  "monitors.check": 120_000,
  "catch.events.replay": 60_000,
  // Longer than the longest wait for events.
  "catch.stream": 90_000,
  "catch.events.delete": 120_000,
  "admin.clock.advance": 290_000,
} satisfies Partial<Record<OperationName, number>>;

/** Lists that are complete in one response: they have no parameters `limit` and `cursor`. */
const COMPLETE_LISTS: ReadonlySet<string> = new Set<OperationName>(["catch.buckets.list", "gate.list"]);

/** Calls operations by their names. */
export class Api {
  constructor(readonly transport: Transport) {}

  /** Calls an operation. Resolves to the body of its response. */
  async call<N extends OperationName>(
    name: N,
    input: InputOf<N>,
    options: ChangeOptions = {},
  ): Promise<AnswerOf<N>> {
    const request = this.request(name, input, options);
    const timeoutMs = options.timeoutMs ?? this.ownTimeoutMs(name);
    const answer = await this.transport.send(
      request,
      timeoutMs === undefined ? options : { ...options, timeoutMs },
    );
    return answer.body as AnswerOf<N>;
  }

  /** The list of an operation, read page by page; `items` is the member of a page that holds its items. */
  list<N extends OperationName, Items extends keyof AnswerOf<N>>(
    name: N,
    items: Items,
    input: Omit<InputOf<N>, "query"> & { readonly query?: QueryOf<N> },
    options: RequestOptions,
  ): ListOf<N, Items> {
    return new Pages(
      (cursor, limit) => {
        const requested = input.query as
          | { limit?: number | undefined; cursor?: string | undefined }
          | undefined;
        const isPaged = requested !== undefined && !COMPLETE_LISTS.has(name);
        const query = isPaged
          ? { ...requested, cursor: cursor ?? requested.cursor, limit: requested.limit ?? limit }
          : requested;
        return this.call(name, { ...input, query } as unknown as InputOf<N>, options);
      },
      (page) => (page as Record<Items, ItemsOf<N, Items>>)[items],
    );
  }

  /** The request of an operation, ready to be sent. */
  request<N extends OperationName>(name: N, input: InputOf<N>, options: ChangeOptions): WireRequest {
    const [method = "", template = ""] = OPERATIONS[name].split(" ");
    const { params = {}, query, body } = input as AnyInput;
    const path = template
      .split("/")
      .map((part) => {
        const parameter = part.slice(1, -1);
        return part.startsWith("{") ? segment(parameter, params[parameter]) : part;
      })
      .join("/");
    return build({ method, path: path + queryText(query), body, name }, options);
  }

  /** Sends any request, also to operations without a method here. */
  raw(method: string, path: string, body: unknown, options: ChangeOptions): Promise<Answer> {
    return this.transport.send(
      build({ method, path, body, name: operationAt(method, path) }, options),
      options,
    );
  }

  /** Slow operations have a timeout of their own, unless the client's is longer. */
  private ownTimeoutMs(name: OperationName): number | undefined {
    const minimumMs = SLOW_MS[name];
    return minimumMs === undefined ? undefined : Math.max(minimumMs, this.transport.settings.timeoutMs);
  }
}

/** The methods of a part of the API. */
export abstract class Methods {
  constructor(protected readonly api: Api) {}
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly name: string | null;
}

function build({ method, path, body, name }: Call, { idempotencyKey }: ChangeOptions): WireRequest {
  const repeat = repeatOf(name, method);
  const chosen = idempotencyKey === undefined && repeat === "keyed" ? randomUuid() : idempotencyKey;
  const key = chosen === undefined || chosen === null ? null : readIdempotencyKey(chosen);
  const isText = (name === "catch.ingest" || name === "catch.in") && typeof body === "string";
  const asItIs = body === undefined || body instanceof Uint8Array || isText;
  return {
    method,
    path,
    body: asItIs ? body : JSON.stringify(body),
    headers: asItIs ? {} : { "Content-Type": "application/json" },
    withKey: name === null || !PUBLIC.includes(name),
    idempotencyKey: key,
    repeatable: repeat === "free" || (repeat === "keyed" && key !== null),
  };
}

/** When an operation may be retried; null for one that this client does not know. */
export function repeatOf(name: string | null, method: string): Repeat {
  if (method === "GET" || method === "HEAD") return "free";
  if (name === null) return "keyed";
  if (READS_BY_POST.includes(name) || WITHOUT_IDEMPOTENCY_KEY.includes(name)) return "free";
  return PUBLIC.includes(name) ? "never" : "keyed";
}

/** The operation of a method and path. */
export function operationAt(method: string, path: string): OperationName | null {
  const segments = path.replace(/\?.*/, "").split("/");
  const fits = (route: string): boolean => {
    const [routeMethod, template = ""] = route.split(" ");
    const parts = template.split("/");
    if (routeMethod !== method || parts.length !== segments.length) return false;
    return parts.every((part, at) => part.startsWith("{") || part === segments[at]);
  };
  const found = (Object.keys(OPERATIONS) as OperationName[]).filter((name) => fits(OPERATIONS[name]));
  // A literal path takes precedence over one with parameters.
  return found.sort((a, b) => parameters(a) - parameters(b))[0] ?? null;
}

function parameters(name: OperationName): number {
  return OPERATIONS[name].split("{").length;
}

/** A path segment. An empty one would change the path. @throws TypeError */
function segment(parameter: string, value: unknown): string {
  if (typeof value !== "string" || value === "" || value === "." || value === "..")
    throw new TypeError(`${parameter} must be a text that is not empty, not ${JSON.stringify(value)}`);
  // A lone surrogate, which UTF-8 cannot encode.
  if (/\p{Surrogate}/u.test(value))
    throw new TypeError(`${parameter} must be a text of whole characters, not ${JSON.stringify(value)}`);
  return encodeURIComponent(value);
}

function queryText(query: object | undefined): string {
  const present = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  if (present.length === 0) return "";
  return `?${new URLSearchParams(present.map(([name, value]): [string, string] => [name, String(value)]))}`;
}
