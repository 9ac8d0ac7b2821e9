import { describe, expect, test } from "bun:test";
import { chainIdOf, privateKeyOf, publicXOf, signHash } from "../../src/areas/notary/chain.ts";
import { ChainVerifier, verifyReceiptText } from "../../src/verify/chain.ts";
import { createNativeCrypto } from "../../src/verify/native.ts";
import { createPortableCrypto } from "../../src/verify/noble.ts";
import vectors from "../vectors/notary.json" with { type: "json" };

const CRYPTOS = [
  ["native", createNativeCrypto()],
  ["portable", createPortableCrypto()],
] as const;

describe.each(vectors.chains)("chain $chain_id", (chain) => {
  test.each(CRYPTOS)("is valid, receipt by receipt and as a whole: %s", (_, crypto) => {
    const verifier = new ChainVerifier(crypto);
    for (const receipt of chain.receipts) {
      expect(verifyReceiptText(JSON.stringify(receipt), crypto).verdict).toEqual({
        valid: true,
        checks: { signature_valid: true, content_hash_matches: true, chain_link_valid: true },
      });
      expect(verifier.add(JSON.stringify(receipt)).problems).toEqual([]);
    }
    expect(verifier.count).toBe(chain.receipts.length);
  });

  test("has the id derived from its account and project", () => {
    expect(chainIdOf(chain.user_id, chain.project_id)).toBe(chain.chain_id);
  });

  test("equals the output of the server's signing code", () => {
    const key = privateKeyOf(Buffer.from(chain.private_key_hex, "hex"));
    for (const { chain_hash, signature, public_key } of chain.receipts) {
      expect(publicXOf(key)).toBe(public_key.x);
      expect(Buffer.from(signHash(key, Buffer.from(chain_hash, "hex"))).toString("hex")).toBe(signature);
    }
  });
});
