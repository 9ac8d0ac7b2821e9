import { createPrivateKey, createPublicKey, hash, type KeyObject, sign } from "node:crypto";
import { findInexactness, pathText } from "../../json-text.ts";
import type { Actor } from "../../kernel/actors/registry.ts";
import { invalidField } from "../../kernel/errors.ts";

/** Bytes of an Ed25519 seed: what the private key is made from. */
export const SEED_BYTES = 32;

/** Bytes of the digest that a chain id shows. */
const CHAIN_ID_BYTES = 24;

/** The bytes before the seed in the PKCS #8 form of an Ed25519 key (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** A chain in memory: where it ends, and the key that signs what comes next. Its rows hold the same, so it is always idle. */
export interface ChainActor extends Actor {
  readonly ref: number;
  /** The `x` of the public key. */
  readonly publicX: string;
  readonly privateKey: KeyObject;
  /** The last position; 0 for an empty chain. */
  sequence: number;
  /** The last chain hash; zeros for an empty chain. */
  hash: Uint8Array;
  /** The last receipt that is foreseen; null: none since one had another place than foreseen. */
  foreseen: Foreseen | null;
}

/** A receipt as it is expected to be, before its unit of work runs. */
export interface Foreseen {
  readonly chain: ChainActor;
  /** What the receipt before has as its chain hash: the very same bytes, or the receipt has another place. */
  readonly prevHash: Uint8Array;
  readonly sequence: number;
  readonly hash: Uint8Array;
  /** Null while it has not been made. */
  signature: Uint8Array | null;
}

/** The private key of a seed. It stays in memory. */
export function privateKeyOf(seed: Uint8Array): KeyObject {
  const key = Buffer.concat([PKCS8_PREFIX, seed]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

/** The `x` of a private key's public half, base64url. */
export function publicXOf(privateKey: KeyObject): string {
  return String(createPublicKey(privateKey).export({ format: "jwk" }).x);
}

/** Ed25519 over a raw chain hash: 64 bytes. */
export function signHash(privateKey: KeyObject, chainHash: Uint8Array): Uint8Array {
  return sign(null, chainHash, privateKey);
}

/** The public name of a project's chain: `wc_` and the start of a digest over account and project. */
export function chainIdOf(userId: string, projectId: string): string {
  const digest = hash("sha256", `${userId}:${projectId}`, "buffer");
  return `wc_${digest.subarray(0, CHAIN_ID_BYTES).toString("base64url")}`;
}

/** A log that may be signed: what its text says is what was sent. */
export interface LogEntry {
  readonly log: Readonly<Record<string, unknown>>;
  /** `JSON.stringify(log)`: this is hashed, kept and given back. */
  readonly text: string;
  /** The raw SHA-256 of the text's UTF-8. */
  readonly contentHash: Uint8Array;
}

/**
 * Takes the log out of a request's body. A notary signs exactly what it was given.
 *
 * @throws ApiError `validation_error` for a number that JSON readers cannot carry exactly, or a name that occurs twice in
 *   one object.
 */
export function readLogEntry(body: { log: Readonly<Record<string, unknown>> }, bodyText: string): LogEntry {
  const inexact = findInexactness(bodyText, body, "log");
  if (inexact !== null) throw invalidField(pathText(inexact.path), inexact.problem);
  const text = JSON.stringify(body.log);
  return { log: body.log, text, contentHash: contentHashOf(text) };
}

/** The raw SHA-256 of a log's text. */
export function contentHashOf(logText: string): Uint8Array {
  return hash("sha256", logText, "buffer");
}
