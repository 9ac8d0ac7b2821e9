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
  /** Whether what is there is replaced. */
  readonly force: boolean;
  /** When this is, epoch milliseconds. */
  readonly now: number;
  /** Ends it: what was written so far is removed. */
  readonly signal: AbortSignal;
  readonly onCopied: (bytes: number, total: number) => void;
}

/** What SQLite may have left next to a database file. */
export const SIDE_FILES = ["-wal", "-shm", "-journal"] as const;

/**
 * A large file is returned to the file system piece by piece: in one step, a gigabyte holds up every fsync of the
 * machine for half a second.
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

/** When a scheduled backup was made, epoch milliseconds; null for a file that is none, such as one of a 13th month. */
export function timeOfScheduled(name: string): number | null {
  return SCHEDULED.test(name) ? parseDateTime(name.replace(SCHEDULED, "$1-$2-$3T$4:$5:$6Z")) : null;
}

/** An open file. It is closed at the end of the block that declares it with `using`. */
export function openFile(path: string, flags: "r" | "r+" | "wx"): Disposable & { readonly file: number } {
  const file = openSync(path, flags, 0o600);
  return { file, [Symbol.dispose]: () => closeSync(file) };
}

/** Text of an error of the file system or of SQLite, for a line that an operator reads. */
export function plainText(error: unknown): string {
  const code = errorCode(error);
  if (code === "ENOSPC" || code === "SQLITE_FULL") return "the disk is full";
  if (code === "EFBIG") return "the file would be larger than permitted here";
  return error instanceof Error ? error.message : String(error);
}

/** The name of a file that is being made for `path`, next to it, so that it can take its place in one step. */
export function temporaryName(path: string): string {
  return temporaryNameOf(path, process.pid);
}

/** The name that another process gives it. */
export function temporaryNameOf(path: string, pid: number): string {
  return `${path}.${pid}.partial`;
}

/**
 * Removes a temporary file and what SQLite left next to it. Never fails: what cannot be removed now is left to the next
 * one, and why it is removed is what the operator must hear of.
 */
export async function removeTemporary(path: string): Promise<void> {
  try {
    for (const side of SIDE_FILES) rmSync(`${path}${side}`, { force: true });
    await removeGently(path);
  } catch {
    // See above.
  }
}

/**
 * Removes what earlier processes, which were killed, have left of theirs in a folder. `isOurs` is requested the name
 * of the file that was being made.
 */
export async function removeLeftovers(folder: string, isOurs: (name: string) => boolean): Promise<void> {
  for (const name of readdirSync(folder)) {
    const [, made, pid] = /^(.+)\.(\d{1,10})\.partial(?:-wal|-shm|-journal)?$/.exec(name) ?? [];
    if (made === undefined || !isOurs(made) || isRunning(Number(pid))) continue;
    await removeGently(join(folder, name));
  }
}

/**
 * Puts a file in the place of another in one step, and makes it last. What was there is returned gently.
 *
 * @throws Error when nothing was done; StartupError when it was, but the disk does not confirm it.
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

/** Removes a file, if it exists. Its name is removed immediately. */
export async function removeGently(path: string): Promise<void> {
  const file = openIfFile(path);
  rmSync(path, { force: true });
  if (file !== null) await release(file);
}

/** @throws StartupError when a path names no folder. */
export function assertFolder(path: string): void {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) throw new StartupError(`There is no folder ${path}.`);
  if (!status.isDirectory()) throw new StartupError(`${path} is not a folder.`);
}

/**
 * For giving back: null where there is no file of one name alone, or it may not be changed. What a symbolic link points
 * to has another name, which stays, and so must its content.
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
    // Then the rest is removed in one step. The purpose of the slices is fulfilled already.
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
