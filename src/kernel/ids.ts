import { randomBytes } from "node:crypto";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** The largest multiple of 62 that a byte can hold: bytes at or above it would favour the first characters. */
const UNBIASED_BYTE_LIMIT = 248;

/** The only source of randomness and of identifiers; a test can hand in its own. */
export interface Ids {
  /** A UUIDv7, lower-case text: time-sortable, for request ids and rows that are listed by time. */
  uuidV7(): string;
  /** A random UUIDv4, lower-case text: for tokens that must not be guessed. */
  uuidV4(): string;
  /** `length` random Base62 characters. */
  base62(length: number): string;
  /** `length` random bytes. */
  bytes(length: number): Uint8Array;
  /** A number in [0, 1): for jitter, never for secrets. */
  fraction(): number;
}

/** Identifiers from the operating system's generator. `now` stamps the UUIDv7s. */
export function createIds(now: () => number): Ids {
  return {
    uuidV7: () => Bun.randomUUIDv7("hex", now()),
    uuidV4: () => crypto.randomUUID(),
    base62,
    bytes: (length) => new Uint8Array(randomBytes(length)),
    fraction: () => Math.random(),
  };
}

function base62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < UNBIASED_BYTE_LIMIT && text.length < length) text += BASE62.charAt(byte % 62);
    }
  }
  return text;
}
