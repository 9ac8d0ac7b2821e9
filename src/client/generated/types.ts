// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
export type * from "./catch.ts";
export type * from "./flags.ts";
export type * from "./keys.ts";
export type * from "./locks.ts";
export type * from "./meter.ts";
export type * from "./monitors.ts";
export type * from "./notary.ts";
export type * from "./operator.ts";
export type * from "./projects.ts";
export type * from "./relay.ts";
export type * from "./signup.ts";
export type * from "./system.ts";
