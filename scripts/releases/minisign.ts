import { randomBytes } from "node:crypto";
import { getPublicKey, hashes, sign } from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import { KEY_ALGORITHM, PREHASHED_ALGORITHM, prehash } from "../../src/cli/upgrade/minisign.ts";

hashes.sha512 = sha512;

/** A key that signs releases. */
export interface ReleaseKey {
  /** Eight bytes that minisign compares before it verifies. */
  readonly id: Uint8Array;
  /** Seed of the Ed25519 key. */
  readonly seed: Uint8Array;
}

// Layout of a secret key: algorithm (2), key derivation (2), checksum algorithm (2), salt (32), limits (16), and then, encrypted
// unless the derivation is zero: id (8), seed (32), public key (32), checksum (32).
const DERIVATION_AT = 2;
const ID_AT = 54;
const SEED_AT = 62;
const PUBLIC_AT = 94;
const CHECKSUM_AT = 126;
const SECRET_KEY_BYTES = 158;

/**
 * Reads the secret key that `minisign -G -W` creates: its file, or the second line of that.
 *
 * @throws Error for a key with a password, and for an invalid key. The message does not contain the key.
 */
export function readSecretKey(text: string): ReleaseKey {
  const bytes = Buffer.from(text.trim().split("\n").at(-1) ?? "", "base64");
  if (bytes.length !== SECRET_KEY_BYTES || bytes.toString("latin1", 0, 2) !== KEY_ALGORITHM) {
    throw new Error("NINEFOLD_RELEASE_KEY is not a secret key of minisign");
  }
  if (bytes.readUInt16LE(DERIVATION_AT) !== 0) {
    throw new Error("NINEFOLD_RELEASE_KEY has a password; make one without by minisign -G -W");
  }
  const key = { id: bytes.subarray(ID_AT, SEED_AT), seed: bytes.subarray(SEED_AT, PUBLIC_AT) };
  // Keys without a password have no checksum; the public key serves as one.
  if (!bytes.subarray(PUBLIC_AT, CHECKSUM_AT).equals(getPublicKey(key.seed))) {
    throw new Error("NINEFOLD_RELEASE_KEY is damaged: its public key is another one's");
  }
  return key;
}

/** A temporary key, for a dry run of a release. */
export function throwAwayKey(): ReleaseKey {
  return { id: randomBytes(8), seed: randomBytes(32) };
}

/** The public key in base64, as `minisign -P` and `ninefold upgrade --public-key` accept it. */
export function publicKeyText({ id, seed }: ReleaseKey): string {
  return Buffer.concat([Buffer.from(KEY_ALGORITHM), id, getPublicKey(seed)]).toString("base64");
}

/** The file of a public key, as `minisign -p` reads it. */
export function publicKeyFile(key: ReleaseKey): string {
  // As minisign prints it: a number without leading zeros.
  const id = Buffer.from(key.id).readBigUInt64LE().toString(16).toUpperCase();
  return `untrusted comment: minisign public key ${id}\n${publicKeyText(key)}\n`;
}

/** The text of a file's `.minisig`. The trusted comment, a line that describes the file, is signed too. */
export function signFile(file: Uint8Array, trustedComment: string, { id, seed }: ReleaseKey): string {
  const signature = sign(prehash(file), seed);
  const signed = Buffer.concat([Buffer.from(PREHASHED_ALGORITHM), id, signature]);
  const global = sign(Buffer.concat([signature, Buffer.from(trustedComment)]), seed);
  return [
    "untrusted comment: signature of a release of Ninefold",
    signed.toString("base64"),
    `trusted comment: ${trustedComment}`,
    Buffer.from(global).toString("base64"),
    "",
  ].join("\n");
}
