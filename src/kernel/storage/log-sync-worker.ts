/** Syncs the write-ahead log each time it is requested, one sync at a time. In between it sleeps. */
import { closeSync } from "node:fs";
import { errorText } from "../errors.ts";
import { syncLog } from "./log-file.ts";
import { CLOSE, IDLE, REQUESTED, SYNC, type SyncEnd, type SyncThreadStart } from "./log-sync.ts";
import { SyncFailure } from "./storage-failures.ts";

declare const self: {
  onmessage: ((event: MessageEvent<SyncThreadStart>) => void) | null;
  postMessage(end: SyncEnd): void;
};

self.onmessage = ({ data }) => {
  const { path, fd, state } = data;
  try {
    for (;;) {
      Atomics.wait(state, REQUESTED, IDLE);
      // A request to end stays. A wake-up can come late, when the request is done: another end would be taken for the next one's.
      const requested = Atomics.compareExchange(state, REQUESTED, SYNC, IDLE);
      if (requested === CLOSE) return;
      if (requested !== SYNC) continue;
      syncLog(fd, path);
      self.postMessage(null);
    }
  } catch (error) {
    self.postMessage(error instanceof SyncFailure ? error.reason : errorText(error));
  } finally {
    closeSync(fd);
  }
};
