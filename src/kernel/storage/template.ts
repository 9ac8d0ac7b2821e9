import { fsyncSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Database, type Durability } from "./database.ts";
import { openFile, writeAll } from "./folders.ts";
import { type Migration, migrate } from "./migrate.ts";

/**
 * A template begins with the lengths of runs, in blocks: empty and filled ones by turns, until {@link END}. The blocks of the
 * filled runs follow.
 */
const BLOCK_BYTES = 512;
/** Longer runs are divided by a run of no length. */
const RUN_BLOCKS_MAX = 254;
const END = 255;
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
  const runs: number[] = [0];
  const filled: Buffer[] = [];
  for (let at = 0; at < database.length; at += BLOCK_BYTES) {
    const block = database.subarray(at, at + BLOCK_BYTES);
    const isFilled = block.some((byte) => byte !== 0);
    if (isFilled) filled.push(block);
    // Empty runs have even positions.
    if (isFilled !== (runs.length % 2 === 0)) runs.push(0);
    else if (runs.at(-1) === RUN_BLOCKS_MAX) runs.push(0, 0);
    runs.push((runs.pop() ?? 0) + 1);
  }
  return Buffer.concat([Buffer.from([...runs, END]), ...filled]);
}

/** Writes the database of a template. */
function unpackInto(fd: number, template: Buffer): void {
  const sliceBytes = SLICE_BLOCKS * BLOCK_BYTES;
  const slice = Buffer.alloc(sliceBytes);
  const runs = template.indexOf(END);
  let from = runs + 1;
  let at = 0;
  for (let index = 0; index < runs; index += 1) {
    let left = (template[index] ?? 0) * BLOCK_BYTES;
    while (left > 0) {
      const bytes = Math.min(left, sliceBytes - at);
      if (index % 2 === 1) {
        template.copy(slice, at, from, from + bytes);
        from += bytes;
      }
      at += bytes;
      left -= bytes;
      if (at < sliceBytes) continue;
      writeAll(fd, slice);
      slice.fill(0);
      at = 0;
    }
  }
  writeAll(fd, slice.subarray(0, at));
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
