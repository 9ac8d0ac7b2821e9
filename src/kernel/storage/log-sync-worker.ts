/** Syncs the write-ahead log each time it is requested, one sync at a time. In between it sleeps. */
import { closeSync } from "node:fs";
import { errorText } from "../errors.ts";
import { monotonicMs } from "../time/clock.ts";
import { syncLog } from "./log-file.ts";
import {
  AWAITED,
  CLOSE,
  END,
  ENDED,
  IDLE,
  REQUESTED,
  SYNC,
  type SyncEnd,
  type SyncThreadStart,
  TOOK_US,
} from "./log-sync.ts";
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
      const startedAt = monotonicMs();
      syncLog(fd, path);
      Atomics.store(state, TOOK_US, (monotonicMs() - startedAt) * 1_000);
      if (Atomics.compareExchange(state, END, AWAITED, ENDED) === AWAITED) Atomics.notify(state, END);
      else self.postMessage(null);
    }
  } catch (error) {
    self.postMessage(error instanceof SyncFailure ? error.reason : errorText(error));
  } finally {
    closeSync(fd);
  }
};
