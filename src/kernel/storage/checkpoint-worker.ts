/**
 * Moves committed pages from the WAL into the database file, on a thread and a connection of its own, so that
 * the event loop never waits for it. PASSIVE: it takes what it can and blocks nothing. Also preallocates space in the WAL.
 */
import { Database as SqliteDatabase } from "bun:sqlite";
import {
  AT_WORK,
  type CheckpointReply,
  type CheckpointRequest,
  CLOSING,
  HOLDS,
  runCheckpoint,
} from "./checkpoint.ts";
import { preallocateLog } from "./log-preallocation.ts";
import { plainReason, syncFailureOf } from "./storage-failures.ts";

declare const self: {
  onmessage: ((event: MessageEvent<CheckpointRequest>) => void) | null;
  postMessage(reply: CheckpointReply | typeof HOLDS): void;
};

self.onmessage = ({ data }) => {
  const reply = run(data);
  // Before the reply: its receiver may request the next pass immediately, which must not be marked as done.
  Atomics.store(data.state, AT_WORK, 0);
  Atomics.notify(data.state, AT_WORK);
  self.postMessage(reply);
};

/** Opens a connection for each pass: one that is open when the worker is ended would close later, during the database's own last checkpoint. */
function run(request: CheckpointRequest): CheckpointReply {
  const { path, logPath, logBytes, holdsLaterCommits, state } = request;
  try {
    preallocateLog(logPath, logBytes, () => Atomics.load(state, CLOSING) === 1);
    using _held = holdsLaterCommits ? holdLaterCommits(path) : null;
    using connection = new SqliteDatabase(path, { readwrite: true, create: false });
    connection.run("PRAGMA checkpoint_fullfsync = ON");
    return runCheckpoint(connection, request);
  } catch (error) {
    const failed = syncFailureOf(error, path);
    return { stuck: true, failure: failed?.reason ?? plainReason(error), failedSync: failed?.path ?? null };
  }
}

/** SQLite moves nothing that is newer than a reader's transaction. */
function holdLaterCommits(path: string): Disposable {
  const reader = new SqliteDatabase(path, { readwrite: true, create: false });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM sqlite_master").get();
  self.postMessage(HOLDS);
  return {
    [Symbol.dispose]: () => {
      reader.run("COMMIT");
      reader.close();
    },
  };
}
