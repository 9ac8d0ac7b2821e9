import { Kind, type Static, type TObject, type TSchema } from "@sinclair/typebox";
import type { AnyElysia } from "elysia";
import type { ApiError } from "../errors.ts";
import type { OperationRequests } from "../metrics/request-metrics.ts";
import type { ResponseGate } from "./gate.ts";
import { type Operation, type OperationSpec, operationOf } from "./operation.ts";
import { Call, type CallInput, OpenCall } from "./requests/call.ts";
import type { Endpoint, HttpDeps } from "./requests/endpoint.ts";
import { cursorsOf } from "./requests/pagination.ts";
import { type InputSchemas, inputChecks } from "./requests/validate.ts";
import type { Reply } from "./responses/response.ts";

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
  /** Its plugins, whose handlers are endpoints of `api`. */
  readonly routes: (api: Api) => AnyElysia | readonly AnyElysia[];
}

/** Methods that a route can have. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The schema of the response with status 200, or the schemas by status. */
export type ResponseSchemas = TSchema | Readonly<Record<number, TSchema>>;

/** What an area says of an endpoint: its operation, and the schemas of its input and of its responses. */
export interface EndpointSpec<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TObject = TObject,
  Responses extends ResponseSchemas = ResponseSchemas,
> extends OperationSpec {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly response?: Responses;
}

/** The checked input of a request, as a handler gets it. */
export interface Input<C, Params extends TSchema, Query extends TSchema, Body extends TSchema> {
  readonly call: C;
  readonly params: Static<Params>;
  readonly query: Static<Query>;
  readonly body: Static<Body>;
}

/** What a handler may return: the value of a 200, or a reply with one of the declared statuses. */
type Result<Responses> = Responses extends TSchema
  ? Static<Responses> | Reply<200, Static<Responses>>
  : {
      [Status in keyof Responses & number]:
        | Reply<Status, Static<Responses[Status] & TSchema>>
        | (Status extends 200 ? Static<Responses[Status] & TSchema> : never);
    }[keyof Responses & number];

/** A handler of an endpoint. The compiler and the tests check its result against the schemas; nothing does at run time. */
type Handler<
  C,
  Params extends TObject,
  Query extends TObject,
  Body extends TObject,
  Responses extends ResponseSchemas,
> = (input: Input<C, Params, Query, Body>) => Result<Responses> | Promise<Result<Responses>>;

const NOTHING: Readonly<Record<string, never>> = {};

type NoMembers = TObject<Record<never, never>>;

/** The part of a framework's context that an endpoint uses. */
export interface RoutedRequest {
  readonly request: Request;
  readonly params?: Readonly<Record<string, string>>;
}

/** A handler of a route: gates, input, the area's handler, response. */
export interface EndpointHandler {
  (routed: RoutedRequest): Response | Promise<Response>;
  readonly declared: Declared;
  /** The same for a request that has been admitted: one below the path of the route, or one that another request contains. */
  readonly admitted: (routed: RoutedRequest) => Response | Promise<Response>;
}

/** An endpoint with its route, for the OpenAPI document and whatever else goes over all of them. */
export interface DeclaredRoute extends InputSchemas {
  readonly operation: Operation;
  readonly method: Method;
  /** With parameters in Elysia's form, `/v1/meter/:meterId/deduct`. */
  readonly path: string;
  /** The part of the API that it belongs to. */
  readonly tag: string;
  /** The schemas of its responses, by status. */
  readonly responses: Readonly<Record<number, TSchema>>;
  readonly serve: EndpointHandler;
}

/** What stands before every endpoint. */
export interface Front {
  readonly deps: HttpDeps;
  /** Every response waits for it; null without a cluster. */
  readonly gate: ResponseGate | null;
  /** Holds the response to a request back until the gate lets it pass. */
  gated(request: Request, handle: () => Response | Promise<Response>): Response | Promise<Response>;
  /** Why a request cannot have this route, whatever its endpoint is; null if it can. */
  refusalOf(routed: RoutedRequest): ApiError | null;
  /** The response to a request that reaches no endpoint. */
  reject(request: Request, error: unknown): Response | Promise<Response>;
}

/** An endpoint as it was declared, before it has a route. */
interface Declared {
  readonly operation: Operation;
  readonly input: InputSchemas;
  readonly responses: Readonly<Record<number, TSchema>>;
  readonly handler: (input: never) => unknown;
  readonly Called: new (endpoint: Endpoint, request: Request) => OpenCall;
  readonly front: Front;
  readonly requests: OperationRequests;
  /** The path of its route, from when it has one. */
  path: string | null;
  /** With what reads its input. Made by the first request: a start would make it for every endpoint. */
  endpoint: Endpoint | null;
}

/**
 * Makes handlers of endpoints for the routes of Elysia's plugins.
 *
 * Elysia routes the request; the schemas are not among its own, since the key is checked before the body is read, nothing is
 * coerced, and errors have one shape.
 */
export class Api {
  constructor(private readonly front: Front) {}

  /** An endpoint that requires a key, whose handler gets a {@link Call}. */
  endpoint<
    Params extends TObject = NoMembers,
    Query extends TObject = NoMembers,
    Body extends TObject = NoMembers,
    Responses extends ResponseSchemas = TSchema,
  >(
    spec: EndpointSpec<Params, Query, Body, Responses>,
    handler: Handler<Call, Params, Query, Body, Responses>,
  ): EndpointHandler {
    return this.handlerOf(Call, spec, handler);
  }

  /** An endpoint that anyone may call, whose handler gets an {@link OpenCall}. */
  open<
    Params extends TObject = NoMembers,
    Query extends TObject = NoMembers,
    Body extends TObject = NoMembers,
    Responses extends ResponseSchemas = TSchema,
  >(
    spec: Omit<EndpointSpec<Params, Query, Body, Responses>, "access">,
    handler: Handler<OpenCall, Params, Query, Body, Responses>,
  ): EndpointHandler {
    return this.handlerOf(OpenCall, { ...spec, access: "public" }, handler);
  }

  private handlerOf(
    Called: Declared["Called"],
    { params, query, body, response = {}, ...operation }: EndpointSpec,
    handler: Declared["handler"],
  ): EndpointHandler {
    const declared: Declared = {
      operation: operationOf(operation),
      input: { params, query, body },
      responses: Kind in response ? { 200: response } : response,
      handler,
      Called,
      front: this.front,
      requests: this.front.deps.requests.of(operation.name),
      path: null,
      endpoint: null,
    };
    // Elysia reads the source of a function to see which parts of its context to make. Of a bound one it makes the fewest.
    const atRoute: (routed: RoutedRequest) => Response | Promise<Response> = respond.bind(null, declared);
    return Object.assign(atRoute, { declared, admitted: serve.bind(null, declared) });
  }
}

/**
 * The endpoints of a plugin, in their order.
 * @throws Error for a route whose handler is none of {@link Api}.
 */
export function routesOf(plugin: AnyElysia): DeclaredRoute[] {
  return plugin.routes.map(({ method, path, handler, hooks }) => {
    if (!isEndpoint(handler)) throw new Error(`${method} ${path} is not an endpoint of the API`);
    handler.declared.path = path;
    const { operation, input, responses } = handler.declared;
    const [tag = "System"] = hooks.detail?.tags ?? [];
    return { method: method as Method, path, tag, operation, ...input, responses, serve: handler };
  });
}

function isEndpoint(handler: unknown): handler is EndpointHandler {
  return typeof handler === "function" && "declared" in handler;
}

function endpointOf({ operation, input, path, requests, front: { deps } }: Declared): Endpoint {
  deps.requests.onArrival();
  return {
    route: path,
    operation,
    deps,
    requests,
    checks: inputChecks(input),
    cursors: cursorsOf(operation, input.query, deps.vault),
  };
}

/** Serves a request at the route of an endpoint. Returns a promise only if it must wait. */
function respond(declared: Declared, routed: RoutedRequest): Response | Promise<Response> {
  const { front } = declared;
  const refusal = front.refusalOf(routed);
  if (refusal !== null) return front.reject(routed.request, refusal);
  return front.gate === null
    ? serve(declared, routed)
    : front.gated(routed.request, () => serve(declared, routed));
}

function serve(
  declared: Declared,
  { request, params = NOTHING }: RoutedRequest,
): Response | Promise<Response> {
  const { Called, handler } = declared;
  declared.endpoint ??= endpointOf(declared);
  const call = new Called(declared.endpoint, request);
  const input: CallInput = { call, params, query: NOTHING, body: NOTHING };
  try {
    const entering = call.enter(input);
    if (entering !== undefined) return respondAfterBody(call, entering, handler, input);
    const result = handler(input as never);
    return result instanceof Promise ? respondLater(call, result) : call.respond(result);
  } catch (error) {
    return call.reject(error);
  }
}

/** The same after a body has been read. One async function, since chained promises cost several turns of the event loop. */
async function respondAfterBody(
  call: OpenCall,
  entering: Promise<void>,
  handler: Declared["handler"],
  input: CallInput,
): Promise<Response> {
  try {
    await entering;
    const result = handler(input as never);
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
