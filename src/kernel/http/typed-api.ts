// Types alone: what is not imported at run time does not load Elysia.
import { Elysia } from "elysia";
import type { OperationSpec } from "./access/caller.ts";
import type { Call, OpenCall } from "./requests/call.ts";

const typed = () =>
  new Elysia().macro({
    op: (_: OperationSpec) => macroWith<Call>(),
    open: (_: Omit<OperationSpec, "access">) => macroWith<OpenCall>(),
  });

function macroWith<C extends OpenCall>() {
  return {} as { resolve: () => { call: C } };
}

/**
 * The types of an area's routes: two macros that declare an endpoint.
 *
 * - `op` for endpoints that require a key, whose handlers get a {@link Call};
 * - `open` for endpoints that anyone may call, whose handlers get an {@link OpenCall}.
 */
export type Api = ReturnType<typeof typed>;
