import type { AnyElysia } from "elysia";
import { type Api, Routes } from "../http/api.ts";
import type { ResourceFacts } from "./facts.ts";
import type { ResourceOperation } from "./resource.ts";

/** The routes of a declared resource. */
export function resourceRoutes(
  api: Api,
  resource: { readonly facts: ResourceFacts; readonly operations: readonly ResourceOperation[] },
): AnyElysia {
  const plugin = new Routes({ tags: [resource.facts.tag] }).use(api);
  // The handlers are typed by the declaration, in place of the schemas.
  for (const { method, path, op, schemas, handler } of resource.operations)
    plugin.route(method, path, handler as never, { op, ...schemas } as never);
  return plugin;
}
