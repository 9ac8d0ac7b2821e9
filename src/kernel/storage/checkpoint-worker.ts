/**
 * Moves committed pages from the WAL into the database file, on a thread and a connection of its own, so that
 * the event loop never waits for it. PASSIVE: it takes what it can and blocks nobody.
 */
import { Database as SqliteDatabase } from "bun:sqlite";
import { type CheckpointReply, type CheckpointRequest, runCheckpoint } from "./checkpoint.ts";

declare const self: {
  onmessage: ((event: MessageEvent<CheckpointRequest>) => void) | null;
  postMessage(reply: CheckpointReply): void;
};

let connection: SqliteDatabase | undefined;

self.onmessage = (event) => {
  connection ??= new SqliteDatabase(event.data.path, { readwrite: true, create: false });
  connection.run("PRAGMA busy_timeout = 1000");
  self.postMessage(runCheckpoint(connection, "PASSIVE"));
};
