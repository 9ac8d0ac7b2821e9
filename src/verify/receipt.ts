// Checks receipts anywhere: browser, Bun, Node. Hashing and signatures are handed in.

/** An Ed25519 public key as a JSON Web Key (RFC 8037). */
export interface PublicKeyJwk {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** 32 bytes, base64url. */
  readonly x: string;
}

/** A receipt, version 1. Hashes are 64 lower-case hex digits. */
export interface Receipt {
  readonly version: 1;
  /** The position in the chain, from 1: a decimal string. */
  readonly sequence_id: string;
  /** SHA-256 of the UTF-8 of `JSON.stringify(log)`. */
  readonly content_hash: string;
  /** The `chain_hash` of the receipt before; 64 zeros in the first one. */
  readonly prev_hash: string;
  /** SHA-256 of the raw prev_hash, the position as 8 bytes big-endian, and the raw content_hash. */
  readonly chain_hash: string;
  /** Ed25519 over the raw chain_hash: 128 lower-case hex digits, or base64url. */
  readonly signature: string;
  /** Milliseconds since the epoch. */
  readonly timestamp: number;
  readonly public_key: PublicKeyJwk;
  readonly log: Readonly<Record<string, unknown>>;
}

/** The two primitives that a verifier needs. */
export interface VerifierCrypto {
  sha256(bytes: Uint8Array): Uint8Array;
  /** Whether a 64-byte signature over `message` is the key's. False, never an error, for anything malformed. */
  verifyEd25519(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

/** What is wrong with a receipt, by the check that it fails. */
export type Findings = ReturnType<typeof noFindings>;

/** The three checks, before they have found anything. */
export function noFindings() {
  return {
    signature_valid: [] as string[],
    content_hash_matches: [] as string[],
    chain_link_valid: [] as string[],
  };
}

/** The outcome of all checks. */
export interface Verdict {
  readonly valid: boolean;
  readonly checks: Readonly<Record<keyof Findings, boolean>>;
  /** Left out when everything holds. */
  readonly errors?: readonly string[];
}

/** The `prev_hash` of a chain's first receipt. */
export const NO_HASH = "0".repeat(64);

const HASH = /^[0-9a-f]{64}$/;
const SIGNATURE_HEX = /^[0-9a-f]{128}$/;
const POSITION = /^[1-9][0-9]{0,19}$/;
const POSITION_MAX = 2n ** 64n - 1n;
const UTF8 = new TextEncoder();

/** Runs all three checks on a parsed receipt, whatever it is. */
export function checkReceipt(value: unknown, crypto: VerifierCrypto): Findings {
  const found = noFindings();
  const receipt = isObject(value) ? value : {};
  if (receipt.version !== 1) reportEverywhere(found, "version must be 1");
  checkContent(receipt, crypto, found.content_hash_matches);
  checkLink(receipt, crypto, found.chain_link_valid);
  checkSignature(receipt, crypto, found.signature_valid);
  return found;
}

/** Adds a problem of the whole receipt to every check. */
export function reportEverywhere(found: Findings, problem: string): void {
  for (const problems of Object.values(found)) problems.push(problem);
}

/** Sums findings up. */
export function verdictOf(found: Findings): Verdict {
  const checks = {
    signature_valid: found.signature_valid.length === 0,
    content_hash_matches: found.content_hash_matches.length === 0,
    chain_link_valid: found.chain_link_valid.length === 0,
  };
  const errors = [...new Set(Object.values(found).flat())];
  return errors.length === 0 ? { valid: true, checks } : { valid: false, checks, errors };
}

function checkContent(receipt: Record<string, unknown>, crypto: VerifierCrypto, problems: string[]): void {
  const { log, content_hash } = receipt;
  if (!isHash(content_hash)) problems.push("content_hash must be 64 lower-case hex digits");
  if (!isObject(log) || Object.keys(log).length === 0)
    problems.push("log must be an object that is not empty");
  if (problems.length > 0) return;
  const text = textOf(log);
  if (text === null) problems.push("log is nested too deeply");
  else if (toHex(crypto.sha256(UTF8.encode(text))) !== content_hash)
    problems.push("content_hash is not the hash of log");
}

function checkLink(receipt: Record<string, unknown>, crypto: VerifierCrypto, problems: string[]): void {
  const { sequence_id, prev_hash, content_hash, chain_hash, timestamp } = receipt;
  if (!isPosition(sequence_id)) problems.push("sequence_id must be a positive integer in a string");
  if (!isHash(prev_hash)) problems.push("prev_hash must be 64 lower-case hex digits");
  if (!isHash(chain_hash)) problems.push("chain_hash must be 64 lower-case hex digits");
  if (!Number.isSafeInteger(timestamp) || Number(timestamp) < 0)
    problems.push("timestamp must be an integer of milliseconds");
  if (sequence_id === "1" && prev_hash !== NO_HASH)
    problems.push("prev_hash of the first receipt must be zeros");
  if (problems.length > 0 || !isHash(content_hash) || !isHash(prev_hash) || !isPosition(sequence_id)) {
    if (problems.length === 0) problems.push("content_hash must be 64 lower-case hex digits");
    return;
  }
  const hash = chainHashOf(crypto, fromHex(prev_hash), BigInt(sequence_id), fromHex(content_hash));
  if (toHex(hash) !== chain_hash)
    problems.push("chain_hash is not the hash of prev_hash, sequence_id and content_hash");
}

function checkSignature(receipt: Record<string, unknown>, crypto: VerifierCrypto, problems: string[]): void {
  const { chain_hash, signature, public_key } = receipt;
  const key = publicKeyBytes(public_key);
  const bytes = signatureBytes(signature);
  if (key === null) problems.push("public_key must be an Ed25519 JSON Web Key");
  if (bytes === null) problems.push("signature must be 64 bytes in lower-case hex or base64url");
  if (!isHash(chain_hash)) problems.push("chain_hash must be 64 lower-case hex digits");
  if (key === null || bytes === null || !isHash(chain_hash)) return;
  if (!crypto.verifyEd25519(bytes, fromHex(chain_hash), key))
    problems.push("signature is not the key's signature of chain_hash");
}

/** The raw chain hash: SHA-256 of prev_hash (32 bytes), the position (8 bytes big-endian) and content_hash (32 bytes). */
export function chainHashOf(
  crypto: Pick<VerifierCrypto, "sha256">,
  previous: Uint8Array,
  position: bigint,
  content: Uint8Array,
): Uint8Array {
  const bytes = new Uint8Array(72);
  bytes.set(previous, 0);
  new DataView(bytes.buffer).setBigUint64(32, position);
  bytes.set(content, 40);
  return crypto.sha256(bytes);
}

/** The JSON text that a log's hash is taken over; null when it is nested too deeply for this engine. */
function textOf(log: unknown): string | null {
  try {
    return JSON.stringify(log);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Whether a value is a `sequence_id`: 1 to 2^64−1, in a string without leading zeros. */
export function isPosition(value: unknown): value is string {
  return typeof value === "string" && POSITION.test(value) && BigInt(value) <= POSITION_MAX;
}

/** The `x` of an Ed25519 JSON Web Key; null when a value is no such key. */
export function publicKeyX(value: unknown): string | null {
  return publicKeyBytes(value) === null ? null : (value as PublicKeyJwk).x;
}

function publicKeyBytes(value: unknown): Uint8Array | null {
  if (!isObject(value) || value.kty !== "OKP" || value.crv !== "Ed25519") return null;
  return fromBase64Url(value.x, 32);
}

function signatureBytes(value: unknown): Uint8Array | null {
  if (typeof value === "string" && SIGNATURE_HEX.test(value)) return fromHex(value);
  return fromBase64Url(value, 64);
}

function isHash(value: unknown): value is string {
  return typeof value === "string" && HASH.test(value);
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Bytes from lower-case hex digits, which have been checked. */
function fromHex(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length / 2);
  for (let at = 0; at < bytes.length; at += 1) {
    bytes[at] = digitOf(hex.charCodeAt(at * 2)) * 16 + digitOf(hex.charCodeAt(at * 2 + 1));
  }
  return bytes;
}

/** The value of a lower-case hex digit: `0` to `9` begin at 48, `a` to `f` at 97. */
function digitOf(code: number): number {
  return code < 58 ? code - 48 : code - 87;
}

const HEX_OF_BYTE = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Lower-case hex digits of bytes. */
function toHex(bytes: Uint8Array): string {
  let hex = "";
  for (const byte of bytes) hex += HEX_OF_BYTE[byte];
  return hex;
}

/** Exactly `length` bytes from their one base64url form, without padding; null for anything else. */
function fromBase64Url(value: unknown, length: number): Uint8Array | null {
  if (typeof value !== "string" || value.length !== Math.ceil((length * 4) / 3)) return null;
  if (!/^[A-Za-z0-9_-]+$/.test(value)) return null;
  const binary = atob(value.replaceAll("-", "+").replaceAll("_", "/"));
  const back = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  // Other texts decode to the same bytes (the last character has spare bits): only one is a receipt's.
  if (back !== value) return null;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
