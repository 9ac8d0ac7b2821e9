import { hashes, verify } from "@noble/ed25519";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import type { VerifierCrypto } from "./receipt.ts";

/** The primitives in plain JavaScript, which run in browsers too. */
export function createPortableCrypto(): VerifierCrypto {
  hashes.sha512 = sha512;
  return {
    sha256: (bytes) => sha256(bytes),
    verifyEd25519(signature, message, publicKey) {
      try {
        // RFC 8032, as the server's library reads it, rather than the laxer ZIP 215.
        return verify(signature, message, publicKey, { zip215: false });
      } catch {
        return false;
      }
    },
  };
}
