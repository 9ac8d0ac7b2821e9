import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import {
  decodeEntry,
  type Entry,
  encodeEntry,
  HEADER_BYTES_MAX,
  InvalidEntry,
  openPart,
  PAGE_BYTES,
  PAGES_PER_PART,
  PART_BYTES_MAX,
  payloadOf,
  plainHeader,
  readHeader,
  splitParts,
} from "../../../../src/kernel/storage/replication/entry.ts";
import { thrown } from "../../support.ts";
import { KEY } from "./support.ts";

const LOG = "0123456789abcdef0123456789abcdef";

function entryOf(
  pages: number,
  fill: () => Uint8Array = () => randomBytes(PAGE_BYTES),
  log: string | null = null,
): Entry {
  const map = new Map(Array.from({ length: pages }, (_, index) => [index * 3 + 1, fill()] as const));
  const position = { epoch: 4_000_000_000, seq: 2 ** 47, at: 1_795_000_000_123, log };
  return { ...position, isSeal: false, filePages: pages * 3, payload: payloadOf(map, pages * 3) };
}

describe("entries", () => {
  test("what is encoded is decoded, for every number of parts", () => {
    for (const pages of [0, 1, PAGES_PER_PART, PAGES_PER_PART + 1, 3 * PAGES_PER_PART]) {
      const entry = entryOf(pages);
      const parts = [...encodeEntry(entry, KEY)];
      expect(parts).toHaveLength(Math.max(1, Math.ceil(pages / PAGES_PER_PART)));
      // Pages that cannot be compressed are the longest.
      for (const part of parts) expect(part.length).toBeLessThanOrEqual(PART_BYTES_MAX);
      expect(decodeEntry(parts, KEY)).toEqual(entry);
      expect(decodeEntry(splitParts(Buffer.concat(parts)), KEY)).toEqual(entry);
    }
  });

  test("the same entry has the same bytes, and other pages at the same position another key", () => {
    const entry = entryOf(2);
    const bytes = Buffer.concat([...encodeEntry(entry, KEY)]);
    expect(Buffer.concat([...encodeEntry(entry, KEY)]).equals(bytes)).toBe(true);
    const other = Buffer.concat([...encodeEntry(entryOf(2), KEY)]);
    expect(other.length).toBe(bytes.length);
    expect(other.subarray(HEADER_BYTES_MAX).equals(bytes.subarray(HEADER_BYTES_MAX))).toBe(false);
  });

  test("the header can be read without the key", () => {
    const entry = { ...entryOf(2), isSeal: true };
    const [part] = [...encodeEntry(entry, KEY)];
    const { payload: _, ...position } = entry;
    expect(readHeader(part ?? new Uint8Array())).toEqual({
      ...position,
      hasMore: false,
      part: 0,
      pages: 2,
      bytes: part?.length ?? 0,
    });
  });

  test("no changed bit, other key or other context is opened", () => {
    const [part = new Uint8Array()] = [
      ...encodeEntry(
        entryOf(2, () => Buffer.alloc(PAGE_BYTES, 5)),
        KEY,
        "e/1",
      ),
    ];
    expect(openPart(part, KEY, "e/1").pages).toBe(2);
    expect(thrown(() => openPart(part, KEY, "e/2"))).toBeInstanceOf(InvalidEntry);
    expect(thrown(() => openPart(part, new Uint8Array(32), "e/1"))).toBeInstanceOf(InvalidEntry);
    fc.assert(
      fc.property(fc.nat(part.length - 1), fc.integer({ min: 1, max: 255 }), (at, bits) => {
        const changed = Buffer.from(part);
        changed[at] = (changed[at] ?? 0) ^ bits;
        expect(thrown(() => openPart(changed, KEY, "e/1"))).toBeInstanceOf(InvalidEntry);
      }),
    );
  });

  test("the id of a log can be read without the key, and not be changed", () => {
    const entry = entryOf(PAGES_PER_PART + 1, undefined, LOG);
    const parts = [...encodeEntry(entry, KEY)];
    for (const part of parts) expect(readHeader(part).log).toBe(LOG);
    expect(decodeEntry(splitParts(Buffer.concat(parts)), KEY)).toEqual(entry);
    expect(decodeEntry([Buffer.concat([plainHeader(entry), entry.payload])], KEY)).toEqual(entry);
    const [first = new Uint8Array(), last = new Uint8Array()] = parts;
    const other = Buffer.from(first);
    other[HEADER_BYTES_MAX - 1] = (other[HEADER_BYTES_MAX - 1] ?? 0) ^ 1;
    expect(thrown(() => openPart(other, KEY))).toBeInstanceOf(InvalidEntry);
    const [without = new Uint8Array()] = [...encodeEntry({ ...entry, log: null }, KEY)];
    expect(thrown(() => decodeEntry([without, last], KEY))).toBeInstanceOf(InvalidEntry);
  });

  test("an entry counts only with all of its parts", () => {
    const parts = [...encodeEntry(entryOf(PAGES_PER_PART * 2 + 1), KEY)];
    const [first, second, third] = parts as [Uint8Array, Uint8Array, Uint8Array];
    for (const wrong of [[], [first, second], [second, third], [first, third], [first, second, second]])
      expect(thrown(() => decodeEntry(wrong, KEY))).toBeInstanceOf(InvalidEntry);
    expect(thrown(() => splitParts(Buffer.concat(parts).subarray(0, -1)))).toBeInstanceOf(InvalidEntry);
  });

  test("a plain entry is its header and its payload, and a changed byte is found", () => {
    const entry = entryOf(3);
    const bytes = Buffer.concat([plainHeader(entry), entry.payload]);
    expect(decodeEntry([bytes], KEY)).toEqual(entry);
    bytes[HEADER_BYTES_MAX + 100] = (bytes[HEADER_BYTES_MAX + 100] ?? 0) ^ 1;
    expect(thrown(() => decodeEntry([bytes], KEY))).toBeInstanceOf(InvalidEntry);
  });

  test("a newer version says so", () => {
    const [part = new Uint8Array()] = [...encodeEntry(entryOf(1), KEY)];
    part[4] = 3;
    expect(String(thrown(() => readHeader(part)))).toContain("newer");
  });
});
