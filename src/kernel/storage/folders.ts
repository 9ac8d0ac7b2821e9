import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { errorCode, errorText, StartupError } from "../errors.ts";
import { accessProblem, nearestExisting } from "./file-access.ts";

/** Errors of file systems that cannot sync folders, and of folders that cannot be opened for it. */
const FOLDER_SYNC_UNKNOWN = "EINVAL ENOTSUP EOPNOTSUPP ENOSYS EISDIR EPERM EACCES EBADF".split(" ");

/** The files of a data folder. */
export interface DataFiles {
  readonly database: string;
  /** Locked by the process that uses the folder. */
  readonly lock: string;
  readonly masterKey: string;
}

/** The paths of the files of a data folder. */
export function dataFilesOf(folder: string): DataFiles {
  return {
    database: join(folder, "ninefold.db"),
    lock: join(folder, "ninefold.lock"),
    masterKey: join(folder, "master.key"),
  };
}

/** Opens a file for a declaration with `using`, which closes it at the end of the block. */
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
 * Makes the entries of a folder durable, unless its file system does not support that, as some network and FUSE file
 * systems.
 *
 * @throws Error if the disk fails.
 */
export function syncFolder(path: string): void {
  try {
    syncPath(path);
  } catch (error) {
    if (!FOLDER_SYNC_UNKNOWN.includes(errorCode(error))) throw error;
  }
}

/**
 * Writes all bytes: the last write before a full disk may write only a part, and the next one fails with the reason. Without
 * `position`, where the file stands: also into a pipe.
 *
 * @throws Error if the disk fails or is full.
 */
export function writeAll(file: number, bytes: Uint8Array, position: number | null = null): void {
  for (let written = 0; written < bytes.length; ) {
    const at = position === null ? null : position + written;
    written += writeSync(file, bytes, written, bytes.length - written, at);
  }
}

/** Reads until the buffer is full or the file ends: one read may return less. Returns the bytes read. */
export function readWhole(file: number, bytes: Uint8Array, position: number): number {
  let size = 0;
  while (size < bytes.length) {
    const read = readSync(file, bytes, size, bytes.length - size, position + size);
    if (read === 0) break;
    size += read;
  }
  return size;
}

/** Replaces a file, complete or not at all, with mode 0600. It is durable when this returns. @throws Error if the disk fails. */
export function writeDurably(path: string, text: string): void {
  const temporary = `${path}.new`;
  {
    using file = openFile(temporary, "w", 0o600);
    writeAll(file.fd, Buffer.from(text));
    fsyncSync(file.fd);
  }
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/**
 * Creates a data folder with mode 0700, and its ancestors, durably: a database is only as durable as the name of its
 * folder. Returns whether it did not exist.
 *
 * @throws StartupError
 */
export function makeFolder(folder: string): boolean {
  try {
    const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (first === undefined) return false;
    chmodSync(folder, 0o700);
    for (let created = folder; created.length >= first.length; created = dirname(created))
      syncFolder(dirname(created));
    return true;
  } catch (error) {
    throw new StartupError(`The data folder cannot be created: ${whyNotCreated(folder, error)}`);
  }
}

/** Creates a private folder for temporary files. @throws StartupError that names `TMPDIR` */
export function makeTemporaryFolder(prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (error) {
    throw new StartupError(
      `No temporary folder can be created in ${tmpdir()} (${errorText(error)}). Set TMPDIR to a folder that this process can write.`,
    );
  }
}

/** The reason and what to do. */
function whyNotCreated(folder: string, error: unknown): string {
  const existing = nearestExisting(folder);
  if (!statSync(existing).isDirectory())
    return `${existing} is not a folder. Set another folder with --data.`;
  const reason = accessProblem(existing, existing, "write")?.reason ?? errorText(error);
  return `${reason}. Create ${folder} for the user of this process, or set another folder with --data.`;
}
