/**
 * Moves committed pages from the WAL into the database file, on a thread and a connection of its own, so that
 * the event loop never waits for it. PASSIVE: it takes what it can and blocks nothing. Also preallocates space in the WAL.
 */
import { Database as SqliteDatabase } from "bun:sqlite";
import { errorText } from "../errors.ts";
import {
  AT_WORK,
  type CheckpointReply,
  type CheckpointRequest,
  CLOSING,
  runCheckpoint,
  SYNC_FAILED,
} from "./checkpoint.ts";
import { isSyncFailure } from "./database.ts";
import { preallocateLog } from "./log-preallocation.ts";

declare const self: {
  onmessage: ((event: MessageEvent<CheckpointRequest>) => void) | null;
  postMessage(reply: CheckpointReply): void;
};

self.onmessage = ({ data }) => {
  const reply = preallocate(data) ?? runOnce(data);
  // Before the reply: its receiver may request the next pass immediately, which must not be marked as done.
  Atomics.store(data.state, AT_WORK, 0);
  Atomics.notify(data.state, AT_WORK);
  self.postMessage(reply);
};

/** Returns null on success: then the pass follows. */
function preallocate({ logPath, logBytes, state }: CheckpointRequest): CheckpointReply | null {
  try {
    preallocateLog(logPath, logBytes, () => Atomics.load(state, CLOSING) === 1);
    return null;
  } catch (error) {
    Atomics.store(state, SYNC_FAILED, 1);
    return { stuck: true, failure: errorText(error) };
  }
}

/** Opens a connection for each pass: one that is open when the worker is ended would close later, during the database's own last checkpoint. */
function runOnce({ path, movedPages, state }: CheckpointRequest): CheckpointReply {
  try {
    const connection = new SqliteDatabase(path, { readwrite: true, create: false });
    try {
      connection.run("PRAGMA checkpoint_fullfsync = ON");
      return runCheckpoint(connection, movedPages);
    } finally {
      connection.close();
    }
  } catch (error) {
    if (isSyncFailure(error)) Atomics.store(state, SYNC_FAILED, 1);
    return { stuck: true, failure: errorText(error) };
  }
}
