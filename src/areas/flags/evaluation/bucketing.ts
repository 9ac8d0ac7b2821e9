/**
 * Where a text lies within a split. MurmurHash3 (x86, 32 bits, seed 0) over UTF-8 is stored with each split as `m3`, and is
 * never changed: another hash would move everybody.
 */

const UTF8 = new TextEncoder();

/** A text as bytes. The last one is kept: all flags of a project are evaluated for the same subject, one after another. */
let encoded = { text: "", bytes: UTF8.encode("") };

function bytesOf(text: string): Uint8Array {
  if (encoded.text !== text) encoded = { text, bytes: UTF8.encode(text) };
  return encoded.bytes;
}

/** MurmurHash3 x86 32 of texts that begin alike: what they begin with is hashed once. */
export class PrefixedHash {
  private readonly state: number;
  /** The bytes behind the last whole block of four, and how many. */
  private readonly rest: number;
  private readonly length: number;

  constructor(prefix: string) {
    const bytes = UTF8.encode(prefix);
    let state = 0;
    let block = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      block |= (bytes[at] as number) << (8 * (at & 3));
      if ((at & 3) !== 3) continue;
      state = taken(state, block);
      block = 0;
    }
    this.state = state;
    this.rest = block;
    this.length = bytes.length;
  }

  /** The hash of the prefix with a text behind it, from 0 to 2^32 - 1. */
  of(text: string): number {
    const bytes = bytesOf(text);
    let { state, rest: block, length } = this;
    for (let at = 0; at < bytes.length; at += 1) {
      block |= (bytes[at] as number) << (8 * (length & 3));
      length += 1;
      if ((length & 3) !== 0) continue;
      state = taken(state, block);
      block = 0;
    }
    if ((length & 3) !== 0) state ^= mixed(block);
    state ^= length;
    state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    return (state ^ (state >>> 16)) >>> 0;
  }
}

function taken(state: number, block: number): number {
  const next = state ^ mixed(block);
  return (Math.imul((next << 13) | (next >>> 19), 5) + 0xe6546b64) | 0;
}

function mixed(block: number): number {
  const product = Math.imul(block, 0xcc9e2d51);
  return Math.imul((product << 15) | (product >>> 17), 0x1b873593);
}

/**
 * The position of a hash among `weight` (at most 2^32 - 1) places: `floor(hash · weight / 2^32)`. The product passes 2^53, so it
 * is taken in two halves, each of them exact.
 */
export function positionOf(hash: number, weight: number): number {
  const low = Math.floor((hash * (weight & 0xffff)) / 0x10000);
  return Math.floor((hash * (weight >>> 16) + low) / 0x10000);
}
