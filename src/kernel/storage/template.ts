import { fsyncSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Database, type Durability } from "./database.ts";
import { openFile } from "./folders.ts";
import { type Migration, migrate } from "./migrate.ts";

/**
 * Creates the template of new databases: every migration, and an empty instance id, because each database gets its
 * own.
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
      writeFileSync(file.fd, readFileSync(template));
      if (durability === "full") fsyncSync(file.fd);
    }
    renameSync(part, path);
  } catch {
    rmSync(part, { force: true });
  }
}
