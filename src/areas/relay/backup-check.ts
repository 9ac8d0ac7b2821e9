import { below, counted, type RestoreStep } from "../../kernel/data/backup-check.ts";
import { MAIL_JOB } from "../../kernel/mail/outbox.ts";
import { DELIVER } from "./domain.ts";
import { CLOSED, LIVE, PAUSED } from "./endpoints/store.ts";

/** What waited to be sent when a backup was made is sent after it is restored. */
export const reportWaitingDeliveries: RestoreStep = (db) => {
  const sql = "SELECT count(*) AS n FROM jobs WHERE kind IN (?, ?)";
  const waiting = db.get<{ n: number }>(sql, DELIVER, MAIL_JOB)?.n ?? 0;
  if (waiting === 0) return [];
  return [
    `sending   ${waiting} webhooks and e-mails were waiting: those sent since then are sent again (webhooks under the same X-Svc-Delivery-Id)`,
  ];
};

/** What is held back for endpoints has no jobs. */
const HELD = `SELECT endpoint_id, state, breaker, count(*) AS held
  FROM relay_parked JOIN relay_endpoints ON ref = endpoint_ref GROUP BY endpoint_ref ORDER BY endpoint_ref`;

interface Holding {
  readonly endpoint_id: string;
  readonly state: number;
  readonly breaker: number;
  readonly held: number;
}

/** What was held back for endpoints that take nothing, and what becomes of it. */
export const reportHeldDeliveries: RestoreStep = (db) => {
  const endpoints = db.hasTable("relay_parked") ? db.all<Holding>(HELD) : [];
  if (endpoints.length === 0) return [];
  const held = endpoints.reduce((sum, endpoint) => sum + endpoint.held, 0);
  return [
    `held      ${counted(held, "webhook")} waited for ${counted(endpoints.length, "endpoint")} to take them: those sent since then are sent again (under the same X-Svc-Delivery-Id)`,
    ...below(endpoints.map((one) => `${one.endpoint_id} ${fateOf(one)}: ${one.held}`)),
  ];
};

function fateOf({ state, breaker }: Holding): string {
  if (state === PAUSED) return "is paused, and gets them once it is live";
  if (state !== LIVE) return "is disabled or deleted, and gets none of them";
  return breaker === CLOSED ? "gets them at the start" : "did not answer, and gets them once it does";
}
