import type { Random } from "../crashes/random.ts";
import { Disk, type Files, NAMES_KEPT, type NameChoice } from "./disk.ts";
import { type Choice, DROPPED, KEPT, PAGE_BYTES } from "./file.ts";
import type { Recording } from "./recording.ts";
import { NOTE } from "./trace.ts";

/** Above all that SQLite writes at a time. */
const ROOM_BYTES_MIN = 65_537;
/** The unit in which a disk writes. */
const SECTOR_BYTES = 512;

/** What becomes of content that was not synced. */
const CONTENTS = {
  /** Nothing of it is there. */
  dropped: () => DROPPED,
  /** All of it is there. */
  kept: () => KEPT,
  /** Every sector of it is of some time since the last sync. */
  "torn-512": (random: Random): Choice => ({
    pieceBytes: SECTOR_BYTES,
    pick: (states) => random.below(states),
  }),
  /** Every page of it is of some time since the last sync. */
  "torn-4096": (random: Random): Choice => ({
    pieceBytes: PAGE_BYTES,
    pick: (states) => random.below(states),
  }),
  /** Every page of it is there or not, whichever was written first. */
  reordered: (random: Random): Choice => {
    const share = random.below(10) / 10;
    return { pieceBytes: PAGE_BYTES, pick: (states) => (random.chance(share) ? states - 1 : 0) };
  },
} as const;

const CONTENT_KINDS = Object.keys(CONTENTS) as (keyof typeof CONTENTS)[];

/**
 * What an image shows: a way in which content is left behind; `names`, that a name is not on the disk before its folder was
 * synced; `first`, a cut during the first start; `second`, a cut soon after the start that followed a kill; `fault`, a cut
 * after operations have failed; `space`, a cut while space is laid out in the log, or soon after.
 */
export type Kind = keyof typeof CONTENTS | "names" | "first" | "second" | "fault" | "room";

/** All kinds, in the order in which images take turns. Those that need most luck come more often. */
export const TURNS: readonly Kind[] = [
  ...["dropped", "fault", "second", "torn-512", "names"],
  ...["fault", "reordered", "second", "room", "torn-4096", "fault", "kept", "first"],
] as Kind[];

/** A disk as it may stand after a power cut. */
export interface Image {
  /** The cut comes after so many notes. */
  readonly cut: number;
  readonly files: Files;
  /** How the disk came about, in words. */
  readonly story: string;
}

/** Chooses a time of a recording, and what is on the disk then. */
export function cutImage(kind: Kind, recording: Recording, random: Random): Image {
  const cut = momentFor(kind, recording, random);
  const disk = new Disk();
  disk.apply(recording.trace.notes.slice(0, cut));
  return { cut, ...imageOf(kind, disk, random, cut) };
}

/** What is on a disk after a cut, chosen for a kind of image. */
export function imageOf(kind: Kind, disk: Disk, random: Random, cut: number): Omit<Image, "cut"> {
  const content = contentFor(kind, random);
  const isNamed: NameChoice = kind === "names" || kind === "first" ? () => random.chance(0.6) : NAMES_KEPT;
  const files = disk.after(CONTENTS[content](random), isNamed);
  const story = `cut after note ${cut}, un-synced content ${content}, un-synced: ${disk.unsynced.join(", ")}`;
  return { files, story };
}

function contentFor(kind: Kind, random: Random): keyof typeof CONTENTS {
  if (kind in CONTENTS) return kind as keyof typeof CONTENTS;
  // After a kill alone everything is there; and what could be read but was never synced is lost best when nothing is stored.
  if (kind === "fault" && random.chance(0.4)) return "kept";
  if ((kind === "second" || kind === "fault") && random.chance(0.6)) return "dropped";
  return random.pick(CONTENT_KINDS);
}

/** A time for a kill that a second life follows: a commit stands in the log, and its sync has not ended. */
export function momentOfKill({ trace, preparedAt }: Recording, random: Random): number {
  return beforeSomeSyncEnd(trace.notes, preparedAt, random);
}

function momentFor(kind: Kind, { trace, preparedAt }: Recording, random: Random): number {
  const { notes } = trace;
  if (kind === "first") return random.below(preparedAt);
  if (kind === "room") return momentOfRoom(notes, random);
  const from = kind === "fault" ? firstOf(notes, NOTE.fault, preparedAt) : preparedAt;
  if (kind === "names" && random.chance(0.8)) {
    const namings = indicesOf(notes, [NOTE.create, NOTE.rename, NOTE.unlink], from);
    if (namings.length > 0) return Math.min(notes.length, random.pick(namings) + 1 + random.below(12));
  }
  const choice = random.below(10);
  if (choice < 4) return beforeSomeSyncEnd(notes, from, random);
  if (choice < 7) {
    const answers = indicesOf(notes, [NOTE.answer], from);
    if (answers.length > 0) return random.pick(answers) + 1;
  }
  return from + random.below(notes.length - from + 1);
}

type Notes = Recording["trace"]["notes"];

/** Within the operations of some commits after a piece of space was appended, synced or not. */
function momentOfRoom(notes: Notes, random: Random): number {
  const pieces = indicesOf(notes, [NOTE.write], 0).filter((index) => isRoom(notes[index]?.bytes));
  if (pieces.length === 0) throw new Error("no room was laid out in the log");
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
