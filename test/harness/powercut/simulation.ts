import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { launchUnderLoad } from "../crash/load.ts";
import { createRandom, type Random } from "../crash/random.ts";
import { inParallel, ServerTarget } from "../crash/target.ts";
import { verifyWorkloads } from "../crash/verification.ts";
import type { HttpResponse } from "../processes/connection.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";
import { FAULTS } from "./control.ts";
import { writeFiles } from "./disk.ts";
import { cutImage, type Image, type Kind, TURNS } from "./images.ts";
import {
  acknowledgedBy,
  OPERATOR_KEY,
  type Recording,
  type RecordingPlan,
  record,
  replay,
} from "./recording.ts";
import { cutSecondLife, type SecondCut } from "./second-life.ts";
import { compareSeen } from "./survey.ts";

/** Concurrent servers. */
const AT_ONCE = 2;

/** Settings of a simulation. */
export interface Simulation {
  readonly command: Command;
  readonly shim: string;
  /** An empty folder. */
  readonly folder: string;
  /** Folder for disks with a problem. */
  readonly failedFolder: string;
  readonly seed: number;
  readonly images: number;
  /** Only images of this kind. */
  readonly only?: Kind;
  /** Steps of each recorded life. */
  readonly acts: number;
  /** Number of simulated failures. */
  readonly faults?: number;
  readonly report?: (result: ImageResult) => void;
  /** Called with a disk before a server starts on it: tests damage it here. */
  readonly tamper?: (data: string) => void;
}

/** Result of one disk. */
export interface ImageResult {
  readonly number: number;
  readonly kind: Kind;
  /** A description of the disk. */
  readonly story: string;
  /** Successful responses before the cut. */
  readonly acknowledged: number;
  readonly problems: readonly string[];
}

/** Records servers, cuts the power once per image, and compares the disks with the records of the clients. */
export async function simulate(simulation: Simulation): Promise<ImageResult[]> {
  const recordings = await recordAll(simulation);
  const numbers = Array.from({ length: simulation.images }, (_, index) => index);
  return inParallel(numbers, AT_ONCE, async (number) => {
    const kind = simulation.only ?? TURNS[number % TURNS.length] ?? "dropped";
    const random = createRandom(simulation.seed * 100_003 + number);
    const fitting = recordings.filter(({ plan }) => isFitting(kind, plan, random));
    const result = await tryImage(simulation, { number, kind, random, recording: random.pick(fitting) });
    simulation.report?.(result);
    return result;
  });
}

/** The recordings for the images: one over several lives, and one for each failure. */
async function recordAll(simulation: Simulation): Promise<Recording[]> {
  const { seed, only } = simulation;
  const base = { ...simulation, connections: 16, fault: null };
  const plans: RecordingPlan[] = [
    { ...base, folder: join(simulation.folder, "recording"), lives: ["stop", "death", "death"] },
  ];
  const faults = only === undefined || only === "fault" || only === "second" ? FAULTS : [];
  for (const [index, fault] of faults.slice(0, simulation.faults ?? FAULTS.length).entries()) {
    const folder = join(simulation.folder, `recording-${index}`);
    plans.push({ ...base, folder, seed: seed + 1 + index, lives: ["death"], fault });
  }
  return inParallel(plans, AT_ONCE, (plan) => record(plan));
}

function isFitting(kind: Kind, { fault }: RecordingPlan, random: Random): boolean {
  if (kind === "fault") return fault !== null;
  return fault === null || (kind === "second" && random.chance(0.1));
}

interface Attempt {
  readonly number: number;
  readonly kind: Kind;
  readonly random: Random;
  readonly recording: Recording;
}

async function tryImage(simulation: Simulation, attempt: Attempt): Promise<ImageResult> {
  const { number, kind, random, recording } = attempt;
  const folder = join(simulation.folder, `image-${number}`);
  mkdirSync(folder);
  const fault = recording.plan.fault === null ? "" : `${recording.plan.fault.name}; `;
  let image: Image | SecondCut | null = null;
  let problems: string[] = [...recording.problems];
  try {
    image =
      kind === "second" ? await cutSecondLife(recording, folder, random) : cutImage(kind, recording, random);
    problems.push(...(await judge(simulation, recording, image, folder)));
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  problems = [...new Set(problems)];
  if (problems.length > 0 && image !== null) keep(simulation, number, image);
  rmSync(folder, { recursive: true, force: true });
  const cut = image === null ? 0 : timestampOf(image);
  const story = `${fault}${image?.story ?? "no image"}`;
  return { number, kind, story, acknowledged: acknowledgedBy(recording, cut), problems };
}

/** Number of notes of the recording after which the clients of an image received nothing more. */
function timestampOf(image: Image | SecondCut): number {
  return "killed" in image ? image.killed : image.cut;
}

/** Starts a server on a disk, and compares its responses with those that clients had received. */
async function judge(
  simulation: Simulation,
  recording: Recording,
  image: Image | SecondCut,
  folder: string,
): Promise<string[]> {
  const root = join(folder, "disk");
  mkdirSync(root);
  writeFiles(root, image.files);
  const data = join(root, "data");
  simulation.tamper?.(data);
  const server = await ServerProcess.start({
    ...launchUnderLoad(simulation.command, folder, data),
    // Without a file for notes the shim only prevents the server from waiting for the real disk.
    environment: { NINEFOLD_OPERATOR_KEY: OPERATOR_KEY, LD_PRELOAD: simulation.shim },
  });
  try {
    const target = new ServerTarget(server.url, OPERATOR_KEY, data);
    const problems = "killed" in image ? await compareSeen(target, image.seen) : [];
    problems.push(...(await compareRecord(recording, image, target)));
    const complaints = server.log.split("\n").filter((line) => line.includes('"level":"error"'));
    return [...problems, ...complaints.map((line) => `the server's log: ${line}`)];
  } finally {
    await server.stop("SIGKILL");
  }
}

async function compareRecord(
  recording: Recording,
  image: Image | SecondCut,
  target: ServerTarget,
): Promise<string[]> {
  const moment = timestampOf(image);
  if (moment < recording.preparedAt) return compareFirstStart(target);
  const replayed = await replay(recording, moment);
  await replayed.target.end("killed" in image ? image.late : new Map<number, HttpResponse>());
  await replayed.life;
  return verifyWorkloads(replayed.workloads, target);
}

/** Before the end of the first start, only the success of the next one is guaranteed. */
async function compareFirstStart(target: ServerTarget): Promise<string[]> {
  const response = await target.ask({ method: "GET", path: "/v1/meter/balance", key: target.operatorKey });
  const problems = response.status === 200 ? [] : [`a request of the operator returned ${response.status}`];
  return [...problems, ...(await verifyWorkloads([], target))];
}

/** Saves a disk as it was before the server was started on it. */
function keep(simulation: Simulation, number: number, image: Image): void {
  const folder = join(simulation.failedFolder, `image-${number}`);
  mkdirSync(folder, { recursive: true });
  writeFiles(folder, image.files);
}
