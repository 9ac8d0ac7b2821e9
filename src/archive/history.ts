import { ftruncateSync, rmSync } from "node:fs";
import { openFile, writeAll } from "../kernel/storage/folders.ts";
import {
  applyEntry,
  decodeEntry,
  type Entry,
  forEachPage,
  HEADER_BYTES_MAX,
  openPart,
  PAGE_BYTES,
  readHeader,
  splitParts,
} from "../kernel/storage/replication/entry.ts";
import type { Position, StoredPosition } from "../kernel/storage/replication/position.ts";
import { type Base, basesIn } from "./bases.ts";
import { ENTRIES, entriesOf, entryName, entryNamed, type NamedPosition } from "./names.ts";
import { type ArchivedObject, type ArchiveStore, RANGE_BYTES, StoreUnavailable } from "./store.ts";

/** Objects that are read ahead. */
const READ_AHEAD = 8;

/** An archive does not have what is needed, or what it has is damaged. */
export class ArchiveProblem extends Error {}

/** A base and the objects that follow it. */
export interface History {
  readonly base: Base;
  /** Objects with a change that the base does not have, in order. */
  readonly objects: readonly ArchivedObject[];
}

/** What became of reading a history. */
export interface HistoryEnd {
  /** Of the last change. */
  readonly position: StoredPosition;
  /** Objects that were applied. */
  readonly objects: number;
}

/**
 * The newest base from which a time can be restored, with the objects after it; without a time the newest state. Null if there
 * is none. A base counts only if its own position is in the archive.
 *
 * @throws StoreUnavailable
 */
export async function findHistory(store: ArchiveStore, at: number | null): Promise<History | null> {
  const bases = (await basesIn(store)).filter(({ position }) => at === null || position.at <= at);
  for (const base of bases.toReversed()) {
    const objects = await objectsAfter(store, base);
    if (objects !== null) return { base, objects };
  }
  return null;
}

/** The objects with changes after a base; null if the archive does not reach the base's own position. */
async function objectsAfter(store: ArchiveStore, { from, position }: Base): Promise<ArchivedObject[] | null> {
  const { objects: found, end } = await entriesAfter(store, from);
  if (end < position.seq) return null;
  // Those that the base has as a whole would put older pages in the place of newer ones.
  const first = found.findIndex((_, index) => lastOf(found, index, end) > position.seq);
  const objects = first < 0 ? [] : found.slice(first);
  return [...objects, ...(await sealedAfter(store, { epoch: from.epoch, seq: end }))];
}

/** The number of an object's last entry: the one before the first of the next object. */
function lastOf(objects: readonly ArchivedObject[], index: number, end: number): number {
  const next = objects[index + 1];
  return next === undefined ? end : (entryNamed(next.name)?.seq ?? 0) - 1;
}

/**
 * The objects of an epoch after an entry, and the number of their last entry. The object that would follow is looked for by its
 * name: a store whose list ends too early, and does not say so, would hide the last changes.
 *
 * @throws StoreUnavailable for a list without an object that exists
 */
async function entriesAfter(
  store: ArchiveStore,
  { epoch, seq }: NamedPosition,
): Promise<{ readonly objects: readonly ArchivedObject[]; readonly end: number }> {
  const objects: ArchivedObject[] = [];
  let end = seq;
  for (let listed = -1; ; listed = objects.length) {
    for await (const object of store.list(entriesOf(epoch), entryName({ epoch, seq: end }))) {
      if (entryNamed(object.name) !== null) objects.push(object);
    }
    const last = objects.at(-1);
    if (last !== undefined) end = (await headerOf(store, last)).seq;
    const next = entryName({ epoch, seq: end + 1 });
    if (!(await store.has(next))) return { objects, end };
    // A server may have archived it since the list began: the second list has it.
    if (objects.length === listed)
      throw new StoreUnavailable(`the storage's list is not whole: it lacks ${next}`);
  }
}

/** The objects of later epochs that continue a position: each begins with a seal directly after it. */
async function sealedAfter(store: ArchiveStore, after: Position): Promise<ArchivedObject[]> {
  const found: ArchivedObject[] = [];
  let end: NamedPosition = after;
  for (;;) {
    const seal = await sealAfter(store, end);
    if (seal === null) return found;
    const { epoch } = seal;
    const rest = await entriesAfter(store, { epoch, seq: (await headerOf(store, seal.object)).seq });
    found.push(seal.object, ...rest.objects);
    end = { epoch, seq: rest.end };
  }
}

/** The first object of a later epoch that is the seal directly after a position, with its epoch; null if there is none. */
async function sealAfter(
  store: ArchiveStore,
  { epoch, seq }: NamedPosition,
): Promise<{ readonly object: ArchivedObject; readonly epoch: number } | null> {
  for await (const object of store.list(ENTRIES, entriesOf(epoch + 1))) {
    const named = entryNamed(object.name);
    if (named?.seq !== seq + 1 || !(await headerOf(store, object)).isSeal) continue;
    return { object, epoch: named.epoch };
  }
  return null;
}

async function headerOf(store: ArchiveStore, { name }: ArchivedObject) {
  return readHeader(await store.read(name, 0, HEADER_BYTES_MAX));
}

/**
 * Writes a database file from a history, up to a time. The file is complete when this resolves; it is not synced.
 *
 * @throws StoreUnavailable, InvalidEntry, ArchiveProblem if objects are missing.
 */
export async function writeHistory(
  store: ArchiveStore,
  { base, objects }: History,
  options: {
    readonly path: string;
    readonly key: Uint8Array;
    readonly at: number | null;
    readonly onRead?: (bytes: number, total: number) => void;
    readonly signal?: AbortSignal;
  },
): Promise<HistoryEnd> {
  const { path, key, at, onRead = () => undefined, signal } = options;
  const total = objects.reduce((sum, { bytes }) => sum + bytes, base.bytes);
  rmSync(path, { force: true });
  using file = openFile(path, "wx", 0o600);
  await writeBase(store, base, file.fd, key, (bytes) => {
    signal?.throwIfAborted();
    onRead(bytes, total);
  });
  let end: HistoryEnd = { position: base.position, objects: 0 };
  let read = base.bytes;
  for await (const entry of entriesOfObjects(store, objects, key)) {
    signal?.throwIfAborted();
    // Before the time is compared: what is missing may be from before it.
    if (entry.first > end.position.seq + 1)
      throw new ArchiveProblem(`the archive has no entry ${end.position.seq + 1}: objects are missing`);
    if (at !== null && entry.at > at) break;
    applyEntry(file.fd, entry);
    read += entry.bytes;
    onRead(read, total);
    const { epoch, seq, log } = entry;
    end = { position: { epoch, seq, at: entry.at, log }, objects: end.objects + 1 };
  }
  return end;
}

/** Reads some objects ahead: each alone would wait for the network. */
async function* entriesOfObjects(
  store: ArchiveStore,
  objects: readonly ArchivedObject[],
  key: Uint8Array,
): AsyncGenerator<Entry & { readonly first: number; readonly bytes: number }> {
  const ahead: Promise<Uint8Array>[] = [];
  const readNext = (index: number): void => {
    const object = objects[index];
    if (object === undefined) return;
    const reading = store.readAll(object);
    // Its error is that of the loop below, if that gets there.
    reading.catch(() => undefined);
    ahead.push(reading);
  };
  for (let index = 0; index < READ_AHEAD; index += 1) readNext(index);
  for (const [index, { name, bytes }] of objects.entries()) {
    const body = await ahead.shift();
    readNext(index + READ_AHEAD);
    const first = entryNamed(name)?.seq ?? 0;
    yield { ...decodeEntry(splitParts(body ?? new Uint8Array()), key, name), first, bytes };
  }
}

/** Reads a base in ranges: it need not fit into memory. */
async function writeBase(
  store: ArchiveStore,
  { name, bytes }: Base,
  file: number,
  key: Uint8Array,
  onRead: (bytes: number) => void,
): Promise<void> {
  let waiting: Uint8Array = new Uint8Array();
  let part = 0;
  let hasMore = true;
  let filePages = 0;
  for (let at = 0; at < bytes; at += RANGE_BYTES) {
    waiting = Buffer.concat([waiting, await store.read(name, at, Math.min(RANGE_BYTES, bytes - at))]);
    while (waiting.length >= HEADER_BYTES_MAX) {
      const { bytes: length } = readHeader(waiting);
      if (waiting.length < length) break;
      const opened = openPart(waiting.subarray(0, length), key, name);
      if (opened.part !== part) throw new ArchiveProblem(`${name} is damaged`);
      forEachPage(opened.payload, (page, content) => writeAll(file, content, (page - 1) * PAGE_BYTES));
      ({ hasMore, filePages } = opened);
      part += 1;
      waiting = waiting.subarray(length);
    }
    onRead(Math.min(bytes, at + RANGE_BYTES));
  }
  if (hasMore || waiting.length > 0) throw new ArchiveProblem(`${name} is incomplete`);
  ftruncateSync(file, filePages * PAGE_BYTES);
}
