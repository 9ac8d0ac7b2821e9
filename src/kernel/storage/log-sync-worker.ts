/** Syncs the write-ahead log each time it is requested, one sync at a time. In between it sleeps. */
import { closeSync } from "node:fs";
import { errorText } from "../errors.ts";
import { syncLog } from "./log-file.ts";
import { CLOSE, REQUESTED, type SyncEnd, type SyncThreadParts } from "./log-sync.ts";
import { SyncFailure } from "./storage-failures.ts";

declare const self: {
  onmessage: ((event: MessageEvent<SyncThreadParts>) => void) | null;
  postMessage(end: SyncEnd): void;
};

self.onmessage = ({ data }) => {
  const { path, fd, state } = data;
  let number = 0;
  try {
    for (;;) {
      Atomics.wait(state, REQUESTED, number);
      number = Atomics.load(state, REQUESTED);
      if (number === CLOSE) return;
      syncLog(fd, path);
      self.postMessage({ number, failure: null });
    }
  } catch (error) {
    self.postMessage({ number, failure: error instanceof SyncFailure ? error.reason : errorText(error) });
  } finally {
    closeSync(fd);
  }
};
