import { hash, timingSafeEqual } from "node:crypto";
import type { Ids } from "../ids.ts";

/** Random characters of a key: 43 Base62 characters carry 256 bits. */
const ENTROPY_LENGTH = 43;
const CHECKSUM = /^[0-9a-f]{8}$/;
/** Longest text that is parsed as a key: prefix 32, entropy 43, checksum 8, two underscores, and a margin. */
export const KEY_LENGTH_MAX = 128;

/** The prefix of keys that work as Bearer credentials. */
export const PLATFORM_PREFIX = "sm";
const PLATFORM_KEY = /^sm_[A-Za-z0-9]{43}_[0-9a-f]{8}$/;
/** The part after the prefix. */
const KEY_TAIL = /^_[A-Za-z0-9]{43}_[0-9a-f]{8}$/;
const KEY_TAIL_LENGTH = 1 + ENTROPY_LENGTH + 1 + 8;

/** CRC-32 (IEEE) of `text` as 8 lower-case hex digits. */
export function checksum(text: string): string {
  return Bun.hash.crc32(text).toString(16).padStart(8, "0");
}

/** A new key: `<prefix>_<43 random characters>_<checksum>`. */
export function mintKey(prefix: string, ids: Ids): string {
  const body = `${prefix}_${ids.base62(ENTROPY_LENGTH)}`;
  return `${body}_${checksum(body)}`;
}

/** Whether a text has the format of a key and a valid checksum. Needs no lookup. */
export function hasValidChecksum(key: string): boolean {
  if (key.length > KEY_LENGTH_MAX) return false;
  const cut = key.lastIndexOf("_");
  if (cut < 1) return false;
  const suffix = key.slice(cut + 1);
  return CHECKSUM.test(suffix) && checksum(key.slice(0, cut)) === suffix;
}

/** Whether a text has the format of a Bearer credential (prefix `sm`) and a valid checksum. */
export function isBearerKey(key: string): boolean {
  return PLATFORM_KEY.test(key) && hasValidChecksum(key);
}

/** The prefix of a key with a valid checksum; null for every other text. */
export function keyPrefix(key: string): string | null {
  const cut = key.length - KEY_TAIL_LENGTH;
  return cut > 0 && hasValidChecksum(key) && KEY_TAIL.test(key.slice(cut)) ? key.slice(0, cut) : null;
}

/** SHA-256 of a key or another token, 32 bytes: stored and looked up in its place. */
export function keyDigest(key: string): Uint8Array {
  return hash("sha256", key, "buffer");
}

/** The same digest in lower-case hex, for keys of maps. */
export function keyDigestHex(key: string): string {
  return hash("sha256", key, "hex");
}

/** Compares two texts in time that depends only on their lengths, which are not secret. */
export function equalInConstantTime(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
