import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { openCLibrary } from "./c-library.ts";
import { StartupError } from "./errors.ts";
import { createIds, type Ids } from "./ids.ts";
import type { Logger } from "./log.ts";
import { Metrics } from "./metrics/metrics.ts";
import { Changes } from "./projects/changes.ts";
import { Housekeeping } from "./scheduler/housekeeping.ts";
import { Scheduler, type WorkGate } from "./scheduler/scheduler.ts";
import { obtainMasterKey, openVault } from "./secrets/master-key.ts";
import { SecretDigests } from "./secrets/secret-digest.ts";
import type { Vault } from "./secrets/vault.ts";
import { Checkpointer } from "./storage/checkpointer.ts";
import { Database, type Durability } from "./storage/database.ts";
import {
  assertLogBelongs,
  assertSqlite,
  checkLog,
  inspectDatabase,
  logOf,
  sqliteVersion,
  UnreadableDatabase,
} from "./storage/examine.ts";
import { syncFolder } from "./storage/folders.ts";
import { rewriteLog } from "./storage/log-file.ts";
import { type Migration, migrate } from "./storage/migrate.ts";
import { EntrySource } from "./storage/replication/entry-source.ts";
import { type LogPosition, PositionRow } from "./storage/replication/position.ts";
import {
  isDamage,
  isDiskFull,
  isStorageFailure,
  plainReason,
  type SyncFailure,
} from "./storage/storage-failures.ts";
import { copyTemplate } from "./storage/template.ts";
import { ANYONE } from "./storage/tx.ts";
import { Writer } from "./storage/writer.ts";
import { type Clock, createSystemClock } from "./time/clock.ts";

/** The parts that every area uses. */
export interface Kernel {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  readonly db: Database;
  readonly writer: Writer;
  readonly checkpointer: Checkpointer;
  /** Makes an entry of each batch; null without an archive and a commit log. */
  readonly entries: EntrySource | null;
  readonly scheduler: Scheduler;
  /** Decides when work may have effects outside; null: always. */
  readonly gate: Pick<WorkGate, "pass"> | null;
  /** Removes expired rows. */
  readonly housekeeping: Housekeeping;
  readonly vault: Vault;
  /** Makes the field `secret_digest` of resources. */
  readonly digests: SecretDigests;
  readonly metrics: Metrics;
  /** Processors that this process may use. */
  readonly cores: number;
  /** Notifies listeners of changed resources. */
  readonly changes: Changes;
}

/** Options of {@link openKernel}. */
export interface KernelOptions {
  readonly databasePath: string;
  readonly masterKeyPath: string;
  /** The configured master key; null for the one in the data folder. */
  readonly masterKey: string | null;
  readonly durability: Durability;
  /** Whether the commits after a damaged part of the log are given up. */
  readonly acceptDamagedLog?: boolean;
  /** Whether each batch becomes an entry, for an archive or a commit log: known, or read from the database. */
  readonly makesEntries?: boolean | ((db: Database) => boolean);
  /** Position in a commit log that the next batch follows. */
  readonly continuesFrom?: LogPosition;
  /** Holds jobs and outbound requests back until it lets them pass. */
  readonly gate?: WorkGate;
  readonly migrations: readonly Migration[];
  /** A database with all migrations, of which a new database is a copy; without it the migrations run. */
  readonly template?: string;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log: Logger;
  /** Replaces the end of the process after a failed sync. */
  readonly onSyncFailure?: (failure: SyncFailure) => void;
  /** Overrides the number of processors of the system. */
  readonly cores?: number;
}

/**
 * Opens the database and builds the kernel on it. An existing file is inspected before anything is changed, and the log of
 * an earlier process is made durable before anything is read.
 *
 * @throws StartupError for a foreign, newer or damaged file, a missing or wrong master key, or a failing disk.
 */
export function openKernel(options: KernelOptions): Kernel {
  const { databasePath, migrations, log } = options;
  assertSqlite(sqliteVersion());
  const databaseExists = existsSync(databasePath);
  assertLogBelongs(databasePath);
  checkLog(options);
  inspect(databasePath, migrations);
  if (!databaseExists) noteLoneKey(options);
  const { masterKey: configured, masterKeyPath: path, durability } = options;
  const masterKey = obtainMasterKey({ configured, path, databaseExists, durability });
  if (!databaseExists && options.template !== undefined) {
    copyTemplate(options.template, databasePath, options.durability);
  }
  try {
    if (durability !== "none") rewriteLog(logOf(databasePath));
    const db = new Database(databasePath, options.durability);
    db.onDamage = (error) => {
      // Logged once.
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
  // A wrong key must be found before the schema is changed. Not in a new database, whose key becomes this one: its first
  // commit would have to be moved out of the log again.
  const isSettled = !isNew && db.one("SELECT 1 FROM sqlite_master WHERE name = 'settings'")() !== null;
  if (isSettled) openVault(db, masterKey);
  const clock = options.clock ?? createSystemClock();
  const { makesEntries = false } = options;
  const hasEntries = typeof makesEntries === "boolean" ? makesEntries : makesEntries(db);
  const entries = hasEntries ? new EntrySource(db, clock) : null;
  if (options.continuesFrom !== undefined) entries?.continueFrom(options.continuesFrom);
  settleLog(db, log);
  entries?.begin();
  const steps = migrate(db, migrations, () => entries?.noteStart()).length;
  if (steps > 0 && !isNew) {
    const to = migrations.length;
    log.info(`database migrated: schema ${to - steps} → ${to}`);
  }
  const vault = openVault(db, masterKey);
  if (entries === null) new PositionRow(db).clear();
  else entries.startCommitted();
  if (isNew && options.durability === "full") syncFolder(dirname(options.databasePath));
  const writer = new Writer(db, clock, log);
  writer.onSyncFailure = options.onSyncFailure ?? ((failure) => endProcess(writer, log, failure));
  // What the start itself has changed is the basis of its first responses.
  db.logSync?.now();
  if (entries !== null) writer.follow(entries);
  const scheduler = new Scheduler(db, writer, clock, log, options.gate);
  return {
    clock,
    ids: options.ids ?? createIds(() => clock.now()),
    log,
    db,
    writer,
    checkpointer: new Checkpointer(db, writer, log, options.continuesFrom !== undefined),
    entries,
    scheduler,
    gate: options.gate ?? (db.logSync === null ? null : confirmedBefore(writer)),
    housekeeping: new Housekeeping(scheduler, writer, log),
    vault,
    digests: new SecretDigests(vault),
    metrics: new Metrics(),
    cores: options.cores ?? availableParallelism(),
    changes: new Changes(),
  };
}

/** Lets nothing leave that may show an unconfirmed change. */
function confirmedBefore(writer: Writer): Pick<WorkGate, "pass"> {
  return { pass: (account) => writer.confirmationFor(account ?? ANYONE) ?? undefined };
}

/** Exit code after a failed sync: EX_IOERR of sysexits.h. */
export const EXIT_SYNC_FAILED = 74;

/**
 * Ends the process at once. Connections close without a response to what is not confirmed; the next start applies of it what
 * the disk has.
 */
function endProcess(writer: Writer, log: Logger, { path, reason }: SyncFailure): never {
  log.error("the disk did not confirm a sync: the server ends, and a restart applies what the disk has", {
    file: path,
    error: reason,
    exit: EXIT_SYNC_FAILED,
  });
  try {
    writer.abandonUnconfirmed();
  } catch {
    // Then this node copies the leader's database.
  }
  exitAtOnce(EXIT_SYNC_FAILED);
}

/**
 * Ends the process without the runtime's own exit, which closes the database: that would move a log into the file that the disk
 * has not confirmed, and a power cut could leave half of it there.
 */
function exitAtOnce(code: number): never {
  try {
    openCLibrary({ _exit: { args: ["int"], returns: "void" } }, ["linux", "darwin"])._exit(code);
  } catch {
    // Another system.
  }
  process.exit(code);
}

function settleLog(db: Database, log: Logger): void {
  const left = db.settleLog();
  const file = `${db.path}-wal`;
  if (left === "read")
    log.info("another process, such as a backup, reads the log: it was synced in place", { file });
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

/** A master key without a database may mean that the database is lost, or that the folder is the wrong one. */
function noteLoneKey({ masterKey, masterKeyPath, databasePath, log }: KernelOptions): void {
  if (masterKey !== null || !existsSync(masterKeyPath)) return;
  log.warn("there is a master key, but no database: a new database is created", {
    master_key: masterKeyPath,
    database: databasePath,
  });
}

/** The error of a start. Errors of the database or its disk become one line that names the file and what to do. */
export function explained(path: string, error: unknown): unknown {
  return isStorageFailure(error) ? new StartupError(troubleWith(path, error)) : error;
}

function troubleWith(path: string, error: unknown): string {
  const why = plainReason(error);
  if (isDamage(error)) return `${path} is damaged (${why}). ${CURE_OF_DAMAGE}`;
  if (isDiskFull(error)) return `${path} cannot be opened: the disk is full. Free space on it.`;
  return `${path} cannot be opened (${why}). Check the disk, or set another folder with --data.`;
}

const CURE_OF_DAMAGE = "Put a backup in its place: ninefold restore FILE --force.";

/** Commits what is queued, moves the log into the file and closes it. What a commit log has not confirmed is undone. */
export function closeKernel({ writer, checkpointer, entries, db }: Kernel): void {
  writer.close();
  checkpointer.close();
  entries?.close();
  writer.abandonUnconfirmed();
  db.close();
}
