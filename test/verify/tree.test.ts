import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { HashTree } from "../../src/areas/notary/tree/hash-tree.ts";
import { toHex } from "../../src/verify/bytes.ts";
import { createNativeCrypto } from "../../src/verify/native.ts";
import {
  emptyRoot,
  isConsistent,
  isIncluded,
  leafHashOf,
  leafOf,
  PROOF_HASHES_MAX,
  RunningTree,
} from "../../src/verify/tree.ts";
import vectors from "../vectors/notary.json" with { type: "json" };

const crypto = createNativeCrypto();
/** All pairs up to this size, as in Go's TestTree. */
const SIZE_MAX = 100;
/** Each takes a second on a fast machine. */
const LONG_MS = 60_000;

/** A tree over leaf hashes in memory. */
function treeOf(leaves: readonly Uint8Array[]): HashTree {
  const levels: Uint8Array[][] = [[...leaves]];
  const source = {
    hashes: (level: number, first: number, count: number) =>
      (levels[level] ?? []).slice(first, first + count),
  };
  for (let level = 0; (levels[level]?.length ?? 0) >= 256; level += 1) {
    const tree = new HashTree(crypto, source);
    const tiles = Math.floor((levels[level]?.length ?? 0) / 256);
    levels.push(Array.from({ length: tiles }, (_, tile) => tree.tileRoot(level, tile)));
  }
  return new HashTree(crypto, source);
}

function leavesOf(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => leafHashOf(crypto, Buffer.from(`leaf ${index}`)));
}

/** Each way to change one bit of one hash, and to remove, repeat or add one. */
function* corruptions(hashes: readonly Uint8Array[]): Generator<Uint8Array[]> {
  for (const [at, hash] of hashes.entries()) {
    const changed = Uint8Array.from(hash);
    changed[at % 32] = (changed[at % 32] ?? 0) ^ 1;
    yield hashes.with(at, changed);
    yield hashes.toSpliced(at, 1);
  }
  yield [...hashes, new Uint8Array(32)];
}

describe("published vectors", () => {
  // transparency-dev/merkle, testonly/constants.go.
  const inputs = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
  ];
  const leaves = inputs.map((hex) => leafHashOf(crypto, Buffer.from(hex, "hex")));

  test.each([
    [0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    [1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"],
    [5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"],
    [8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"],
  ])("the root of %d leaves", (size, root) => {
    expect(toHex(treeOf(leaves).root(size))).toBe(root);
    const running = new RunningTree(crypto);
    for (const leaf of leaves.slice(0, size)) running.add(leaf);
    expect(toHex(running.root)).toBe(root);
  });

  test("the leaf hash of Go's tlog", () => {
    const hash = leafHashOf(crypto, Buffer.from("hello world"));
    expect(Buffer.from(hash).toString("base64")).toBe("TszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0=");
  });

  test("the leaves, roots and proofs of the chain in the vectors", () => {
    const hashes = (vectors.chains[0]?.receipts ?? []).map((receipt) => leafHashOf(crypto, leafOf(receipt)));
    expect(hashes.map(toHex)).toEqual([
      "d42df7733ac801ca37b08e5c0aacb2c7de47664a22d0c27d6c34dc52c715fd04",
      "553e6c3712c7ab2056641570650eae047fcc8f7faa9a7272dbc3f8ab9e40ad8f",
      "175129d543f4467aac08db2b62459e77d8bc8c6ef80c294ff2ac1a5c836ee5b9",
    ]);
    const tree = treeOf(hashes);
    expect([2, 3].map((size) => toHex(tree.root(size)))).toEqual([
      "c33262269bfae7da549e41f23ad1d77858a4681ed4a89852c4268ab8af2b82ce",
      "cf634ccff0922c964a759262b0d22829e16b64be3e1f2661b42a030694d8a49b",
    ]);
    const [, leaf1, leaf2] = hashes;
    expect(tree.inclusion(0, 3)).toEqual([leaf1, leaf2] as Uint8Array[]);
    expect(tree.consistency(2, 3)).toEqual([leaf2] as Uint8Array[]);
  });
});

describe(`all pairs up to size ${SIZE_MAX}`, () => {
  const leaves = leavesOf(SIZE_MAX);
  const tree = treeOf(leaves);
  const roots = Array.from({ length: SIZE_MAX + 1 }, (_, size) => tree.root(size));
  const headAt = (size: number) => ({ size, root: roots[size] ?? emptyRoot(crypto) });

  test(
    "inclusion proofs are accepted, and rejected with any hash changed, removed or added",
    () => {
      for (let size = 1; size <= SIZE_MAX; size += 1) {
        for (let index = 0; index < size; index += 1) {
          const [leafHash, root] = [leaves[index], roots[size]];
          if (leafHash === undefined || root === undefined) throw new Error("out of range");
          const proof = { index, size, leafHash, root, hashes: tree.inclusion(index, size) };
          if (!isIncluded(crypto, proof)) throw new Error(`${index} of ${size} is rejected`);
          for (const hashes of corruptions(proof.hashes)) {
            if (isIncluded(crypto, { ...proof, hashes })) throw new Error(`${index} of ${size} is accepted`);
          }
        }
      }
      expect.assertions(0);
    },
    LONG_MS,
  );

  test(
    "consistency proofs are accepted, and rejected with any hash changed, removed or added",
    () => {
      for (let to = 0; to <= SIZE_MAX; to += 1) {
        for (let from = 0; from <= to; from += 1) {
          const [older, newer] = [headAt(from), headAt(to)];
          const hashes = tree.consistency(from, to);
          if (!isConsistent(crypto, older, newer, hashes)) throw new Error(`${from} to ${to} is rejected`);
          for (const wrong of corruptions(hashes)) {
            if (isConsistent(crypto, older, newer, wrong)) throw new Error(`${from} to ${to} is accepted`);
          }
          const changed = { ...older, root: headAt(Math.abs(from - 1)).root };
          if (isConsistent(crypto, changed, newer, hashes)) throw new Error(`${from} to ${to}: another root`);
        }
      }
      expect.assertions(0);
    },
    LONG_MS,
  );

  test("a proof for another index, size or leaf is rejected", () => {
    const [leafHash = new Uint8Array(), other = new Uint8Array()] = leaves;
    const root = roots[7] ?? new Uint8Array();
    const proof = { index: 0, size: 7, leafHash, root, hashes: tree.inclusion(0, 7) };
    expect(isIncluded(crypto, proof)).toBe(true);
    expect(isIncluded(crypto, { ...proof, index: 1 })).toBe(false);
    expect(isIncluded(crypto, { ...proof, size: 15 })).toBe(false);
    expect(isIncluded(crypto, { ...proof, leafHash: other })).toBe(false);
    expect(isIncluded(crypto, { ...proof, index: 7 })).toBe(false);
    expect(isIncluded(crypto, { ...proof, index: -1 })).toBe(false);
    expect(isIncluded(crypto, { ...proof, index: 0.5 })).toBe(false);
    expect(isConsistent(crypto, { size: 7, root }, { size: 3, root }, [])).toBe(false);
  });
});

test("a tree with several levels of tiles has the roots and proofs of one without", () => {
  const leaves = leavesOf(70_000);
  const tree = treeOf(leaves);
  const running = new RunningTree(crypto);
  const heads = new Map<number, Uint8Array>();
  const sizes = [255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 69_999, 70_000];
  for (const leaf of leaves) {
    running.add(leaf);
    if (sizes.includes(running.size)) heads.set(running.size, running.root);
  }
  for (const size of sizes) expect(tree.root(size)).toEqual(heads.get(size) ?? new Uint8Array());
  for (const index of [0, 255, 256, 65_535, 65_536, 69_999]) {
    const [leafHash, root] = [leaves[index] ?? new Uint8Array(), heads.get(70_000) ?? new Uint8Array()];
    const proof = { index, size: 70_000, leafHash, root, hashes: tree.inclusion(index, 70_000) };
    expect(isIncluded(crypto, proof)).toBe(true);
  }
  for (const from of sizes) {
    const [older, newer] = [from, 70_000].map((size) => ({
      size,
      root: heads.get(size) ?? new Uint8Array(),
    }));
    if (older === undefined || newer === undefined) throw new Error("no heads");
    expect(isConsistent(crypto, older, newer, tree.consistency(from, 70_000))).toBe(true);
  }
});

test("a tree that lacks a hash says which", () => {
  const tree = treeOf(leavesOf(3));
  expect(() => tree.root(4)).toThrow("the tree lacks hashes from 0 of level 0");
});

test(`a proof of more than ${PROOF_HASHES_MAX + 2} hashes is rejected without computing any`, () => {
  const counted = { sha256: () => expect.unreachable() };
  const zero = new Uint8Array(32);
  const hashes = Array.from({ length: PROOF_HASHES_MAX + 3 }, () => zero);
  const proof = { index: 0, size: 2, leafHash: zero, root: zero, hashes };
  expect(isIncluded(counted, proof)).toBe(false);
});

test("inclusion proofs are those that Sigstore's verifier accepts", async () => {
  // The package exports no entry for its Merkle proofs.
  const path = join(import.meta.dir, "../../node_modules/@sigstore/verify/dist/tlog/merkle.js");
  const { verifyMerkleInclusion } = (await import(path)) as {
    verifyMerkleInclusion: (entry: object, checkpoint: object) => void;
  };
  const bodies = Array.from({ length: 50 }, (_, index) => Buffer.from(`leaf ${index}`));
  const tree = treeOf(bodies.map((body) => leafHashOf(crypto, body)));
  for (let size = 1; size <= bodies.length; size += 1) {
    for (let index = 0; index < size; index += 1) {
      const hashes = tree.inclusion(index, size).map((hash) => Buffer.from(hash));
      const entry = { canonicalizedBody: bodies[index], inclusionProof: { logIndex: String(index), hashes } };
      const head = { logSize: BigInt(size), logHash: Buffer.from(tree.root(size)) };
      verifyMerkleInclusion(entry, head);
      const wrong = { ...head, logHash: Buffer.from(tree.root(size === 1 ? 2 : size - 1)) };
      expect(() => verifyMerkleInclusion(entry, wrong)).toThrow();
    }
  }
});
