import type { AnyElysia } from "elysia";
import { createBunRouteHandler } from "elysia/adapter/bun/compose";

/** The methods that the runtime's router knows. Elysia routes requests with others by itself. */
const ROUTER_METHODS = ["GET", "HEAD", "OPTIONS", "DELETE", "PATCH", "POST", "PUT"] as const;

type RouterMethod = (typeof ROUTER_METHODS)[number];
type RuntimeHandler = (request: Request) => Response | Promise<Response>;
type RuntimeRoutes = Record<string, Partial<Record<RouterMethod, RuntimeHandler>>>;

/** Whether the runtime's router knows a method. */
export function isRouterMethod(method: string): method is RouterMethod {
  return ROUTER_METHODS.some((known) => known === method);
}

/**
 * The routes of an app for the runtime's router, with Elysia's own handlers. Elysia's `listen` makes them twice, reloads the
 * server that it has just started, cuts the slash off the end of a path, and leaves out routes of every method.
 *
 * The handler of GET serves HEAD. Paths below a route are left to Elysia's own router.
 */
export function runtimeRoutes(app: AnyElysia): RuntimeRoutes {
  const exact = app.routes.filter(({ path }) => !path.endsWith("*"));
  const byMethod = exact.filter(({ method }) => method !== "ALL");
  const ofEveryMethod = exact.filter(({ method }) => method === "ALL");
  const routes: RuntimeRoutes = {};
  for (const route of [...byMethod, ...ofEveryMethod]) {
    const handler = composedOnUse(() => createBunRouteHandler(app, route));
    const methods = routes[route.path] ?? {};
    for (const method of methodsOf(route.method)) methods[method] ??= handler;
    routes[route.path] = methods;
  }
  return routes;
}

function methodsOf(method: string): readonly RouterMethod[] {
  if (method === "ALL") return ROUTER_METHODS;
  if (method === "GET") return ["GET", "HEAD"];
  return isRouterMethod(method) ? [method] : [];
}

/** Most routes of a server are never requested. */
function composedOnUse(compose: () => RuntimeHandler): RuntimeHandler {
  let composed: RuntimeHandler | null = null;
  return (request) => {
    composed ??= compose();
    return composed(request);
  };
}
