import { expect } from "bun:test";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A small file system of its own. */
export interface MemoryDisk {
  readonly folder: string;
  /** Leaves no room. */
  fill(): void;
  freeSpace(): void;
  remove(): void;
}

const MIB = 1024 * 1024;
const DISK_MIB = 8;

/** A file system in memory, of a fixed size; null where mounting is not permitted. */
export function memoryDisk(mebibytes = DISK_MIB): MemoryDisk | null {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-disk-"));
  const command = ["mount", "-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", folder];
  const remove = () => rmSync(folder, { recursive: true, force: true });
  if (Bun.which("mount") === null || !Bun.spawnSync(command, { stderr: "ignore" }).success) {
    remove();
    return null;
  }
  const filler = join(folder, "filler");
  return {
    folder,
    fill: () => {
      for (const bytes of [MIB, 4096]) {
        for (;;) {
          try {
            appendFileSync(filler, new Uint8Array(bytes));
          } catch {
            break;
          }
        }
      }
    },
    freeSpace: () => rmSync(filler),
    remove: () => {
      expect(Bun.spawnSync(["umount", "-l", folder]).success).toBe(true);
      remove();
    },
  };
}
