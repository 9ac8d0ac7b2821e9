import { existsSync, fstatSync, fsyncSync, lstatSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import type { BackupCheck } from "../kernel/data/backup-check.ts";
import { StartupError } from "../kernel/errors.ts";
import { assertLogWhole, examineDatabase, isDatabaseThere } from "../kernel/storage/examine.ts";
import { isFolderLocked } from "../kernel/storage/folder-lock.ts";
import { dataFilesOf } from "../kernel/storage/folders.ts";
import { copyLiveDatabase } from "../kernel/storage/live-copy.ts";
import { monotonicMs, realDelay } from "../kernel/time/clock.ts";
import {
  assertFolder,
  type CopyOrder,
  openFile,
  plainText,
  removeLeftovers,
  removeTemporary,
  replaceFile,
  SIDE_FILES,
  temporaryName,
} from "./files.ts";
import { hashOf, writeSeal } from "./seal.ts";
import { type CheckResult, type OnChecked, verifyCopy } from "./verification.ts";

/** While a server runs, the pause after each slice, as a multiple of the slice's duration: the server gets 80 % of the disk. */
const PAUSE_FACTOR = 4;
/** Slices between two checks whether a server runs. */
const SLICES_PER_LOOK = 16;

/** Options of a backup. */
export interface BackupOrder extends CopyOrder {
  /** Checks of the copy before it becomes a backup; null: none. */
  readonly checks: readonly BackupCheck[] | null;
  readonly onChecked: (what: string, rows: number) => void;
}

/** A finished backup. */
export interface BackupFile {
  readonly bytes: number;
  /** SHA-256 of the whole file, lower-case hex, as `sha256sum` prints it. */
  readonly sha256: string;
}

/** The result of a backup. */
export interface BackupOutcome {
  /** The results of the checks, if it was to be verified. */
  readonly checks: readonly CheckResult[];
  /** Null: a check has failed, and no file was made. */
  readonly file: BackupFile | null;
}

/**
 * Copies the database of a data folder into one file, whether its server runs or not. The file appears complete or not at
 * all, also if this process is killed. Not for the server's own process: see {@link copyLiveDatabase}.
 *
 * @throws StartupError with one line that describes the problem.
 */
export async function backUp(order: BackupOrder): Promise<BackupOutcome> {
  const named = dataFilesOf(order.folder).database;
  if (!existsSync(named)) throw new StartupError(`There is no database in ${order.folder} (no ninefold.db).`);
  // SQLite keeps the log where the file itself is, not where a symbolic link to it is.
  const source = realpathSync(named);
  assertWritable(order, source);
  const temporary = temporaryName(order.file);
  try {
    await removeLeftovers(dirname(order.file), (name) => name === basename(order.file));
    return await writeBackup(order, source, temporary);
  } catch (error) {
    await removeTemporary(temporary);
    if (order.signal.aborted) throw new StartupError("The backup was interrupted. Nothing was written.");
    if (error instanceof StartupError) throw error;
    throw new StartupError(`The backup could not be written to ${order.file}: ${plainText(error)}.`);
  }
}

async function writeBackup(order: BackupOrder, source: string, temporary: string): Promise<BackupOutcome> {
  const { file, signal } = order;
  const pace = pacing(order);
  await copyLiveDatabase(source, temporary, async (copied, total) => {
    order.onCopied(copied, total);
    await pace();
  });
  const onChecked: OnChecked = async (what, rows) => {
    order.onChecked(what, rows);
    await breathe(signal);
  };
  const checks = order.checks === null ? [] : await verifyCopy(temporary, order.checks, onChecked);
  if (checks.some(({ problems }) => problems.count > 0)) {
    await removeTemporary(temporary);
    return { checks, file: null };
  }
  const sealed = await sealFile(temporary, order.now, pacing(order));
  // Checked again: it may have been created since.
  if (!order.force && existsSync(file)) throw alreadyThere(file);
  await replaceFile(file, temporary);
  return { checks, file: sealed };
}

/** Computes the digest, appends the last line, and syncs the file. */
async function sealFile(path: string, now: number, pace: () => Promise<void>): Promise<BackupFile> {
  using opened = openFile(path, "r+");
  const { file } = opened;
  const { size } = fstatSync(file);
  const hash = await hashOf(file, size, pace);
  const line = writeSeal(file, { createdAt: now, bytes: size, sha256: hash.copy().digest("hex") });
  fsyncSync(file);
  return { bytes: size + line.length, sha256: hash.update(line).digest("hex") };
}

/** Called after each slice: stops if aborted, and pauses to leave the disk to the server. */
function pacing({ folder, signal }: BackupOrder): () => Promise<void> {
  const { lock } = dataFilesOf(folder);
  let sliceBegan = monotonicMs();
  let slices = 0;
  let isServed = isFolderLocked(lock);
  return async () => {
    slices += 1;
    // A server may have started meanwhile, or stopped.
    if (slices % SLICES_PER_LOOK === 0) isServed = isFolderLocked(lock);
    if (isServed) await realDelay((monotonicMs() - sliceBegan) * PAUSE_FACTOR);
    await breathe(signal);
    sliceBegan = monotonicMs();
  };
}

/** Lets a signal be handled. @throws the reason of the abort. */
async function breathe(signal: AbortSignal): Promise<void> {
  await realDelay(0);
  signal.throwIfAborted();
}

function assertWritable({ folder, file, force }: BackupOrder, source: string): void {
  if (!isDatabaseThere(source)) throw new StartupError(`There is no database in ${folder} (no ninefold.db).`);
  // Without a server, copying ends with a log that SQLite discards after a damaged frame, without an error.
  if (!isFolderLocked(dataFilesOf(folder).lock)) assertLogWhole(source);
  // An interrupted first start leaves an empty file.
  if (examineDatabase(source, MIGRATIONS).schema === 0) throw new StartupError(`${source} is empty.`);
  assertFolder(dirname(resolve(file)));
  const there = statSync(file, { throwIfNoEntry: false });
  if (there?.isDirectory() === true) throw new StartupError(`${file} is a folder: name a file in it.`);
  if (isOfDataFolder(file, folder, source)) {
    throw new StartupError(`${file} is a file of the data folder itself: set another name.`);
  }
  // Renaming would replace a link itself, and /dev/stdout as well, which cannot be intended.
  if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw new StartupError(`${file} is a symbolic link: name the file itself.`);
  if (there !== undefined && !there.isFile()) throw new StartupError(`${file} is not a file.`);
  if (there !== undefined && !force) throw alreadyThere(file);
}

/** Whether a file belongs to the data folder, so that a backup must not replace it. */
function isOfDataFolder(file: string, folder: string, source: string): boolean {
  const real = existsSync(file)
    ? realpathSync(file)
    : join(realpathSync(dirname(resolve(file))), basename(file));
  const dataFiles = Object.values(dataFilesOf(realpathSync(folder)));
  return [source, ...SIDE_FILES.map((side) => `${source}${side}`), ...dataFiles].includes(real);
}

function alreadyThere(file: string): StartupError {
  return new StartupError(`${file} exists already. --force replaces it.`);
}
