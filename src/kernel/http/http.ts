import type { TObject } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { monotonicMs, realDelay } from "../clock.ts";
import { ApiError, errorText } from "../errors.ts";
import { type OperationRequests, RequestMetrics } from "../metrics/request-metrics.ts";
import { internalError, type RenderedAnswer, ReplayedAnswer, renderError } from "./answer.ts";
import { type Endpoint, type Exchange, type HttpDeps, pathOf } from "./exchange.ts";
import { type KeyedDeps, KeyedEndpoint } from "./keyed.ts";
import { noSuchPath } from "./not-found.ts";
import { operationNamed } from "./operations.ts";
import { PublicEndpoint } from "./public.ts";
import type { DeclaredRoute, Handler, Method, PublicHandler, RouteSpec } from "./route.ts";

/** Where a listening server can be asked about a request. */
export interface ListeningServer {
  /** Requests whose answer has not been sent to its last byte. */
  readonly pendingRequests: number;
  stop(closeActiveConnections?: boolean): Promise<void> | void;
  requestIP(request: Request): { address: string } | null;
  timeout(request: Request, seconds: number): void;
}

const NO_STORE: Readonly<Record<string, string>> = { "cache-control": "no-store" };

/** How often the end of the process looks whether all requests are answered. */
const DRAIN_POLL_MS = 10;

/**
 * The HTTP side: areas declare their endpoints here, and every request passes through its shell, which gives
 * it an id, catches what is thrown and renders the answer.
 */
export class Http {
  /** Every endpoint, in the order of declaration. */
  readonly routes: DeclaredRoute[] = [];
  /** What is counted of the requests. */
  readonly requests = new RequestMetrics();
  readonly app = new Elysia({
    name: "ninefold",
    normalize: false,
    strictPath: true,
    handler: { standardHostname: false },
  });
  private readonly deps: HttpDeps;
  private readonly keyed: KeyedDeps;
  private readonly stopping = new AbortController();
  private server: ListeningServer | null = null;

  constructor(deps: HttpDeps) {
    this.deps = deps;
    this.keyed = { ...deps, liftIdleTimeout: (request) => this.server?.timeout(request, 0) };
  }

  /** Declares an endpoint that requires a key. */
  route<P extends TObject, Q extends TObject, B extends TObject>(
    method: Method,
    path: string,
    spec: RouteSpec<P, Q, B>,
    handler: Handler<P, Q, B>,
  ): void {
    this.declare(method, path, spec, new KeyedEndpoint(this.keyed, method, spec, handler));
  }

  /** Declares an endpoint that anyone may call. */
  publicRoute<P extends TObject, Q extends TObject, B extends TObject>(
    method: Method,
    path: string,
    spec: RouteSpec<P, Q, B>,
    handler: PublicHandler<P, Q, B>,
  ): void {
    this.declare(method, path, spec, new PublicEndpoint(this.deps, spec, handler));
  }

  /** Answers GET and HEAD of a path that is no part of the API, such as a page for people. */
  page(path: string, endpoint: Endpoint): void {
    this.mount("GET", path, endpoint, this.requests.none);
  }

  /** Closes the list of endpoints: everything else is answered 401 or 404. */
  seal(): void {
    const unknown: Endpoint = { answer: (exchange) => this.unknownRoute(exchange) };
    const { none } = this.requests;
    this.app.all("/*", ({ request }) => this.serve(unknown, none, request, {}), { parse: "none" });
    this.app.all("/", ({ request }) => this.serve(unknown, none, request, {}), { parse: "none" });
    // Nothing of ours throws past the shell; what Elysia itself refuses (a malformed request) ends here.
    this.app.onError(({ request, error }) =>
      this.serve({ answer: () => Promise.reject(error) }, none, request, {}),
    );
  }

  /** Answers a request that came over no socket. */
  answer(request: Request): Promise<Response> {
    return this.app.handle(request);
  }

  /** Aborted when the server is told to stop: whoever keeps requests waiting answers them 503 then. */
  get shutdown(): AbortSignal {
    return this.stopping.signal;
  }

  /** Requests that are being answered. */
  get inFlight(): number {
    return this.server?.pendingRequests ?? 0;
  }

  /** Tells the shell which server carries it. */
  attach(server: ListeningServer): void {
    this.server = server;
  }

  /** Stops accepting, waits until the answers under way have been sent (at most `graceMs`), then cuts what is left. */
  async drain(server: ListeningServer, graceMs: number): Promise<void> {
    this.stopping.abort();
    const stopped = Promise.resolve(server.stop(false));
    await Promise.race([stopped, allSent(server), realDelay(graceMs)]);
    await server.stop(true);
  }

  private declare<P extends TObject, Q extends TObject, B extends TObject>(
    method: Method,
    path: string,
    spec: RouteSpec<P, Q, B>,
    endpoint: Endpoint,
  ): void {
    this.routes.push({ method, path, spec });
    const answered = operationNamed(spec.operation).secret ? new UncachedEndpoint(endpoint) : endpoint;
    this.mount(method, path, answered, this.requests.of(spec.operation));
  }

  private mount(method: Method, path: string, endpoint: Endpoint, requests: OperationRequests): void {
    const options = { parse: "none" } as const;
    // Destructured in place: Elysia reads the handler's source to see which parts of its context to build.
    const handler = ({ request, params }: { request: Request; params: Record<string, string> }) =>
      this.serve(endpoint, requests, request, params);
    this.app.route(method, path, handler, options);
    if (method === "GET") this.app.route("HEAD", path, handler, options);
  }

  private serve(
    endpoint: Endpoint,
    requests: OperationRequests,
    request: Request,
    params: Record<string, string>,
  ): Response | Promise<Response> {
    const exchange = new OpenExchange(request, this.deps.ids.uuidV7(), this.server, requests);
    try {
      const answer = endpoint.answer(exchange, params);
      if (!(answer instanceof Promise)) return this.respond(answer, exchange);
      return this.serveLater(answer, exchange);
    } catch (error) {
      return this.respond(this.answerError(error, exchange), exchange);
    }
  }

  private async serveLater(pending: Promise<RenderedAnswer>, exchange: OpenExchange): Promise<Response> {
    try {
      return this.respond(await pending, exchange);
    } catch (error) {
      return this.respond(this.answerError(error, exchange), exchange);
    }
  }

  private answerError(error: unknown, exchange: Exchange): RenderedAnswer {
    if (error instanceof ApiError) {
      if (error.details.cause !== undefined) this.logFailure(exchange, error.details.cause);
      return renderError(error, exchange.requestId);
    }
    if (error instanceof ReplayedAnswer) {
      exchange.headers = { ...exchange.headers, "idempotent-replayed": "true" };
      return error.answer;
    }
    this.logFailure(exchange, error);
    return renderError(internalError(), exchange.requestId);
  }

  private logFailure(exchange: Exchange, error: unknown): void {
    this.deps.log.error("a request failed", {
      request_id: exchange.requestId,
      method: exchange.request.method,
      error: errorText(error),
      stack: error instanceof Error ? error.stack : undefined,
    });
  }

  private respond(answer: RenderedAnswer, exchange: OpenExchange): Response {
    exchange.requests.answered(answer.status, monotonicMs() - exchange.startedAt);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "x-request-id": exchange.requestId,
      // What a user has stored, such as an inbound webhook, must not be taken for a page.
      "x-content-type-options": "nosniff",
    };
    if (answer.headers !== null) Object.assign(headers, answer.headers);
    if (exchange.headers !== null) Object.assign(headers, exchange.headers);
    this.deps.cors.decorate(exchange.request, headers);
    const { status } = answer;
    if (status !== 204 && status !== 304)
      return new Response(answer.bytes ?? answer.text, { status, headers });
    delete headers["content-type"];
    return new Response(null, { status, headers });
  }

  /** No key and an unknown path under /v1: 401; outside /v1: 404 (decisions, section 4). */
  private unknownRoute(exchange: Exchange): RenderedAnswer {
    const { request } = exchange;
    const preflight = this.deps.cors.preflight(request);
    if (preflight !== null) return preflight;
    const path = pathOf(request.url);
    if (path === "/v1" || path.startsWith("/v1/")) this.deps.guard.authenticate(request);
    throw noSuchPath(request.method, path);
  }
}

/** An endpoint whose answers hold a secret, repeats included: no cache on their way keeps them. */
class UncachedEndpoint implements Endpoint {
  private readonly endpoint: Endpoint;

  constructor(endpoint: Endpoint) {
    this.endpoint = endpoint;
  }

  answer(exchange: Exchange, params: Record<string, string>): RenderedAnswer | Promise<RenderedAnswer> {
    exchange.headers = NO_STORE;
    return this.endpoint.answer(exchange, params);
  }
}

async function allSent(server: ListeningServer): Promise<void> {
  while (server.pendingRequests > 0) await realDelay(DRAIN_POLL_MS);
}

class OpenExchange implements Exchange {
  readonly request: Request;
  readonly requestId: string;
  headers: Record<string, string> | null = null;
  readonly startedAt = monotonicMs();
  readonly requests: OperationRequests;
  private readonly server: ListeningServer | null;

  constructor(
    request: Request,
    requestId: string,
    server: ListeningServer | null,
    requests: OperationRequests,
  ) {
    this.requests = requests;
    this.request = request;
    this.requestId = requestId;
    this.server = server;
  }

  socketAddress(): string | null {
    return this.server?.requestIP(this.request)?.address ?? null;
  }
}
