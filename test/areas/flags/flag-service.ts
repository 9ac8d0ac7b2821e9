import { FlagUsage } from "../../../src/areas/flags/evaluation/usage.ts";
import { FlagSchedule } from "../../../src/areas/flags/scheduled/schedule.ts";
import { scheduleStore } from "../../../src/areas/flags/scheduled/store.ts";
import { FlagService } from "../../../src/areas/flags/service.ts";
import { type FlagStore, flagStore } from "../../../src/areas/flags/store.ts";
import type { Kernel } from "../../../src/kernel/kernel.ts";

/** The flags of a kernel without a server, which applies no scheduled changes. */
export function flagServiceOn(
  kernel: Kernel,
  store: FlagStore = flagStore(kernel.db),
  inMemoryMax?: number,
): FlagService {
  const schedule = new FlagSchedule(scheduleStore(kernel.db), kernel);
  return new FlagService(store, new FlagUsage(store, kernel), schedule, kernel.ids, undefined, inMemoryMax);
}
