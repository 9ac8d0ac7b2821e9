import type { Clock } from "../../kernel/clock.ts";
import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { RelayStore } from "./store.ts";

/** How long a delivery is kept after its end. */
export const RELAYS_KEPT_MS = 7 * 24 * 60 * 60 * 1000;
/** Deliveries removed in one unit of work: a few milliseconds of the writer's time. */
const PURGE_SLICE = 250;
/** Hourly, off the full hour. */
const PURGE_SCHEDULE = "29 * * * *";

/** Registers the removal of deliveries that ended long ago. */
export function registerPurge(deps: {
  scheduler: Scheduler;
  writer: Writer;
  clock: Clock;
  store: RelayStore;
}): void {
  const { scheduler, writer, clock, store } = deps;
  scheduler.recurring("relay.purge", PURGE_SCHEDULE, async () => {
    const before = clock.now() - RELAYS_KEPT_MS;
    let removed = PURGE_SLICE;
    while (removed === PURGE_SLICE) {
      removed = await writer.submit((tx) => {
        const refs = store.endedBefore(before, PURGE_SLICE);
        store.remove(tx, refs);
        return refs.length;
      });
    }
  });
}
