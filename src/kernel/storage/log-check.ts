import { existsSync, realpathSync, statSync } from "node:fs";
import { errorText, StartupError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Durability } from "./database.ts";
import { LOG_HEADER_BYTES, type LogDamage, scanLog } from "./log-scan.ts";

/** How a start looks at a log that an earlier one has left. */
export interface LogCheck {
  readonly databasePath: string;
  readonly durability: Durability;
  /** Whether the operator gives up what stands behind a damaged place. */
  readonly acceptDamage: boolean;
  readonly log: Logger;
}

/**
 * Looks at the log beside a database before SQLite opens it: whatever SQLite cannot follow there, it drops without a
 * word. Changes nothing.
 *
 * @throws StartupError when commits would be lost, and nobody has accepted that.
 */
export function checkLog({ databasePath, durability, acceptDamage, log }: LogCheck): void {
  const path = logOf(databasePath);
  const damage = damageOf(path);
  if (damage === null) return;
  const lost = { file: path, frame: damage.atFrame, lost_commits: damage.lostCommits };
  if (acceptDamage) log.warn("a damaged log was accepted: the commits behind the damage are lost", lost);
  else if (durability === "full") throw new StartupError(refusalOf(path, damage));
  // Without a sync for each commit, a power cut may leave such a hole among the last of them.
  else log.warn("the log has a hole, as after a power cut: the commits behind it are lost", lost);
}

/** @throws StartupError when the log beside a database that nobody has open is damaged. */
export function assertLogWhole(databasePath: string): void {
  const path = logOf(databasePath);
  const damage = damageOf(path);
  if (damage !== null) throw new StartupError(refusalOf(path, damage));
}

/**
 * A log without its database is no new server: SQLite would remove it.
 * @throws StartupError when the database is missing or empty, and its log is not.
 */
export function assertLogBelongs(databasePath: string): void {
  const size = statSync(databasePath, { throwIfNoEntry: false })?.size ?? null;
  if (size !== null && size > 0) return;
  const path = logOf(databasePath);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= LOG_HEADER_BYTES) return;
  throw new StartupError(
    `${databasePath} is ${size === null ? "missing" : "empty"}, but its log ${path} is there. ` +
      "Put the database file back beside it, or a backup in their place (ninefold restore FILE --force). Nothing was changed.",
  );
}

/** Where the log of a database lies: beside the file itself, where a symbolic link leads. */
function logOf(databasePath: string): string {
  return `${existsSync(databasePath) ? realpathSync(databasePath) : databasePath}-wal`;
}

function damageOf(path: string): LogDamage | null {
  try {
    return scanLog(path)?.damage ?? null;
  } catch (error) {
    throw new StartupError(`${path} cannot be read (${errorText(error)}).`);
  }
}

function refusalOf(path: string, { atFrame, lostCommits, lostFrames }: LogDamage): string {
  const place = atFrame === 0 ? "in its header" : `at frame ${atFrame}`;
  return (
    `${path} is damaged ${place}: at least ${lostCommits} commits (${lostFrames} frames) stand behind it and would be lost. ` +
    "Put a backup in its place (ninefold restore FILE --force), or give them up (ninefold serve --accept-damaged-log). Nothing was changed."
  );
}
