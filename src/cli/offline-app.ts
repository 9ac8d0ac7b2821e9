import { type App, createApp } from "../app.ts";
import type { Config } from "../config.ts";
import { openDataFolder } from "../data-folder.ts";
import { createSystemClock } from "../kernel/clock.ts";
import { closeKernel, explained } from "../kernel/kernel.ts";
import { createLogger } from "../kernel/log.ts";

/** Every area on a data folder, without a port and without background work. */
export interface OfflineApp {
  readonly app: App;
  close(): Promise<void>;
}

/**
 * Opens a folder that no server holds.
 * @throws StartupError for a foreign or newer database, a missing or wrong master key.
 */
export function openOfflineApp(folder: string, config: Config): OfflineApp {
  const clock = createSystemClock();
  const { masterKey, durability } = config;
  const kernel = openDataFolder(folder, { masterKey, durability, clock, log: createLogger(clock, "error") });
  try {
    const app = createApp(kernel, config, null);
    return {
      app,
      close: async () => {
        try {
          await app.finish();
        } finally {
          closeKernel(kernel);
        }
      },
    };
  } catch (error) {
    closeKernel(kernel);
    throw explained(kernel.db.path, error);
  }
}
