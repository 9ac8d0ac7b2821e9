import type { RestoreStep } from "../../kernel/backup-check.ts";
import { MAIL_JOB } from "../../kernel/mail/outbox.ts";
import { DELIVER } from "./domain.ts";

/** What waited to be sent when a backup was made is sent after it is restored. */
export const reportWaitingDeliveries: RestoreStep = (db) => {
  const sql = "SELECT count(*) AS n FROM jobs WHERE kind IN (?, ?)";
  const waiting = db.get<{ n: number }>(sql, DELIVER, MAIL_JOB)?.n ?? 0;
  if (waiting === 0) return [];
  return [
    `sending   ${waiting} webhooks and e-mails were waiting: those sent since then are sent again (webhooks under the same X-Svc-Delivery-Id)`,
  ];
};
