import { MIGRATIONS } from "../migrations/index.ts";
import type { Clock } from "./kernel/clock.ts";
import type { Ids } from "./kernel/ids.ts";
import { type Kernel, openKernel } from "./kernel/kernel.ts";
import type { Logger } from "./kernel/log.ts";
import type { Durability } from "./kernel/storage/database.ts";
import { dataFilesOf } from "./kernel/storage/folders.ts";

/** How the kernel of a data folder is opened. */
export interface DataFolderOptions {
  /** A master key from outside instead of the folder's. */
  readonly masterKey: string | null;
  readonly durability: Durability;
  /** Whether what stands behind a damaged place of the log is given up. */
  readonly acceptDamagedLog?: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ids?: Ids;
}

/**
 * Opens the kernel on a data folder, and brings its database up to date. Nobody else may hold the folder.
 * @throws StartupError for a foreign or newer database, a missing or wrong master key.
 */
export function openDataFolder(folder: string, options: DataFolderOptions): Kernel {
  const { database, masterKey } = dataFilesOf(folder);
  return openKernel({
    ...options,
    databasePath: database,
    masterKeyPath: masterKey,
    migrations: MIGRATIONS,
  });
}
