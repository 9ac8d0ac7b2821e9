import { Type } from "@sinclair/typebox";
import { isOperator } from "../../kernel/callers/caller.ts";
import { dateTime, orNull } from "../../kernel/data/schema.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { OverviewCard } from "../../kernel/projects/overview-card.ts";
import { isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { type MinuteDeps, Minutes } from "./minutes.ts";
import type { Backups } from "./ports.ts";
import { serverRoutes } from "./routes.ts";
import { type ServerDeps, ServerService } from "./service.ts";
import { SettingsService } from "./settings.ts";

/** The operator's view of the server, with what it measures of itself. */
export interface ServerArea extends ApiArea {
  /** Begins to measure. */
  start(): void;
  /** Ends the measuring. */
  stop(): void;
}

/** Builds the area: backups, status, history and options of the server, for its operator. */
export function createServerArea(deps: ServerDeps & Pick<MinuteDeps, "requests">): ServerArea {
  const service = new ServerService(deps);
  const minutes = new Minutes(deps);
  const settings = new SettingsService(deps);
  return {
    parts: [],
    routes: (api) => serverRoutes(api, { service, minutes, settings }),
    start: () => minutes.start(),
    stop: () => minutes.stop(),
  };
}

/** The backups' part of the overview, for the operator only. */
export function backupsCard(backupsNow: () => Backups | null): OverviewCard {
  return {
    area: "backups",
    mayRead: isOperator,
    schema: Type.Object(
      {
        scheduled: Type.Boolean({ description: "Whether the server has scheduled backups." }),
        last_at: orNull(dateTime(), {
          description: "Start of the last backup. Null if there is none.",
        }),
        overdue: Type.Boolean({
          description: "Whether two scheduled times have passed since the last backup.",
        }),
      },
      { description: "State of the backups, for the operator only." },
    ),
    read: () => {
      const backups = backupsNow();
      return {
        scheduled: backups !== null,
        last_at: isoTimeOrNull(backups?.lastBackupAt ?? null),
        overdue: backups?.isOverdue === true,
      };
    },
  };
}

/** The part of the overview about e-mails, for the operator only. */
export function mailCard(outbox: Pick<Outbox, "available" | "health">): OverviewCard {
  return {
    area: "mail",
    mayRead: isOperator,
    schema: Type.Object(
      {
        configured: Type.Boolean({ description: "Whether the server has a mail server." }),
        failing_since: orNull(dateTime(), {
          description: "Time since which attempts to send e-mails fail. Null if they do not.",
        }),
      },
      { description: "State of outgoing e-mails, for the operator only." },
    ),
    read: () => ({
      configured: outbox.available,
      failing_since: isoTimeOrNull(outbox.health.failingSince),
    }),
  };
}
