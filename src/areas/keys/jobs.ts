import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { KeyRegistry } from "./registry.ts";
import type { KeyStore } from "./store.ts";
import type { KeyUses } from "./uses.ts";

/** Hourly, off the full hour, where everyone else's work begins. */
const PURGE_SCHEDULE = "37 * * * *";
/** Rows removed in one unit of work: a few milliseconds of the writer's time. */
const PURGE_SLICE = 100;

/** Registers the removal of keys whose retention has ended. Until it comes round they are answered as if gone. */
export function registerKeyPurge(deps: {
  scheduler: Scheduler;
  writer: Writer;
  store: KeyStore;
  registry: KeyRegistry;
  uses: KeyUses;
}): void {
  const { scheduler, writer, store, registry, uses } = deps;
  const purge = (tx: Tx): boolean => {
    const leaving = store.purgeable(tx.now, PURGE_SLICE);
    for (const { ref, digest } of leaving) {
      store.remove(tx, ref);
      registry.drop(tx, digest);
      uses.forget(ref);
    }
    return leaving.length === PURGE_SLICE;
  };
  scheduler.recurring("keys.purge", PURGE_SCHEDULE, async () => {
    while (await writer.submit(purge));
  });
}
