import type { Database as SqliteDatabase } from "bun:sqlite";

/** Asks the worker for one PASSIVE checkpoint of the file at `path`. */
export interface CheckpointRequest {
  readonly path: string;
}

/** What a checkpoint found and did, in pages. */
export interface CheckpointReply {
  /** Pages now in the WAL, moved or not. */
  readonly walPages: number;
  /** How many of them have been moved into the file. */
  readonly movedPages: number;
}

/** Runs one checkpoint on the given connection. */
export function runCheckpoint(connection: SqliteDatabase, mode: "PASSIVE" | "RESTART"): CheckpointReply {
  const row = connection
    .query<{ log: number; checkpointed: number }, []>(`PRAGMA wal_checkpoint(${mode})`)
    .get();
  return { walPages: Math.max(0, row?.log ?? 0), movedPages: Math.max(0, row?.checkpointed ?? 0) };
}
