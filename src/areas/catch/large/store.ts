import type { Database } from "../../../kernel/storage/database.ts";

/** Pieces removed in one unit of work: 1 MiB, like what one writes. */
export const PIECES_PER_UNIT = 4;

/** All SQL of bodies in pieces. */
export function pieceStore(db: Database) {
  const read = db.one<{ readonly bytes: Uint8Array }, [upload: number, number: number]>(
    "SELECT bytes FROM catch_pieces WHERE upload = ? AND number = ?",
  );
  return {
    insert: db.change<[upload: number, number: number, bytes: Uint8Array]>(
      "INSERT INTO catch_pieces (upload, number, bytes) VALUES (?, ?, ?)",
    ),
    /** A piece; null when it is removed. */
    read: (upload: number, number: number): Uint8Array | null => read(upload, number)?.bytes ?? null,
    /** The upload after another one; 0 when there is none. */
    nextUpload: db.number<[after: number]>("SELECT min(upload) AS n FROM catch_pieces WHERE upload > ?"),
    /** The largest number of an upload; 0 without any. */
    highestUpload: db.number(
      "SELECT max(coalesce((SELECT max(upload) FROM catch_pieces), 0), coalesce((SELECT max(upload) FROM catch_payloads WHERE upload IS NOT NULL), 0)) AS n",
    ),
    /** How many events have an upload as their body: 0 or 1. */
    eventsOf: db.number<[upload: number]>("SELECT count(*) AS n FROM catch_payloads WHERE upload = ?"),
    /** Removes the first pieces of an upload. Returns how many: fewer than {@link PIECES_PER_UNIT} when none is left. */
    remove: db.change<[upload: number]>(
      `DELETE FROM catch_pieces WHERE upload = ?1 AND number IN
         (SELECT number FROM catch_pieces WHERE upload = ?1 ORDER BY number LIMIT ${PIECES_PER_UNIT})`,
    ),
  };
}

/** Bodies in pieces. */
export type PieceStore = ReturnType<typeof pieceStore>;
