import type { Database } from "../storage/database.ts";

/**
 * The statements that the tables of bulk runs have in common. `owner` and `id` are the columns of their primary key; the index
 * `<table>_running` has the runs that are not finished.
 */
export function bulkRows(db: Database, { table, owner, id }: Record<"table" | "owner" | "id", string>) {
  const key = `(${owner}, ${id})`;
  const someOf = `DELETE FROM ${table} WHERE ${key} IN (SELECT ${owner}, ${id} FROM ${table}`;
  return {
    running: db.number<[ownerRef: number]>(
      `SELECT count(*) AS n FROM ${table} INDEXED BY ${table}_running WHERE ${owner} = ? AND finished_at IS NULL`,
    ),
    /** Removes the oldest finished runs of an owner beyond the newest ones, see {@link RUNS_STORED_MAX}. */
    removeExcess: db.change<[ownerRef: number, storedMax: number]>(
      `DELETE FROM ${table} WHERE ${owner} = ?1 AND finished_at IS NOT NULL AND ${id} <= (SELECT ${id}
       FROM ${table} WHERE ${owner} = ?1 ORDER BY ${id} DESC LIMIT 1 OFFSET ?2)`,
    ),
    removeOld: db.change<[before: number, limit: number]>(
      `${someOf} WHERE finished_at < ? ORDER BY finished_at LIMIT ?)`,
    ),
    removeOfOwner: db.change<[ownerRef: number, limit: number]>(`${someOf} WHERE ${owner} = ? LIMIT ?)`),
  };
}
