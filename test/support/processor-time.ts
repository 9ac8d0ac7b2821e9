import { dlopen, ptr } from "bun:ffi";
import { realDelay } from "../../src/kernel/time/clock.ts";

/** Longest time for which one request may hold the event loop, in milliseconds of {@link processorMs}. */
export const TURN_MS_MAX = 20;

const IS_MAC = process.platform === "darwin";
/** The number of the clock in `time.h`, and the library that has it. */
const CLOCK_THREAD_CPUTIME_ID = IS_MAC ? 16 : 3;
const LIBC = IS_MAC ? "libSystem.dylib" : "libc.so.6";
const { clock_gettime } = dlopen(LIBC, { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } }).symbols;
/** A `struct timespec`: seconds and nanoseconds. */
const timespec = new BigInt64Array(2);
const timespecAt = ptr(timespec);

/**
 * Processor time that this thread has used, in milliseconds. `process.threadCpuUsage` says the same, but a running thread's time
 * stands still there between two ticks of the kernel, which are up to 4 ms apart.
 */
function threadMs(): number {
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, timespecAt);
  return Number(timespec[0]) * 1_000 + Number(timespec[1]) / 1_000_000;
}

/** What {@link fixedWork} takes on a quiet core of the machine that limits are meant for, in milliseconds. */
const FIXED_WORK_MS = 2;
const DOCUMENT = JSON.stringify(
  Array.from({ length: 2_000 }, (_, at) => ({
    id: `item ${at}`,
    list: [at, at * 1.5, null, true],
    text: 'a "b"\n',
  })),
);

/** A piece of work like that of a request: it parses and writes JSON, and goes through a text. */
function fixedWork(): number {
  const text = JSON.stringify(JSON.parse(DOCUMENT));
  let sum = 0;
  for (let at = 0; at < text.length; at += 1) sum = (sum * 31 + text.charCodeAt(at)) | 0;
  return sum;
}

/** The first runs compile {@link fixedWork}. */
for (let run = 0; run < 20; run += 1) fixedWork();

/**
 * How much slower this thread is at this time than on the machine that limits are meant for, at least 1: a core that other work
 * shares takes up to twice the processor time for the same instructions.
 */
function slowness(): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3; run += 1) {
    const from = threadMs();
    fixedWork();
    least = Math.min(least, threadMs() - from);
  }
  return Math.max(1, least / FIXED_WORK_MS);
}

/**
 * Processor time that this thread uses while something runs, in milliseconds of a quiet core: divided by how much longer a fixed
 * piece of work takes directly afterwards. Neither time for which the thread waits for a core nor a slow machine counts.
 */
export async function processorMs(work: () => unknown): Promise<number> {
  const from = threadMs();
  await work();
  return quietMs(threadMs() - from);
}

/** The same for a processor time that was just measured, of any thread or process. */
export function quietMs(usedMs: number): number {
  return usedMs / slowness();
}

/** The processor time of the longest turn of the event loop while something runs, in milliseconds as of {@link processorMs}. */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let running = true;
  const watch = (async () => {
    while (running) {
      const from = threadMs();
      await new Promise(setImmediate);
      const used = threadMs() - from;
      if (used > longest) longest = Math.max(longest, quietMs(used));
    }
  })();
  try {
    await work();
  } finally {
    running = false;
    await watch;
  }
  return longest;
}

/** Measurements of {@link leastMs} without a pause between them: the first ones also compile the code. */
const RUNS = 10;
/** Further ones, with a pause: the compiler has threads of its own, which a busy machine lets wait. */
const LATER_RUNS = 30;
const PAUSE_MS = 100;

/** Repeats a measurement until it is within a limit, but not forever, and returns the least result. */
export async function leastMs(limitMs: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS + LATER_RUNS && least > limitMs; run += 1) {
    if (run >= RUNS) await realDelay(PAUSE_MS);
    least = Math.min(least, await measure());
  }
  return least;
}
