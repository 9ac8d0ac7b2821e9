// Encodings without the runtime's helpers, so that they run in a browser.

/** The digits of each byte, made on use. */
let hexOfBytes: readonly string[] | undefined;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Decodes valid lower-case hex digits. */
export function fromHex(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length / 2);
  for (let at = 0; at < bytes.length; at += 1) {
    bytes[at] = digitOf(hex.charCodeAt(at * 2)) * 16 + digitOf(hex.charCodeAt(at * 2 + 1));
  }
  return bytes;
}

/** Value of a lower-case hex digit. `0` has the code 48, `a` has 97. */
function digitOf(code: number): number {
  return code < 58 ? code - 48 : code - 87;
}

/** Returns the lower-case hex digits of bytes. */
export function toHex(bytes: Uint8Array): string {
  hexOfBytes ??= Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
  let hex = "";
  for (const byte of bytes) hex += hexOfBytes[byte];
  return hex;
}

/** Decodes `length` bytes from canonical base64url without padding; null for any other value. */
export function fromBase64Url(value: unknown, length: number): Uint8Array | null {
  if (typeof value !== "string" || value.length !== Math.ceil((length * 4) / 3)) return null;
  if (!/^[A-Za-z0-9_-]+$/.test(value)) return null;
  const standard = value.replaceAll("-", "+").replaceAll("_", "/");
  return fromBase64(standard.padEnd(Math.ceil(standard.length / 4) * 4, "="));
}

/** Decodes canonical base64 with padding; null for any other value. */
export function fromBase64(value: unknown): Uint8Array | null {
  if (typeof value !== "string" || value.length % 4 !== 0 || !BASE64.test(value)) return null;
  const binary = atob(value);
  // The last character can have unused bits, so that several texts decode to the same bytes. Only one is canonical.
  if (btoa(binary) !== value) return null;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** Returns the base64 of bytes, with padding. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Joins byte arrays. */
export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Whether two byte arrays are equal. */
export function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}
