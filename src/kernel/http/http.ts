import { readFileSync } from "node:fs";
import { Elysia } from "elysia";
import { urlOf } from "../data/addresses.ts";
import { ApiError, errorText, rejectionBy, StartupError } from "../errors.ts";
import { RequestMetrics } from "../metrics/request-metrics.ts";
import { type Affected, ANYONE, NOBODY } from "../storage/tx.ts";
import { ThrottledWarning } from "../throttled-warning.ts";
import { realDelay } from "../time/clock.ts";
import { ConnectionLimit } from "./access/connection-limit.ts";
import {
  Api,
  type ApiArea,
  type ApiPart,
  type DeclaredRoute,
  type EndpointHandler,
  type Front,
  type RoutedRequest,
  routesOf,
} from "./api.ts";
import { ContainedRequests } from "./contained.ts";
import { gated, type ResponseGate } from "./gate.ts";
import { operationOf } from "./operation.ts";
import { BodiesInProgress } from "./requests/bodies-in-progress.ts";
import { OpenCall } from "./requests/call.ts";
import type { Endpoint, HttpDeps, ListeningServer } from "./requests/endpoint.ts";
import { Paths } from "./requests/paths.ts";
import {
  isNormalized,
  isRepeated,
  notNormalized,
  pathOf,
  repeatedHeader,
} from "./requests/request-target.ts";
import { inputChecks } from "./requests/validate.ts";
import { OutgoingBodies } from "./responses/outgoing-bodies.ts";
import type { RenderedResponse } from "./responses/response.ts";
import { isRouterMethod, runtimeRoutes } from "./runtime-routes.ts";

/** Where and how to listen. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  /** Default: {@link IDLE_TIMEOUT_SECONDS}. */
  readonly idleTimeoutSeconds?: number | undefined;
  /** Every response waits for it; null without a cluster. */
  readonly gate?: ResponseGate | null;
  /** Paths outside the API, of nodes of a cluster. */
  readonly nodeRoutes?: Readonly<Record<string, (request: Request) => Response | Promise<Response>>>;
}

/**
 * Seconds without traffic after which a connection is closed; requests that wait longer extend it. Longer than proxies keep
 * idle connections to a server: one that is closed here while they send a request is a 502 there. The runtime allows 255.
 */
export const IDLE_TIMEOUT_SECONDS = 240;
/**
 * Bun's limit responds with 413 without our error body, so it is the largest possible; ours (see body.ts) is checked
 * before a byte of the body is stored.
 */
const BODY_BYTES_HARD_MAX = Number.MAX_SAFE_INTEGER;

/** Interval at which shutdown checks whether all responses have been sent. */
const DRAIN_POLL_MS = 10;

const NOTHING: Readonly<Record<string, never>> = {};

type RouteHandler = (routed: RoutedRequest) => Response | Promise<Response>;

/** Serves a request outside the API. What it throws is rendered as an error. */
export type PageHandler = (call: OpenCall) => RenderedResponse | Promise<RenderedResponse>;

/** The HTTP side: the routes of every area, HTML pages, and errors for everything else. */
export class Http implements Front {
  /** Every endpoint, in the order of declaration. */
  readonly routes: DeclaredRoute[] = [];
  /** The parts of the API, in the order of declaration. */
  readonly parts: ApiPart[] = [];
  /** The paths that errors for an unknown path can suggest. */
  readonly paths = new Paths();
  /** Requests within requests; null: no endpoint takes any. */
  contained: ContainedRequests | null = null;
  /** The metrics of requests. */
  readonly requests = new RequestMetrics();
  /** The dependencies of its calls. */
  readonly deps: HttpDeps;
  gate: ResponseGate | null = null;
  private readonly api = new Api(this);
  private readonly app = new Elysia({
    name: "ninefold",
    strictPath: true,
    handler: { standardHostname: false },
  });
  private readonly nowhere: Endpoint;
  private readonly stopping = new AbortController();
  /** Requests that came over no socket. */
  private readonly handed = new WeakSet<Request>();
  private server: ListeningServer | null = null;
  private connections: ConnectionLimit | null = null;

  constructor(
    deps: Omit<HttpDeps, "requests" | "server" | "proxyErrors" | "bodies" | "outgoing" | "stopping">,
  ) {
    const proxyErrors = new ThrottledWarning(
      deps.log,
      "a proxy's client was rejected because of an error that is not its own",
      deps.clock,
    );
    this.deps = {
      ...deps,
      proxyErrors,
      bodies: new BodiesInProgress(),
      outgoing: new OutgoingBodies(),
      stopping: this.stopping.signal,
      requests: this.requests,
      server: () => this.server,
    };
    this.nowhere = {
      route: null,
      deps: this.deps,
      operation: operationOf({ name: "none", access: "public", summary: "No endpoint" }),
      checks: inputChecks({}),
      cursors: null,
      requests: this.requests.unrouted,
    };
    // Endpoints catch their errors: what comes here is a request without a route, or one that Elysia itself rejects.
    this.app.onError(({ code, request, error }) =>
      this.serve(request, (call) => {
        if (code === "NOT_FOUND") return this.unknownRoute(call);
        throw error;
      }),
    );
  }

  /** Lets an endpoint serve requests that it contains, of every endpoint that is added from now on. */
  contain(): ContainedRequests {
    this.contained ??= new ContainedRequests();
    return this.contained;
  }

  /** Adds the plugins of an area. */
  use({ parts, routes, alsoCalled = {} }: ApiArea): void {
    this.parts.push(...parts);
    this.paths.addNames(alsoCalled);
    for (const plugin of [routes(this.api)].flat()) {
      this.app.use(plugin);
      for (const route of routesOf(plugin)) this.added(route);
    }
  }

  /** Serves GET and HEAD of a path outside the API, such as an HTML page. It shows no stored data. */
  page(path: string, handler: PageHandler): void {
    this.paths.add("GET", path);
    this.route("GET", path, ({ request }) =>
      this.serve(
        request,
        (call) => {
          if (!this.isAsSent(request)) throw this.missing(call, notNormalized());
          return handler(call);
        },
        NOBODY,
      ),
    );
  }

  /** Serves a request that came over no socket. */
  async handle(request: Request): Promise<Response> {
    this.handed.add(request);
    return this.app.handle(request);
  }

  /** Aborted when the server starts to stop: waiting requests are then rejected with 503. */
  get shutdown(): AbortSignal {
    return this.stopping.signal;
  }

  /** Requests in progress. */
  get inFlight(): number {
    return this.server?.pendingRequests ?? 0;
  }

  /**
   * Starts to accept requests, and returns the base URL for this machine, with the actual port.
   * @throws StartupError when the port is taken or a TLS file cannot be read.
   */
  listen({
    host,
    port,
    tls,
    idleTimeoutSeconds = IDLE_TIMEOUT_SECONDS,
    gate = null,
    nodeRoutes = NOTHING,
  }: ListenOptions): string {
    this.gate = gate;
    for (const [path, handler] of Object.entries(nodeRoutes))
      this.route("ALL", path, ({ request }) => handler(request));
    try {
      const server = Bun.serve({
        hostname: host,
        port,
        reusePort: false,
        development: false,
        idleTimeout: idleTimeoutSeconds,
        maxRequestBodySize: BODY_BYTES_HARD_MAX,
        ...(tls === null
          ? {}
          : { tls: { cert: readFileSync(tls.certPath), key: readFileSync(tls.keyPath) } }),
        routes: runtimeRoutes(this.app),
        // Elysia compiles its own router when it is first used.
        fetch: (request) => this.app.fetch(request),
      });
      this.server = this.contained?.carrying(server) ?? server;
      this.connections = new ConnectionLimit(server.port ?? port, this.deps.log);
      this.connections.start();
      return urlOf({ host, port: server.port ?? port, tls });
    } catch (error) {
      throw new StartupError(cannotListen(host, port, error));
    }
  }

  /** Stops accepting requests, waits at most `graceMs` for responses in progress, then closes the remaining connections. */
  async stop(graceMs: number): Promise<void> {
    const { server } = this;
    if (server === null) return;
    this.stopping.abort();
    this.connections?.stop();
    const stopped = Promise.resolve(server.stop(false));
    await Promise.race([stopped, allSent(server), realDelay(graceMs)]);
    await server.stop(true);
  }

  refusalOf({ request, params = NOTHING }: RoutedRequest): ApiError | null {
    if (isRepeated(request.headers.get("host"))) return repeatedHeader("Host");
    if (this.isAsSent(request) && isNormalized(request, params)) return null;
    return this.missing(new OpenCall(this.nowhere, request), notNormalized());
  }

  /** It shows no stored data, so it waits for no confirmation. */
  reject(request: Request, error: unknown): Response | Promise<Response> {
    const call = new OpenCall(this.nowhere, request);
    call.shows = NOBODY;
    return call.reject(error);
  }

  gated(request: Request, handle: () => Response | Promise<Response>): Response | Promise<Response> {
    const { gate } = this;
    return gate === null ? handle() : gated(gate, handle, (error) => this.reject(request, error));
  }

  private added(route: DeclaredRoute): void {
    const { method, path, operation, serve } = route;
    this.contained?.add(route);
    this.routes.push(route);
    const { monitoring, otherMethodsAt, file, belowPath, everyMethod, rejectMethod } = operation;
    // Clients without access to the monitoring endpoints get the error of an unknown path.
    if (!monitoring) this.paths.add(method, path, otherMethodsAt, file?.isSave === true);
    const below: RouteHandler = (routed) => this.servedBelow(routed, serve);
    // Elysia would read the whole response of a GET to a HEAD.
    if (belowPath) for (const each of ["GET", "HEAD"]) this.route(each, `${path}/*`, below);
    if (everyMethod) {
      this.route("ALL", path, serve);
      this.route("ALL", `${path}/*`, below);
    }
    if (rejectMethod !== undefined) this.route("ALL", path, (routed) => this.refuse(routed, rejectMethod));
  }

  /** Serves a request below the path of an endpoint, which Elysia's own router has found. */
  private servedBelow(routed: RoutedRequest, { admitted }: EndpointHandler): Response | Promise<Response> {
    const { request } = routed;
    if (isRepeated(request.headers.get("host"))) return this.reject(request, repeatedHeader("Host"));
    return this.gated(request, () => admitted(routed));
  }

  /** The response to a method that the path does not have. */
  private refuse({ request }: RoutedRequest, rejectMethod: () => ApiError): Response | Promise<Response> {
    return this.serve(request, () => {
      const preflight = this.deps.cors.preflight(request);
      if (preflight !== null) return preflight;
      throw rejectMethod();
    });
  }

  private route(method: string, path: string, handler: RouteHandler): void {
    // A bound function, of whose context Elysia makes the fewest parts.
    this.app.route(method, path, handler.bind(null));
  }

  /**
   * Whether the runtime's router found the route, by the target as it was sent; Elysia's own router goes by the URL, whose `.`
   * and `..` segments are resolved.
   */
  private isAsSent(request: Request): boolean {
    return "params" in request || !isRouterMethod(request.method) || this.handed.has(request);
  }

  private serve(
    request: Request,
    handler: PageHandler,
    shows: Affected = ANYONE,
  ): Response | Promise<Response> {
    return this.gated(request, () => this.served(request, handler, shows));
  }

  private async served(request: Request, handler: PageHandler, shows: Affected): Promise<Response> {
    this.requests.onArrival();
    const call = new OpenCall(this.nowhere, request);
    call.shows = shows;
    try {
      if (isRepeated(request.headers.get("host"))) throw repeatedHeader("Host");
      return call.send(await handler(call));
    } catch (error) {
      return call.reject(error);
    }
  }

  private unknownRoute(call: OpenCall): RenderedResponse {
    const { request, deps } = call;
    const preflight = deps.cors.preflight(request);
    if (preflight !== null) return preflight;
    throw this.missing(call, this.paths.refusal(request.method, pathOf(request.url)));
  }

  /**
   * The error for a request that no endpoint receives. Under /v1 a request without a valid key is 401, which still names the
   * unknown path: the API document is public.
   */
  private missing(call: OpenCall, error: ApiError): ApiError {
    const path = pathOf(call.request.url);
    if (path !== "/v1" && !path.startsWith("/v1/")) return error;
    const refusal = rejectionBy(() => call.deps.guard.authenticate(call));
    return refusal === null
      ? error
      : new ApiError(refusal.code, `${error.message} ${refusal.message}`, refusal.details);
  }
}

function cannotListen(host: string, port: number, error: unknown): string {
  const isInUse = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
  return isInUse
    ? `Cannot listen on ${host} port ${port}: another program uses it. Stop that program, or set another port with --port (0 selects a free one).`
    : `Cannot listen on ${host} port ${port} (${errorText(error)}).`;
}

async function allSent(server: ListeningServer): Promise<void> {
  while (server.pendingRequests > 0) await realDelay(DRAIN_POLL_MS);
}
