import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { type AnyElysia, Elysia } from "elysia";
import { Call, type Context, type Endpoint, type HttpDeps, OpenCall } from "./call.ts";
import { type Operation, type OperationSpec, operationOf } from "./caller.ts";
import { cursorsOf } from "./pagination.ts";
import { type InputSchemas, inputChecks } from "./validate.ts";

/** What a route declares beside its path and its handler; the schema of each answer stands by its status. */
export interface RouteSchemas extends InputSchemas {
  readonly answers: Readonly<Record<number, TSchema>>;
}

/** A part of the API, as its description orders it. */
export interface ApiPart {
  readonly name: string;
  /** Markdown. */
  readonly description: string;
}

/** What an area says of itself to the HTTP side. */
export interface ApiArea {
  readonly parts: readonly ApiPart[];
  /** Its routes, built on the plugin that runs the gates. */
  readonly routes: (api: Api) => AnyElysia | readonly AnyElysia[];
}

/** Methods that a route can have. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** An endpoint as it was declared, for the OpenAPI document and the tests that go over all of them. */
export interface DeclaredRoute extends Declared {
  readonly method: Method;
  /** With parameters in Elysia's form, `/v1/meter/:meterId/deduct`. */
  readonly path: string;
  /** The part of the API that it belongs to. */
  readonly tag: string;
}

/** What the macro keeps of a route. */
interface Declared extends RouteSchemas {
  readonly operation: Operation;
}

/** The hooks of a route, as Elysia hands them to a macro before it looks at them itself. */
interface RouteHooks {
  params?: TObject;
  query?: TObject;
  body?: TObject;
  response?: TSchema | Record<number, TSchema>;
  parse?: "none";
  transform?: unknown;
  declared?: Declared;
}

/**
 * What every area builds its routes on: two macros, which say what an endpoint is and run its gates.
 *
 * - `op` for endpoints that require a key, whose handlers get a {@link Call};
 * - `open` for endpoints that anyone may call, whose handlers get an {@link OpenCall}.
 *
 * The schemas of a route type its handler. They are taken out of Elysia's hands before it compiles them: a key is
 * judged before the body is read, nothing is coerced or stripped, and errors have one shape. Answers are checked by
 * the compiler and by the tests, not at run time.
 */
export function createApi(deps: HttpDeps) {
  return new Elysia({ name: "ninefold.api" }).macro({
    op: (spec: OperationSpec) => gated<Call>(deps, spec, Call),
    open: (spec: Omit<OperationSpec, "access">) =>
      gated<OpenCall>(deps, { ...spec, access: "public" }, OpenCall),
  });
}

/** The plugin that areas use. */
export type Api = ReturnType<typeof createApi>;

/**
 * The hooks of a route. Elysia reads the source of each to see which parts of its context to build and whether to
 * wait for it; it cannot read bound functions, and takes them for what these are: answering at once.
 */
function gated<C extends OpenCall>(deps: HttpDeps, spec: OperationSpec, Called: CallClass) {
  const operation = operationOf(spec);
  return {
    seed: operation.name,
    introspect(hooks: RouteHooks) {
      const schemas = takeSchemas(hooks);
      const endpoint: Endpoint = {
        deps,
        operation,
        checks: inputChecks(schemas),
        cursors: cursorsOf(operation, schemas.query, deps.vault),
        requests: deps.requests.of(operation.name),
      };
      hooks.declared = { operation, ...schemas };
      const reads = operation.access.endsWith(":read") || operation.access === "public";
      const waits = !reads || schemas.body !== undefined || operation.admit !== undefined;
      hooks.transform = (waits ? openWithBody : open).bind(null, Called, endpoint);
      // Otherwise Elysia might read the body that a handler asks for itself.
      if (waits || operation.anyBody !== undefined) hooks.parse = "none";
    },
    mapResponse: respond.bind(null),
    error: refuse,
    // For the types alone: at run time the hooks above are all.
  } as unknown as { resolve: () => { call: C } };
}

type CallClass = new (endpoint: Endpoint, request: Request) => OpenCall;

function open(Called: CallClass, endpoint: Endpoint, context: Context): void {
  context.call = new Called(endpoint, context.request);
  context.call.enter(context);
}

async function openWithBody(Called: CallClass, endpoint: Endpoint, context: Context): Promise<void> {
  context.call = new Called(endpoint, context.request);
  await context.call.enterWithBody(context);
}

/** Errors pass here too, as the response that they have become. */
function respond({ call, responseValue }: { call: OpenCall; responseValue: unknown }) {
  return responseValue instanceof Response ? responseValue : call.answer(responseValue);
}

/** Elysia gives every response to an error the status that it read off the error itself: ours says which it is. */
async function refuse({ call, error, set }: { call: OpenCall; error: unknown; set: { status?: unknown } }) {
  const response = await call.refuse(error);
  set.status = response.status;
  return response;
}

/** Reads the schemas of a route, and takes them away from Elysia. */
function takeSchemas(hooks: RouteHooks): RouteSchemas {
  const { params, query, body, response = {} } = hooks;
  for (const name of ["params", "query", "body", "response"] as const) delete hooks[name];
  return { params, query, body, answers: Kind in response ? { 200: response } : response };
}

/** The endpoints of a plugin. */
export function declaredIn(plugin: AnyElysia): DeclaredRoute[] {
  const declared: DeclaredRoute[] = [];
  for (const { method, path, hooks } of plugin.routes) {
    const { declared: found, detail } = hooks as { declared?: Declared; detail?: { tags?: string[] } };
    if (found === undefined) continue;
    const tag = detail?.tags?.[0] ?? "System";
    declared.push({ method: method as Method, path, tag, ...found });
  }
  return declared;
}
