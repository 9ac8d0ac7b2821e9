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

self.onmessage = ({ data: { path, movedPages, atWork } }) => {
  const reply = runOnce(path, movedPages);
  // Before the reply: its receiver may order the next pass at once, which must not be marked as done.
  Atomics.store(atWork, 0, 0);
  Atomics.notify(atWork, 0);
  self.postMessage(reply);
};

/** A connection for each pass: one that is open when the worker is ended closes at some later moment, in the way of the database's own last checkpoint. */
function runOnce(path: string, movedPages: number): CheckpointReply {
  try {
    const connection = new SqliteDatabase(path, { readwrite: true, create: false });
    try {
      return runCheckpoint(connection, movedPages);
    } finally {
      connection.close();
    }
  } catch (error) {
    return { stuck: true, failure: errorText(error) };
  }
}
