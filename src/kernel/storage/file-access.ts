import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  openSync,
  readdirSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, StartupError } from "../errors.ts";

const { R_OK, W_OK, X_OK } = constants;
/** The user who can change owners. */
const ROOT = 0;

/** Why this process cannot use a file or folder, for the operator. */
export interface AccessProblem {
  /** A clause about the file: `/data belongs to user 0, and this process runs as user 65532`. */
  readonly reason: string;
  /** A sentence that says what to do. */
  readonly cure: string;
}

/** A file or folder that this process cannot use. */
export class InaccessibleFile extends StartupError {
  constructor(
    /** A clause that says what cannot be done, with the reason. */
    readonly detail: string,
    readonly cure: string,
  ) {
    super(`${detail}. ${cure}`);
  }
}

/** @throws InaccessibleFile if {@link accessProblem} finds one; `what`: what then cannot be done */
export function assertAccess(what: string, path: string, folder: string, use: "read" | "write"): void {
  const problem = accessProblem(path, folder, use);
  if (problem !== null) throw new InaccessibleFile(`${what}: ${problem.reason}`, problem.cure);
}

/** The path, or the nearest folder above it that exists. */
export function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}

/**
 * Why this process cannot use a file of a data folder, or the folder itself: whose it is, its mode, or that it is on a
 * read-only file system. Null if it can: then permissions are not the cause of an error. A path that does not exist is not
 * examined.
 */
export function accessProblem(path: string, folder: string, use: "read" | "write"): AccessProblem | null {
  if (!existsSync(path)) return null;
  const stats = statSync(path);
  const wanted = use === "read" ? R_OK : R_OK | W_OK;
  try {
    accessSync(path, stats.isDirectory() ? wanted | X_OK : wanted);
    return null;
  } catch (error) {
    return problemOf(path, folder, stats, errorCode(error));
  }
}

function problemOf(
  path: string,
  folder: string,
  { uid, mode }: { readonly uid: number; readonly mode: number },
  code: string,
): AccessProblem | null {
  const processUid = process.getuid?.();
  if (code === "EROFS")
    return {
      reason: `${path} is on a read-only file system`,
      cure: "Mount it writable, or set another folder with --data.",
    };
  if (processUid === undefined) return null;
  if (uid !== processUid)
    return {
      reason: `${path} belongs to user ${uid}, and this process runs as user ${processUid}`,
      cure: `Change the owner (chown -R ${processUid} ${folder}), or start as user ${uid}.`,
    };
  const octal = (mode & 0o777).toString(8).padStart(4, "0");
  return {
    reason: `${path} has the mode ${octal}`,
    cure: `Let its owner read and write it: chmod u+rwX ${path}`,
  };
}

/**
 * Gives root's files in a data folder of another user to that user: a command that root runs, such as `sudo ninefold restore`,
 * must leave files that the service can read. Files with a second name stay root's, since the folder's owner could have linked a
 * file of another place into it. Does nothing as another user.
 */
export function giveToFolderOwner(folder: string): void {
  if (process.getuid?.() !== ROOT) return;
  const { uid, gid } = statSync(folder);
  if (uid === ROOT) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isFile()) giveFile(join(folder, entry.name), uid, gid);
  }
}

function giveFile(path: string, uid: number, gid: number): void {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const status = fstatSync(file);
    if (status.isFile() && status.nlink === 1 && status.uid === ROOT) fchownSync(file, uid, gid);
  } finally {
    closeSync(file);
  }
}
