import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";

/** The operations that fail, or the end of the server. The numbers are the shim's. */
export const FAILING = { nothing: 0, sync: 1, write: 2, change: 3, death: 4 } as const;
/** The files in which operations fail. The numbers are the shim's. */
export const IN_FILES = { any: 0, log: 1, database: 2 } as const;

/** A simulated failure. */
export interface Fault {
  readonly name: string;
  readonly kind: keyof typeof FAILING;
  readonly error: number;
  readonly files: keyof typeof IN_FILES;
  /** Number of operations that fail. */
  readonly times: number;
}

/** Controls the failures of a running server's shim. */
export class Control {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
    writeFileSync(path, Buffer.alloc(16));
  }

  /** Starts the failure, for the configured number of operations. */
  set({ kind, error, files, times }: Omit<Fault, "name">): void {
    const words = Buffer.alloc(16);
    words.writeInt32LE(error, 4);
    words.writeInt32LE(times, 8);
    words.writeInt32LE(IN_FILES[files], 12);
    // The kind is written last, because the shim reads it first.
    const file = openSync(this.path, "r+");
    writeSync(file, words, 0, 16, 0);
    words.writeInt32LE(FAILING[kind], 0);
    writeSync(file, words, 0, 4, 0);
    closeSync(file);
  }

  /** Ends the server like a kill, after a number of further operations. */
  killAfter(operations: number): void {
    this.set({ kind: "death", error: 0, files: "any", times: operations });
  }

  clear(): void {
    this.set({ kind: "nothing", error: 0, files: "any", times: 0 });
  }
}

const EIO = 5;
const EROFS = 30;
const ENOSPC = 28;
/** More than the operations of a run: the failure lasts until it is cleared. */
const ALWAYS = 1_000_000_000;

/** The simulated failures, in turn. */
export const FAULTS: readonly Fault[] = [
  { name: "one sync of the log fails", kind: "sync", error: EIO, files: "log", times: 1 },
  { name: "some syncs of the log fail", kind: "sync", error: EIO, files: "log", times: 5 },
  { name: "syncs of the log fail for good", kind: "sync", error: EIO, files: "log", times: ALWAYS },
  { name: "some syncs of the database fail", kind: "sync", error: EIO, files: "database", times: 2 },
  { name: "the disk is full for a time", kind: "write", error: ENOSPC, files: "any", times: 40 },
  { name: "the disk is full for good", kind: "write", error: ENOSPC, files: "any", times: ALWAYS },
  { name: "writes fail for a time", kind: "write", error: EIO, files: "any", times: 20 },
  { name: "a sync fails, then all is read-only", kind: "change", error: EROFS, files: "any", times: ALWAYS },
];
