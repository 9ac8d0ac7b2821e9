import { errorText, StartupError } from "../errors.ts";
import type { Database } from "./database.ts";

/** A migration: in the order of its number, and never changed after its release. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** Marks the file as Ninefold's (`PRAGMA application_id`): "9FLD". */
export const APPLICATION_ID = 0x39464c44;

/**
 * Runs the missing migrations. Returns their names. A migration that fails is rolled back; those before it stay. All share
 * one commit and one sync: a power cut could tear several commits without a sync anywhere, which would look like a damaged
 * log. `alongside` runs before that commit, if any step was taken.
 */
export function migrate(db: Database, migrations: readonly Migration[], alongside?: () => void): string[] {
  const current = db.number("SELECT user_version AS n FROM pragma_user_version")();
  const missing = migrations.slice(current);
  if (missing.length === 0) return [];
  db.execute("BEGIN IMMEDIATE");
  let failure: StartupError | null = null;
  const taken: string[] = [];
  try {
    for (const [index, migration] of missing.entries()) {
      failure = takeStep(db, migration, current + index + 1);
      if (failure !== null) break;
      taken.push(migration.name);
    }
    if (taken.length > 0) alongside?.();
    db.execute("COMMIT");
  } catch (error) {
    if (db.inTransaction) db.execute("ROLLBACK");
    throw failure ?? error;
  }
  if (failure !== null) throw failure;
  return taken;
}

function takeStep(db: Database, migration: Migration, version: number): StartupError | null {
  db.execute("SAVEPOINT step");
  try {
    db.execute(migration.sql);
    db.execute(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.execute(`PRAGMA user_version = ${version}`);
    db.execute("RELEASE step");
    return null;
  } catch (error) {
    if (db.inTransaction) db.execute("ROLLBACK TO step; RELEASE step");
    return new StartupError(`Migration ${migration.name} failed: ${errorText(error)}`);
  }
}
