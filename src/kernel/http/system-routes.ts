import { Type } from "@sinclair/typebox";
import type { Http } from "./http.ts";
import { openApiDocument } from "./openapi.ts";

/** Declares what belongs to no area: the ping and the description of the API. */
export function systemRoutes(http: Http): void {
  http.publicRoute(
    "GET",
    "/v1/ping",
    {
      operation: "ping",
      summary: "Check that the server answers",
      answers: { 200: Type.Object({ pong: Type.Literal(true) }) },
    },
    () => ({ pong: true }),
  );
  let document: object | undefined;
  http.publicRoute(
    "GET",
    "/openapi.json",
    {
      operation: "openapi.read",
      summary: "Read this API's OpenAPI document",
      answers: { 200: Type.Object({ openapi: Type.String() }, { additionalProperties: true }) },
    },
    () => {
      document ??= openApiDocument(http.routes);
      return document;
    },
  );
}
