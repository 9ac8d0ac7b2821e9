import { existsSync } from "node:fs";
import { type Clock, createSystemClock } from "./clock.ts";
import { createIds, type Ids } from "./ids.ts";
import type { Logger } from "./log.ts";
import { Metrics } from "./metrics/metrics.ts";
import { Scheduler } from "./scheduler/scheduler.ts";
import { obtainMasterKey, openVault } from "./secrets/master-key.ts";
import type { Vault } from "./secrets/vault.ts";
import { Checkpointer } from "./storage/checkpointer.ts";
import { Database, type Durability } from "./storage/database.ts";
import { inspectDatabase, type Migration, migrate } from "./storage/migrate.ts";
import { Writer } from "./storage/writer.ts";

/** What every area is built on. */
export interface Kernel {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  readonly db: Database;
  readonly writer: Writer;
  readonly checkpointer: Checkpointer;
  readonly scheduler: Scheduler;
  readonly vault: Vault;
  readonly metrics: Metrics;
}

/** How the kernel is opened. */
export interface KernelOptions {
  readonly databasePath: string;
  readonly masterKeyPath: string;
  /** A master key from outside instead of the file's. */
  readonly masterKey: string | null;
  readonly durability: Durability;
  readonly migrations: readonly Migration[];
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log: Logger;
}

/**
 * Opens the database and builds what stands on it. An existing file is looked at before anything is changed.
 *
 * @throws StartupError for a foreign or newer file, a missing or wrong master key.
 */
export function openKernel(options: KernelOptions): Kernel {
  const { databasePath, migrations, log } = options;
  const databaseExists = existsSync(databasePath);
  inspectDatabase(databasePath, migrations);
  const masterKey = obtainMasterKey({
    given: options.masterKey,
    path: options.masterKeyPath,
    databaseExists,
  });
  const db = new Database(databasePath, options.durability);
  try {
    // A wrong key is found before the schema is touched.
    if (hasSettings(db)) openVault(db, masterKey);
    migrate(db, migrations);
    const vault = openVault(db, masterKey);
    const clock = options.clock ?? createSystemClock();
    const writer = new Writer(db, clock, log);
    return {
      clock,
      ids: options.ids ?? createIds(() => clock.now()),
      log,
      db,
      writer,
      checkpointer: new Checkpointer(db, writer, log),
      scheduler: new Scheduler(db, writer, clock, log),
      vault,
      metrics: new Metrics(),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Commits what is queued, moves the log into the file and closes it. */
export function closeKernel({ writer, checkpointer, db }: Kernel): void {
  writer.close();
  checkpointer.close();
  db.close();
}

function hasSettings(db: Database): boolean {
  return db.query("SELECT 1 FROM sqlite_master WHERE name = 'settings'").get() !== null;
}
