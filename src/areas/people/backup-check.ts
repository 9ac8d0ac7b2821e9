import type { RestoreStep } from "../../kernel/data/backup-check.ts";

/** People of a backup whom a restore prints; of more it prints the number. */
const PRINTED_MAX = 20;

/**
 * Ends all sessions and links after a restore: the backup does not know which of them have been ended, nor who has been
 * disabled since. Reports who is active in the backup.
 */
export const endLogins: RestoreStep = (db) => {
  for (const table of ["sessions", "login_links", "person_links"])
    if (db.hasTable(table)) db.execute(`DELETE FROM ${table}`);
  if (!db.hasTable("people")) return [];
  const active = db.all<{ email: string; role: string | null; account: string }>(
    `SELECT people.email, role, accounts.email AS account FROM people JOIN accounts ON accounts.ref = account_ref
     WHERE disabled = 0 AND accepted_at IS NOT NULL ORDER BY people.ref LIMIT ${PRINTED_MAX}`,
  );
  if (active.length === 0) return [];
  const more =
    (db.get<{ n: number }>("SELECT count(*) AS n FROM people WHERE disabled = 0 AND accepted_at IS NOT NULL")
      ?.n ?? 0) - active.length;
  return [
    "people    all sessions and links have ended; these people are active in the backup: disable those who left since",
    ...active.map(
      ({ email, role, account }) => `          ${email} (${role ?? "in projects"}) of ${account}`,
    ),
    ...(more > 0 ? [`          and ${more} more`] : []),
  ];
};
