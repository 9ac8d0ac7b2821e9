// Signed notes (c2sp.org/signed-note) and checkpoints (c2sp.org/tlog-checkpoint).
import { concat, fromBase64, isEqual, toBase64 } from "./bytes.ts";
import type { VerifierCrypto } from "./receipt.ts";
import { HASH_BYTES } from "./tree.ts";

/** Longest note that is parsed, in UTF-16 units: the limit of a request to a witness. */
export const NOTE_LENGTH_MAX = 64 * 1024;
/** Signature lines of a note, as in Go's implementation. */
export const SIGNATURES_MAX = 100;
/** Longest name of a key. */
export const KEY_NAME_LENGTH_MAX = 255;

/** Signature types of c2sp.org/signed-note: Ed25519 over the text, and over a timestamp and the text (a cosignature). */
export const ED25519 = 0x01;
export const COSIGNATURE = 0x04;

const KEY_ID_BYTES = 4;
const SIGNATURE_BYTES = 64;
const TIME_BYTES = 8;
/** Latest time of a cosignature in epoch seconds: the last one that has an ISO 8601 text with a year of four digits. */
export const COSIGNATURE_TIME_MAX = 253_402_300_799;
const PUBLIC_KEY_BYTES = 32;
const UTF8 = new TextEncoder();
/** Spaces of Unicode, and the plus sign, which separates the fields of a verifier key. */
const NOT_IN_NAMES = /[\s+\u0085]/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a note contains no control characters except newlines
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;
/** Half a character, which UTF-8 cannot express. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const SIGNATURE_PREFIX = "\u2014 ";
const SIZE = /^(?:0|[1-9][0-9]{0,15})$/;

/** A signature line of a note. */
export interface NoteSignature {
  readonly name: string;
  readonly keyId: Uint8Array;
  /** The bytes after the key id. */
  readonly signature: Uint8Array;
  /** As it is in the note, without the newline. */
  readonly line: string;
}

/** A parsed note. None of its signatures is verified. */
export interface Note {
  /** The signed text, which ends in a newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A key that verifies notes. */
export interface NoteKey {
  readonly name: string;
  readonly keyId: Uint8Array;
  /** {@link ED25519} or {@link COSIGNATURE}. */
  readonly type: number;
  readonly publicKey: Uint8Array;
}

/** The text of a checkpoint. */
export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

/** Whether a text can be the name of a key: not empty, without spaces and `+`. */
export function isKeyName(name: string): boolean {
  return (
    name.length > 0 && name.length <= KEY_NAME_LENGTH_MAX && !NOT_IN_NAMES.test(name) && !CONTROL.test(name)
  );
}

/** Parses a signed note without verifying its signatures; null if it is malformed. */
export function parseNote(note: string): Note | null {
  if (note.length > NOTE_LENGTH_MAX || CONTROL.test(note) || LONE_SURROGATE.test(note)) return null;
  const end = note.lastIndexOf("\n\n");
  if (end < 0 || !note.endsWith("\n")) return null;
  const lines = note.slice(end + 2, -1).split("\n");
  if (lines.length > SIGNATURES_MAX) return null;
  const signatures: NoteSignature[] = [];
  for (const line of lines) {
    const signature = parseSignature(line);
    if (signature === null) return null;
    signatures.push(signature);
  }
  return { text: note.slice(0, end + 1), signatures };
}

function parseSignature(line: string): NoteSignature | null {
  if (!line.startsWith(SIGNATURE_PREFIX)) return null;
  const space = line.indexOf(" ", SIGNATURE_PREFIX.length);
  const name = line.slice(SIGNATURE_PREFIX.length, Math.max(space, 0));
  const bytes = fromBase64(line.slice(space + 1));
  if (space < 0 || !isKeyName(name) || bytes === null || bytes.length <= KEY_ID_BYTES) return null;
  return { name, keyId: bytes.slice(0, KEY_ID_BYTES), signature: bytes.slice(KEY_ID_BYTES), line };
}

/** Returns a signature line, without a newline. */
export function signatureLine(
  { name, keyId }: Pick<NoteKey, "name" | "keyId">,
  signature: Uint8Array,
): string {
  return `${SIGNATURE_PREFIX}${name} ${toBase64(concat(keyId, signature))}`;
}

/** Returns a key: its id is the beginning of a hash over name, type and public key. */
export function noteKey(
  crypto: Pick<VerifierCrypto, "sha256">,
  name: string,
  publicKey: Uint8Array,
  type: number = ED25519,
): NoteKey {
  const keyId = crypto
    .sha256(concat(UTF8.encode(name), Uint8Array.of(0x0a, type), publicKey))
    .slice(0, KEY_ID_BYTES);
  return { name, keyId, type, publicKey };
}

/** Returns a key as `<name>+<key id>+<key>`, the form in which C2SP's tools exchange keys. */
export function vkeyOf({ name, keyId, type, publicKey }: NoteKey): string {
  const id = [...keyId].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${name}+${id}+${toBase64(concat(Uint8Array.of(type), publicKey))}`;
}

/** Parses a verifier key of one of the two Ed25519 types; null if it is malformed or its id is not that of the key. */
export function parseVkey(crypto: Pick<VerifierCrypto, "sha256">, vkey: string): NoteKey | null {
  // A key in base64 can contain a plus sign, a name cannot.
  const first = vkey.indexOf("+");
  const second = vkey.indexOf("+", first + 1);
  if (first < 0 || second < 0) return null;
  const name = vkey.slice(0, first);
  const bytes = fromBase64(vkey.slice(second + 1));
  if (!isKeyName(name) || bytes === null || bytes.length !== 1 + PUBLIC_KEY_BYTES) return null;
  const [type = 0] = bytes;
  if (type !== ED25519 && type !== COSIGNATURE) return null;
  const key = noteKey(crypto, name, bytes.slice(1), type);
  return vkeyOf(key) === vkey ? key : null;
}

/** Verifies one signature of a note. Returns the time of a cosignature in epoch seconds, 0 for a plain signature; null if invalid. */
export function verifySignature(
  crypto: VerifierCrypto,
  text: string,
  claimed: NoteSignature,
  key: NoteKey,
): number | null {
  const { signature } = claimed;
  if (!isOf(claimed, key)) return null;
  if (key.type === ED25519) {
    if (signature.length !== SIGNATURE_BYTES) return null;
    return crypto.verifyEd25519(signature, UTF8.encode(text), key.publicKey) ? 0 : null;
  }
  if (signature.length !== TIME_BYTES + SIGNATURE_BYTES) return null;
  const time = Number(new DataView(signature.buffer, signature.byteOffset).getBigUint64(0));
  if (time > COSIGNATURE_TIME_MAX) return null;
  const message = UTF8.encode(cosignedText(text, time));
  return crypto.verifyEd25519(signature.slice(TIME_BYTES), message, key.publicKey) ? time : null;
}

/** Returns the text that a witness signs (c2sp.org/tlog-cosignature). `time` is in epoch seconds. */
export function cosignedText(text: string, time: number): string {
  return `cosignature/v1\ntime ${time}\n${text}`;
}

/** Returns the signature bytes of a cosignature: the time and the Ed25519 signature. */
export function cosignatureBytes(time: number, signature: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(TIME_BYTES);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(time));
  return concat(bytes, signature);
}

/**
 * Returns the first signature of `key` in a note. Null without one, and if a signature with the name and the id of the key is
 * invalid: such a note is malformed.
 */
export function signatureBy(
  crypto: VerifierCrypto,
  { text, signatures }: Note,
  key: NoteKey,
): NoteSignature | null {
  const ofKey = signatures.filter((signature) => isOf(signature, key));
  const isValid = ofKey.every((signature) => verifySignature(crypto, text, signature, key) !== null);
  return isValid ? (ofKey[0] ?? null) : null;
}

/** Whether a signature names a key. */
function isOf({ name, keyId }: NoteSignature, key: NoteKey): boolean {
  return name === key.name && isEqual(keyId, key.keyId);
}

/** Returns the text of a checkpoint, which is signed as a note. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${toBase64(root)}\n`;
}

/** Parses the text of a note as a checkpoint; extension lines are ignored. Null if it is malformed. */
export function parseCheckpoint(text: string): Checkpoint | null {
  const [origin = "", size = "", rootText = "", ...rest] = text.split("\n");
  const root = fromBase64(rootText);
  if (origin === "" || !SIZE.test(size) || !Number.isSafeInteger(Number(size))) return null;
  if (root === null || root.length !== HASH_BYTES || rest.length === 0) return null;
  return { origin, size: Number(size), root };
}
