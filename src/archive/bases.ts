import { HEADER_BYTES_MAX, readHeader } from "../kernel/storage/replication/entry.ts";
import type { StoredPosition } from "../kernel/storage/replication/position.ts";
import { BASES, baseNamed, entriesOf, entryName, entryNamed, type NamedPosition } from "./names.ts";
import type { ArchiveStore } from "./store.ts";

/** A base in the archive. */
export interface Base {
  readonly name: string;
  /** The entry whose number is in its name; see {@link baseName}. */
  readonly from: NamedPosition;
  /** The position that it has. */
  readonly position: StoredPosition;
  readonly bytes: number;
}

/** Every base of an archive, ascending. @throws StoreUnavailable */
export async function basesIn(store: ArchiveStore): Promise<Base[]> {
  const bases: Base[] = [];
  for await (const { name, bytes } of store.list(BASES)) {
    const from = baseNamed(name);
    if (from === null) continue;
    const { epoch, seq, at, log } = readHeader(await store.read(name, 0, HEADER_BYTES_MAX));
    bases.push({ name, from, position: { epoch, seq, at, log }, bytes });
  }
  return bases;
}

/** The newest of some bases that counts: its own position is in the archive. Null if none does. @throws StoreUnavailable */
export async function newestCounting(store: ArchiveStore, bases: readonly Base[]): Promise<Base | null> {
  for (const base of bases.toReversed()) if (await isReached(store, base)) return base;
  return null;
}

/** Whether the archive has the entries up to a base's position: the last of them were captured while it was made. */
async function isReached(store: ArchiveStore, { from, position }: Base): Promise<boolean> {
  if (from.seq >= position.seq) return true;
  let last: string | null = null;
  for await (const { name } of store.list(entriesOf(from.epoch), entryName(from))) {
    const first = entryNamed(name);
    if (first === null) continue;
    if (first.seq > position.seq) return true;
    last = name;
  }
  return last !== null && readHeader(await store.read(last, 0, HEADER_BYTES_MAX)).seq >= position.seq;
}
