import { expect, test } from "bun:test";
import { readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { writeDurably } from "../../../src/kernel/storage/folders.ts";
import { memoryDisk } from "../../support/memory-disk.ts";

/** What the disk still takes: a part of the text. */
const FREE_BYTES = 4_096;

test("a file is replaced completely or not at all if the disk takes only a part of it", () => {
  const disk = memoryDisk(1);
  // Where mounting is not permitted.
  if (disk === null) return;
  try {
    const path = join(disk.folder, "mark");
    writeDurably(path, "before");
    disk.fill();
    const filler = join(disk.folder, "filler");
    truncateSync(filler, statSync(filler).size - FREE_BYTES);
    expect(() => writeDurably(path, "x".repeat(4 * FREE_BYTES))).toThrow("ENOSPC");
    expect(readFileSync(path, "utf8")).toBe("before");
  } finally {
    disk.remove();
  }
});
