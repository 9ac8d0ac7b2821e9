import { readFileSync } from "node:fs";

/** Resident memory of a process in MiB; null on systems without `/proc`. */
export function residentMiB(pid: number): number | null {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kib === undefined ? null : Number(kib) / 1_024;
  } catch {
    return null;
  }
}

/** Unit of the times in `/proc`, in milliseconds: the same on every Linux. */
const TICK_MS = 10;
/** Positions of user and system time among the fields that follow the name of the program. */
const USER_TIME = 11;
const SYSTEM_TIME = 12;

/** Processor time that a process has taken in all its threads, in milliseconds. @throws Error on systems without `/proc`. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name stands in parentheses, and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[USER_TIME]) + Number(fields[SYSTEM_TIME])) * TICK_MS;
}
