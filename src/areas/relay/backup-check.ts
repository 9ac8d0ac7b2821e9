import {
  below,
  counted,
  type LostSecret,
  lostLines,
  type RestoreStep,
} from "../../kernel/data/backup-check.ts";
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
    ...below(endpoints.map((endpoint) => `${endpoint.endpoint_id} ${outlookOf(endpoint)}: ${endpoint.held}`)),
  ];
};

function outlookOf({ state, breaker }: Holding): string {
  if (state === PAUSED) return "is paused and receives them when it is live";
  if (state !== LIVE) return "is disabled or deleted and receives none of them";
  return breaker === CLOSED
    ? "receives them when the server starts"
    : "did not respond and receives them when it does";
}

const OWNER = "JOIN accounts ON accounts.ref = account_ref";
const PENDING = "(headers IS NOT NULL OR destination IS NOT NULL) AND status IN (1, 2)";

/**
 * Removes what a lost master key has sealed of deliveries. Signing secrets are created anew at their first use; what was sent
 * with secret headers stops until its owner sets them again.
 */
export const forgetRelaySecrets: RestoreStep = (db, now) => {
  const projects = db.all<LostSecret>(
    `SELECT id, name, email FROM projects ${OWNER} WHERE projects.ref IN (SELECT owner_ref FROM relay_project_secrets) ORDER BY projects.ref`,
  );
  const endpoints = db.all<LostSecret>(
    `SELECT endpoint_id AS id, name, email FROM relay_endpoints ${OWNER}
     WHERE relay_endpoints.ref IN (SELECT owner_ref FROM relay_endpoint_secrets) ORDER BY relay_endpoints.ref`,
  );
  db.execute("DELETE FROM relay_project_secrets");
  db.execute("DELETE FROM relay_endpoint_secrets");
  const withHeaders = db.all<LostSecret>(
    `SELECT endpoint_id AS id, name, email FROM relay_endpoints ${OWNER} WHERE headers IS NOT NULL AND state <> 4 ORDER BY relay_endpoints.ref`,
  );
  db.execute(
    "UPDATE relay_endpoints SET headers = NULL, state = CASE state WHEN 1 THEN 2 ELSE state END, updated_at = ? WHERE headers IS NOT NULL",
    now,
  );
  const schedules = db.all<LostSecret>(
    `SELECT schedule_id AS id, name, email FROM relay_schedules ${OWNER} WHERE headers IS NOT NULL ORDER BY relay_schedules.ref`,
  );
  db.execute(
    "DELETE FROM jobs WHERE kind = 'relay.schedules' AND key IN (SELECT CAST(ref AS TEXT) FROM relay_schedules WHERE headers IS NOT NULL)",
  );
  db.execute(
    "UPDATE relay_schedules SET headers = NULL, state = 'paused', next_run_at = NULL, updated_at = ? WHERE headers IS NOT NULL",
    now,
  );
  const pending = db.get<{ n: number }>(`SELECT count(*) AS n FROM relays WHERE ${PENDING}`)?.n ?? 0;
  db.execute(
    `UPDATE relays SET status = 4, failure = 2, finished_at = ?, headers = NULL, destination = NULL,
       error = 'its headers were lost in a restore without the master key' WHERE ${PENDING}`,
    now,
  );
  return [
    ...lostLines(
      "project",
      "signing secrets of projects: new ones are created; give them to the receivers",
      projects,
    ),
    ...lostLines(
      "endpoint",
      "signing secrets of endpoints: new ones are created; give them to the receivers",
      endpoints,
    ),
    ...lostLines(
      "endpoint",
      "headers of endpoints, which are paused: set them and make the endpoints live",
      withHeaders,
    ),
    ...lostLines(
      "schedule",
      "headers of schedules, which are paused: set them and make the schedules live",
      schedules,
    ),
    ...(pending === 0
      ? []
      : [
          `lost      ${counted(pending, "pending delivery", "pending deliveries")} with headers or secret URLs: failed`,
        ]),
    "lost      the ids of earlier deliveries: lists show them, but they cannot be read or cancelled by id",
  ];
};
