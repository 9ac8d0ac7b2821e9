import { existsSync, fstatSync, realpathSync, rmdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import type { RestoreStep } from "../kernel/data/backup-check.ts";
import { StartupError } from "../kernel/errors.ts";
import { obtainMasterKey, opensMark } from "../kernel/secrets/master-key.ts";
import { Database } from "../kernel/storage/database.ts";
import { examineDatabase, inspectDatabase } from "../kernel/storage/examine.ts";
import { lockFolder } from "../kernel/storage/folder-lock.ts";
import { dataFilesOf, makeFolder, syncPath, writeAll } from "../kernel/storage/folders.ts";
import { migrate } from "../kernel/storage/migrate.ts";
import { OfflineDatabase } from "../kernel/storage/offline.ts";
import { forgetPosition } from "../kernel/storage/replication/position.ts";
import { leaveRestoreMark } from "../kernel/storage/restored.ts";
import { realDelay } from "../kernel/time/clock.ts";
import { isoTime, isoTimeOrNull } from "../kernel/time/date-time.ts";
import {
  type CopyOrder,
  openFile,
  plainText,
  removeLeftovers,
  removeTemporary,
  replaceFile,
  temporaryName,
} from "./files.ts";
import { discardSecondName, isDatabaseThere, moveAside } from "./replaced.ts";
import { hashOf, readSeal, type Seal } from "./seal.ts";
import { integrityProblems } from "./verification.ts";

/** Options of a restore. */
export interface RestoreOrder extends CopyOrder {
  /** Where the file is from, if it is a temporary one: an archive, and the time of its last change. */
  readonly origin?: { readonly name: string; readonly at: number };
  /** The configured master key; null for the one in the data folder. */
  readonly masterKey: string | null;
  /** Steps that change the copy and report their effects. */
  readonly steps: readonly RestoreStep[];
  /** Further steps, which remove what the lost master key of the backup has sealed; null where that key is available. */
  readonly forgetSecrets: readonly RestoreStep[] | null;
  readonly onChecked: () => void;
  /** Called before the database at this path is replaced: what else the folder says of it is not true afterwards. */
  readonly onReplacing?: (databasePath: string) => void;
}

/** The result of a restore. */
export interface RestoreOutcome {
  /** The last line of the backup; null for a database that was copied by other means. */
  readonly seal: Seal | null;
  /** New path of the replaced database; null if there was none. */
  readonly aside: string | null;
  /** Why the server will not start with its present master key; null if the key is right. */
  readonly keyProblem: string | null;
  /** The lines of all steps. */
  readonly report: readonly string[];
}

/**
 * Replaces the database of a data folder by a backup. A copy is checked before anything is changed, and then replaces the
 * old database atomically: if this process is killed, one of the two is in place, complete.
 *
 * @throws StartupError with one line that describes the problem; nothing was changed.
 */
export async function restore(order: RestoreOrder): Promise<RestoreOutcome> {
  const { file, folder, signal } = order;
  const seal = await assertRestorable(file);
  const madeFolder = makeFolder(folder);
  let done = false;
  try {
    using released = new DisposableStack();
    released.defer(lockFolder(dataFilesOf(folder).lock));
    const outcome = await restoreLocked(order, seal);
    done = true;
    return outcome;
  } catch (error) {
    if (signal.aborted && !done) throw new StartupError("The restore was interrupted. Nothing was changed.");
    if (error instanceof StartupError) throw error;
    throw new StartupError(
      `${file} could not be restored to ${folder}: ${plainText(error)}. Nothing was changed.`,
    );
  } finally {
    if (madeFolder && !done) removeFolder(folder);
  }
}

async function restoreLocked(order: RestoreOrder, seal: Seal | null): Promise<RestoreOutcome> {
  const { file, folder, now } = order;
  const path = databasePath(folder);
  const isThere = isDatabaseThere(path);
  if (existsSync(path) && path === realpathSync(file))
    throw new StartupError(`${file} is the database of ${folder} itself.`);
  if (isThere && !order.force)
    throw new StartupError(
      `There is already a database in ${folder}. With --force it is renamed, and the backup is put in its place.`,
    );
  const temporary = temporaryName(path);
  let aside: string | null = null;
  try {
    await removeLeftovers(dirname(path), (name) => name === basename(path));
    const mark = await copyChecked(order, seal, temporary);
    const problem = keyProblem(mark, order);
    const report = prepare(temporary, order, seal, problem);
    const facts = { keyProblem: order.forgetSecrets === null ? problem : null, report };
    order.onReplacing?.(dataFilesOf(folder).database);
    if (isThere) aside = moveAside(path, now);
    await replaceFile(path, temporary);
    return { seal, aside, ...facts };
  } catch (error) {
    if (aside !== null) discardSecondName(path, aside);
    await removeTemporary(temporary);
    throw error;
  }
}

/** The path of the database itself, if its name is a symbolic link: SQLite writes the log next to the file. */
function databasePath(folder: string): string {
  const path = dataFilesOf(folder).database;
  return existsSync(path) ? realpathSync(path) : path;
}

/** The checks that need no copy. @throws StartupError */
async function assertRestorable(file: string): Promise<Seal | null> {
  const status = statSync(file, { throwIfNoEntry: false });
  if (status === undefined) throw new StartupError(`There is no file ${file}.`);
  if (!status.isFile()) throw new StartupError(`${file} is not a file.`);
  const seal = readSeal(file);
  if (seal !== null) return seal;
  const walBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (walBytes > 0) {
    throw new StartupError(
      `${file} has a write-ahead log next to it, so it is the file of a server, not a backup. Back up its folder with ninefold backup.`,
    );
  }
  inspectDatabase(file, MIGRATIONS);
  using db = OfflineDatabase.read(file);
  if (status.size === 0 || status.size % db.pageBytes !== 0)
    throw damaged(file, "it is truncated, or its end was changed");
  return null;
}

/**
 * Copies the database and verifies its digest and its integrity. Returns the sealed value that identifies its master key.
 * @throws StartupError if it is damaged.
 */
async function copyChecked(
  order: RestoreOrder,
  seal: Seal | null,
  temporary: string,
): Promise<Uint8Array | null> {
  const { file } = order;
  const sha256 = await copyDigested(order, seal, temporary);
  if (seal !== null && sha256 !== seal.sha256)
    throw damaged(file, "its content has changed (the SHA-256 differs)");
  try {
    inspectDatabase(temporary, MIGRATIONS);
  } catch (error) {
    // The message names the file of the operator.
    if (error instanceof StartupError) throw new StartupError(error.message.replaceAll(temporary, file));
    throw error;
  }
  order.onChecked();
  using db = OfflineDatabase.read(temporary);
  const [problem] = integrityProblems(db);
  if (problem !== undefined) throw damaged(file, problem);
  return examineDatabase(temporary, MIGRATIONS).masterKeyMark;
}

async function copyDigested(
  { file, signal, onCopied }: RestoreOrder,
  seal: Seal | null,
  temporary: string,
): Promise<string> {
  using from = openFile(file, "r");
  rmSync(temporary, { force: true });
  using to = openFile(temporary, "wx");
  const total = seal?.bytes ?? fstatSync(from.file).size;
  const hash = await hashOf(from.file, total, async (slice, at) => {
    writeAll(to.file, slice, at);
    onCopied(at + slice.length, total);
    await realDelay(0);
    signal.throwIfAborted();
  });
  return hash.digest("hex");
}

/** Runs the steps on the copy, marks it as restored, and syncs it. Returns the lines of the steps. */
function prepare(path: string, order: RestoreOrder, seal: Seal | null, keyProblem: string | null): string[] {
  const { file, steps, forgetSecrets, now, origin } = order;
  const createdAt = origin?.at ?? seal?.createdAt ?? null;
  const report: string[] = [];
  if (forgetSecrets !== null) prepareNewKey(path, order, keyProblem);
  {
    using db = OfflineDatabase.change(path);
    // The steps read it.
    leaveRestoreMark(db, {
      file: origin?.name ?? basename(file),
      backup_created_at: isoTimeOrNull(createdAt),
      restored_at: isoTime(now),
    });
    for (const step of [...steps, ...(forgetSecrets ?? [])]) report.push(...step(db, now));
    // What was changed here is in no archive and no commit log.
    forgetPosition(db);
    db.useWriteAheadLog();
  }
  syncPath(path);
  return report;
}

/**
 * Brings the copy to the present schema, which the further steps know, and makes sure of a master key for it: the present
 * one, or a new one.
 */
function prepareNewKey(
  path: string,
  { folder, masterKey: configured }: RestoreOrder,
  keyProblem: string | null,
): void {
  if (keyProblem === null) {
    throw new StartupError(
      "The master key of this backup is available, so nothing needs to be removed. Omit --without-master-key. Nothing was changed.",
    );
  }
  const db = new Database(path, "normal");
  try {
    migrate(db, MIGRATIONS);
  } finally {
    db.close();
  }
  obtainMasterKey({
    configured,
    path: dataFilesOf(folder).masterKey,
    databaseExists: false,
    durability: "full",
  });
}

function keyProblem(mark: Uint8Array | null, { folder, masterKey: configured }: RestoreOrder): string | null {
  const path = dataFilesOf(folder).masterKey;
  if (configured === null && !existsSync(path))
    return `There is no master key in ${folder}. Put the master.key of the server that was backed up there, or set NINEFOLD_MASTER_KEY, before the start.`;
  try {
    const key = obtainMasterKey({ configured, path, databaseExists: true, durability: "full" });
    if (mark === null || opensMark(key, mark)) return null;
  } catch (error) {
    return plainText(error);
  }
  const which = configured === null ? path : "NINEFOLD_MASTER_KEY";
  return `${which} is not the key of this backup. Before the start, replace it by the master.key of the server that was backed up; store the present one with the database that it belongs to.`;
}

function damaged(file: string, how: string): StartupError {
  return new StartupError(`${file} is damaged: ${how}. Nothing was changed.`);
}

function removeFolder(folder: string): void {
  const { lock } = dataFilesOf(folder);
  for (const path of [lock, `${lock}-journal`]) rmSync(path, { force: true });
  try {
    rmdirSync(folder);
  } catch {
    // It contains other files by now.
  }
}
