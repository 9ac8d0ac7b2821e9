import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { type AnyElysia, Elysia } from "elysia";
import { type Operation, type OperationSpec, operationOf } from "./access/caller.ts";
import type { Endpoint, HttpDeps } from "./endpoint.ts";
import { Call, type Context, OpenCall } from "./requests/call.ts";
import { cursorsOf } from "./requests/pagination.ts";
import { type InputSchemas, inputChecks } from "./requests/validate.ts";

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

/** The types of a plugin with the two macros. */
const typed = () =>
  new Elysia().macro({
    op: (_: OperationSpec) => macroWith<Call>(),
    open: (_: Omit<OperationSpec, "access">) => macroWith<OpenCall>(),
  });

function macroWith<C extends OpenCall>() {
  return {} as { resolve: () => { call: C } };
}

/** The plugin that areas use. */
export type Api = ReturnType<typeof typed>;

/**
 * The base of every area's routes: two macros that declare an endpoint.
 *
 * - `op` for endpoints that require a key, whose handlers get a {@link Call};
 * - `open` for endpoints that anyone may call, whose handlers get an {@link OpenCall}.
 *
 * The schemas of a route type its handler. Elysia does not get to see them: the key is checked before the body is read,
 * nothing is coerced, and errors have one shape. Responses are checked by the compiler and by the tests, not at run time.
 * A handler runs behind its gates, where {@link mounted} puts it; a plugin that is mounted otherwise has no routes.
 */
export const api = collectRoutes as unknown as Api;

const ADDERS = { get: "GET", post: "POST", put: "PUT", patch: "PATCH", delete: "DELETE" } as const;

/** The routes that areas have added to their plugins. */
const added = new WeakMap<object, AddedRoute[]>();

/** @throws Error if a plugin has routes that would not be mounted. */
function routesOf(plugin: AnyElysia): readonly AddedRoute[] {
  const routes = added.get(plugin);
  if (routes === undefined || plugin.routes.length > 0)
    throw new Error("a plugin must use the API's plugin before it adds routes, each with its method");
  return routes;
}

/**
 * Makes a plugin collect its routes. Elysia would prepare each for its own router, which the server does not use: a fifth of
 * the time that a start takes to build the areas.
 */
function collectRoutes<Plugin extends AnyElysia>(plugin: Plugin): Plugin {
  const routes: AddedRoute[] = [];
  added.set(plugin, routes);
  const { prefix = "", tags: [tag = "System"] = [] } = plugin.config;
  const route = (method: Method, path: string, handler: unknown, hooks: RouteHooks = {}): Plugin => {
    routes.push({ method, path: prefix + path, tag, handler, hooks });
    return plugin;
  };
  const use = (other: AnyElysia): Plugin => {
    for (const { path, ...more } of routesOf(other)) routes.push({ path: prefix + path, ...more });
    return plugin;
  };
  const adders = Object.entries(ADDERS).map(([name, method]) => [name, route.bind(null, method)]);
  return Object.assign(plugin, { route, use }, Object.fromEntries(adders));
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
  deps.requests.arrive();
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
