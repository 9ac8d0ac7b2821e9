import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { nearestExisting } from "../../kernel/storage/file-access.ts";
import { createSystemClock, monotonicMs } from "../../kernel/time/clock.ts";
import { formatAmount, formatDuration } from "../progress.ts";
import { type Check, type Finding, failed, ok, skipped, type Target, warning } from "./finding.ts";

/** Writes by the group or by everyone. */
const OTHERS_MAY_WRITE = 0o022;

/** The WAL can reach 64 MiB: with less than twice that, changes soon fail. */
const FREE_BYTES_MIN = 128 * 1024 * 1024;
const FREE_BYTES_WARNING = 1024 * 1024 * 1024;

/** BatchedWrites of write and fsync: enough for a median. */
const FSYNC_ROUNDS = 15;
const FSYNC_BYTES = 4096;
/** No durable disk is faster. */
const FSYNC_MS_MIN = 0.01;
/** Concurrent requests share one fsync; at this duration each of them waits noticeably. */
const FSYNC_MS_SLOW = 50;

/** Clocks of two machines that agree; also the coarsest time stamp in use (FAT). */
const DRIFT_MS_MAX = 2_000;

/** Checks that the data folder exists or can be created, is writable, and not by others. */
export const folderCheck: Check = {
  name: "data folder",
  cure: "Set another folder with --data.",
  run({ config, folder, existing }) {
    const status = statSync(existing);
    if (!status.isDirectory())
      return failed(`${existing} is not a folder`, "Set another folder with --data.");
    try {
      accessSync(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch {
      return failed(
        `${existing} is not writable`,
        "Change its owner to this user (chown), or set another folder with --data.",
      );
    }
    if (config.ephemeral) return ok(`temporary, in ${folder}`);
    if (existing !== folder) return ok(`${folder} will be created by the first start`);
    const mode = (status.mode & 0o777).toString(8);
    if ((status.mode & OTHERS_MAY_WRITE) !== 0) {
      return failed(`${folder} is writable by others (mode ${mode})`, `chmod 700 ${folder}`);
    }
    return ok(`${folder}, mode ${mode}`);
  },
};

/** The folder of scheduled backups: writable, or its parent is. */
export const backupFolderCheck: Check = {
  name: "backups",
  cure: "Set another folder with --backup-dir.",
  run({ config }) {
    if (config.backups === null)
      return skipped("no option sets a folder; one that is set in the console is checked there");
    const folder = resolve(config.backups.folder);
    const existing = nearestExisting(folder);
    if (!statSync(existing).isDirectory())
      return failed(`${existing} is not a folder`, "Set another folder with --backup-dir.");
    try {
      accessSync(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch {
      return failed(
        `${existing} is not writable`,
        "Change its owner to this user (chown). With systemd, add the folder to ReadWritePaths of the service.",
      );
    }
    return ok(existing === folder ? folder : `${folder} will be created`);
  },
};

/** What a kind of file system of that name means for a database. */
type Assess = (name: string, ephemeral: boolean) => Finding;

const network: Assess = (name) =>
  failed(
    `${name} is a network file system: SQLite's locks and its WAL do not work there`,
    "Put the data folder on a local disk, and copies of it (ninefold backup) on the network.",
  );
const unknown: Assess = (name) =>
  warning(
    `${name}: whether locks and fsync work depends on its implementation`,
    "Use a local disk, unless you know that they work.",
  );
const passing =
  (why: string, cure: string): Assess =>
  (name, ephemeral) =>
    ephemeral ? ok(name) : warning(`${name}: ${why}`, cure);
const container = passing(
  "the folder is in the layer of a container and is deleted with it",
  "Mount a volume at the data folder.",
);
const memory = passing("the folder is in memory and is lost when the machine stops", "Use a disk.");

/** By the magic numbers of statfs(2). */
const FILE_SYSTEMS: Readonly<Record<number, readonly [name: string, judge: Assess]>> = {
  61267: ["ext4", ok],
  1481003842: ["xfs", ok],
  2435016766: ["btrfs", ok],
  801189825: ["zfs", ok],
  4076150800: ["f2fs", ok],
  26985: ["NFS", network],
  20859: ["SMB", network],
  4283649346: ["CIFS", network],
  4266872130: ["SMB 2", network],
  16914839: ["9P", network],
  12805120: ["Ceph", network],
  198183888: ["Lustre", network],
  1397113167: ["AFS", network],
  2020557398: ["VirtualBox shared folder", network],
  1702057286: ["FUSE", unknown],
  2035054128: ["overlay", container],
  16914836: ["tmpfs", memory],
};

/** The kind of file system: SQLite's WAL needs memory that is shared within one machine, which network ones lack. */
export const fileSystemCheck: Check = {
  name: "file system",
  cure: "Set another folder with --data.",
  run({ config, existing }) {
    if (process.platform !== "linux") return skipped(`not checked on ${process.platform}`);
    return assessFileSystem(statfsSync(existing).type, config.ephemeral);
  },
};

/** What a kind of file system, by its magic number, means for a database. */
export function assessFileSystem(type: number, ephemeral: boolean): Finding {
  // Some systems return a signed number.
  const unsigned = type >>> 0;
  const [name, judge] = FILE_SYSTEMS[unsigned] ?? [`of an unknown kind (0x${unsigned.toString(16)})`, ok];
  return judge(name, ephemeral);
}

/** Whether fsync works, and how long it takes. */
export const fsyncCheck: Check = {
  name: "fsync",
  cure:
    "A server on this disk ends with exit code 74. Check the disk and the system's log, or set a folder on a working, " +
    "writable disk with --data.",
  run({ config, existing }) {
    const medianMs = withScratchFile(existing, fsyncMedianMs);
    const took = `${medianMs < 1 ? `${Math.round(medianMs * 1000)} µs` : `${medianMs.toFixed(1)} ms`} (median of ${FSYNC_ROUNDS})`;
    if (config.durability !== "full")
      return ok(`${took}; with durability normal, changes rarely wait for it`);
    if (medianMs < FSYNC_MS_MIN) {
      return warning(
        `${took}: too fast to have reached a disk`,
        "Find what ignores it: a file system in memory, eatmydata, or a mount option such as nobarrier.",
      );
    }
    if (medianMs > FSYNC_MS_SLOW) {
      return warning(
        `${took}: every change waits for it`,
        "Use a faster disk, or --durability normal if a power cut may lose the latest changes.",
      );
    }
    return ok(`${took}; a server ends with exit code 74 when one fails`);
  },
};

function fsyncMedianMs(file: number): number {
  const bytes = Buffer.alloc(FSYNC_BYTES, 1);
  const times: number[] = [];
  for (let round = 0; round < FSYNC_ROUNDS; round += 1) {
    writeSync(file, bytes, 0, bytes.length, round * FSYNC_BYTES);
    const begun = monotonicMs();
    fsyncSync(file);
    times.push(monotonicMs() - begun);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(FSYNC_ROUNDS / 2)] ?? 0;
}

/** Room on the disk. */
export const spaceCheck: Check = {
  name: "free space",
  cure: "Set another folder with --data.",
  run({ existing }) {
    const { bavail, bsize } = statfsSync(existing);
    const free = bavail * bsize;
    const detail = `${formatAmount(free, "bytes")} free`;
    const cure = "Free space, or move the data folder to a larger disk.";
    if (free < FREE_BYTES_MIN) return failed(`${detail}: changes will be rejected with 503`, cure);
    return free < FREE_BYTES_WARNING ? warning(detail, cure) : ok(detail);
  },
};

/** Difference between this machine's clock and the file system's, in milliseconds. */
export function fileSystemDriftMs({ existing }: Target): number {
  return withScratchFile(existing, (file) => {
    writeSync(file, "x");
    return fstatSync(file).mtimeMs - createSystemClock().now();
  });
}

/** What a drift is, in words; null when it is none to speak of. */
export function driftText(driftMs: number): string | null {
  if (Math.abs(driftMs) <= DRIFT_MS_MAX) return null;
  return `the file system's clock is ${formatDuration(Math.abs(driftMs))} ${driftMs > 0 ? "ahead" : "behind"}`;
}

/** Linux: a file without a name, so that not even the folder changes. The flag is the system's, not in node:fs. */
const O_TMPFILE = 0o20000000;
const OWNER_ONLY = 0o600;

/** Runs `work` on a private temporary file in `folder`. */
function withScratchFile<T>(folder: string, work: (file: number) => T): T {
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
    // Not every file system supports it: a named file for a short time instead.
    return null;
  }
}

function openUnlinked(folder: string): number {
  const path = join(folder, `.ninefold-doctor-${process.pid}`);
  const file = openSync(path, "wx+", OWNER_ONLY);
  unlinkSync(path);
  return file;
}
