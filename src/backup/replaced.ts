import {
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { StartupError } from "../kernel/errors.ts";
import { syncFolder, syncPath } from "../kernel/storage/folders.ts";
import { scanLog } from "../kernel/storage/log-scan.ts";
import { settleFile } from "../kernel/storage/offline.ts";
import { isDamage } from "../kernel/storage/storage-failures.ts";
import { compactTime, openFile, plainText, SIDE_FILES } from "./files.ts";

const DATABASE_MAGIC = Buffer.from("SQLite format 3\0");
/** The lowest bit of the last byte is the byte order of the checksums. */
const LOG_MAGIC = Buffer.from([0x37, 0x7f, 0x06]);

/** Whether a database or one of SQLite's files next to it exists. */
export function isDatabaseThere(path: string): boolean {
  return ["", ...SIDE_FILES].some((side) => existsSync(`${path}${side}`));
}

/**
 * Gives the database that will be replaced a second name, which is returned. Until it is replaced, it also keeps its
 * first name.
 *
 * Its log is moved into the file first, as the next start would do, because a file and its log cannot be replaced in one
 * step. If SQLite cannot read the file, the log is renamed unchanged: no start could have read it either.
 *
 * @throws StartupError if the disk does not permit it; the old database is unchanged.
 */
export function moveAside(path: string, now: number): string {
  const aside = freeName(path, now);
  try {
    if (existsSync(path)) {
      takeUpLog(path);
      link(path, aside);
    }
    for (const side of SIDE_FILES) {
      if (existsSync(`${path}${side}`)) renameSync(`${path}${side}`, `${aside}${side}`);
    }
    syncFolder(dirname(path));
    return aside;
  } catch (error) {
    discardSecondName(path, aside);
    throw new StartupError(`The old database could not be renamed to ${aside}: ${plainText(error)}.`);
  }
}

/**
 * Removes the second name of a database that was not replaced: a server writes the log next to one of the names, and a
 * reader of the other name would miss it.
 */
export function discardSecondName(path: string, aside: string): void {
  try {
    const [current, former] = [path, aside].map((name) =>
      lstatSync(name, { bigint: true, throwIfNoEntry: false }),
    );
    if (current !== undefined && current.ino === former?.ino && current.dev === former.dev) rmSync(aside);
  } catch {
    // The first error is the one to report.
  }
}

/** Moves the log into the file, unless one of them is damaged. */
function takeUpLog(path: string): void {
  // SQLite would discard a log with an unknown header,
  if (!beginsWith(path, DATABASE_MAGIC) || !beginsWith(`${path}-wal`, LOG_MAGIC)) return;
  // and one whose database is empty, and the commits after a damaged frame.
  if (!isLogOf(path)) return;
  try {
    settleFile(path);
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
}

/** Whether SQLite would apply the whole log next to a file. */
function isLogOf(path: string): boolean {
  const scan = scanLog(`${path}-wal`);
  return scan === null || (statSync(path).size > 0 && scan.damage === null);
}

/** Whether a file begins with these bytes. A missing or empty file counts as correct: it has nothing to lose. */
function beginsWith(path: string, magic: Uint8Array): boolean {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return true;
  using opened = openFile(path, "r");
  const bytes = Buffer.alloc(magic.length);
  readSync(opened.file, bytes, 0, magic.length, 0);
  return bytes.equals(magic);
}

function link(path: string, aside: string): void {
  try {
    linkSync(path, aside);
  } catch {
    // Not every file system has hard links.
    copyFileSync(path, aside);
    syncPath(aside);
  }
}

/** `ninefold.db.replaced-20261121T043000Z`, with a number appended if that exists. */
function freeName(path: string, now: number): string {
  const base = `${path}.replaced-${compactTime(now)}`;
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!isDatabaseThere(name)) return name;
  }
}
