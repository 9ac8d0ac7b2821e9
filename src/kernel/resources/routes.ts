import { type AnyElysia, Elysia } from "elysia";
import type { Api } from "../http/api.ts";
import type { ResourceFacts } from "../http/resource-facts.ts";
import type { ResourceOperation } from "./resource.ts";

/** The routes of a declared resource. */
export function resourceRoutes(
  api: Api,
  resource: { readonly facts: ResourceFacts; readonly operations: readonly ResourceOperation[] },
): AnyElysia {
  const plugin = new Elysia({ tags: [resource.facts.tag] });
  for (const { method, path, op, schemas, handler } of resource.operations)
    plugin.route(method, path, api.endpoint({ ...op, ...schemas }, handler));
  return plugin;
}
