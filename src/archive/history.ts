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
import { type Base, basesIn, newestCounting } from "./bases.ts";
import {
  claimNamed,
  ENTRIES,
  entriesOf,
  entryName,
  entryNamed,
  lastNameOf,
  type NamedPosition,
} from "./names.ts";
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
 * is none. A base counts only if its own position is in the archive. Of several histories of one commit log it is that which
 * reaches furthest: a leader that was replaced may have begun one before it noticed.
 *
 * @throws StoreUnavailable
 */
export async function findHistory(store: ArchiveStore, at: number | null): Promise<History | null> {
  const bases = (await basesIn(store)).filter(({ position }) => at === null || position.at <= at);
  let found: History | null = null;
  let reached: Position | null = null;
  const seen = new Set<number>();
  for (const base of bases.toReversed()) {
    if (seen.has(base.from.epoch)) continue;
    if (found !== null && (base.position.log === null || base.position.log !== found.base.position.log))
      continue;
    const history = await historyFrom(store, base);
    if (history === null) continue;
    seen.add(base.from.epoch);
    if (base.position.log === null) return history;
    const end = await endOf(store, history);
    if (reached !== null && !isAfter(end, reached)) continue;
    found = history;
    reached = end;
  }
  return found;
}

/** The position of a history's last entry. @throws StoreUnavailable */
async function endOf(store: ArchiveStore, { base, objects }: History): Promise<Position> {
  const last = objects.at(-1);
  return last === undefined ? base.position : headerOf(store, last);
}

/** Whether a position of a commit log comes after another one of it. */
function isAfter(position: Position, other: Position): boolean {
  return position.epoch > other.epoch || (position.epoch === other.epoch && position.seq > other.seq);
}

/** Where an archive ends. */
export interface ArchiveEnd {
  /** Number of the history. */
  readonly history: number;
  readonly position: StoredPosition;
  /** The newest base of the history that counts; null: it has none yet. */
  readonly base: Base | null;
}

/**
 * The end of that history of a commit log which reaches furthest, and the number of the newest history of all (0: there is
 * none). The end is null if the archive has no entry of this log.
 *
 * @throws StoreUnavailable
 */
export async function findEnd(
  store: ArchiveStore,
  bases: readonly Base[],
  log: string,
): Promise<{ readonly newest: number; readonly end: ArchiveEnd | null }> {
  const newestBases = new Map(bases.map((base) => [base.from.epoch, base]));
  const ofLog = [...newestBases].filter(([, { position }]) => position.log === log);
  const histories = new Map<number, Base | null>(ofLog);
  let newest = bases.at(-1)?.from.epoch ?? 0;
  // Histories that have no base yet.
  for await (const { name } of store.list(ENTRIES, newest === 0 ? "" : lastNameOf(newest))) {
    const named = entryNamed(name) ?? claimNamed(name);
    if (named === null) continue;
    newest = named.epoch;
    histories.set(newest, null);
  }
  let end: ArchiveEnd | null = null;
  for (const [history, newestBase] of histories) {
    const position = await lastPosition(store, history, newestBase);
    if (position?.log !== log || (end !== null && !isAfter(position, end.position))) continue;
    end = { history, position, base: null };
  }
  if (end === null) return { newest, end };
  const { history } = end;
  const base = await newestCounting(
    store,
    bases.filter(({ from }) => from.epoch === history),
  );
  return { newest, end: { ...end, base } };
}

/** Where a history ends; null: it has no entry. `base` is its newest one: only what follows that is listed, if there is something. */
async function lastPosition(
  store: ArchiveStore,
  epoch: number,
  base: Base | null,
): Promise<StoredPosition | null> {
  const { objects } = await entriesAfter(store, base?.from ?? { epoch, seq: 0 });
  const last = objects.at(-1);
  if (last !== undefined) return headerOf(store, last);
  if (base === null) return null;
  return base.position.seq === base.from.seq ? base.position : lastPosition(store, epoch, null);
}

/** A base with what follows it; null if the archive does not reach the base's own position. */
async function historyFrom(store: ArchiveStore, base: Base): Promise<History | null> {
  const objects = await objectsAfter(store, base);
  return objects && { base, objects };
}

/** The objects with changes after a base; null if the archive does not reach the base's own position. */
async function objectsAfter(store: ArchiveStore, { from, position }: Base): Promise<ArchivedObject[] | null> {
  const { objects: found, end } = await entriesAfter(store, from);
  if (end < position.seq) return null;
  // Those that the base has as a whole would put older pages in the place of newer ones.
  const first = found.findIndex((_, index) => lastOf(found, index, end) > position.seq);
  return first < 0 ? [] : found.slice(first);
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
    // The beginning of an epoch in a commit log has no time.
    const time = entry.at === 0 ? end.position.at : entry.at;
    end = { position: { epoch, seq, at: time, log }, objects: end.objects + 1 };
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
