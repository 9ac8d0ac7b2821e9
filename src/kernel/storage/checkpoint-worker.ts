/**
 * Moves committed pages from the WAL into the database file, on a thread and a connection of its own, so that
 * the event loop never waits for it. PASSIVE: it takes what it can and blocks nobody.
 */
import { Database as SqliteDatabase } from "bun:sqlite";
import { errorText } from "../errors.ts";
import { type CheckpointReply, type CheckpointRequest, runCheckpoint } from "./checkpoint.ts";

declare const self: {
  onmessage: ((event: MessageEvent<CheckpointRequest>) => void) | null;
  postMessage(reply: CheckpointReply): void;
};

let connection: SqliteDatabase | undefined;

self.onmessage = ({ data: { path, movedPages, atWork } }) => {
  try {
    connection ??= new SqliteDatabase(path, { readwrite: true, create: false });
    self.postMessage(runCheckpoint(connection, movedPages));
  } catch (error) {
    self.postMessage({ stuck: true, failure: errorText(error) });
  } finally {
    Atomics.store(atWork, 0, 0);
    Atomics.notify(atWork, 0);
  }
};
