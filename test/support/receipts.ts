import { getPublicKey, hashes, sign } from "@noble/ed25519";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import fc from "fast-check";
import type { Receipt } from "../../src/verify/receipt.ts";

hashes.sha512 = sha512;

/** Any JSON value, names such as `__proto__` and `constructor` included. */
export const anyJson = fc.jsonValue({ maxDepth: 4 });

/** Any log that may be witnessed: an object that is not empty, with numbers that JSON carries. */
export const anyLog = fc
  .dictionary(
    fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "toJSON", "1", "0")),
    anyJson,
    {
      minKeys: 1,
      maxKeys: 6,
    },
  )
  // As a server sees it: after a walk through JSON.
  .map((log) => JSON.parse(JSON.stringify(log)) as Record<string, unknown>);

/** The chain's side of a receipt, written down a second time from its documentation, on primitives of its own. */
export function makeChain(
  logs: readonly Record<string, unknown>[],
  seed: Uint8Array = new Uint8Array(32).fill(7),
): Receipt[] {
  const x = Buffer.from(getPublicKey(seed)).toString("base64url");
  let previous = Buffer.alloc(32);
  return logs.map((log, index) => {
    const content = Buffer.from(sha256(Buffer.from(JSON.stringify(log))));
    const position = Buffer.alloc(8);
    position.writeBigUInt64BE(BigInt(index + 1));
    const chain = Buffer.from(sha256(Buffer.concat([previous, position, content])));
    const receipt: Receipt = {
      version: 1,
      sequence_id: String(index + 1),
      content_hash: content.toString("hex"),
      prev_hash: previous.toString("hex"),
      chain_hash: chain.toString("hex"),
      signature: Buffer.from(sign(chain, seed)).toString("hex"),
      timestamp: 1_760_000_000_000 + index,
      public_key: { kty: "OKP", crv: "Ed25519", x },
      log,
    };
    previous = chain;
    return receipt;
  });
}
