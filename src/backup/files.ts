import {
  closeSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, StartupError } from "../kernel/errors.ts";
import { syncFolder } from "../kernel/storage/folders.ts";
import { realDelay } from "../kernel/time/clock.ts";
import { isoTime, parseDateTime } from "../kernel/time/date-time.ts";

/** Options of both a backup and a restore. */
export interface CopyOrder {
  /** The data folder. */
  readonly folder: string;
  /** The backup. */
  readonly file: string;
  /** Whether an existing file is replaced. */
  readonly force: boolean;
  /** The current time, in epoch milliseconds. */
  readonly now: number;
  /** Aborts: files written up to then are removed. */
  readonly signal: AbortSignal;
  readonly onCopied: (bytes: number, total: number) => void;
}

/** Endings of the files that SQLite may leave next to a database. */
export const SIDE_FILES = ["-wal", "-shm", "-journal"] as const;

/**
 * Large files are truncated in steps before they are deleted: deleting a gigabyte at once delays every fsync of the
 * machine by half a second.
 */
const RELEASED_BYTES = 16 * 1024 * 1024;
const RELEASE_PAUSE_MS = 20;

const SCHEDULED = /^ninefold-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/;

/** `20261121T030000Z`, UTC. */
export function compactTime(epochMs: number): string {
  return isoTime(epochMs).replaceAll(/[-:]|\.\d+/g, "");
}

/** The file name of a scheduled backup: `ninefold-20261121T030000Z.db`. Names sort by time. */
export function scheduledName(epochMs: number): string {
  return `ninefold-${compactTime(epochMs)}.db`;
}

/** The time in the name of a scheduled backup, in epoch milliseconds; null for every other file, such as one of a 13th month. */
export function timeOfScheduled(name: string): number | null {
  return SCHEDULED.test(name) ? parseDateTime(name.replace(SCHEDULED, "$1-$2-$3T$4:$5:$6Z")) : null;
}

/** An open file. It is closed at the end of the block that declares it with `using`. */
export function openFile(path: string, flags: "r" | "r+" | "wx"): Disposable & { readonly file: number } {
  const file = openSync(path, flags, 0o600);
  return { file, [Symbol.dispose]: () => closeSync(file) };
}

/** An error of the file system or of SQLite as text for the operator. */
export function plainText(error: unknown): string {
  const code = errorCode(error);
  if (code === "ENOSPC" || code === "SQLITE_FULL") return "the disk is full";
  if (code === "EFBIG") return "the file would be larger than permitted here";
  return error instanceof Error ? error.message : String(error);
}

/** The name of the temporary file for `path`, in the same folder, so that it can be renamed atomically. */
export function temporaryName(path: string): string {
  return temporaryNameOf(path, process.pid);
}

/** The name that another process uses for it. */
export function temporaryNameOf(path: string, pid: number): string {
  return `${path}.${pid}.partial`;
}

/**
 * Removes a temporary file and the files of SQLite next to it. Never throws, because the error that caused the removal
 * is the one to report; the next backup or restore removes what is left.
 */
export async function removeTemporary(path: string): Promise<void> {
  try {
    for (const side of SIDE_FILES) rmSync(`${path}${side}`, { force: true });
    await removeGently(path);
  } catch {
    // See above.
  }
}

/** Removes the temporary files of killed processes from a folder, if `isOurs` accepts the name of their final file. */
export async function removeLeftovers(folder: string, isOurs: (name: string) => boolean): Promise<void> {
  for (const name of readdirSync(folder)) {
    const [, target, pid] = /^(.+)\.(\d{1,10})\.partial(?:-wal|-shm|-journal)?$/.exec(name) ?? [];
    if (target === undefined || !isOurs(target) || isRunning(Number(pid))) continue;
    await removeGently(join(folder, name));
  }
}

/**
 * Replaces a file by another atomically and durably. The replaced file is truncated in steps.
 *
 * @throws Error if nothing was replaced; StartupError if it was, but the disk does not confirm it.
 */
export async function replaceFile(path: string, by: string): Promise<void> {
  const old = openIfFile(path);
  renameSync(by, path);
  try {
    syncFolder(dirname(path));
  } catch (error) {
    throw new StartupError(
      `${path} is in its place, but the disk does not confirm that it would outlast a power cut: ${plainText(error)}.`,
    );
  }
  if (old !== null) await release(old);
}

/** Removes a file, if it exists: first its name, then its content in steps. */
export async function removeGently(path: string): Promise<void> {
  const file = openIfFile(path);
  rmSync(path, { force: true });
  if (file !== null) await release(file);
}

/** @throws StartupError if the path is not a folder. */
export function assertFolder(path: string): void {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) throw new StartupError(`There is no folder ${path}.`);
  if (!status.isDirectory()) throw new StartupError(`${path} is not a folder.`);
}

/**
 * Opens a file to truncate it; null if it does not exist, cannot be written, or has another name (a hard or symbolic
 * link), under which its content must remain.
 */
function openIfFile(path: string): number | null {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || !status.isFile() || status.nlink > 1) return null;
  try {
    return openSync(path, "r+");
  } catch {
    return null;
  }
}

async function release(file: number): Promise<void> {
  try {
    for (let size = fstatSync(file).size - RELEASED_BYTES; size > 0; size -= RELEASED_BYTES) {
      ftruncateSync(file, size);
      await realDelay(RELEASE_PAUSE_MS);
    }
  } catch {
    // The rest is removed at once, which only takes longer.
  } finally {
    closeSync(file);
  }
}

function isRunning(pid: number): boolean {
  if (pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user cannot be signalled, but exists.
    return errorCode(error) === "EPERM";
  }
}
