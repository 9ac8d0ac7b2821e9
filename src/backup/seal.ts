import { createHash, type Hash } from "node:crypto";
import { fstatSync, readSync } from "node:fs";
import { assertAccess } from "../kernel/storage/file-access.ts";
import { writeAll } from "../kernel/storage/folders.ts";
import { SLICE_BYTES } from "../kernel/storage/live-copy.ts";
import { openFile } from "./files.ts";

/**
 * The last line of a backup. It follows the pages of the database, which SQLite ignores: every tool can read the file as a
 * database, and a changed bit is detected.
 */
export interface Seal {
  /** Start of the copy, in epoch milliseconds: it contains every change that was acknowledged by then. */
  readonly createdAt: number;
  /** Size of the database, which is the offset of the line. */
  readonly bytes: number;
  /** SHA-256 of the database, lower-case hex. */
  readonly sha256: string;
}

/** Bytes of the line: constant, so that it can be found from the end of the file. */
const SEAL_BYTES = 160;
const SEAL =
  /^(\nninefold-backup 1 created_at=(\d{1,15}) bytes=(\d{1,16}) sha256=([0-9a-f]{64})) check=([0-9a-f]{8}) *\n$/;
/** Hex digits of the digest of the line itself, which end it. */
const CHECK_DIGITS = 8;

/** Appends the line to the database. Returns its bytes. */
export function writeSeal(file: number, { createdAt, bytes, sha256 }: Seal): Uint8Array {
  const line = `\nninefold-backup 1 created_at=${createdAt} bytes=${bytes} sha256=${sha256}`;
  const written = Buffer.from(`${`${line} check=${checkOf(line)}`.padEnd(SEAL_BYTES - 1)}\n`);
  writeAll(file, written, bytes);
  return written;
}

/** Reads the last line of a file; null if it has none, for example a database that was copied by other means. @throws InaccessibleFile */
export function readSeal(path: string): Seal | null {
  assertAccess("The backup cannot be read", path, path, "read");
  using opened = openFile(path, "r");
  const { size } = fstatSync(opened.file);
  if (size < SEAL_BYTES) return null;
  const end = Buffer.alloc(SEAL_BYTES);
  readSync(opened.file, end, 0, SEAL_BYTES, size - SEAL_BYTES);
  const [, line = "", createdAt, bytes, sha256, check] = SEAL.exec(end.toString("latin1")) ?? [];
  if (sha256 === undefined || check !== checkOf(line) || Number(bytes) !== size - SEAL_BYTES) return null;
  return { createdAt: Number(createdAt), bytes: Number(bytes), sha256 };
}

function checkOf(line: string): string {
  return createHash("sha256").update(line).digest("hex").slice(0, CHECK_DIGITS);
}

/** Hashes (SHA-256) the first `bytes` of an open file. `afterSlice` gets each slice and its offset, and may throw to stop. */
export async function hashOf(
  file: number,
  bytes: number,
  afterSlice: (slice: Uint8Array, at: number) => Promise<void>,
): Promise<Hash> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(SLICE_BYTES);
  for (let done = 0; done < bytes; ) {
    const size = readSync(file, buffer, 0, Math.min(SLICE_BYTES, bytes - done), done);
    if (size === 0) break;
    const slice = buffer.subarray(0, size);
    hash.update(slice);
    await afterSlice(slice, done);
    done += size;
  }
  return hash;
}
