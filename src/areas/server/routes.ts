import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { BACKUPS_LIMIT, BackupBegun, BackupPage, ServerOptions, ServerStatus } from "./schema.ts";
import type { ServerService } from "./service.ts";

/** Declares the operator's view of the server itself. */
export function serverRoutes(api: Api, service: ServerService) {
  return new Elysia({ prefix: "/v1/admin", tags: ["Operator"] })
    .use(api)
    .get("/backups", ({ query: { limit = BACKUPS_LIMIT, cursor } }) => service.listBackups(limit, cursor), {
      op: { name: "admin.backups.list", access: "operator", summary: "List backups, newest first" },
      query: pageQuery(BACKUPS_LIMIT),
      response: BackupPage,
    })
    .post("/backups", ({ call }) => call.perform((tx) => reply(202, service.makeBackup(tx))), {
      op: {
        name: "admin.backups.create",
        access: "operator",
        audit: "yes",
        summary: "Make a backup now",
        description:
          "Answers once it is certain to be made, in a process of its own: the list shows how that goes. It counts among those that are kept.",
        errors: ["invalid_request", "conflict"],
      },
      response: { 202: BackupBegun },
    })
    .get("/status", () => service.status(), {
      op: { name: "admin.status.read", access: "operator", summary: "Read how the server is" },
      response: ServerStatus,
    })
    .get("/options", () => service.options(), {
      op: {
        name: "admin.options.list",
        access: "operator",
        summary: "List the server's options",
        description: "Each with its value and where that comes from, as `ninefold config print` does.",
      },
      response: ServerOptions,
    });
}
