import { hash } from "node:crypto";
import { column, elsewhere, flag, once, type RowOf, resourceTable } from "../../../kernel/resources/table.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";

/** Ids of results that are remembered of each probe: twice what it keeps while it cannot send. */
const RESULT_IDS_MAX = 20_000;
const DIGEST_BYTES = 16;

const PROBES = {
  name: "probes",
  id: "probe_id",
  columns: {
    accountRef: once(column<number>()),
    name: once(column<string>()),
    location: column<string | null>(),
    /** SHA-256 of the token. */
    tokenDigest: once(column<Uint8Array>()),
    /** Epoch milliseconds; null before its first request. */
    lastSeenAt: elsewhere(column<number | null>()),
    /** Whether it was silent for so long that it was reported. */
    offline: elsewhere(flag()),
    version: elsewhere(column<string | null>()),
    queue: elsewhere(column<number>()),
    clockOffsetMs: elsewhere(column<number | null>()),
    createdAt: once(column<number>()),
    updatedAt: column<number>(),
  },
};

export type ProbeRow = RowOf<typeof PROBES>;
export type ProbeStore = ReturnType<typeof probeStore>;

/** All SQL of probes and of the ids of their results. */
export function probeStore(db: Database) {
  const rows = resourceTable(db, PROBES);
  const find = db.number<[probeRef: number, digest: Uint8Array]>(
    // By itself, SQLite would search all results of the probe: both begin with its reference.
    "SELECT received_at AS n FROM probe_results INDEXED BY probe_results_digest WHERE probe_ref = ? AND digest = ? LIMIT 1",
  );
  const count = db.change<[ref: number]>("UPDATE probes SET results = results + 1 WHERE ref = ?");
  const counted = db.number<[ref: number]>("SELECT results AS n FROM probes WHERE ref = ?");
  const remember = db.change<[probeRef: number, place: number, digest: Uint8Array, now: number]>(
    "INSERT OR REPLACE INTO probe_results (probe_ref, place, digest, received_at) VALUES (?, ?, ?, ?)",
  );
  return {
    ...rows,
    withToken: rows.one<[digest: Uint8Array]>("WHERE token_digest = ?"),
    named: rows.one<[projectRef: number, name: string]>("WHERE project_ref = ? AND name = ?"),
    /** Probes of all projects, for metrics. */
    oldest: rows.all<[rowsMax: number]>("ORDER BY ref LIMIT ?"),
    setSeen: db.change<
      [
        {
          readonly ref: number;
          readonly now: number;
          readonly version: string | null;
          readonly queue: number | null;
          readonly clockOffsetMs: number | null;
        },
      ]
    >(
      `UPDATE probes SET last_seen_at = $now, offline = 0, version = coalesce($version, version), queue = coalesce($queue, queue),
         clock_offset_ms = coalesce($clockOffsetMs, clock_offset_ms) WHERE ref = $ref`,
    ),
    /** Removes ids of results of a probe. Returns how many. */
    forgetResults: db.change<[{ readonly probeRef: number; readonly rowsMax: number }]>(
      `DELETE FROM probe_results WHERE probe_ref = $probeRef
         AND place IN (SELECT place FROM probe_results WHERE probe_ref = $probeRef ORDER BY place LIMIT $rowsMax)`,
    ),
    /** The same of all probes of a project. */
    forgetResultsOfProject: db.change<[projectRef: number, rowsMax: number]>(
      `DELETE FROM probe_results WHERE (probe_ref, place) IN (SELECT probe_ref, place FROM probes
         JOIN probe_results ON probe_ref = ref WHERE project_ref = ? LIMIT ?)`,
    ),
    setSeenAt: db.change<[{ readonly ref: number; readonly now: number }]>(
      "UPDATE probes SET last_seen_at = $now WHERE ref = $ref",
    ),
    setOffline: db.change<[ref: number]>("UPDATE probes SET offline = 1 WHERE ref = ?"),
    /** Remembers the id of a result. Returns false if it has been seen since a time. */
    remember(tx: Tx, probeRef: number, resultId: string, since: number): boolean {
      const digest = hash("sha256", resultId, "buffer").subarray(0, DIGEST_BYTES);
      if (find(probeRef, digest) > since) return false;
      remember(tx, probeRef, counted(probeRef) % RESULT_IDS_MAX, digest, tx.now);
      count(tx, probeRef);
      return true;
    },
  };
}
