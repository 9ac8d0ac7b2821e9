import { closeSync, openSync, readSync } from "node:fs";
import { errorText, StartupError } from "../kernel/errors.ts";

/** Largest file that settings and secrets are read from: far more than any holds, and little memory for one that never ends. */
export const TEXT_BYTES_MAX = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

/**
 * Reads a file of settings or a secret; a pipe will do. `what` is what names it, for messages.
 * @throws StartupError when it cannot be read, or is larger than {@link TEXT_BYTES_MAX}.
 */
export function readText(path: string, what: string): string {
  let bytes: Buffer;
  try {
    bytes = readUpTo(path, TEXT_BYTES_MAX + 1);
  } catch (error) {
    throw new StartupError(`${what}: ${path} cannot be read (${errorText(error)}).`);
  }
  if (bytes.length <= TEXT_BYTES_MAX) return bytes.toString("utf8");
  throw new StartupError(`${what}: ${path} is larger than ${TEXT_BYTES_MAX} bytes: that is another file.`);
}

/** Asks for pieces until there is none: the size that a device or a pipe tells is not its own. */
function readUpTo(path: string, bytesMax: number): Buffer {
  const file = openSync(path, "r");
  try {
    const pieces: Buffer[] = [];
    let total = 0;
    while (total < bytesMax) {
      const piece = Buffer.alloc(CHUNK_BYTES);
      const size = readSync(file, piece);
      if (size === 0) break;
      pieces.push(piece.subarray(0, size));
      total += size;
    }
    return Buffer.concat(pieces);
  } finally {
    closeSync(file);
  }
}
