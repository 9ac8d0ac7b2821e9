/**
 * Computes positions within a split. The hash, MurmurHash3 (x86, 32 bits, seed 0) over UTF-8, is stored with each split as
 * `m3` and never changes: another hash would reassign everyone.
 */

const UTF8 = new TextEncoder();

/** The last encoded text. Bulk evaluations hash the same text for every flag. */
let encoded = { text: "", bytes: UTF8.encode("") };

function bytesOf(text: string): Uint8Array {
  if (encoded.text !== text) encoded = { text, bytes: UTF8.encode(text) };
  return encoded.bytes;
}

/** MurmurHash3 x86 32 of texts with a common prefix, which is hashed once. */
export class PrefixedHash {
  private readonly state: number;
  /** Bytes after the last complete block of four. */
  private readonly rest: number;
  private readonly length: number;

  constructor(prefix: string) {
    const bytes = UTF8.encode(prefix);
    let state = 0;
    let block = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      block |= (bytes[at] as number) << (8 * (at & 3));
      if ((at & 3) !== 3) continue;
      state = mixBlock(state, block);
      block = 0;
    }
    this.state = state;
    this.rest = block;
    this.length = bytes.length;
  }

  /** Returns the hash of the prefix followed by a text, from 0 to 2^32 - 1. */
  of(text: string): number {
    const bytes = bytesOf(text);
    let { state, rest: block, length } = this;
    for (let at = 0; at < bytes.length; at += 1) {
      block |= (bytes[at] as number) << (8 * (length & 3));
      length += 1;
      if ((length & 3) !== 0) continue;
      state = mixBlock(state, block);
      block = 0;
    }
    if ((length & 3) !== 0) state ^= scramble(block);
    state ^= length;
    state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    return (state ^ (state >>> 16)) >>> 0;
  }
}

function mixBlock(state: number, block: number): number {
  const next = state ^ scramble(block);
  return (Math.imul((next << 13) | (next >>> 19), 5) + 0xe6546b64) | 0;
}

function scramble(block: number): number {
  const product = Math.imul(block, 0xcc9e2d51);
  return Math.imul((product << 15) | (product >>> 17), 0x1b873593);
}

/**
 * Returns the position of a hash among `weight` (at most 2^32 - 1) places: `floor(hash · weight / 2^32)`. The product exceeds
 * 2^53, so it is computed in two exact halves.
 */
export function positionOf(hash: number, weight: number): number {
  const low = Math.floor((hash * (weight & 0xffff)) / 0x10000);
  return Math.floor((hash * (weight >>> 16) + low) / 0x10000);
}
