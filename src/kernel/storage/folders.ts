import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, errorText, StartupError } from "../errors.ts";

/** How a file system says that it does not sync folders, or a folder that it may not be opened for it. */
const FOLDER_SYNC_UNKNOWN = "EINVAL ENOTSUP EOPNOTSUPP ENOSYS EISDIR EPERM EACCES EBADF".split(" ");

/** What stands in a data folder. */
export interface DataFiles {
  readonly database: string;
  /** Held by the process that works on the folder. */
  readonly lock: string;
  readonly masterKey: string;
}

/** The paths of what stands in a data folder. */
export function dataFilesOf(folder: string): DataFiles {
  return {
    database: join(folder, "ninefold.db"),
    lock: join(folder, "ninefold.lock"),
    masterKey: join(folder, "master.key"),
  };
}

/** Opens a file that is closed at the end of the block whose `using` it is. */
export function openFile(path: string, flags: string, mode?: number): Disposable & { readonly fd: number } {
  const fd = openSync(path, flags, mode);
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

/** Syncs a file, or the entries of a folder. */
export function syncPath(path: string): void {
  using file = openFile(path, "r");
  fsyncSync(file.fd);
}

/**
 * Makes the entries of a folder last, where its file system can: some, of a network or of a program, know no sync of
 * a folder and say so. What was done in it has happened all the same.
 *
 * @throws Error when the disk fails.
 */
export function syncFolder(path: string): void {
  try {
    syncPath(path);
  } catch (error) {
    if (!FOLDER_SYNC_UNKNOWN.includes(errorCode(error))) throw error;
  }
}

/**
 * Makes a data folder that is its user's alone, and the folders above it, and makes them last: a database is no better
 * kept than the name of its folder. Returns whether it was not there.
 *
 * @throws StartupError
 */
export function makeFolder(folder: string): boolean {
  try {
    const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (first === undefined) return false;
    chmodSync(folder, 0o700);
    for (let made = folder; made.length >= first.length; made = dirname(made)) syncFolder(dirname(made));
    return true;
  } catch (error) {
    throw new StartupError(`The data folder cannot be created (${errorText(error)}).`);
  }
}
