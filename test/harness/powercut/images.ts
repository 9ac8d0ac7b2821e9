import type { Random } from "../crash/random.ts";
import { Disk, type Files, NAMES_KEPT, type NameChoice } from "./disk.ts";
import { type Choice, DROPPED, KEPT, PAGE_BYTES } from "./file.ts";
import type { Recording } from "./recording.ts";
import { NOTE } from "./trace.ts";

/** More than SQLite ever writes in one operation. */
const ROOM_BYTES_MIN = 65_537;
/** The unit in which a disk writes. */
const SECTOR_BYTES = 512;

/** Choices for unsynced content. */
const CONTENTS = {
  /** All of it is lost. */
  dropped: () => DROPPED,
  /** All of it is on the disk. */
  kept: () => KEPT,
  /** Every sector has its state at some time since the last sync. */
  "torn-512": (random: Random): Choice => ({
    pieceBytes: SECTOR_BYTES,
    pick: (states) => random.below(states),
  }),
  /** Every page has its state at some time since the last sync. */
  "torn-4096": (random: Random): Choice => ({
    pieceBytes: PAGE_BYTES,
    pick: (states) => random.below(states),
  }),
  /** Every page is on the disk or not, in any order. */
  reordered: (random: Random): Choice => {
    const share = random.below(10) / 10;
    return { pieceBytes: PAGE_BYTES, pick: (states) => (random.chance(share) ? states - 1 : 0) };
  },
} as const;

const CONTENT_KINDS = Object.keys(CONTENTS) as (keyof typeof CONTENTS)[];

/**
 * What an image simulates: a choice for unsynced content; `names`, that a name is not on the disk before its folder was
 * synced; `first`, a cut during the first start; `second`, a cut soon after the start that followed a kill; `fault`, a
 * cut after operations have failed; `room`, a cut while space is preallocated in the log, or soon after.
 */
export type Kind = keyof typeof CONTENTS | "names" | "first" | "second" | "fault" | "room";

/** All kinds, in the order in which images use them. Kinds that rarely find a problem are more frequent. */
export const TURNS: readonly Kind[] = [
  ...["dropped", "fault", "second", "torn-512", "names"],
  ...["fault", "reordered", "second", "room", "torn-4096", "fault", "kept", "first"],
] as Kind[];

/** A possible disk after a power cut. */
export interface Image {
  /** Number of notes before the cut. */
  readonly cut: number;
  readonly files: Files;
  /** A description of the disk. */
  readonly story: string;
}

/** Chooses a time of a recording, and the content of the disk at that time. */
export function cutImage(kind: Kind, recording: Recording, random: Random): Image {
  const cut = timeFor(kind, recording, random);
  const disk = new Disk();
  disk.apply(recording.trace.notes.slice(0, cut));
  return { cut, ...imageOf(kind, disk, random, cut) };
}

/** Chooses the content of a disk after a cut, for a kind of image. */
export function imageOf(kind: Kind, disk: Disk, random: Random, cut: number): Omit<Image, "cut"> {
  const content = contentFor(kind, random);
  const isNamed: NameChoice = kind === "names" || kind === "first" ? () => random.chance(0.6) : NAMES_KEPT;
  const files = disk.after(CONTENTS[content](random), isNamed);
  const story = `cut after note ${cut}, un-synced content ${content}, un-synced: ${disk.unsynced.join(", ")}`;
  return { files, story };
}

function contentFor(kind: Kind, random: Random): keyof typeof CONTENTS {
  if (kind in CONTENTS) return kind as keyof typeof CONTENTS;
  // After a kill without a power cut all content is there. Content that was never synced is most likely to be missed
  // when the cut loses everything.
  if (kind === "fault" && random.chance(0.4)) return "kept";
  if ((kind === "second" || kind === "fault") && random.chance(0.6)) return "dropped";
  return random.pick(CONTENT_KINDS);
}

/**
 * A time for a kill before a second life: a commit is in the log, and its sync is in progress. Or the end of a server that
 * something has failed for.
 */
export function timeOfKill({ trace, preparedAt, plan }: Recording, random: Random): number {
  if (plan.fault !== null && random.chance(0.7)) return trace.notes.length;
  return beforeSomeSyncEnd(trace.notes, preparedAt, random);
}

function timeFor(kind: Kind, { trace, preparedAt }: Recording, random: Random): number {
  const { notes } = trace;
  if (kind === "first") return random.below(preparedAt);
  if (kind === "room") return timeOfRoom(notes, random);
  const from = kind === "fault" ? firstOf(notes, NOTE.fault, preparedAt) : preparedAt;
  if (kind === "names" && random.chance(0.8)) {
    const namings = indicesOf(notes, [NOTE.create, NOTE.rename, NOTE.unlink], from);
    if (namings.length > 0) return Math.min(notes.length, random.pick(namings) + 1 + random.below(12));
  }
  const choice = random.below(10);
  if (choice < 4) return beforeSomeSyncEnd(notes, from, random);
  if (choice < 7) {
    const responses = indicesOf(notes, [NOTE.answer], from);
    if (responses.length > 0) return random.pick(responses) + 1;
  }
  return from + random.below(notes.length - from + 1);
}

type Notes = Recording["trace"]["notes"];

/** During the operations of some commits after a piece of space was preallocated, synced or not. */
function timeOfRoom(notes: Notes, random: Random): number {
  const pieces = indicesOf(notes, [NOTE.write], 0).filter((index) => isRoom(notes[index]?.bytes));
  if (pieces.length === 0) throw new Error("no space was preallocated in the log");
  return Math.min(notes.length, random.pick(pieces) + 1 + random.below(20));
}

function isRoom(bytes: Buffer | undefined): boolean {
  return bytes !== undefined && bytes.length >= ROOM_BYTES_MIN && bytes.every((byte) => byte === 0);
}

function beforeSomeSyncEnd(notes: Notes, from: number, random: Random): number {
  const ends = indicesOf(notes, [NOTE.syncEnd], from);
  return ends.length === 0 ? notes.length : random.pick(ends);
}

function firstOf(notes: Notes, type: number, from: number): number {
  return indicesOf(notes, [type], from)[0] ?? notes.length;
}

function indicesOf(notes: Notes, types: readonly number[], from: number): number[] {
  const found: number[] = [];
  for (let index = from; index < notes.length; index += 1) {
    const type = notes[index]?.type;
    if (type !== undefined && types.includes(type)) found.push(index);
  }
  return found;
}
