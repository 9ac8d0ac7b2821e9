import { createHash } from "node:crypto";
import { fstatSync, readSync } from "node:fs";
import { SLICE_BYTES } from "../kernel/storage/live-copy.ts";
import { writeAll } from "../kernel/storage/log-file.ts";
import { openFile } from "./files.ts";

/**
 * The last line of a backup, behind the database's own pages, where SQLite does not look: so the file is a database
 * that every tool reads, and no bit of it changes unnoticed.
 */
export interface Seal {
  /** When the copying began, epoch milliseconds: every change with a response by then is in the copy. */
  readonly createdAt: number;
  /** Size of the database, and so where the line begins. */
  readonly bytes: number;
  /** Of the database, lower-case hex. */
  readonly sha256: string;
}

/** Always as long, so that it is found from the end. */
const SEAL_BYTES = 160;
const SEAL =
  /^(\nninefold-backup 1 created_at=(\d{1,15}) bytes=(\d{1,16}) sha256=([0-9a-f]{64})) check=([0-9a-f]{8}) *\n$/;
/** Of the line's own digest, so much stands at its end: a changed bit of the line itself shows, too. */
const CHECK_DIGITS = 8;

/** Writes the line behind the database. */
export function writeSeal(file: number, { createdAt, bytes, sha256 }: Seal): void {
  const line = `\nninefold-backup 1 created_at=${createdAt} bytes=${bytes} sha256=${sha256}`;
  writeAll(file, Buffer.from(`${`${line} check=${checkOf(line)}`.padEnd(SEAL_BYTES - 1)}\n`), bytes);
}

/** The last line of a file; null when it has none, as a database that was copied by other means. */
export function readSeal(path: string): Seal | null {
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

/** SHA-256 of the first `bytes` of an open file. `afterSlice` is given each slice and where it begins; it may throw to end it. */
export async function digestOf(
  file: number,
  bytes: number,
  afterSlice: (slice: Uint8Array, at: number) => Promise<void>,
): Promise<string> {
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
  return hash.digest("hex");
}
