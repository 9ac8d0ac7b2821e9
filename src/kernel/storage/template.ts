import { fsyncSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { Database, type Durability } from "./database.ts";
import { openFile } from "./folders.ts";
import { type Migration, migrate } from "./migrate.ts";

/** A template is a mark for each block of its database, {@link END}, and the blocks that are not empty. */
const BLOCK_BYTES = 512;
const EMPTY = 0;
const FILLED = 1;
const END = 2;
/** Blocks written at a time. */
const SLICE_BLOCKS = 128;

/**
 * Creates the template of new databases: every migration, and an empty instance id, because each database gets its own. It
 * takes a fifth of the space of its database, most of whose pages are empty: memory for the whole database would be a sixth
 * of what a start uses, and start a garbage collection.
 */
export function makeTemplate(path: string, migrations: readonly Migration[]): void {
  const database = `${path}.db`;
  const db = new Database(database, "normal");
  try {
    migrate(db, migrations);
    db.execute("UPDATE settings SET value = '' WHERE name = 'instance_id'");
  } finally {
    db.close();
  }
  writeFileSync(path, packed(readFileSync(database)));
  rmSync(database);
}

function packed(database: Buffer): Buffer {
  const marks: number[] = [];
  const filled: Buffer[] = [];
  for (let at = 0; at < database.length; at += BLOCK_BYTES) {
    const block = database.subarray(at, at + BLOCK_BYTES);
    const isEmpty = block.every((byte) => byte === 0);
    marks.push(isEmpty ? EMPTY : FILLED);
    if (!isEmpty) filled.push(block);
  }
  return Buffer.concat([Buffer.from([...marks, END]), ...filled]);
}

/** Writes the database of a template. */
function unpackInto(fd: number, template: Buffer): void {
  const marks = template.subarray(0, template.indexOf(END));
  const slice = Buffer.allocUnsafe(SLICE_BLOCKS * BLOCK_BYTES);
  let from = marks.length + 1;
  for (let first = 0; first < marks.length; first += SLICE_BLOCKS) {
    const sliced = marks.subarray(first, first + SLICE_BLOCKS);
    slice.fill(0);
    for (const [index, mark] of sliced.entries()) {
      if (mark === EMPTY) continue;
      template.copy(slice, index * BLOCK_BYTES, from, from + BLOCK_BYTES);
      from += BLOCK_BYTES;
    }
    writeSync(fd, slice, 0, sliced.length * BLOCK_BYTES);
  }
}

/**
 * Creates a new database as a copy of the template, which takes a tenth of the time of the migrations. The copy appears
 * complete or not at all. If it cannot be written, nothing is left: the migrations then create the database, and SQLite
 * reports the problem of the disk.
 */
export function copyTemplate(template: string, path: string, durability: Durability): void {
  // A symbolic link without its target: SQLite creates the file there, and a copy would replace the link.
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  const part = `${path}.new`;
  try {
    {
      using file = openFile(part, "w", 0o600);
      unpackInto(file.fd, readFileSync(template));
      if (durability === "full") fsyncSync(file.fd);
    }
    renameSync(part, path);
  } catch {
    rmSync(part, { force: true });
  }
}
