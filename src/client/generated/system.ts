// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** What `GET /openapi.json` answers. */
export interface OpenApiDocument {
  openapi: string;
  [name: string]: unknown;
}

/** What `GET /v1/ping` answers. */
export interface Pong {
  pong: true;
}
