import { below, counted, type RestoreStep } from "../../kernel/data/backup-check.ts";
import { MAIL_JOB } from "../../kernel/mail/outbox.ts";
import { DELIVER } from "./domain.ts";
import { CLOSED, LIVE, PAUSED } from "./endpoints/store.ts";

/** Reports the deliveries and e-mails that were pending when the backup was made: they are sent after the restore. */
export const reportWaitingDeliveries: RestoreStep = (db) => {
  const sql = "SELECT count(*) AS n FROM jobs WHERE kind IN (?, ?)";
  const waiting = db.get<{ n: number }>(sql, DELIVER, MAIL_JOB)?.n ?? 0;
  if (waiting === 0) return [];
  return [
    `sending   ${waiting} webhooks and e-mails were pending: those sent since the backup are sent again (webhooks under the same X-Svc-Delivery-Id)`,
  ];
};

/** Deliveries parked for endpoints have no jobs. */
const HELD = `SELECT endpoint_id, state, breaker, count(*) AS held
  FROM relay_parked JOIN relay_endpoints ON ref = endpoint_ref GROUP BY endpoint_ref ORDER BY endpoint_ref`;

interface Holding {
  readonly endpoint_id: string;
  readonly state: number;
  readonly breaker: number;
  readonly held: number;
}

/** Reports the deliveries parked for endpoints that accept none now, and what happens to them. */
export const reportHeldDeliveries: RestoreStep = (db) => {
  const endpoints = db.hasTable("relay_parked") ? db.all<Holding>(HELD) : [];
  if (endpoints.length === 0) return [];
  const held = endpoints.reduce((sum, endpoint) => sum + endpoint.held, 0);
  return [
    `held      ${counted(held, "webhook")} waited for ${counted(endpoints.length, "endpoint")} to accept them: those sent since the backup are sent again (under the same X-Svc-Delivery-Id)`,
    ...below(endpoints.map((one) => `${one.endpoint_id} ${outlookOf(one)}: ${one.held}`)),
  ];
};

function outlookOf({ state, breaker }: Holding): string {
  if (state === PAUSED) return "is paused and receives them when it is live";
  if (state !== LIVE) return "is disabled or deleted and receives none of them";
  return breaker === CLOSED
    ? "receives them when the server starts"
    : "did not respond and receives them when it does";
}
