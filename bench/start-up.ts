import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BINARY_COMMAND, ServerProcess } from "../test/harness/processes/server-process.ts";
import { residentMiB } from "../test/harness/processes/usage.ts";
import type { Finding } from "./benchmark.ts";
import { median, noExecutable } from "./results.ts";
import type { Stage } from "./stage.ts";

const STARTS = 20;
const COLD_STARTS = 3;
/** After so long the first collections are over, and what is still resident stays. */
const IDLE_MS = 2_000;
const READY_MS_MAX = 60;
/** The same as a multiple of what a compiled server without anything takes, whose start depends on the machine alone. */
const READY_RATIO_MAX = 7;
const IDLE_MIB_MAX = 60;
/** Starts of the program that only mounts. */
const MOUNTINGS = 15;
/** Building the areas and mounting what they offer, for each operation, from source: half as much in the executable. */
const MOUNTING_MS_MAX = 0.25;

/** A server without anything. */
const BARE_START = join(import.meta.dir, "bare-start.ts");

/** Mounts everything once and prints what that took. */
const MOUNTING = join(import.meta.dir, "mounting.ts");

/** The name under which it is chosen. */
export const START_UP = "start-up and idle memory of the executable";

/** From the start of the process to its ready line, and what it holds with nothing to do; of the executable alone. */
export async function measureStartUp(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  const [executable = ""] = BINARY_COMMAND;
  if (!existsSync(executable)) return [noExecutable(START_UP)];
  say(`${START_UP}: ${STARTS} starts`);
  const bare = await compiled(BARE_START, join(stage.folder, "bare-start"));
  const bareReady: number[] = [];
  const ready: number[] = [];
  const memory: number[] = [];
  for (let count = 0; count < STARTS; count += 1) {
    const bareServer = await start(bare);
    bareReady.push(bareServer.readyMs);
    await bareServer.stop();
    const server = await start(executable);
    ready.push(server.readyMs);
    if (count % 5 === 0) memory.push(await idleMiB(server));
    await server.stop();
  }
  const mountingMs = Math.min(...(await mountings()));
  const coldMs = median(await coldStarts(stage, executable));
  const [readyMs, mib] = [Math.min(...ready), median(memory)];
  const bareMs = Math.min(...bareReady);
  const medians = `median ${median(ready).toFixed(0)} ms, ${coldMs.toFixed(0)} with the executable not in memory`;
  return [
    {
      what: `start-up: ephemeral, process start to ready line, minimum of ${STARTS}`,
      measured: `${readyMs.toFixed(0)} ms (${medians})`,
      required: `≤ ${READY_MS_MAX} ms`,
      ok: readyMs <= READY_MS_MAX,
    },
    {
      what: "start-up: the same, compared with a compiled server that opens a database and listens",
      measured: `× ${(readyMs / bareMs).toFixed(1)} of ${bareMs.toFixed(0)} ms`,
      required: `≤ ${READY_RATIO_MAX}`,
      ok: readyMs / bareMs <= READY_RATIO_MAX,
    },
    {
      what: `start-up: areas built and mounted, for each operation, from source, minimum of ${MOUNTINGS}`,
      measured: `${mountingMs.toFixed(3)} ms`,
      required: `≤ ${MOUNTING_MS_MAX} ms`,
      ok: mountingMs <= MOUNTING_MS_MAX,
    },
    {
      what: `idle memory: resident, ${IDLE_MS / 1_000} s after that`,
      measured: `${mib.toFixed(0)} MiB`,
      required: `≤ ${IDLE_MIB_MAX} MiB`,
      ok: mib <= IDLE_MIB_MAX,
    },
  ];
}

/** Compiles a program into an executable at a path, which it returns. */
async function compiled(program: string, path: string): Promise<string> {
  const options = ["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"];
  await Bun.$`${process.execPath} build --compile ${options} ${program} --outfile ${path}`.quiet();
  return path;
}

/** Milliseconds for each operation, of one process after the other: only the first time in a process is a start. */
async function mountings(): Promise<number[]> {
  const times: number[] = [];
  for (let count = 0; count < MOUNTINGS; count += 1) {
    const text = await Bun.$`${process.execPath} --no-env-file --no-install ${MOUNTING}`.text();
    times.push(Number(text));
  }
  return times;
}

function start(executable: string): Promise<ServerProcess> {
  return ServerProcess.start({ command: [executable], args: ["--ephemeral"] });
}

async function idleMiB(server: ServerProcess): Promise<number> {
  await Bun.sleep(IDLE_MS);
  const mib = residentMiB(server.pid);
  if (mib === null) throw new Error("this system does not tell how much memory a process holds");
  return mib;
}

/** Starts of a copy that the system was asked to drop from its memory. */
async function coldStarts(stage: Stage, executable: string): Promise<number[]> {
  const copy = join(stage.folder, "ninefold-cold");
  copyFileSync(executable, copy);
  const times: number[] = [];
  for (let count = 0; count < COLD_STARTS; count += 1) {
    await Bun.$`sync ${copy} && dd if=${copy} iflag=nocache count=0`.quiet();
    const server = await start(copy);
    times.push(server.readyMs);
    await server.stop();
  }
  rmSync(copy);
  return times;
}
