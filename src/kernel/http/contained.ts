import { PROJECT_HEADER } from "./access/project-choice.ts";
import type { DeclaredRoute } from "./api.ts";
import type { ListeningServer } from "./requests/endpoint.ts";

/** The input of a request that another one contains. */
export interface ContainedInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Null: the endpoint takes none. */
  readonly body: object | null;
  readonly idempotencyKey: string | null;
}

/**
 * Headers that a contained request shares with its carrier: who sends it, and how it reached this server. All others,
 * cookies and `X-API-Key` among them, stay behind.
 */
const SHARED_HEADERS = [
  "authorization",
  "user-agent",
  "host",
  "x-forwarded-for",
  "x-forwarded-proto",
  PROJECT_HEADER,
];

/**
 * Requests that another request contains. Each passes the gates of its endpoint like a request of its own, with the key and
 * the address of its carrier.
 */
export class ContainedRequests {
  /** The routes by the names of their operations. */
  private readonly routes = new Map<string, DeclaredRoute>();
  private readonly carriers = new WeakMap<Request, Request>();

  /** Adds a route. */
  add(route: DeclaredRoute): void {
    this.routes.set(route.operation.name, route);
  }

  /** The server, which takes a contained request for its carrier. */
  carrying(server: ListeningServer): ListeningServer {
    const carrierOf = (request: Request): Request => this.carriers.get(request) ?? request;
    return {
      url: server.url,
      requestIP: (request) => server.requestIP(carrierOf(request)),
      timeout: (request, seconds) => server.timeout(carrierOf(request), seconds),
      stop: (closesActive) => server.stop(closesActive),
      get pendingRequests() {
        return server.pendingRequests;
      },
    };
  }

  /**
   * Serves a request of an operation. The endpoint is chosen by the operation, never by the path, so no parameter leads to
   * another one.
   * @throws Error if there is no such operation.
   */
  async serve(carrier: Request, operation: string, input: ContainedInput): Promise<Response> {
    const route = this.routes.get(operation);
    if (route === undefined) throw new Error(`there is no operation ${operation}`);
    const request = requestOf(carrier, route, input);
    this.carriers.set(request, carrier);
    return route.serve.admitted({ request, params: input.params });
  }
}

function requestOf(carrier: Request, { method, path }: DeclaredRoute, input: ContainedInput): Request {
  const { params, query, body, idempotencyKey } = input;
  const filled = path
    .split("/")
    .map((part) =>
      part.startsWith(":") ? encodeURIComponent((params[part.slice(1)] ?? "").toWellFormed()) : part,
    )
    .join("/");
  const url = new URL(carrier.url);
  url.pathname = filled;
  url.search = query.toString();
  const headers = new Headers();
  for (const name of SHARED_HEADERS) {
    const value = carrier.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (idempotencyKey !== null) headers.set("idempotency-key", idempotencyKey);
  return new Request(url.href, {
    method,
    headers,
    body: body === null ? null : JSON.stringify(body),
  });
}
