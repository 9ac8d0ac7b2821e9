import { invalidField } from "../../kernel/errors.ts";

/** Bytes of the account's reference, in front of the hash. */
const ACCOUNT_BYTES = 8;
/** Bytes of a SHA-256 hash. */
const HASH_BYTES = 32;
const HEX = /^[0-9a-f]{64}$/i;

/** How the hash of an imported secret is written. */
export const HASH_ALGORITHMS = ["sha256-hex", "sha256-base64"] as const;
type HashAlgorithm = (typeof HASH_ALGORITHMS)[number];

/**
 * The SHA-256 hash of a secret in lower-case hex. Without an algorithm, its length says which one it is.
 * @throws ApiError `validation_error` about `hash`.
 */
export function parseHash(hash: string, algorithm: HashAlgorithm | null): string {
  const bytes = Buffer.from(hash, "base64");
  const isBase64 = bytes.length === HASH_BYTES && bytes.toString("base64") === hash;
  if (algorithm !== "sha256-base64" && HEX.test(hash)) return hash.toLowerCase();
  if (algorithm !== "sha256-hex" && isBase64) return bytes.toString("hex");
  const hex = "64 hex digits";
  const base64 = "44 characters of base64, with padding";
  const expected = algorithm === null ? `${hex} or ${base64}` : algorithm === "sha256-hex" ? hex : base64;
  throw invalidField("hash", `must be a SHA-256 hash: ${expected}`);
}

/**
 * The digest of an imported key, in hex: the hash of its secret after the reference of its account. So a hash is unique in its
 * account only, and the lookup of Bearer credentials, by the hash alone, never finds it.
 */
export function importedDigestHex(accountRef: number, hash: string): string {
  return accountRef.toString(16).padStart(2 * ACCOUNT_BYTES, "0") + hash;
}

/** Whether a digest is that of an imported key. */
export function isImported(digest: Uint8Array): boolean {
  return digest.length === ACCOUNT_BYTES + HASH_BYTES;
}
