import { fstatSync } from "node:fs";
import type { S3Client } from "../kernel/outbound/s3.ts";
import { openFile, readWhole } from "../kernel/storage/folders.ts";
import { OfflineDatabase } from "../kernel/storage/offline.ts";
import {
  encodeEntry,
  MergedEntry,
  PAGE_BYTES,
  payloadOf,
  sealPart,
} from "../kernel/storage/replication/entry.ts";
import { positionIn, type StoredPosition } from "../kernel/storage/replication/position.ts";
import { entriesIn } from "../kernel/storage/replication/tail.ts";
import { type Base, basesIn, newestCounting } from "./bases.ts";
import { type ArchiveEnd, findEnd } from "./history.ts";
import {
  baseName,
  claimName,
  claimNamed,
  ENTRIES,
  entryName,
  entryNamed,
  type NamedPosition,
} from "./names.ts";
import { type ArchivePlace, ArchiveStore, StoreUnavailable } from "./store.ts";

/** Pages of a part of a base: 4 MiB, so that 65,536 parts are enough for 256 GiB. */
const BASE_PART_PAGES = 1_024;
/** Pages of a part of an object: objects are only read as a whole. */
const OBJECT_PART_PAGES = 1_024;
/** The object of the probe. */
const PROBE = "probe";

/** What a worker is started with. */
export interface UploaderOptions {
  readonly place: ArchivePlace;
  /** From {@link ENTRY_KEY_PURPOSE}. */
  readonly key: Uint8Array;
  /** Bytes of a part of an upload; without it a size that suits large files. */
  readonly uploadPartBytes?: number;
}

/** What an archive was found to be. */
export interface FoundArchive {
  /** Whether the store honours `If-None-Match`. */
  readonly isConditional: boolean;
  /** All bases, ascending. */
  readonly bases: readonly Base[];
  /** Number of the newest history; 0: there is none. */
  readonly newest: number;
  /** Where the archive of a commit log ends; null: it has nothing of the log, or the server is not a leader's. */
  readonly end: ArchiveEnd | null;
}

/** What became of a segment. */
export type SegmentOutcome =
  | { readonly kind: "stored"; readonly last: StoredPosition; readonly bytes: number }
  | { readonly kind: "conflict" | "unavailable"; readonly problem: string };

/** Reads, merges, encrypts and stores. Runs in a worker, so that the event loop of the server does not wait for it. */
export class Uploader {
  private readonly store: ArchiveStore;
  private readonly key: Uint8Array;

  constructor(client: S3Client, { place, key, uploadPartBytes }: UploaderOptions) {
    this.store = new ArchiveStore(client, place, uploadPartBytes);
    this.key = key;
  }

  /** Examines the store and the archive. `log`: id of the commit log of a leader. @throws StoreUnavailable */
  async find(log: string | null): Promise<FoundArchive> {
    const isConditional = await this.store.isConditional(PROBE);
    const bases = isConditional ? await basesIn(this.store) : [];
    const newest = bases.at(-1)?.from.epoch ?? 0;
    if (!isConditional || log === null) return { isConditional, bases, newest, end: null };
    return { isConditional, bases, ...(await findEnd(this.store, bases, log)) };
  }

  /**
   * Claims the number of a new history, at least `from`: nobody else gets it. Returns it.
   *
   * @throws StoreUnavailable
   */
  async claim(from: number, owner: string): Promise<number> {
    for (let epoch = from; ; epoch += 1) {
      const outcome = await this.store.put(claimName(epoch), Buffer.from(`${owner}\n`));
      if (outcome.kind === "stored") return epoch;
      if (outcome.kind === "unavailable") throw new StoreUnavailable(outcome.problem);
    }
  }

  /** Stores the entries of a segment as one object. The same segment always has the same bytes. */
  async uploadSegment(path: string, first: NamedPosition): Promise<SegmentOutcome> {
    const merged = new MergedEntry();
    for (const entry of entriesIn(path, this.key)) merged.add(entry);
    const entry = merged.entry();
    if (entry === null) throw new Error(`${path} has no entries`);
    const name = entryName(first);
    const bytes = Buffer.concat([...encodeEntry(entry, this.key, name, OBJECT_PART_PAGES)]);
    const outcome = await this.store.put(name, bytes);
    if (outcome.kind !== "stored") return outcome;
    const { epoch, seq, at, log } = entry;
    return { kind: "stored", last: { epoch, seq, at, log }, bytes: bytes.length };
  }

  /**
   * Stores a copy of the database, which nothing else uses, as a base. `from` is an entry that it contains, and the last one
   * of its object; `epoch` is that of the copy's position.
   *
   * @throws StoreUnavailable; Error if the copy is of another epoch or has no position.
   */
  async uploadBase(path: string, from: NamedPosition, epoch: number): Promise<StoredPosition> {
    const position = positionOf(path);
    if (position === null || position.epoch !== epoch || position.seq < from.seq)
      throw new Error("the copy has no position of this archive");
    const name = baseName(from);
    await this.store.putLarge(name, baseParts(path, position, this.key, name));
    return position;
  }

  /**
   * Deletes what is not needed to restore any time from `since` on: every base before the newest one that counts and is older
   * than that, and the entries before it. What comes after this history, it does not touch. Returns the number of deleted objects.
   *
   * @throws StoreUnavailable
   */
  async expire(since: number, history: number): Promise<number> {
    const bases = await basesIn(this.store);
    const kept = await newestCounting(
      this.store,
      bases.filter(({ position, from }) => position.at <= since && from.epoch <= history),
    );
    if (kept === null) return 0;
    const expired = bases.slice(0, bases.indexOf(kept)).map(({ name }) => name);
    // Bases first: one whose entries are gone would restore a state that is older than the requested time.
    await this.store.remove(expired);
    const names: string[] = [];
    const end = entryName({ epoch: kept.from.epoch, seq: kept.from.seq + 1 });
    for await (const { name } of this.store.list(ENTRIES)) {
      if (name >= end) break;
      if (entryNamed(name) !== null || claimNamed(name) !== null) names.push(name);
    }
    await this.store.remove(names);
    return expired.length + names.length;
  }
}

function positionOf(path: string): StoredPosition | null {
  using db = OfflineDatabase.read(path);
  return positionIn(db);
}

/** A whole file as the parts of one entry. */
async function* baseParts(
  path: string,
  position: StoredPosition,
  key: Uint8Array,
  name: string,
): AsyncGenerator<Uint8Array> {
  using file = openFile(path, "r");
  // After the pages, a backup has a line of its own.
  const filePages = Math.floor(fstatSync(file.fd).size / PAGE_BYTES);
  const entry = { ...position, isSeal: false, filePages };
  for (let page = 1, part = 0; page <= filePages; page += BASE_PART_PAGES, part += 1) {
    const count = Math.min(BASE_PART_PAGES, filePages - page + 1);
    const bytes = Buffer.alloc(count * PAGE_BYTES);
    if (readWhole(file.fd, bytes, (page - 1) * PAGE_BYTES) < bytes.length)
      throw new Error(`${path} is shorter than when its copy began`);
    const pages = new Map(
      Array.from({ length: count }, (_, index) => [
        page + index,
        bytes.subarray(index * PAGE_BYTES, (index + 1) * PAGE_BYTES),
      ]),
    );
    const hasMore = page + count <= filePages;
    yield sealPart(entry, { part, hasMore, payload: payloadOf(pages, filePages) }, key, name);
  }
}
