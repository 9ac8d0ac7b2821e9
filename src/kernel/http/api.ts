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

/** The declaration that the macro stores in a route. */
interface Declared extends RouteSchemas {
  readonly operation: Operation;
  readonly Called: CallClass;
}

type CallClass = new (endpoint: Endpoint, request: Request) => OpenCall;

/** The hooks of a route, as Elysia hands them to a macro before it looks at them itself. */
interface RouteHooks {
  params?: TObject;
  query?: TObject;
  body?: TObject;
  response?: TSchema | Record<number, TSchema>;
  declared?: Declared;
}

/**
 * The base of every area's routes: two macros that declare an endpoint.
 *
 * - `op` for endpoints that require a key, whose handlers get a {@link Call};
 * - `open` for endpoints that anyone may call, whose handlers get an {@link OpenCall}.
 *
 * The schemas of a route type its handler. They are removed before Elysia compiles them: the key is checked
 * before the body is read, nothing is coerced, and errors have one shape. Responses are checked by
 * the compiler and by the tests, not at run time. A handler runs behind its gates, where {@link mounted} puts it; a
 * plugin that is mounted otherwise has no call to work with.
 */
export const api = new Elysia({ name: "ninefold.api" }).macro({
  op: (spec: OperationSpec) => declares<Call>(spec, Call),
  open: (spec: Omit<OperationSpec, "access">) => declares<OpenCall>({ ...spec, access: "public" }, OpenCall),
});

/** The plugin that areas use. */
export type Api = typeof api;

function declares<C extends OpenCall>(spec: OperationSpec, Called: CallClass) {
  const operation = operationOf(spec);
  return {
    seed: operation.name,
    introspect(hooks: RouteHooks) {
      hooks.declared = { operation, Called, ...takeSchemas(hooks) };
    },
    // For the types only: at run time only the declaration exists.
  } as unknown as { resolve: () => { call: C } };
}

/** Reads the schemas of a route, and hides them from Elysia. */
function takeSchemas(hooks: RouteHooks): RouteSchemas {
  const { params, query, body, response = {} } = hooks;
  for (const name of ["params", "query", "body", "response"] as const) delete hooks[name];
  return { params, query, body, responses: Kind in response ? { 200: response } : response };
}

/** A route of a plugin, to be mounted. */
export interface MountedRoute extends DeclaredRoute {
  readonly serve: (context: Context) => Response | Promise<Response>;
}

/**
 * The routes of a plugin, each with the function that serves its requests: gates, handler, response. Elysia reads the
 * source of a function to see which parts of its context to build and whether to wait for it; it cannot read a bound
 * one, and takes it for what these are.
 */
export function mounted(plugin: AnyElysia, deps: HttpDeps): MountedRoute[] {
  return plugin.routes.flatMap(({ method, path, handler, hooks }) => {
    const { declared, detail } = hooks as { declared?: Declared; detail?: { tags?: string[] } };
    if (declared === undefined) throw new Error(`${method} ${path} does not say what operation it is`);
    const { operation, Called, ...schemas } = declared;
    const endpoint: Endpoint = {
      route: path,
      deps,
      operation,
      honoursKey: operation.idempotent && method !== "GET",
      checks: inputChecks(schemas),
      cursors: cursorsOf(operation, schemas.query, deps.vault),
      requests: deps.requests.of(operation.name),
    };
    const tag = detail?.tags?.[0] ?? "System";
    const serve = respond.bind(null, Called, endpoint, handler as Handler);
    return { method: method as Method, path, tag, operation, ...schemas, serve };
  });
}

type Handler = (context: Context) => unknown;

/** Serves a request. Returns a promise only if it must wait. */
function respond(Called: CallClass, endpoint: Endpoint, handler: Handler, context: Context) {
  const call = new Called(endpoint, context.request);
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
    return await call.respond(result instanceof Promise ? await result : result);
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
