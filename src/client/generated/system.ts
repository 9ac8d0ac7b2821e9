// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.

/** What `GET /v1/ping` answers. */
export interface Pong {
  pong: true;
}

/** What `GET /openapi.json` answers. */
export interface OpenApiDocument {
  openapi: string;
  [name: string]: unknown;
}

/** The query of `GET /v1/meter/{meterId}/history`. */
export interface PageQuery {
  /** How many items to return at most. */
  limit?: number | undefined;
  /** The `cursor` of the page before. */
  cursor?: string | undefined;
}
