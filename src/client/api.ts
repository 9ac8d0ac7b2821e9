import { OPERATIONS, type Operations, PUBLIC, WITHOUT_IDEMPOTENCY_KEY } from "./generated/api.ts";
import { type ChangeOptions, type RequestOptions, readIdempotencyKey } from "./options.ts";
import { Pages } from "./pages.ts";
import type { Answer, Transport, WireRequest } from "./transport.ts";
import { randomUuid } from "./uuid.ts";

export type { PageQuery } from "./generated/api.ts";

/** The name of an operation of the API. */
export type OperationName = keyof Operations;
/** What an operation answers. */
export type AnswerOf<N extends OperationName> = Operations[N]["answer"];
/** The promise of what an operation answers. */
export type Answers<N extends OperationName> = Promise<AnswerOf<N>>;
/** The query that an operation takes. */
export type QueryOf<N extends OperationName> = Operations[N]["query"];

type ItemsOf<N extends OperationName, Items extends keyof AnswerOf<N>> = Extract<
  AnswerOf<N>[Items],
  readonly unknown[]
>;
/** The list of an operation, whose pages hold its items in the member of that name. */
export type ListOf<N extends OperationName, Items extends keyof AnswerOf<N>> = Pages<
  ItemsOf<N, Items>[number],
  AnswerOf<N>
>;

/** What an operation takes: whichever of path, query and body it has. */
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

/** How an operation is tried again: see {@link repeatOf}. */
export type Repeat =
  /** It changes nothing, or its token makes it the same: always. */
  | "free"
  /** With an `Idempotency-Key`. */
  | "keyed"
  /** Only when it certainly was not carried out. */
  | "never";

/** They change nothing, although they are POSTs: a key would only make the server write. */
const READS_BY_POST: readonly string[] = ["keys.verify", "witness.verify", "ofrep.evaluate", "ofrep.bulk"];

/** Milliseconds for what may take the server longer than the default, because it asks somebody else or does much. */
const TIMEOUT_MS: Readonly<Partial<Record<OperationName, number>>> = {
  "monitors.check": 120_000,
  "catch.events.replay": 60_000,
  "catch.events.delete": 120_000,
  "admin.clock.advance": 290_000,
};

/** Calls operations by their names. */
export class Api {
  constructor(readonly transport: Transport) {}

  /** Calls an operation and answers with the body of its answer. */
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

  /** A list of one operation, by its pages; `items` is the member of a page that holds its part of the list. */
  list<N extends OperationName, Items extends keyof AnswerOf<N>>(
    name: N,
    items: Items,
    input: Omit<InputOf<N>, "query"> & { readonly query?: QueryOf<N> },
    options: RequestOptions,
  ): ListOf<N, Items> {
    return new Pages(
      (cursor, limit) => {
        const given = input.query as { limit?: number | undefined; cursor?: string | undefined } | undefined;
        const query = given && { ...given, cursor: cursor ?? given.cursor, limit: given.limit ?? limit };
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

  /** Sends any request: the way to what has no method here. */
  raw(method: string, path: string, body: unknown, options: ChangeOptions): Promise<Answer> {
    return this.transport.send(
      build({ method, path, body, name: operationAt(method, path) }, options),
      options,
    );
  }

  /** Slower operations have their own, unless the client was given a time-out that is longer still. */
  private ownTimeoutMs(name: OperationName): number | undefined {
    const own = TIMEOUT_MS[name];
    return own === undefined ? undefined : Math.max(own, this.transport.settings.timeoutMs);
  }
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly name: string | null;
}

function build({ method, path, body, name }: Call, { idempotencyKey }: ChangeOptions): WireRequest {
  const repeat = repeatOf(name, method);
  const given = idempotencyKey === undefined && repeat === "keyed" ? randomUuid() : idempotencyKey;
  const key = given === undefined || given === null ? null : readIdempotencyKey(given);
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

/** How an operation may be tried again; null stands for one that this client does not know. */
export function repeatOf(name: string | null, method: string): Repeat {
  if (method === "GET" || method === "HEAD") return "free";
  if (name === null) return "keyed";
  if (READS_BY_POST.includes(name) || WITHOUT_IDEMPOTENCY_KEY.includes(name)) return "free";
  return PUBLIC.includes(name) ? "never" : "keyed";
}

/** The operation that a method and path mean. */
export function operationAt(method: string, path: string): OperationName | null {
  const segments = path.replace(/\?.*/, "").split("/");
  const fits = (route: string): boolean => {
    const [routeMethod, template = ""] = route.split(" ");
    const parts = template.split("/");
    if (routeMethod !== method || parts.length !== segments.length) return false;
    return parts.every((part, at) => part.startsWith("{") || part === segments[at]);
  };
  const found = (Object.keys(OPERATIONS) as OperationName[]).filter((name) => fits(OPERATIONS[name]));
  // A path that is written out goes before one with parameters.
  return found.sort((a, b) => parameters(a) - parameters(b))[0] ?? null;
}

function parameters(name: OperationName): number {
  return OPERATIONS[name].split("{").length;
}

/** A piece of a path. One that is empty would make it another path. @throws TypeError */
function segment(parameter: string, value: unknown): string {
  if (typeof value !== "string" || value === "" || value === "." || value === "..")
    throw new TypeError(`${parameter} must be a text that is not empty, not ${JSON.stringify(value)}`);
  // Half of a pair of UTF-16, which no text in UTF-8 can hold.
  if (/\p{Surrogate}/u.test(value))
    throw new TypeError(`${parameter} must be a text of whole characters, not ${JSON.stringify(value)}`);
  return encodeURIComponent(value);
}

function queryText(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  if (given.length === 0) return "";
  return `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}
