import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { Housekeeping } from "./background/housekeeping.ts";
import { StartupError } from "./errors.ts";
import { createIds, type Ids } from "./ids.ts";
import type { Logger } from "./log.ts";
import { Metrics } from "./metrics/metrics.ts";
import { Changes } from "./projects/changes.ts";
import { Scheduler } from "./scheduler/scheduler.ts";
import { obtainMasterKey, openVault } from "./secrets/master-key.ts";
import type { Vault } from "./secrets/vault.ts";
import { Checkpointer } from "./storage/checkpointer.ts";
import {
  Database,
  type Durability,
  isDamage,
  isDiskFull,
  isStorageFailure,
  plainReason,
} from "./storage/database.ts";
import {
  assertLogBelongs,
  assertSqlite,
  checkLog,
  inspectDatabase,
  sqliteVersion,
  UnreadableDatabase,
} from "./storage/examine.ts";
import { syncFolder } from "./storage/folders.ts";
import { type Migration, migrate } from "./storage/migrate.ts";
import { copyTemplate } from "./storage/template.ts";
import { Writer } from "./storage/writer.ts";
import { type Clock, createSystemClock } from "./time/clock.ts";

/** What every area is built on. */
export interface Kernel {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  readonly db: Database;
  readonly writer: Writer;
  readonly checkpointer: Checkpointer;
  readonly scheduler: Scheduler;
  /** Removes what has expired. */
  readonly housekeeping: Housekeeping;
  readonly vault: Vault;
  readonly metrics: Metrics;
  /** Processors that this process may use. */
  readonly cores: number;
  /** Where changes are noted, for those who listen. */
  readonly changes: Changes;
}

/** How the kernel is opened. */
export interface KernelOptions {
  readonly databasePath: string;
  readonly masterKeyPath: string;
  /** A master key from outside instead of the file's. */
  readonly masterKey: string | null;
  readonly durability: Durability;
  /** Whether what stands behind a damaged place of the log is given up. */
  readonly acceptDamagedLog?: boolean;
  readonly migrations: readonly Migration[];
  /** A database file with all migrations, which a new database is copied from; without it they are run. */
  readonly template?: string;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log: Logger;
  /** Overrides the number of processors of the system. */
  readonly cores?: number;
}

/**
 * Opens the database and builds what stands on it. An existing file is looked at before anything is changed, and what an
 * earlier process has left in its log is durable before anything is read from it.
 *
 * @throws StartupError for a foreign, newer or damaged file, a missing or wrong master key, a disk that fails.
 */
export function openKernel(options: KernelOptions): Kernel {
  const { databasePath, migrations, log } = options;
  assertSqlite(sqliteVersion());
  const databaseExists = existsSync(databasePath);
  assertLogBelongs(databasePath);
  checkLog(options);
  inspect(databasePath, migrations);
  if (!databaseExists) noteLoneKey(options);
  const { masterKey: given, masterKeyPath: path } = options;
  const masterKey = obtainMasterKey({ given, path, databaseExists });
  if (!databaseExists && options.template !== undefined) {
    copyTemplate(options.template, databasePath, options.durability);
  }
  try {
    const db = new Database(databasePath, options.durability);
    db.onDamage = (error) => {
      // Once: more of the same helps nobody.
      db.onDamage = () => undefined;
      const fields = { file: databasePath, error: plainReason(error), next: CURE_OF_DAMAGE };
      log.error("the database is damaged", fields);
    };
    try {
      return build(options, db, masterKey, !databaseExists);
    } catch (error) {
      db.close();
      throw error;
    }
  } catch (error) {
    throw explained(databasePath, error);
  }
}

function build(options: KernelOptions, db: Database, masterKey: Uint8Array, isNew: boolean): Kernel {
  const { log, migrations } = options;
  // A wrong key is found before the schema is touched.
  const isSettled = db.one("SELECT 1 FROM sqlite_master WHERE name = 'settings'")() !== null;
  if (isSettled) openVault(db, masterKey);
  settleLog(db, log);
  const steps = migrate(db, migrations).length;
  if (steps > 0 && !isNew) {
    const to = migrations.length;
    log.info(`database migrated: schema ${to - steps} → ${to}`);
  }
  const vault = openVault(db, masterKey);
  if (isNew && options.durability === "full") syncFolder(dirname(options.databasePath));
  const clock = options.clock ?? createSystemClock();
  const writer = new Writer(db, clock, log);
  const scheduler = new Scheduler(db, writer, clock, log);
  return {
    clock,
    ids: options.ids ?? createIds(() => clock.now()),
    log,
    db,
    writer,
    checkpointer: new Checkpointer(db, writer, log),
    scheduler,
    housekeeping: new Housekeeping(scheduler, writer, log),
    vault,
    metrics: new Metrics(),
    cores: options.cores ?? availableParallelism(),
    changes: new Changes(),
  };
}

function settleLog(db: Database, log: Logger): void {
  const left = db.settleLog();
  const file = `${db.path}-wal`;
  if (left === "read")
    log.info("another process, such as a backup, reads the log: it was synced where it is", { file });
  if (left === "full")
    log.warn(
      "the disk is full: reads are served, changes are rejected until there is space; the log was synced in place",
      { file },
    );
}

function inspect(path: string, migrations: readonly Migration[]): void {
  try {
    inspectDatabase(path, migrations);
  } catch (error) {
    throw error instanceof UnreadableDatabase
      ? new StartupError(`${error.message} ${CURE_OF_DAMAGE}`)
      : error;
  }
}

/** A key without its database may mean that the database has been lost, or that another folder was meant. */
function noteLoneKey({ masterKey, masterKeyPath, databasePath, log }: KernelOptions): void {
  if (masterKey !== null || !existsSync(masterKeyPath)) return;
  log.warn("there is a master key, but no database: a new one is made", {
    master_key: masterKeyPath,
    database: databasePath,
  });
}

/** What a start failed with; where it is the database or its disk, in one line that names the file and what to do. */
export function explained(path: string, error: unknown): unknown {
  return isStorageFailure(error) ? new StartupError(troubleWith(path, error)) : error;
}

function troubleWith(path: string, error: unknown): string {
  const why = plainReason(error);
  if (isDamage(error)) return `${path} is damaged (${why}). ${CURE_OF_DAMAGE}`;
  if (isDiskFull(error)) return `${path} cannot be opened: the disk is full. Make room on it.`;
  return `${path} cannot be opened (${why}). Look after the disk, or name another folder with --data.`;
}

const CURE_OF_DAMAGE = "Put a backup in its place: ninefold restore FILE --force.";

/** Commits what is queued, moves the log into the file and closes it. */
export function closeKernel({ writer, checkpointer, db }: Kernel): void {
  writer.close();
  checkpointer.close();
  db.close();
}
