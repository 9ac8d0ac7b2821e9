import { blake2b } from "@noble/hashes/blake2.js";
import { createNativeCrypto } from "../../verify/native.ts";

/** A public key as minisign writes it: the signature algorithm, the id of the key, and the Ed25519 key. */
export interface MinisignPublicKey {
  readonly id: Uint8Array;
  readonly key: Uint8Array;
}

/** Signature algorithm of every key: Ed25519. */
export const KEY_ALGORITHM = "Ed";
/** Signature algorithm of files that are hashed before they are signed, which is the only one that is accepted. */
export const PREHASHED_ALGORITHM = "ED";

const ALGORITHM_BYTES = 2;
const ID_BYTES = 8;
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const TRUSTED_COMMENT = "trusted comment: ";
const UNTRUSTED_COMMENT = "untrusted comment: ";

/** The hash of a file that is signed: BLAKE2b with 512 bits. */
export function prehash(file: Uint8Array): Uint8Array {
  return blake2b(file);
}

/** Parses a public key in base64, as in the second line of minisign's file. Null if it is none. */
export function readPublicKey(text: string): MinisignPublicKey | null {
  const bytes = fromBase64(text.trim(), ALGORITHM_BYTES + ID_BYTES + KEY_BYTES);
  if (bytes === null || algorithmOf(bytes) !== KEY_ALGORITHM) return null;
  const id = bytes.subarray(ALGORITHM_BYTES, ALGORITHM_BYTES + ID_BYTES);
  return { id, key: bytes.subarray(ALGORITHM_BYTES + ID_BYTES) };
}

/**
 * Verifies a file with the text of its `.minisig`: the signature of the file and that of the trusted comment. Returns what is
 * wrong, as the end of a sentence that begins with the file; null if the signature is valid.
 */
export function signatureProblem(
  file: Uint8Array,
  signature: string,
  publicKey: MinisignPublicKey,
): string | null {
  const [untrusted = "", signed = "", trusted = "", global = ""] = signature.split(/\r?\n/);
  const bytes = fromBase64(signed, ALGORITHM_BYTES + ID_BYTES + SIGNATURE_BYTES);
  const globalBytes = fromBase64(global, SIGNATURE_BYTES);
  if (!untrusted.startsWith(UNTRUSTED_COMMENT) || !trusted.startsWith(TRUSTED_COMMENT))
    return "has no signature in the format of minisign";
  if (bytes === null || globalBytes === null || algorithmOf(bytes) !== PREHASHED_ALGORITHM)
    return "has no signature in the format of minisign";
  const id = bytes.subarray(ALGORITHM_BYTES, ALGORITHM_BYTES + ID_BYTES);
  if (!Buffer.from(id).equals(publicKey.id)) return "is signed with another key";
  const fileSignature = bytes.subarray(ALGORITHM_BYTES + ID_BYTES);
  const { verifyEd25519 } = createNativeCrypto();
  const comment = Buffer.concat([fileSignature, Buffer.from(trusted.slice(TRUSTED_COMMENT.length))]);
  const isValid =
    verifyEd25519(fileSignature, prehash(file), publicKey.key) &&
    verifyEd25519(globalBytes, comment, publicKey.key);
  return isValid ? null : "has an invalid signature";
}

function algorithmOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, ALGORITHM_BYTES));
}

/** The bytes of a text in base64; null unless it is canonical and has this length. */
function fromBase64(text: string, length: number): Uint8Array | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.length === length && bytes.toString("base64") === text ? bytes : null;
}
