import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const VERSION_1 = "/sys/fs/cgroup/memory";
const VERSION_2 = "/sys/fs/cgroup";

/** A group of processes that may use so much memory and no more, as a container's. */
export interface MemoryGroup {
  /** A shell command that puts itself into the group, before it becomes what follows. */
  readonly enter: string;
  /** Highest use so far, in bytes. */
  readonly peakFile: string;
  remove(): void;
}

/** Null where this process may not make one. */
export function memoryGroup(bytes: number): MemoryGroup | null {
  const isVersion1 = existsSync(join(VERSION_1, "memory.limit_in_bytes"));
  const folder = join(isVersion1 ? VERSION_1 : VERSION_2, `ninefold-test-${process.pid}`);
  const [limit, peak] = isVersion1
    ? ["memory.limit_in_bytes", "memory.max_usage_in_bytes"]
    : ["memory.max", "memory.peak"];
  try {
    mkdirSync(folder);
  } catch {
    return null;
  }
  const remove = () => rmdirSync(folder);
  try {
    writeFileSync(join(folder, limit), String(bytes));
  } catch {
    remove();
    return null;
  }
  return { enter: `echo $$ > ${join(folder, "cgroup.procs")}`, peakFile: join(folder, peak), remove };
}
