import { join } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import { type App, createApp } from "../app.ts";
import type { Config } from "../config.ts";
import { createSystemClock } from "../kernel/clock.ts";
import { openKernel } from "../kernel/kernel.ts";
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
  const kernel = openKernel({
    databasePath: join(folder, "ninefold.db"),
    masterKeyPath: join(folder, "master.key"),
    masterKey: config.masterKey,
    durability: config.durability,
    migrations: MIGRATIONS,
    clock,
    log: createLogger(clock, "error"),
  });
  const closeKernel = (): void => {
    kernel.writer.close();
    kernel.checkpointer.close();
    kernel.db.close();
  };
  try {
    const app = createApp(kernel, config, null);
    return {
      app,
      close: async () => {
        try {
          await app.finish();
        } finally {
          closeKernel();
        }
      },
    };
  } catch (error) {
    closeKernel();
    throw error;
  }
}
