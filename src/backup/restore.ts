import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import { realDelay } from "../kernel/clock.ts";
import { StartupError } from "../kernel/errors.ts";
import { obtainMasterKey, opensMark } from "../kernel/secrets/master-key.ts";
import { inspectDatabase } from "../kernel/storage/examine.ts";
import { lockFolder } from "../kernel/storage/folder-lock.ts";
import { dataFilesOf, makeFolder } from "../kernel/storage/folders.ts";
import { SLICE_BYTES } from "../kernel/storage/live-copy.ts";
import { writeAll } from "../kernel/storage/log-file.ts";
import { OfflineDatabase } from "../kernel/storage/offline.ts";
import { plainText, removeLeftovers, removeTemporary, replaceFile, temporaryName } from "./files.ts";
import { discardSecondName, isDatabaseThere, keepAside } from "./replaced.ts";
import { type ChainEnd, RestoredStore } from "./restored-store.ts";
import { readSeal, type Seal } from "./seal.ts";
import { integrityProblems } from "./verification.ts";

/** What is to be restored, and where to. */
export interface RestoreOrder {
  readonly file: string;
  /** The data folder; made when it is not there. */
  readonly folder: string;
  /** Whether a database that is there is replaced. */
  readonly force: boolean;
  /** A master key from outside instead of the folder's file. */
  readonly masterKey: string | null;
  /** When this is, epoch milliseconds. */
  readonly now: number;
  /** Ends it: nothing was changed then. */
  readonly signal: AbortSignal;
  readonly onCopied: (bytes: number, total: number) => void;
  readonly onChecked: () => void;
}

/** What was restored, for the operator to know. */
export interface RestoreOutcome {
  /** Null for a database that was copied by other means. */
  readonly seal: Seal | null;
  /** Where the old database is now; null when there was none. */
  readonly aside: string | null;
  /** Why the server will not start with the master key that it would find; null when it fits. */
  readonly keyProblem: string | null;
  /** Fencing tokens go on above this. */
  readonly fencingAbove: number;
  readonly chains: { readonly named: readonly ChainEnd[]; readonly count: number };
  readonly waitingDeliveries: number;
}

/**
 * Puts a backup in the place of a data folder's database. The copy is checked before anything is touched, and takes
 * the place of the old database in one step: whenever this process is killed, one of the two is there, whole.
 *
 * @throws StartupError with one line that says what is in the way; nothing was changed then.
 */
export async function restore(order: RestoreOrder): Promise<RestoreOutcome> {
  const { file, folder, signal } = order;
  const seal = await assertRestorable(file);
  const madeFolder = makeFolder(folder);
  let done = false;
  try {
    const release = lockFolder(dataFilesOf(folder).lock);
    try {
      const outcome = await restoreLocked(order, seal);
      done = true;
      return outcome;
    } finally {
      release();
    }
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
      `There is a database in ${folder} already. --force keeps it aside and puts the backup in its place.`,
    );
  const temporary = temporaryName(path);
  let aside: string | null = null;
  try {
    await removeLeftovers(dirname(path), (name) => name === basename(path));
    await copyChecked(order, seal, temporary);
    const facts = prepare(temporary, order);
    if (isThere) aside = keepAside(path, now);
    await replaceFile(path, temporary);
    return { seal, aside, ...facts };
  } catch (error) {
    if (aside !== null) discardSecondName(path, aside);
    await removeTemporary(temporary);
    throw error;
  }
}

/**
 * Where the database lies: a symbolic link leads to another disk, say, where SQLite keeps its log as well. There the old
 * one is kept, and the new one put.
 */
function databasePath(folder: string): string {
  const path = dataFilesOf(folder).database;
  return existsSync(path) ? realpathSync(path) : path;
}

/** What can be told without copying. @throws StartupError */
async function assertRestorable(file: string): Promise<Seal | null> {
  const status = statSync(file, { throwIfNoEntry: false });
  if (status === undefined) throw new StartupError(`There is no file ${file}.`);
  if (!status.isFile()) throw new StartupError(`${file} is not a file.`);
  const seal = readSeal(file);
  if (seal !== null) return seal;
  const walBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (walBytes > 0) {
    throw new StartupError(
      `${file} has a write-ahead log beside it, so it is no backup but a server's own file. Make a backup of its folder with ninefold backup.`,
    );
  }
  inspectDatabase(file, MIGRATIONS);
  const pageBytes = pageBytesOf(file);
  if (status.size === 0 || status.size % pageBytes !== 0)
    throw damaged(file, "it is cut off, or its end was changed");
  return null;
}

/** Copies the database, and compares it with its digest, and SQLite's own check. @throws StartupError when it is damaged */
async function copyChecked(order: RestoreOrder, seal: Seal | null, temporary: string): Promise<void> {
  const { file } = order;
  const sha256 = await copyDigested(order, seal, temporary);
  if (seal !== null && sha256 !== seal.sha256)
    throw damaged(file, "its bytes are not those that were written (their SHA-256 is another)");
  try {
    inspectDatabase(temporary, MIGRATIONS);
  } catch (error) {
    // The operator knows the file by its own name.
    if (error instanceof StartupError) throw new StartupError(error.message.replaceAll(temporary, file));
    throw error;
  }
  order.onChecked();
  const db = OfflineDatabase.read(temporary);
  try {
    const [problem] = integrityProblems(db);
    if (problem !== undefined) throw damaged(file, problem);
  } finally {
    db.close();
  }
}

async function copyDigested(
  { file, signal, onCopied }: RestoreOrder,
  seal: Seal | null,
  temporary: string,
): Promise<string> {
  const hash = createHash("sha256");
  const from = openSync(file, "r");
  try {
    rmSync(temporary, { force: true });
    const to = openSync(temporary, "wx", 0o600);
    try {
      const total = seal?.bytes ?? fstatSync(from).size;
      const slice = Buffer.allocUnsafe(SLICE_BYTES);
      for (let copied = 0; copied < total; ) {
        const size = readSync(from, slice, 0, Math.min(SLICE_BYTES, total - copied), copied);
        if (size === 0) break;
        const bytes = slice.subarray(0, size);
        hash.update(bytes);
        writeAll(to, bytes, copied);
        copied += size;
        onCopied(copied, total);
        await realDelay(0);
        signal.throwIfAborted();
      }
      return hash.digest("hex");
    } finally {
      closeSync(to);
    }
  } finally {
    closeSync(from);
  }
}

type Facts = Omit<RestoreOutcome, "seal" | "aside">;

/** Changes in the copy what must not go back, reads what the operator should know, and syncs it. */
function prepare(path: string, { folder, masterKey, now }: RestoreOrder): Facts {
  const db = OfflineDatabase.change(path);
  let facts: Facts;
  try {
    const store = new RestoredStore(db);
    const fencingAbove = fencingFloor(store.fencingReservedThrough(), now);
    store.setFencingReservedThrough(fencingAbove);
    facts = {
      fencingAbove,
      keyProblem: keyProblem(store.masterKeyMark(), folder, masterKey),
      chains: store.chains(),
      waitingDeliveries: store.waitingDeliveries(),
    };
    store.useWriteAheadLog();
  } finally {
    db.close();
  }
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return facts;
}

function keyProblem(mark: Uint8Array | null, folder: string, given: string | null): string | null {
  const path = dataFilesOf(folder).masterKey;
  if (given === null && !existsSync(path))
    return `There is no master key in ${folder}. Put the master.key of the server that was backed up there, or set NINEFOLD_MASTER_KEY, before the start.`;
  try {
    const key = obtainMasterKey({ given, path, databaseExists: true });
    if (mark === null || opensMark(key, mark)) return null;
  } catch (error) {
    return plainText(error);
  }
  const which = given === null ? path : "NINEFOLD_MASTER_KEY";
  return `${which} is not the key that this backup was made with. Put that server's master.key there before the start, and keep the present one with the database that it belongs to.`;
}

function pageBytesOf(path: string): number {
  const db = OfflineDatabase.read(path);
  try {
    return db.pageBytes;
  } finally {
    db.close();
  }
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
    // Something else is in it by now.
  }
}

/**
 * No server hands out as many fencing tokens in a millisecond, for any length of time: each is an answer over the
 * network and a row on the disk, and a thousandth of this is a lot.
 */
export const TOKENS_PER_MS_MAX = 1_000;
/** For a clock that is behind the tokens: more than a server that is always busy hands out in weeks. */
export const TOKENS_BEYOND_BACKUP = 2 ** 36;

/**
 * Where fencing tokens go on after a restore: above every token that was ever handed out, also after the backup, and
 * after earlier restores of the same backup.
 *
 * Nobody knows how many tokens were handed out since the backup was made, but since 1970 there cannot have been more
 * than {@link TOKENS_PER_MS_MAX} in each millisecond. A count from there rises with the time as fast as tokens can, so
 * a later restore always begins above an earlier one. It stays within 2^53 until the year 2255. Only when the machine's
 * clock is behind does it not do, and a wide step from the backup's own figure has to.
 */
export function fencingFloor(reservedThrough: number, now: number): number {
  const since1970 = now * TOKENS_PER_MS_MAX;
  const floor = since1970 > reservedThrough ? since1970 : reservedThrough + TOKENS_BEYOND_BACKUP;
  return Math.min(floor, Number.MAX_SAFE_INTEGER);
}
