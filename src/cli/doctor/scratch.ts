import { closeSync, constants, openSync, unlinkSync } from "node:fs";
import { join } from "node:path";

/** Linux: a file without a name, so that not even the folder changes. The flag is the system's, not in node:fs. */
const O_TMPFILE = 0o20000000;
const OWNER_ONLY = 0o600;

/** Runs `work` on a file in `folder` that nobody else sees and that is gone afterwards. */
export function withScratchFile<T>(folder: string, work: (file: number) => T): T {
  const file = openNameless(folder) ?? openUnlinked(folder);
  try {
    return work(file);
  } finally {
    closeSync(file);
  }
}

function openNameless(folder: string): number | null {
  if (process.platform !== "linux") return null;
  try {
    return openSync(folder, constants.O_DIRECTORY | O_TMPFILE | constants.O_RDWR, OWNER_ONLY);
  } catch {
    // Not every file system knows it: then with a name, for a moment.
    return null;
  }
}

function openUnlinked(folder: string): number {
  const path = join(folder, `.ninefold-doctor-${process.pid}`);
  const file = openSync(path, "wx+", OWNER_ONLY);
  unlinkSync(path);
  return file;
}
