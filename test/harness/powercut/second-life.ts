import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../crash/random.ts";
import { ServerTarget } from "../crash/target.ts";
import type { TargetRequest } from "../crash/workload.ts";
import type { HttpResponse } from "../processes/connection.ts";
import { ServerProcess } from "../processes/server-process.ts";
import { Control } from "./control.ts";
import { Disk, writeFiles } from "./disk.ts";
import { type Image, imageOf, timeOfKill } from "./images.ts";
import { OPERATOR_KEY, type Recording, replay, traced } from "./recording.ts";
import { type Seen, survey } from "./survey.ts";
import { NOTE, Trace } from "./trace.ts";

/** A cut in the life that follows a kill, and the responses in that life before it. */
export interface SecondCut extends Image {
  /** Number of notes of the recording before the kill. */
  readonly killed: number;
  readonly seen: readonly Seen[];
  /** Responses to requests that the kill had interrupted, and that were repeated. */
  readonly late: ReadonlyMap<number, HttpResponse>;
}

/**
 * Kills the server of a recording at some time, which leaves its writes in the page cache; starts another one on these
 * files, which sends responses; and then cuts the power.
 */
export async function cutSecondLife(
  recording: Recording,
  folder: string,
  random: Random,
): Promise<SecondCut> {
  const killed = timeOfKill(recording, random);
  const disk = new Disk();
  disk.apply(recording.trace.notes.slice(0, killed));
  const root = join(folder, "second");
  mkdirSync(root, { recursive: true });
  writeFiles(root, disk.seen());
  disk.moveTo(root);
  const tracePath = join(folder, "second-trace");
  const control = new Control(join(folder, "second-control"));
  const server = await ServerProcess.start(
    traced({ ...recording.plan, folder }, { root, tracePath, control }),
  );
  const received = { seen: [] as Seen[], late: new Map<number, HttpResponse>() };
  try {
    const target = new ServerTarget(server.url, OPERATOR_KEY, join(root, "data"));
    const { sent, open } = await sentBefore(recording, killed);
    // Interrupted requests come first: a little later a charge is written, and that syncs the log.
    if (random.chance(0.6)) received.seen = await survey(target, [...sent].reverse());
    if (random.chance(0.5)) received.late = await repeatOpen(sent, open, target);
  } finally {
    await server.stop("SIGKILL");
  }
  const trace = new Trace(readFileSync(tracePath));
  const requestIds = [
    ...received.seen.map(({ requestId }) => requestId),
    ...[...received.late.values()].map(idOf),
  ];
  const cut = random.chance(0.4)
    ? momentOfStart(trace, random)
    : momentAfterAnswer(trace, requestIds, random);
  disk.apply(trace.notes.slice(0, cut));
  const image = imageOf("second", disk, random, cut);
  return {
    ...image,
    story: `killed after note ${killed}, ${image.story} of the second life`,
    cut,
    killed,
    seen: received.seen.filter(({ requestId }) => trace.respondedAt(requestId) <= cut),
    late: new Map([...received.late].filter(([, response]) => trace.respondedAt(idOf(response)) <= cut)),
  };
}

/** The requests of clients before a kill, and those without a response. */
async function sentBefore(
  recording: Recording,
  killed: number,
): Promise<{ sent: TargetRequest[]; open: number[] }> {
  const { target, life } = await replay(recording, killed);
  const { sent, open } = target;
  await target.end(new Map());
  await life;
  return { sent, open };
}

/** Repeats interrupted requests that have an Idempotency-Key. */
async function repeatOpen(
  sent: readonly TargetRequest[],
  open: readonly number[],
  target: ServerTarget,
): Promise<Map<number, HttpResponse>> {
  const late = new Map<number, HttpResponse>();
  for (const number of open) {
    const request = sent[number];
    if (request?.idempotencyKey !== undefined) late.set(number, await target.ask(request));
  }
  return late;
}

/** During the start, which moves the log into the file. */
function momentOfStart({ notes }: Trace, random: Random): number {
  const firstAnswer = notes.findIndex(({ type }) => type === NOTE.answer);
  return random.below((firstAnswer < 0 ? notes.length : firstAnswer) + 1);
}

/** Immediately after one of the responses: usually the last one before any sync. */
function momentAfterAnswer(trace: Trace, requestIds: readonly string[], random: Random): number {
  const times = requestIds.map((id) => trace.respondedAt(id)).sort((left, right) => left - right);
  const firstSync = trace.notes.findIndex(({ type }) => type === NOTE.syncEnd);
  const unsynced = times.findLast((moment) => firstSync < 0 || moment <= firstSync);
  if (unsynced !== undefined && random.chance(0.7)) return unsynced;
  return times.length === 0 ? trace.notes.length : random.pick(times);
}

function idOf(response: HttpResponse): string {
  return response.headers.get("x-request-id") ?? "";
}
