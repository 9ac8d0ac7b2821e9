import { readFileSync } from "node:fs";
import type { BunRequest } from "bun";
import type { AnyElysia } from "elysia";
import { ApiError, errorText, rejectionBy, StartupError } from "../errors.ts";
import { ThrottledWarning } from "../limits/throttled-warning.ts";
import { RequestMetrics } from "../metrics/request-metrics.ts";
import { type Affected, ANYONE, NOBODY } from "../storage/tx.ts";
import { type Cancel, realDelay } from "../time/clock.ts";
import { urlOf } from "./access/addresses.ts";
import { operationOf } from "./access/caller.ts";
import { ConnectionLimit } from "./access/connection-limit.ts";
import { type ApiArea, type ApiPart, api, type MountedRoute, mounted } from "./api.ts";
import { ContainedRequests } from "./contained.ts";
import type { Endpoint, HttpDeps, ListeningServer } from "./endpoint.ts";
import { BodiesInProgress } from "./requests/bodies-in-progress.ts";
import { type Context, OpenCall } from "./requests/call.ts";
import { Paths } from "./requests/paths.ts";
import {
  isNormalized,
  isRepeated,
  notNormalized,
  parametersOf,
  pathOf,
  repeatedHeader,
} from "./requests/request-target.ts";
import { inputChecks } from "./requests/validate.ts";
import { OutgoingBodies } from "./responses/outgoing-bodies.ts";
import type { RenderedResponse } from "./responses/response.ts";

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

/** Decides whether a response may leave. */
export interface ResponseGate {
  /** @throws ApiError with the response to a request that would wait in vain: it is not begun. */
  assertOpen(): void;
  /** Undefined: at once. @throws ApiError with the response to send instead. */
  pass(): Promise<void> | undefined;
  /** Calls `interrupt` when nothing may wait any longer. */
  onInterrupted(interrupt: (error: ApiError) => void): Cancel;
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

/** What says how this process is, whether it leads or not. */
const GATELESS_PATHS = ["/healthz", "/metrics"];

/** Interval at which shutdown checks whether all responses have been sent. */
const DRAIN_POLL_MS = 10;

/** The common methods besides POST of operations that accept every method: routed by the server itself, as endpoints are. */
const COMMON_METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE"] as const;

/** A route in the framework's form. */
interface Mount {
  readonly method: string;
  readonly path: string;
  readonly handler: (context: Context) => Response | Promise<Response>;
}

type NativeHandler = (request: BunRequest) => Response | Promise<Response>;

const NOTHING: Readonly<Record<string, never>> = {};

/** Serves a request outside the API. What it throws is rendered as an error. */
export type PageHandler = (call: OpenCall) => RenderedResponse | Promise<RenderedResponse>;

/** The HTTP side: the routes of every area, HTML pages, and errors for everything else. */
export class Http {
  /** Every endpoint, in the order of declaration. */
  readonly routes: MountedRoute[] = [];
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
  /** The handlers of the server's native routing, by path and method. */
  private readonly endpoints: Record<string, Partial<Record<string, NativeHandler>>> = {};
  private readonly pages = new Map<string, PageHandler>();
  /** The framework's routes of everything but the endpoints and pages. */
  private readonly otherMounts: Mount[] = [];
  private wholeApp: Promise<AnyElysia> | null = null;
  /** Serves {@link otherMounts}. Loaded and built by the first request outside the routes: a start would take longer. */
  private otherApp: Promise<AnyElysia> | null = null;
  private readonly elsewhere: Endpoint;
  private readonly stopping = new AbortController();
  private server: ListeningServer | null = null;
  private connections: ConnectionLimit | null = null;

  constructor(
    given: Omit<HttpDeps, "requests" | "server" | "proxyErrors" | "bodies" | "outgoing" | "stopping">,
  ) {
    const proxyErrors = new ThrottledWarning(
      given.log,
      "a proxy's client was rejected because of an error that is not its own",
      given.clock,
    );
    const deps: HttpDeps = {
      ...given,
      proxyErrors,
      bodies: new BodiesInProgress(),
      outgoing: new OutgoingBodies(),
      stopping: this.stopping.signal,
      requests: this.requests,
      server: () => this.server,
    };
    this.deps = deps;
    const operation = operationOf({ name: "none", access: "public", summary: "No endpoint" });
    const requests = this.requests.none;
    this.elsewhere = {
      route: null,
      deps,
      operation,
      honoursKey: false,
      checks: inputChecks({}),
      cursors: null,
      requests,
    };
  }

  /** Lets an endpoint serve requests that it contains, of every endpoint that is added from now on. */
  contain(): ContainedRequests {
    this.contained ??= new ContainedRequests();
    return this.contained;
  }

  /** Adds the routes of an area, HEAD with every GET. */
  use({ parts, routes, alsoCalled = {} }: ApiArea): void {
    this.parts.push(...parts);
    this.paths.addNames(alsoCalled);
    for (const plugin of [routes(api)].flat() as AnyElysia[]) {
      for (const route of mounted(plugin, this.deps)) {
        this.addEndpoint(route);
        this.contained?.add(route);
        this.routes.push(route);
        // Clients without access to the monitoring endpoints get the error of an unknown path.
        const { monitoring, otherMethodsAt, file } = route.operation;
        if (!monitoring) this.paths.add(route.method, route.path, otherMethodsAt, file?.isSave === true);
      }
    }
  }

  /** Serves GET and HEAD of a path outside the API, such as an HTML page. It shows no stored data. */
  page(path: string, handler: PageHandler): void {
    this.paths.add("GET", path);
    this.pages.set(path, handler);
    // Routed with the endpoints: an endpoint with a parameter in this place would be found first otherwise.
    const native = this.native(path, (request) => this.serve(request, handler, NOBODY));
    this.endpoints[path] = { GET: native, HEAD: native };
  }

  /** Closes the list of endpoints: every other request gets 401 or 404. */
  seal(): void {
    for (const path of ["/*", "/"]) {
      const handler = ({ request }: Context) => this.serve(request, (call) => this.unknownRoute(call));
      this.otherMounts.push({ method: "ALL", path, handler });
    }
  }

  /** Serves a request that came over no socket. */
  async handle(request: Request): Promise<Response> {
    this.wholeApp ??= this.appOf([...this.endpointMounts(), ...this.otherMounts]);
    return (await this.wholeApp).handle(request);
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
    const fetch = (request: Request): Promise<Response> => this.fetchOther(request);
    try {
      // The server routes endpoints itself: adding a route to the framework takes ten times as long, and again at `listen`.
      const server = Bun.serve({
        routes: { ...(gate === null ? this.endpoints : this.gatedEndpoints(gate)), ...nodeRoutes },
        fetch: gate === null ? fetch : (request) => this.gated(gate, request, () => fetch(request)),
        hostname: host,
        port,
        reusePort: false,
        development: false,
        idleTimeout: idleTimeoutSeconds,
        maxRequestBodySize: BODY_BYTES_HARD_MAX,
        ...(tls === null
          ? {}
          : { tls: { cert: readFileSync(tls.certPath), key: readFileSync(tls.keyPath) } }),
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

  private gatedEndpoints(gate: ResponseGate): Record<string, Partial<Record<string, NativeHandler>>> {
    const gatedHandler =
      (handler: NativeHandler): NativeHandler =>
      (request) =>
        this.gated(gate, request, () => handler(request));
    return Object.fromEntries(
      Object.entries(this.endpoints).map(([path, handlers]) => {
        if (GATELESS_PATHS.includes(path)) return [path, handlers];
        const gated = Object.entries(handlers).flatMap(([method, handler]) =>
          handler === undefined ? [] : [[method, gatedHandler(handler)]],
        );
        return [path, Object.fromEntries(gated)];
      }),
    );
  }

  /** Holds a response back until the gate lets it pass; in its place comes the error with which the gate rejects. */
  private async gated(
    gate: ResponseGate,
    request: Request,
    handle: () => Response | Promise<Response>,
  ): Promise<Response> {
    const closed = rejectionBy(() => gate.assertOpen());
    if (closed !== null) return this.rejected(request, closed);
    const given = handle();
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const cancel = gate.onInterrupted(reject);
    const leave = async (): Promise<void> => {
      const response = given instanceof Promise ? await given : given;
      const passing = gate.pass();
      if (passing !== undefined) await passing;
      resolve(response);
    };
    leave().catch(reject);
    try {
      return await promise;
    } catch (error) {
      // Nobody reads it, so it would be counted for ever.
      Promise.resolve(given).then(
        ({ body }) => body?.cancel(),
        () => undefined,
      );
      return this.rejected(request, error);
    } finally {
      cancel();
    }
  }

  /** It shows no stored data, so it waits for no confirmation. */
  private rejected(request: Request, error: unknown): Response | Promise<Response> {
    const call = new OpenCall(this.elsewhere, request);
    call.shows = NOBODY;
    return call.reject(error);
  }

  private addEndpoint({ method, path, operation, serve }: MountedRoute): void {
    const run: NativeHandler = (request) =>
      serve({ request, params: request.params, query: NOTHING, body: NOTHING });
    const native = this.native(path, run);
    const handlers = this.endpoints[path] ?? {};
    this.endpoints[path] = handlers;
    for (const served of servedMethods(method)) handlers[served] = native;
    if (operation.belowPath) {
      for (const served of ["GET", "HEAD"])
        this.otherMounts.push({ method: served, path: `${path}/*`, handler: serve });
    }
    const { rejectMethod } = operation;
    if (rejectMethod !== undefined) {
      const handler = ({ request }: Context) =>
        this.serve(request, () => {
          const preflight = this.deps.cors.preflight(request);
          if (preflight !== null) return preflight;
          throw rejectMethod();
        });
      this.otherMounts.push({ method: "ALL", path, handler });
    }
    if (!operation.everyMethod) return;
    // The framework routes normalized targets, and other methods.
    const routed = this.native(path, run, (request) => this.fetchOther(request));
    for (const other of COMMON_METHODS) handlers[other] ??= routed;
    for (const each of [path, `${path}/*`]) {
      this.otherMounts.push({ method: "ALL", path: each, handler: serve });
    }
  }

  /** The endpoints and pages in the framework's form. */
  private endpointMounts(): Mount[] {
    const endpoints = this.routes.flatMap(({ method, path, serve }) =>
      servedMethods(method).map((served) => ({ method: served, path, handler: serve })),
    );
    const pages = [...this.pages].flatMap(([path, page]) =>
      servedMethods("GET").map((method) => {
        const handler = ({ request }: Context) => this.serve(request, page, NOBODY);
        return { method, path, handler };
      }),
    );
    return [...endpoints, ...pages];
  }

  private async fetchOther(request: Request): Promise<Response> {
    if (isRepeated(request.headers.get("host"))) return this.rejectHosts(request);
    this.otherApp ??= this.appOf(this.otherMounts);
    return (await this.otherApp).fetch(request);
  }

  /**
   * The handler of a native route, behind the checks that the request names one host, and that its parameters are those of
   * its URL; if they are not, `otherwise` serves the request.
   */
  private native(
    path: string,
    handler: NativeHandler,
    otherwise: NativeHandler = (request) => this.serve(request, (call) => this.reject(call, notNormalized())),
  ): NativeHandler {
    const parameters = parametersOf(path);
    return (request) => {
      if (isRepeated(request.headers.get("host"))) return this.rejectHosts(request);
      return isNormalized(request, parameters) ? handler(request) : otherwise(request);
    };
  }

  private rejectHosts(request: Request): Promise<Response> {
    return this.serve(request, () => Promise.reject(repeatedHeader("Host")));
  }

  private async appOf(mounts: readonly Mount[]): Promise<AnyElysia> {
    const { Elysia } = await import("elysia");
    const app = new Elysia({
      name: "ninefold",
      normalize: false,
      strictPath: true,
      handler: { standardHostname: false },
    });
    for (const { method, path, handler } of mounts) {
      app.route(method, path, handler as never, { parse: "none" });
    }
    // Our handlers catch their errors; requests that Elysia itself rejects as malformed end here.
    app.onError(({ request, error }) => this.serve(request, () => Promise.reject(error)));
    return app;
  }

  private async serve(request: Request, handler: PageHandler, shows: Affected = ANYONE): Promise<Response> {
    this.requests.onArrival();
    const call = new OpenCall(this.elsewhere, request);
    call.shows = shows;
    try {
      return call.send(await handler(call));
    } catch (error) {
      return call.reject(error);
    }
  }

  /** Outside /v1 the response is 404. Under it 401 comes first, and still names the unknown path: the API document is public. */
  private unknownRoute(call: OpenCall): RenderedResponse {
    const { request, deps } = call;
    const preflight = deps.cors.preflight(request);
    if (preflight !== null) return preflight;
    const path = pathOf(request.url);
    // A target that the native routes did not match, but whose normalized form they do.
    if (this.paths.has(request.method, path)) return this.reject(call, notNormalized());
    return this.reject(call, this.paths.refusal(request.method, path));
  }

  /** Rejects a request that no endpoint receives; one under /v1 without a valid key with 401. */
  private reject(call: OpenCall, missing: ApiError): never {
    const path = pathOf(call.request.url);
    if (path !== "/v1" && !path.startsWith("/v1/")) throw missing;
    const refusal = rejectionBy(() => call.deps.guard.authenticate(call));
    if (refusal === null) throw missing;
    throw new ApiError(refusal.code, `${missing.message} ${refusal.message}`, refusal.details);
  }
}

/** HEAD comes with every GET. */
function servedMethods(method: string): readonly string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}

/** Whether nothing can be in the way of listening so: any free port of the machine itself. */
export function isSureToListen({ host, port, tls }: ListenOptions): boolean {
  return host === "127.0.0.1" && port === 0 && tls === null;
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
