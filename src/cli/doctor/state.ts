import { statSync } from "node:fs";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { StartupError } from "../../kernel/errors.ts";
import { JUMP_MS_MAX } from "../../kernel/scheduler/clock-trust.ts";
import { findMasterKey, opensMark } from "../../kernel/secrets/master-key.ts";
import {
  assertLogBelongs,
  assertLogWhole,
  type DatabaseFacts,
  examineDatabase,
  isDatabaseThere,
  isFolderHeld,
  sqliteProblem,
  sqliteVersion,
} from "../../kernel/storage/examine.ts";
import { dataFilesOf } from "../../kernel/storage/folders.ts";
import { createSystemClock } from "../../kernel/time/clock.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { formatAmount, formatDuration } from "../progress.ts";
import { driftText, fileSystemDriftMs } from "./disk.ts";
import { type Check, failed, ok, skipped, type Target, warning } from "./finding.ts";

/** When this was written: a clock before it is wrong. */
const CLOCK_MIN_MS = Date.UTC(2026, 0, 1);
/** Clocks are set by steps of so much without harm. */
const CLOCK_STEP_MS = 1_000;

/** Permissions of anyone but the owner. */
const OTHERS = 0o077;

/** The version of SQLite: on some systems it is the system's own. */
export const sqliteCheck: Check = {
  name: "SQLite",
  cure: "Reinstall Ninefold.",
  run() {
    const version = sqliteVersion();
    const trouble = sqliteProblem(version);
    return trouble === null ? ok(version) : failed(trouble, "Update the system, or its SQLite.");
  },
};

/** The database file: Ninefold's, and not a newer one's. */
export const databaseCheck: Check = {
  name: "database",
  cure: "Restore a backup, or set the right folder with --data.",
  run(target) {
    if (!target.config.ephemeral) assertLogBelongs(dataFilesOf(target.folder).database);
    const path = databasePath(target);
    if (path === null) return skipped("there is none yet: the first start creates it");
    const isHeld = isFolderHeld(dataFilesOf(target.folder).lock);
    // A running server can restart its log at any time: parts of two logs would look damaged.
    if (!isHeld) assertLogWhole(path);
    const { schema } = examineDatabase(path, MIGRATIONS);
    const size = formatAmount(statSync(path).size, "bytes");
    const steps = MIGRATIONS.length - schema;
    const age =
      steps === 0 ? `schema ${schema}` : `schema ${schema}; the next start applies ${steps} migrations`;
    const held = isHeld ? ", in use by a running server" : "";
    return ok(`${size}, ${age}${held}`);
  },
};

/** Checks that the master key exists, belongs to the database, and is not readable by others. */
export const masterKeyCheck: Check = {
  name: "master key",
  cure: "Restore the right key, or set NINEFOLD_MASTER_KEY.",
  run(target) {
    const { config, folder } = target;
    const path = dataFilesOf(folder).masterKey;
    const database = databasePath(target);
    if (config.ephemeral) return skipped("an ephemeral server creates its own");
    const key = findMasterKey({ configured: config.masterKey, path });
    if (key === null) {
      if (database === null) return skipped("there is none yet: the first start creates it");
      return failed(
        `${path} is missing, and the database cannot be used without it`,
        "Restore the file, or set NINEFOLD_MASTER_KEY.",
      );
    }
    const facts = database === null ? null : factsOf(database);
    if (facts === "unreadable") return skipped("the database cannot be read, so the key cannot be verified");
    const mark = facts?.masterKeyMark ?? null;
    if (mark !== null && !opensMark(key, mark)) {
      return failed("it is not the key of the database", "Restore the right key.");
    }
    if (config.masterKey !== null) return ok("handed in, and right");
    const mode = statSync(path).mode & 0o777;
    if ((mode & OTHERS) !== 0) {
      return failed(`${path} is readable by others (mode ${mode.toString(8)})`, `chmod 600 ${path}`);
    }
    return ok(`${path}, mode ${mode.toString(8)}`);
  },
};

/** Checks that the clock is not behind stored entries, and agrees with the file system's. */
export const clockCheck: Check = {
  name: "clock",
  cure: "Set a writable folder with --data.",
  run(target) {
    const now = createSystemClock().now();
    const cure = "Set the clock, and synchronize it with NTP.";
    const wrong = clockProblem(now, newestEntryAt(target)) ?? driftText(fileSystemDriftMs(target));
    if (wrong !== null) return failed(`${isoTime(now)}: ${wrong}`, cure);
    const jump = clockJump(now, clockTrustedAt(target));
    return jump === null ? ok(isoTime(now)) : warning(`${isoTime(now)}: ${jump}`, cure);
  },
};

/** Problem of a time, compared with the newest ledger entry; null without one. */
export function clockProblem(now: number, newestEntryAt: number | null): string | null {
  if (now < CLOCK_MIN_MS) return "that is before this version was released";
  if (newestEntryAt === null || newestEntryAt <= now + CLOCK_STEP_MS) return null;
  return `that is ${formatDuration(newestEntryAt - now)} before the newest entry in the database`;
}

/** How far a time is from the last that a server trusted, where that makes it keep what has expired; null elsewhere. */
export function clockJump(now: number, trustedAt: number | null): string | null {
  const byMs = trustedAt === null ? 0 : now - trustedAt;
  if (Math.abs(byMs) <= JUMP_MS_MAX) return null;
  const side = byMs > 0 ? "after" : "before";
  return `that is ${formatDuration(Math.abs(byMs))} ${side} the server last trusted its clock: nothing expired is deleted until it has run steadily for an hour`;
}

function clockTrustedAt(target: Target): number | null {
  const path = databasePath(target);
  const facts = path === null ? null : factsOf(path);
  return facts === null || facts === "unreadable" ? null : facts.clockTrustedAt;
}

function newestEntryAt(target: Target): number | null {
  const path = databasePath(target);
  const facts = path === null ? null : factsOf(path);
  return facts === null || facts === "unreadable" ? null : facts.newestEntryAt;
}

/** Problems of the file are reported by the database check. */
function factsOf(path: string): DatabaseFacts | "unreadable" {
  try {
    return examineDatabase(path, MIGRATIONS);
  } catch (error) {
    if (error instanceof StartupError) return "unreadable";
    throw error;
  }
}

function databasePath({ config, folder }: Target): string | null {
  const path = dataFilesOf(folder).database;
  return !config.ephemeral && isDatabaseThere(path) ? path : null;
}
