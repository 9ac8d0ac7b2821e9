import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname } from "node:path";
import { readWhole, syncFolder, writeAll, writeDurably } from "../kernel/storage/folders.ts";
import { cutLastCommit, OfflineDatabase, settleFile } from "../kernel/storage/offline.ts";
import { positionIn, type StoredPosition } from "../kernel/storage/replication/position.ts";

/**
 * What a follower does with its data folder. Files are addressed by path, open ones by a number. Every call may throw when
 * the disk fails.
 */
export interface Disk {
  exists(path: string): boolean;
  /** Names of the files in a folder. */
  list(folder: string): string[];
  /** The text of a file; null without one. */
  readText(path: string): string | null;
  /** Replaces a file, complete or not at all. It is durable when this returns. */
  writeText(path: string, text: string): void;
  /** Opens a file to change it. `create`: an empty one, in place of what is there. */
  open(path: string, create: boolean): number;
  size(file: number): number;
  /** Fills the bytes from a place on. Returns how many there were. */
  read(file: number, bytes: Uint8Array, at: number): number;
  write(file: number, bytes: Uint8Array, at: number): void;
  truncate(file: number, bytes: number): void;
  /** What was written before is durable when this returns. */
  sync(file: number): void;
  close(file: number): void;
  /** Gives a file the name of another one, which is replaced. It is durable when this returns. */
  rename(from: string, to: string): void;
  /** Removes a file, if it is there. */
  remove(path: string): void;
  /** Moves a write-ahead log into its database, as the next start would. */
  settle(database: string): void;
  /** The position that a database stores, with its log; null without one. Changes nothing. */
  positionIn(database: string): StoredPosition | null;
  /** Removes the last commit from a database's log. False: the log has none, or it was moved into the database. */
  cutLastCommit(database: string): boolean;
}

/** The disk of this machine. */
export const LOCAL_DISK: Disk = {
  exists: existsSync,
  list: (folder) => readdirSync(folder),
  readText: (path) => (existsSync(path) ? readFileSync(path, "utf8") : null),
  writeText: writeDurably,
  open: (path, create) => {
    if (create) rmSync(path, { force: true });
    return openSync(path, create ? "wx+" : "r+", 0o600);
  },
  size: (file) => fstatSync(file).size,
  read: readWhole,
  write: writeAll,
  truncate: ftruncateSync,
  sync: fdatasyncSync,
  close: closeSync,
  rename: (from, to) => {
    renameSync(from, to);
    syncFolder(dirname(to));
  },
  remove: (path) => rmSync(path, { force: true }),
  settle: settleFile,
  positionIn: (database) => {
    using db = existsSync(`${database}-wal`)
      ? OfflineDatabase.readWithLog(database)
      : OfflineDatabase.read(database);
    return positionIn(db);
  },
  cutLastCommit,
};
