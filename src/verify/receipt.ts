// Checks receipts in a browser, Bun or Node. The caller supplies hashing and signature verification.
import { fromBase64Url, fromHex, toHex } from "./bytes.ts";

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
  /** Position in the chain, from 1, as a decimal string. */
  readonly sequence_id: string;
  /** SHA-256 of the UTF-8 of `JSON.stringify(log)`. */
  readonly content_hash: string;
  /** `chain_hash` of the previous receipt; 64 zeros in the first one. */
  readonly prev_hash: string;
  /** SHA-256 of the raw prev_hash, the position as 8 bytes big-endian, and the raw content_hash. */
  readonly chain_hash: string;
  /** Ed25519 over the raw chain_hash: 128 lower-case hex digits, or base64url. */
  readonly signature: string;
  /** Milliseconds since the epoch. */
  readonly timestamp: number;
  readonly public_key: PublicKeyJwk;
  /** Absent if only its hash was sent, or if it was deleted. */
  readonly log?: Readonly<Record<string, unknown>>;
  /** Note that was sent with the hash. Not covered by any hash. */
  readonly note?: string;
  /** Time at which the text of the log was deleted (RFC 3339). */
  readonly redacted_at?: string;
}

/** The two primitives that a verifier needs. */
export interface VerifierCrypto {
  sha256(bytes: Uint8Array): Uint8Array;
  /** Verifies a 64-byte signature over `message`. Returns false for malformed input and never throws. */
  verifyEd25519(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

/** Problems of a receipt, by check. */
export type Findings = ReturnType<typeof noFindings>;

/** Returns empty findings. */
export function noFindings() {
  return {
    signature_valid: [] as string[],
    /** Null if there is no log to compare with. */
    content_hash_matches: [] as string[] | null,
    chain_link_valid: [] as string[],
  };
}

/** The outcome of all checks. */
export interface Verdict {
  readonly valid: boolean;
  readonly checks: {
    readonly signature_valid: boolean;
    /** Null if the receipt has no log: only its hash is verified. */
    readonly content_hash_matches: boolean | null;
    readonly chain_link_valid: boolean;
  };
  /** Omitted if the receipt is valid. */
  readonly errors?: readonly string[];
}

/** The `prev_hash` of a chain's first receipt. */
export const NO_HASH = "0".repeat(64);

const HASH = /^[0-9a-f]{64}$/;
const SIGNATURE_HEX = /^[0-9a-f]{128}$/;
const POSITION = /^[1-9][0-9]{0,19}$/;
const POSITION_MAX = 2n ** 64n - 1n;
const UTF8 = new TextEncoder();

/**
 * Runs all three checks on a parsed receipt, which can be any value. `besides`: the log of a receipt that was issued or is
 * stored without it.
 */
export function checkReceipt(value: unknown, crypto: VerifierCrypto, besides?: unknown): Findings {
  const found = noFindings();
  const receipt = isObject(value) ? value : {};
  found.content_hash_matches = contentProblems(receipt, besides, crypto);
  if (receipt.version !== 1) reportEverywhere(found, "version must be 1");
  checkLink(receipt, crypto, found.chain_link_valid);
  checkSignature(receipt, crypto, found.signature_valid);
  return found;
}

/** Adds a problem to every check. */
export function reportEverywhere(found: Findings, problem: string): void {
  for (const problems of Object.values(found)) problems?.push(problem);
}

/** Returns the verdict for findings. */
export function verdictOf(found: Findings): Verdict {
  const checks = {
    signature_valid: found.signature_valid.length === 0,
    content_hash_matches: found.content_hash_matches && found.content_hash_matches.length === 0,
    chain_link_valid: found.chain_link_valid.length === 0,
  };
  const errors = [...new Set(Object.values(found).flatMap((problems) => problems ?? []))];
  return errors.length === 0 ? { valid: true, checks } : { valid: false, checks, errors };
}

/** Problems of the log; null for a receipt without one. */
function contentProblems(
  receipt: Record<string, unknown>,
  besides: unknown,
  crypto: VerifierCrypto,
): string[] | null {
  const { content_hash } = receipt;
  const logs = [receipt.log, besides].filter((log) => log !== undefined);
  if (!isHash(content_hash)) return ["content_hash must be 64 lower-case hex digits"];
  if (logs.length === 0) return null;
  return logs.map((log) => logProblem(log, content_hash, crypto)).filter((problem) => problem !== null);
}

function logProblem(log: unknown, contentHash: string, crypto: VerifierCrypto): string | null {
  if (!isObject(log) || Object.keys(log).length === 0) return "log must be a non-empty object";
  const text = textOf(log);
  if (text === null) return "log is nested too deeply";
  return toHex(crypto.sha256(UTF8.encode(text))) === contentHash
    ? null
    : "content_hash is not the hash of log";
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
    problems.push("signature is not a valid signature of chain_hash by public_key");
}

/** Returns the raw chain hash: SHA-256 of prev_hash (32 bytes), the position (8 bytes big-endian) and content_hash (32 bytes). */
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

/** Returns the JSON text that is hashed; null when the log is nested too deeply for this engine. */
function textOf(log: unknown): string | null {
  try {
    return JSON.stringify(log);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Whether a value is a `sequence_id`: 1 to 2^64−1 as a string without leading zeros. */
export function isPosition(value: unknown): value is string {
  return typeof value === "string" && POSITION.test(value) && BigInt(value) <= POSITION_MAX;
}

/** Returns the `x` of an Ed25519 JSON Web Key; null for any other value. */
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
