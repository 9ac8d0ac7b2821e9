import { below, type LostSecret, lostLines, type RestoreStep } from "../../kernel/data/backup-check.ts";

const HAS_SECRETS = "(headers IS NOT NULL OR tls_client_key IS NOT NULL)";
const OWNER = "JOIN accounts ON accounts.ref = account_ref";
const UUID = `lower(substr(hex(monitor_id), 1, 8) || '-' || substr(hex(monitor_id), 9, 4) || '-' || substr(hex(monitor_id), 13, 4)
  || '-' || substr(hex(monitor_id), 17, 4) || '-' || substr(hex(monitor_id), 21))`;

/** Reports the probes of the backup, whose tokens are valid again, also where they were deleted since. */
export const reportProbes: RestoreStep = (db) => {
  if (!db.hasTable("probes")) return [];
  const probes = db.all<{ name: string; email: string }>(
    "SELECT name, email FROM probes JOIN accounts ON accounts.ref = account_ref ORDER BY probes.ref",
  );
  if (probes.length === 0) return [];
  return [
    "probes    the tokens of these are valid: delete again those that you deleted since, and create those again that you created since",
    ...below(probes.map(({ name, email }) => `${name} of ${email}`)),
  ];
};

/**
 * Removes what a lost master key has sealed of monitors: those with headers or a client certificate are paused, channels are deleted, since their
 * whole configuration is sealed, and ping keys still work, but are not shown.
 */
export const forgetMonitorSecrets: RestoreStep = (db, now) => {
  const monitors = db.all<LostSecret>(
    `SELECT ${UUID} AS id, name, email FROM monitors ${OWNER} WHERE ${HAS_SECRETS} ORDER BY monitors.ref`,
  );
  db.execute(
    `DELETE FROM jobs WHERE kind = 'monitors.check' AND key IN (SELECT CAST(ref AS TEXT) FROM monitors WHERE ${HAS_SECRETS})`,
  );
  db.execute(
    `UPDATE monitors SET headers = NULL, tls_client_key = NULL, options = json_remove(options, '$.tls_client_certificate'),
       active = 0, version = version + 1, updated_at = ? WHERE ${HAS_SECRETS}`,
    now,
  );
  const channels = db.all<LostSecret>(
    `SELECT channel_id AS id, kind || ' ' || name AS name, email FROM channels ${OWNER} ORDER BY channels.ref`,
  );
  db.execute("DELETE FROM channels");
  const keys = db.all<LostSecret>(
    `SELECT projects.id, name, email FROM heartbeat_ping_keys JOIN projects ON projects.ref = project_ref
     JOIN accounts ON accounts.ref = projects.account_ref ORDER BY projects.ref`,
  );
  db.execute("UPDATE heartbeat_ping_keys SET sealed = x''");
  return [
    ...lostLines(
      "monitor",
      "headers and client certificates of monitors, which are paused: set them and make the monitors active",
      monitors,
    ),
    ...lostLines("channel", "notification channels, which are deleted: create them again", channels),
    ...lostLines(
      "project",
      "the texts of ping keys: pings with them still work; renew a key to see it again",
      keys,
    ),
  ];
};
