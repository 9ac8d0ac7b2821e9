import { type AnyElysia, Elysia } from "elysia";
import { realDelay } from "../clock.ts";
import { RequestMetrics } from "../metrics/request-metrics.ts";
import type { RenderedAnswer } from "./answer.ts";
import { type Api, type ApiArea, type ApiPart, createApi, type DeclaredRoute, declaredIn } from "./api.ts";
import { type Endpoint, type HttpDeps, type ListeningServer, OpenCall, pathOf } from "./call.ts";
import { NO_CHECKS } from "./input.ts";
import { noSuchPath } from "./not-found.ts";
import { operationOf } from "./operation.ts";

/** How often the end of the process looks whether all requests are answered. */
const DRAIN_POLL_MS = 10;

/** Answers a request for something that is no part of the API. What it throws is rendered as an error. */
export type PageHandler = (call: OpenCall) => RenderedAnswer | Promise<RenderedAnswer>;

/** The HTTP side: the routes of every area, pages for people, and an answer to everything else. */
export class Http {
  /** Every endpoint, in the order of declaration. */
  readonly routes: DeclaredRoute[] = [];
  /** The parts of the API, in the order of declaration. */
  readonly parts: ApiPart[] = [];
  /** What is counted of the requests. */
  readonly requests = new RequestMetrics();
  /** What areas build their routes on. */
  readonly api: Api;
  readonly app = new Elysia({
    name: "ninefold",
    normalize: false,
    strictPath: true,
    handler: { standardHostname: false },
  });
  private readonly elsewhere: Endpoint;
  private readonly stopping = new AbortController();
  private server: ListeningServer | null = null;

  constructor(given: Omit<HttpDeps, "requests" | "server">) {
    const deps: HttpDeps = { ...given, requests: this.requests, server: () => this.server };
    this.api = createApi(deps);
    const operation = operationOf({ name: "none", access: "public", summary: "No endpoint" });
    this.elsewhere = { deps, operation, checks: NO_CHECKS, cursors: null, requests: this.requests.none };
  }

  /** Takes in the routes of an area. HEAD comes with every GET. */
  use({ parts, routes }: ApiArea): void {
    this.parts.push(...parts);
    for (const plugin of [routes(this.api)].flat() as AnyElysia[]) {
      this.app.use(plugin);
      for (const { method, path, handler, hooks } of plugin.routes) {
        if (method === "GET") this.app.route("HEAD", path, handler as never, hooks as never);
      }
      this.routes.push(...declaredIn(plugin));
    }
  }

  /** Answers GET and HEAD of a path that is no part of the API, such as a page for people. */
  page(path: string, handler: PageHandler): void {
    for (const method of ["GET", "HEAD"]) {
      this.app.route(method, path, ({ request }) => this.serve(request, handler), { parse: "none" });
    }
  }

  /** Closes the list of endpoints: everything else is answered 401 or 404. */
  seal(): void {
    for (const path of ["/*", "/"]) {
      this.app.all(path, ({ request }) => this.serve(request, (call) => this.unknownRoute(call)), {
        parse: "none",
      });
    }
    // Nothing of ours throws past the shell; what Elysia itself refuses (a malformed request) ends here.
    this.app.onError(({ request, error }) => this.serve(request, () => Promise.reject(error)));
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

  private async serve(request: Request, handler: PageHandler): Promise<Response> {
    const call = new OpenCall(this.elsewhere, request);
    try {
      return call.send(await handler(call));
    } catch (error) {
      return call.refuse(error);
    }
  }

  /** No key and an unknown path under /v1: 401, so that paths cannot be probed without one; outside /v1: 404. */
  private unknownRoute({ request, deps }: OpenCall): RenderedAnswer {
    const preflight = deps.cors.preflight(request);
    if (preflight !== null) return preflight;
    const path = pathOf(request.url);
    if (path === "/v1" || path.startsWith("/v1/")) deps.guard.authenticate(request);
    throw noSuchPath(request.method, path);
  }
}

async function allSent(server: ListeningServer): Promise<void> {
  while (server.pendingRequests > 0) await realDelay(DRAIN_POLL_MS);
}
