/**
 * Where a text lies within a split. MurmurHash3 (x86, 32 bits, seed 0) over UTF-8 is stored with each split as `m3`, and is
 * never changed: another hash would move everybody.
 */

const UTF8 = new TextEncoder();
/** Room for what is usually hashed. A UTF-16 unit takes three bytes at most. */
const SCRATCH = new Uint8Array(3 * 1024);

/** MurmurHash3 x86 32 of the UTF-8 bytes of a text, with seed 0. */
export function murmur3(text: string): number {
  if (3 * text.length > SCRATCH.length) return hash(UTF8.encode(text));
  return hash(SCRATCH, UTF8.encodeInto(text, SCRATCH).written);
}

function hash(bytes: Uint8Array, length = bytes.length): number {
  let state = 0;
  const whole = length & ~3;
  for (let at = 0; at < whole; at += 4) {
    state ^= mixed(
      byte(bytes, at) |
        (byte(bytes, at + 1) << 8) |
        (byte(bytes, at + 2) << 16) |
        (byte(bytes, at + 3) << 24),
    );
    state = (Math.imul((state << 13) | (state >>> 19), 5) + 0xe6546b64) | 0;
  }
  let rest = 0;
  for (let at = length - 1; at >= whole; at -= 1) rest = (rest << 8) | byte(bytes, at);
  if (length > whole) state ^= mixed(rest);
  state ^= length;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}

function mixed(block: number): number {
  const product = Math.imul(block, 0xcc9e2d51);
  return Math.imul((product << 15) | (product >>> 17), 0x1b873593);
}

function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}

/**
 * The position of a hash among `weight` (at most 2^32 - 1) places: `floor(hash · weight / 2^32)`. The product passes 2^53, so it
 * is taken in two halves, each of them exact.
 */
export function positionOf(hash: number, weight: number): number {
  const low = Math.floor((hash * (weight & 0xffff)) / 0x10000);
  return Math.floor((hash * (weight >>> 16) + low) / 0x10000);
}
