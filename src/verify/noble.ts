import { hashes, verify } from "@noble/ed25519";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import type { VerifierCrypto } from "./receipt.ts";

/** Creates the primitives in plain JavaScript, which also runs in browsers. */
export function createPortableCrypto(): VerifierCrypto {
  hashes.sha512 = sha512;
  return {
    sha256: (bytes) => sha256(bytes),
    verifyEd25519(signature, message, publicKey) {
      try {
        // The rules of RFC 8032, as in the server's library, instead of the less strict ZIP 215.
        return verify(signature, message, publicKey, { zip215: false });
      } catch {
        return false;
      }
    },
  };
}
