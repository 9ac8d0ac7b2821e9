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
  MailTest,
  MailTestBody,
  ServerHistory,
  ServerOptions,
  ServerSettings,
  ServerSettingsBody,
  ServerStatus,
} from "./schema.ts";
import type { ServerService } from "./service.ts";
import type { SettingsService } from "./settings.ts";

/** What the endpoints call. */
interface ServerParts {
  readonly service: ServerService;
  readonly minutes: Minutes;
  readonly settings: SettingsService;
}

/** Declares the operator's endpoints for backups, status and options. */
export function serverRoutes(api: Api, { service, minutes, settings }: ServerParts) {
  return new Elysia({ prefix: "/v1/admin", tags: ["Operator"] })
    .get(
      "/backups",
      api.endpoint(
        {
          name: "admin.backups.list",
          access: "operator",
          summary: "List backups, newest first",
          description:
            "Use it to check that backups are made: `failure` says why the last one failed, and `plan.overdue` whether two scheduled times passed without one. Only files in the backup folder count; without a folder `plan` is null.",
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
          description:
            "Use it for dashboards and support requests: sizes, free disk space, mail, jobs and load of this node. For health checks use `/readyz`, and for monitoring `/metrics`.",
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
    )
    .get(
      "/settings",
      api.endpoint(
        {
          name: "admin.settings.read",
          access: "operator",
          summary: "Get the settings of the server",
          description:
            "Returns the options that can be stored in the database, each with its value and source. What a flag, an environment variable or the configuration file sets wins, and cannot be changed here.",
          response: ServerSettings,
        },
        () => settings.list(),
      ),
    )
    .patch(
      "/settings",
      api.endpoint(
        {
          name: "admin.settings.update",
          access: "operator",
          audit: "yes",
          summary: "Change settings of the server",
          description:
            "Stores settings in the database, secrets sealed with the master key; null removes a setting. Settings whose `effect` is `now` are effective immediately, others after a restart. All of the request is stored, or nothing.",
          body: ServerSettingsBody,
          errors: ["conflict"],
          example: { brand_color: "#1f6feb" },
          response: ServerSettings,
        },
        ({ call, body }) => {
          settings.check(body);
          return call.perform((tx) => {
            settings.update(tx, body);
            return settings.list();
          });
        },
      ),
    )
    .post(
      "/settings/test-mail",
      api.endpoint(
        {
          name: "admin.settings.test_mail",
          access: "operator",
          summary: "Send a test e-mail",
          description: "Sends an e-mail once, immediately, and returns what the mail server responded.",
          body: MailTestBody,
          example: { to: "ada@example.com" },
          response: MailTest,
        },
        ({ body }) => service.testMail(body.to),
      ),
    );
}
