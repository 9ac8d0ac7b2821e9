import TEMPLATE from "../build/template/ninefold.bin" with { type: "file" };
import { MIGRATIONS } from "../migrations/index.ts";
import { type Kernel, type KernelOptions, openKernel } from "./kernel/kernel.ts";
import { dataFilesOf } from "./kernel/storage/folders.ts";

type DataFolderOptions = Omit<KernelOptions, "databasePath" | "masterKeyPath" | "migrations" | "template">;

/**
 * Opens the kernel on a data folder and migrates its database. The caller must hold the lock of the folder.
 * @throws StartupError for a foreign or newer database, a missing or wrong master key.
 */
export function openDataFolder(folder: string, options: DataFolderOptions): Kernel {
  const { database, masterKey } = dataFilesOf(folder);
  return openKernel({
    ...options,
    databasePath: database,
    masterKeyPath: masterKey,
    migrations: MIGRATIONS,
    template: TEMPLATE,
  });
}
