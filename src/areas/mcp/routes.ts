import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { named } from "../../kernel/data/schema.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/operation.ts";
import { additionalReply } from "../../kernel/http/responses/response.ts";
import type { McpServer } from "./server.ts";

/** Levels of a message around the arguments of a tool: message, `params`, `arguments`. */
const LEVELS_AROUND = 3;

const McpMessage = named("McpMessage", {
  jsonrpc: Type.Literal("2.0"),
  id: Type.Optional(
    Type.Union([Type.String(), Type.Number()], {
      description: "ID of the request.",
    }),
  ),
  result: Type.Optional(Type.Unknown({ description: "Result of the method." })),
  error: Type.Optional(
    Type.Object({
      code: Type.Integer({
        description: "Error code of JSON-RPC or of the protocol.",
      }),
      message: Type.String({ description: "What is wrong." }),
      data: Type.Optional(Type.Unknown({ description: "Details of the error." })),
    }),
  ),
});

/** Declares the endpoint of agents. */
export function mcpRoutes(api: Api, server: McpServer) {
  return new Elysia({ tags: ["MCP"] }).post(
    "/v1/mcp",
    api.endpoint(
      {
        name: "mcp",
        access: "any",
        idempotent: false,
        summary: "Call tools by the Model Context Protocol",
        description:
          "One JSON-RPC message of revision 2026-07-28, or of 2025-11-25, 2025-06-18 and 2025-03-26, in a request. Only for managed keys. Each call of a tool passes the checks of its operation, and costs what that costs.",
        anyBody: "One JSON-RPC request or notification.",
        bodyLimits: largeBody(LEVELS_AROUND),
        errors: ["request_too_large"],
        rejectMethod: () =>
          new ApiError("method_not_allowed", "This path takes POST: there are no sessions and no streams.", {
            headers: { allow: "POST" },
          }),
        response: {
          200: McpMessage,
          202: McpMessage,
          400: McpMessage,
          404: McpMessage,
        },
      },
      async ({ call }) => {
        const { status, text } = await server.respond(call);
        // The text goes out as it is.
        return additionalReply(status, text);
      },
    ),
  );
}
