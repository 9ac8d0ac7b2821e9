import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ChainVerifier } from "../../src/verify/chain.ts";
import { createNativeCrypto } from "../../src/verify/native.ts";
import type { Receipt } from "../../src/verify/receipt.ts";
import { makeChain } from "../support/receipts.ts";

const crypto = createNativeCrypto();
const chain = makeChain(Array.from({ length: 8 }, (_, index) => ({ entry: index })));
const sameKey = makeChain(Array.from({ length: 8 }, (_, index) => ({ other: index })));
const otherKey = makeChain([{ entry: 0 }], new Uint8Array(32).fill(8));

function problemsOf(receipts: readonly (Receipt | undefined)[], publicKey?: string): string[] {
  const verifier = new ChainVerifier(crypto, publicKey);
  return receipts.flatMap((receipt) => verifier.add(JSON.stringify(receipt)).problems);
}

describe("a chain", () => {
  test.each([
    ["complete", chain, []],
    ["a part of it", chain.slice(3, 6), []],
    [
      "with a receipt missing",
      [chain[0], chain[2]],
      ["sequence_id 3 follows 1: receipts between them are missing"],
    ],
    [
      "out of order",
      [chain[1], chain[0]],
      ["sequence_id 1 follows 2: receipts are out of order, or the chain has a fork"],
    ],
    [
      "with a receipt twice",
      [chain[0], chain[0]],
      ["sequence_id 1 follows 1: receipts are out of order, or the chain has a fork"],
    ],
    [
      "that goes over into a fork",
      [chain[0], sameKey[1]],
      [
        "prev_hash differs from the chain_hash of the previous receipt: one was changed, or the chain has a fork",
      ],
    ],
    [
      "that goes over into another one",
      [chain[0], otherKey[0]],
      [
        "public_key differs from the chain's key",
        "sequence_id 1 follows 1: receipts are out of order, or the chain has a fork",
      ],
    ],
  ])("%s", (_, receipts, expected) => {
    expect(problemsOf(receipts)).toEqual(expected);
  });

  test("signed by another key than the expected one", () => {
    expect(problemsOf([chain[0]], chain[0]?.public_key.x)).toEqual([]);
    expect(problemsOf([chain[0]], otherKey[0]?.public_key.x)).toEqual([
      "public_key differs from the chain's key",
    ]);
  });

  test("counts receipts and invalid ones", () => {
    const verifier = new ChainVerifier(crypto);
    for (const receipt of [chain[2], chain[3], chain[5]]) verifier.add(JSON.stringify(receipt));
    verifier.add("{}");
    expect(verifier).toMatchObject({ count: 4, invalid: 2, first: "3", last: "6" });
  });

  test("any wrong order is detected, and any receipt missing in the middle", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(chain, { minLength: 2 }), (picked) => {
        const positions = picked.map(({ sequence_id }) => Number(sequence_id));
        const isRun = positions.every((position, index) => position === (positions[0] ?? 0) + index);
        expect(problemsOf(picked).length === 0).toBe(isRun);
      }),
    );
  });

  test("a fork at any position is detected, on both branches", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), (at) => {
        expect(problemsOf([...chain.slice(0, at), ...sameKey.slice(at)])).toHaveLength(1);
      }),
    );
  });
});
