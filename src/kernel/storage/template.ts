import { fsyncSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Database, type Durability } from "./database.ts";
import { openFile } from "./folders.ts";
import { type Migration, migrate } from "./migrate.ts";

/**
 * Makes the template of a new database: every step of the schema, and an instance id that is empty, since each
 * database has its own.
 */
export function makeTemplate(path: string, migrations: readonly Migration[]): void {
  const db = new Database(path, "normal");
  try {
    migrate(db, migrations);
    db.execute("UPDATE settings SET value = '' WHERE name = 'instance_id'");
  } finally {
    db.close();
  }
}

/**
 * Puts a copy of the template where a new database is to be: a tenth of the time that the migrations take. The copy
 * appears complete or not at all. Where it cannot be written nothing is left behind: the migrations then make the
 * database, and SQLite reports what is wrong with the disk.
 */
export function copyTemplate(template: string, path: string, durability: Durability): void {
  // A symbolic link without its target: SQLite creates the file there, and a copy would replace the link.
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  const part = `${path}.new`;
  try {
    {
      using file = openFile(part, "w", 0o600);
      writeFileSync(file.fd, readFileSync(template));
      if (durability === "full") fsyncSync(file.fd);
    }
    renameSync(part, path);
  } catch {
    rmSync(part, { force: true });
  }
}
