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
import { isDamage } from "../kernel/storage/database.ts";
import { syncFolder, syncPath } from "../kernel/storage/folders.ts";
import { scanLog } from "../kernel/storage/log-scan.ts";
import { settleFile } from "../kernel/storage/offline.ts";
import { compactTime, openFile, plainText, SIDE_FILES } from "./files.ts";

const DATABASE_MAGIC = Buffer.from("SQLite format 3\0");
/** Of its four bytes the last one's lowest bit shows the order of bytes in checksums. */
const LOG_MAGIC = Buffer.from([0x37, 0x7f, 0x06]);

/** Whether a database, or what SQLite may have left of one, is there. */
export function isDatabaseThere(path: string): boolean {
  return ["", ...SIDE_FILES].some((side) => existsSync(`${path}${side}`));
}

/**
 * Saves the database that is about to be replaced under another name, so that nothing next to it is taken
 * for the new one's. Until the new one is put in its place, the old one stays where it is. Returns its other name.
 *
 * A log next to it is moved into the file first, as the next start would do: file and log cannot be exchanged in one
 * step, and a file without its log is not the old database. Only when SQLite cannot read the file is the log put aside
 * as it is: then no start could have read it either.
 *
 * @throws StartupError when the disk does not permit it; the old database is as it was.
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
    throw new StartupError(`The old database could not be kept as ${aside}: ${plainText(error)}.`);
  }
}

/**
 * Takes the other name away from a database that was not replaced after all: a server that writes to a file with two
 * names keeps its log under one of them, and anyone who opens the other one does not see it.
 */
export function discardSecondName(path: string, aside: string): void {
  try {
    const [one, other] = [path, aside].map((name) =>
      lstatSync(name, { bigint: true, throwIfNoEntry: false }),
    );
    if (one !== undefined && one.ino === other?.ino && one.dev === other.dev) rmSync(aside);
  } catch {
    // It is said already what went wrong.
  }
}

/** Leaves a file that is whole by itself, unless it is damaged. */
function takeUpLog(path: string): void {
  // SQLite would throw away a log that it does not recognise.
  if (!beginsWith(path, DATABASE_MAGIC) || !beginsWith(`${path}-wal`, LOG_MAGIC)) return;
  // Nor would it keep one whose database is empty, or what stands behind a damaged place.
  if (!isLogOf(path)) return;
  try {
    settleFile(path);
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
}

/** Whether SQLite would take up all of the log that lies next to a file. */
function isLogOf(path: string): boolean {
  const scan = scanLog(`${path}-wal`);
  return scan === null || (statSync(path).size > 0 && scan.damage === null);
}

/** Whether a file begins as it must. One that is empty or not there has nothing to lose. */
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
    // Not every file system knows two names of one file.
    copyFileSync(path, aside);
    syncPath(aside);
  }
}

/** `ninefold.db.replaced-20261121T043000Z`, with a number behind it when that is taken. */
function freeName(path: string, now: number): string {
  const base = `${path}.replaced-${compactTime(now)}`;
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!isDatabaseThere(name)) return name;
  }
}
