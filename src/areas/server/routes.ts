import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import type { Minutes } from "./minutes.ts";
import {
  BACKUPS_LIMIT,
  BackupBegun,
  BackupPage,
  HISTORY_HOURS,
  HistoryQuery,
  ServerHistory,
  ServerOptions,
  ServerStatus,
} from "./schema.ts";
import type { ServerService } from "./service.ts";

/** Declares the operator's endpoints for backups, status and options. */
export function serverRoutes(api: Api, service: ServerService, minutes: Minutes) {
  return new Elysia({ prefix: "/v1/admin", tags: ["Operator"] })
    .get(
      "/backups",
      api.endpoint(
        {
          name: "admin.backups.list",
          access: "operator",
          summary: "List backups, newest first",
          query: pageQuery(BACKUPS_LIMIT),
          response: BackupPage,
        },
        ({ query: { limit = BACKUPS_LIMIT, cursor } }) => service.listBackups(limit, cursor),
      ),
    )
    .post(
      "/backups",
      api.endpoint(
        {
          name: "admin.backups.create",
          access: "operator",
          audit: "yes",
          summary: "Create a backup now",
          description:
            "Returns as soon as the backup job is stored. The backup runs in a separate process; the list of backups shows its state. It counts toward `backup_keep`.",
          errors: ["invalid_request", "conflict"],
          response: { 202: BackupBegun },
        },
        ({ call }) => call.perform((tx) => reply(202, service.startBackup(tx))),
      ),
    )
    .get(
      "/status",
      api.endpoint(
        {
          name: "admin.status.read",
          access: "operator",
          summary: "Get the status of the server",
          response: ServerStatus,
        },
        () => service.status(),
      ),
    )
    .get(
      "/history",
      api.endpoint(
        {
          name: "admin.history.read",
          access: "operator",
          summary: "Get the measurements of the last hours",
          description:
            "Returns what the server measured of itself, and when it was not healthy. One row per minute is stored for seven days.",
          query: HistoryQuery,
          response: ServerHistory,
        },
        ({ query: { hours = HISTORY_HOURS } }) => minutes.history(hours),
      ),
    )
    .get(
      "/options",
      api.endpoint(
        {
          name: "admin.options.list",
          access: "operator",
          summary: "List the server's options",
          description: "Returns each option with its value and source, like `ninefold config print`.",
          response: ServerOptions,
        },
        () => service.options(),
      ),
    );
}
