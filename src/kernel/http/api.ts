import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import type { AnyElysia, Elysia } from "elysia";
import { type Operation, type OperationSpec, operationOf } from "./access/caller.ts";
import type { Endpoint, HttpDeps } from "./endpoint.ts";
import { Call, type Context, OpenCall } from "./requests/call.ts";
import { cursorsOf } from "./requests/pagination.ts";
import { type InputSchemas, inputChecks } from "./requests/validate.ts";
import type { Api } from "./typed-api.ts";

export type { Api } from "./typed-api.ts";

/** The schemas of a route; those of its responses by status. */
export interface RouteSchemas extends InputSchemas {
  readonly responses: Readonly<Record<number, TSchema>>;
}

/** A part of the API, in the order of the API document. */
export interface ApiPart {
  readonly name: string;
  /** Markdown. */
  readonly description: string;
}

/** The routes of an area. */
export interface ApiArea {
  readonly parts: readonly ApiPart[];
  /** Other names of path segments, by segment: errors for an unknown path with such a name suggest the right path. */
  readonly alsoCalled?: Readonly<Record<string, readonly string[]>>;
  /** Its routes, built on the plugin that runs the gates. */
  readonly routes: (api: Api) => AnyElysia | readonly AnyElysia[];
}

/** Methods that a route can have. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** An endpoint as it was declared, for the OpenAPI document and the tests that go over all of them. */
export interface DeclaredRoute extends RouteSchemas {
  readonly operation: Operation;
  readonly method: Method;
  /** With parameters in Elysia's form, `/v1/meter/:meterId/deduct`. */
  readonly path: string;
  /** The part of the API that it belongs to. */
  readonly tag: string;
}

type CallClass = new (endpoint: Endpoint, request: Request) => OpenCall;

/** What an area says of a route: its schemas, and which of the two macros declares its operation. */
interface RouteHooks {
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: TObject;
  readonly response?: TSchema | Readonly<Record<number, TSchema>>;
  readonly op?: OperationSpec;
  readonly open?: Omit<OperationSpec, "access">;
}

/** A route as an area adds it to its plugin. */
interface AddedRoute extends Pick<DeclaredRoute, "method" | "path" | "tag"> {
  readonly handler: unknown;
  readonly hooks: RouteHooks;
}

/** What `new Routes()` takes of Elysia's options. */
interface RoutesOptions {
  readonly prefix?: string;
  /** The part of the API. */
  readonly tags?: readonly string[];
}

/** Collects routes, with the methods by which Elysia takes them. */
class CollectedRoutes {
  readonly all: AddedRoute[] = [];
  private readonly prefix: string;
  private readonly tag: string;

  constructor({ prefix = "", tags: [tag = "System"] = [] }: RoutesOptions = {}) {
    this.prefix = prefix;
    this.tag = tag;
  }

  route(method: Method, path: string, handler: unknown, hooks: RouteHooks = {}): this {
    this.all.push({ method, path: this.prefix + path, tag: this.tag, handler, hooks });
    return this;
  }

  get(path: string, handler: unknown, hooks?: RouteHooks): this {
    return this.route("GET", path, handler, hooks);
  }

  post(path: string, handler: unknown, hooks?: RouteHooks): this {
    return this.route("POST", path, handler, hooks);
  }

  put(path: string, handler: unknown, hooks?: RouteHooks): this {
    return this.route("PUT", path, handler, hooks);
  }

  patch(path: string, handler: unknown, hooks?: RouteHooks): this {
    return this.route("PATCH", path, handler, hooks);
  }

  delete(path: string, handler: unknown, hooks?: RouteHooks): this {
    return this.route("DELETE", path, handler, hooks);
  }

  /** Takes over the routes of another plugin. */
  use(other: CollectedRoutes): this {
    for (const { path, ...more } of other.all) this.all.push({ path: this.prefix + path, ...more });
    return this;
  }
}

/**
 * A plugin of Elysia as areas need it: its routes type their handlers by their schemas, and are only collected. Elysia would
 * prepare each for its own router, which serves no endpoint; it is loaded when a request is for none (see `http.ts`).
 *
 * The schemas of a route type its handler. Elysia does not get to see them: the key is checked before the body is read,
 * nothing is coerced, and errors have one shape. Responses are checked by the compiler and by the tests, not at run time.
 * A handler runs behind its gates, where {@link mounted} puts it.
 */
export const Routes = CollectedRoutes as unknown as typeof Elysia;

/** What every plugin uses, for the types of its routes. */
export const api = new CollectedRoutes() as unknown as Api;

/** @throws Error for a plugin that is no {@link Routes}. */
function routesOf(plugin: unknown): readonly AddedRoute[] {
  if (plugin instanceof CollectedRoutes) return plugin.all;
  throw new Error("an area's routes are collected by Routes");
}

/** A route of a plugin, to be mounted. */
export interface MountedRoute extends DeclaredRoute {
  readonly serve: (context: Context) => Response | Promise<Response>;
}

/**
 * The routes of a plugin, each with the function that serves its requests: gates, handler, response. Where these are mounted in
 * Elysia, it reads the source of a function to see which parts of its context to build and whether to wait for it; it cannot
 * read a bound one, and takes it for what these are.
 */
export function mounted(plugin: AnyElysia, deps: HttpDeps): MountedRoute[] {
  return routesOf(plugin).map(({ method, path, tag, handler, hooks }) => {
    const { op, open, params, query, body, response = {} } = hooks;
    const spec = open === undefined ? op : ({ ...open, access: "public" } as const);
    if (spec === undefined) throw new Error(`${method} ${path} does not say what operation it is`);
    const operation = operationOf(spec);
    const responses = Kind in response ? { 200: response } : response;
    const served: Served = {
      Called: open === undefined ? Call : OpenCall,
      handler: handler as Handler,
      input: { params, query, body },
      endpoint: {
        route: path,
        deps,
        operation,
        honoursKey: operation.idempotent && method !== "GET",
        requests: deps.requests.of(operation.name),
      },
      complete: null,
    };
    const serve = respond.bind(null, served);
    return { method, path, tag, operation, params, query, body, responses, serve };
  });
}

/** A route as its requests are served. */
interface Served {
  readonly Called: CallClass;
  readonly handler: Handler;
  readonly input: InputSchemas;
  readonly endpoint: Omit<Endpoint, "checks" | "cursors">;
  /** The endpoint with what reads its input. Made by the first request: a start would make it for every endpoint. */
  complete: Endpoint | null;
}

function completed({ endpoint, input }: Served): Endpoint {
  const { operation, deps } = endpoint;
  deps.requests.onArrival();
  return { ...endpoint, checks: inputChecks(input), cursors: cursorsOf(operation, input.query, deps.vault) };
}

type Handler = (context: Context) => unknown;

/** Serves a request. Returns a promise only if it must wait. */
function respond(served: Served, context: Context) {
  const { Called, handler } = served;
  served.complete ??= completed(served);
  const call = new Called(served.complete, context.request);
  context.call = call;
  try {
    const entering = call.enter(context);
    if (entering !== undefined) return respondAfterBody(call, entering, handler, context);
    const result = handler(context);
    return result instanceof Promise ? respondLater(call, result) : call.respond(result);
  } catch (error) {
    return call.reject(error);
  }
}

/** The same after a body has been read. One async function, since chained promises cost several turns of the event loop. */
async function respondAfterBody(call: OpenCall, entering: Promise<void>, handler: Handler, context: Context) {
  try {
    await entering;
    const result = handler(context);
    const response = call.respond(result instanceof Promise ? await result : result);
    return response instanceof Promise ? await response : response;
  } catch (error) {
    return call.reject(error);
  }
}

async function respondLater(call: OpenCall, result: Promise<unknown>): Promise<Response> {
  try {
    return await call.respond(await result);
  } catch (error) {
    return call.reject(error);
  }
}
