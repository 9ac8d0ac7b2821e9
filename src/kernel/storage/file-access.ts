import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode, StartupError } from "../errors.ts";

const { R_OK, W_OK, X_OK } = constants;

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
