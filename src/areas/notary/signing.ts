import { createPrivateKey, createPublicKey, hash, type KeyObject, sign } from "node:crypto";

/** Bytes of an Ed25519 seed: what the private key is made from. */
export const SEED_BYTES = 32;

/** Bytes of the digest that a chain id shows. */
const CHAIN_ID_BYTES = 24;

/** What stands before the seed in the PKCS #8 form of an Ed25519 key (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

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
