// The Merkle tree over a chain's receipts, and the verification of its proofs, as in RFC 9162. Sizes and indexes are safe integers: bitwise operators would cut them to 32 bits.
import { isEqual } from "./bytes.ts";
import type { Receipt, VerifierCrypto } from "./receipt.ts";

type Hasher = Pick<VerifierCrypto, "sha256">;

/** Bytes of a hash. */
export const HASH_BYTES = 32;

/** Entries of a proof: a path from a leaf to the root of the largest tree, and one more. */
export const PROOF_HASHES_MAX = 64;

const UTF8 = new TextEncoder();

/** The fields of a receipt that its leaf covers: also the timestamp, which the signature does not cover. */
export type LeafFields = Pick<Receipt, "sequence_id" | "timestamp" | "content_hash" | "chain_hash">;

/** Returns the leaf of a receipt as a text: ASCII, and the same for every receipt with these fields. */
export function leafText({ sequence_id, timestamp, content_hash, chain_hash }: LeafFields): string {
  return `ninefold-receipt/v1\n${sequence_id}\n${timestamp}\n${content_hash}\n${chain_hash}\n`;
}

/** Returns the leaf of a receipt. */
export function leafOf(receipt: LeafFields): Uint8Array {
  return UTF8.encode(leafText(receipt));
}

/** Returns the hash of a leaf: SHA-256 of a zero byte and the leaf. */
export function leafHashOf(crypto: Hasher, leaf: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + leaf.length);
  bytes.set(leaf, 1);
  return crypto.sha256(bytes);
}

/** Returns the hash of an inner node: SHA-256 of a one byte and both children. */
export function nodeHashOf(crypto: Hasher, left: Uint8Array, right: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + 2 * HASH_BYTES);
  bytes[0] = 1;
  bytes.set(left, 1);
  bytes.set(right, 1 + HASH_BYTES);
  return crypto.sha256(bytes);
}

/** Returns the root of the empty tree. */
export function emptyRoot(crypto: Hasher): Uint8Array {
  return crypto.sha256(new Uint8Array(0));
}

/** Whether a leaf is at `index` of the tree with this size and root. */
export function isIncluded(crypto: Hasher, { index, size, leafHash, hashes, root }: InclusionProof): boolean {
  if (!isSize(index) || !isSize(size) || index >= size || !areHashes([leafHash, root, ...hashes]))
    return false;
  let [node, last] = [index, size - 1];
  let hash = leafHash;
  for (const sibling of hashes) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      hash = nodeHashOf(crypto, sibling, hash);
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)];
    } else {
      hash = nodeHashOf(crypto, hash, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && isEqual(hash, root);
}

/** A proof that a leaf is part of a tree. */
export interface InclusionProof {
  /** From 0. */
  readonly index: number;
  readonly size: number;
  readonly leafHash: Uint8Array;
  readonly hashes: readonly Uint8Array[];
  readonly root: Uint8Array;
}

/** A tree as a checkpoint names it. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Whether the tree `to` contains the leaves of the tree `from` unchanged and in the same places. */
export function isConsistent(
  crypto: Hasher,
  from: TreeHead,
  to: TreeHead,
  hashes: readonly Uint8Array[],
): boolean {
  if (!isSize(from.size) || !isSize(to.size) || from.size > to.size) return false;
  if (!areHashes([from.root, to.root, ...hashes])) return false;
  if (from.size === 0) return hashes.length === 0 && isEqual(from.root, emptyRoot(crypto));
  if (from.size === to.size) return hashes.length === 0 && isEqual(from.root, to.root);
  const path = isPowerOfTwo(from.size) ? [from.root, ...hashes] : hashes;
  const [first, ...rest] = path;
  if (first === undefined) return false;
  let [node, last] = [from.size - 1, to.size - 1];
  while (node % 2 === 1) [node, last] = [half(node), half(last)];
  let [older, newer] = [first, first];
  for (const hash of rest) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      older = nodeHashOf(crypto, hash, older);
      newer = nodeHashOf(crypto, hash, newer);
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)];
    } else {
      newer = nodeHashOf(crypto, newer, hash);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && isEqual(older, from.root) && isEqual(newer, to.root);
}

/** Computes the root of a growing tree. It holds one hash for each bit of the size. */
export class RunningTree {
  size = 0;
  /** Roots of the perfect subtrees, the largest first, with their heights. */
  private readonly subtrees: { readonly height: number; readonly hash: Uint8Array }[] = [];

  constructor(private readonly crypto: Hasher) {}

  /** Appends a leaf by its hash. */
  add(leafHash: Uint8Array): void {
    let [height, hash] = [0, leafHash];
    for (let last = this.subtrees.at(-1); last?.height === height; last = this.subtrees.at(-1)) {
      hash = nodeHashOf(this.crypto, last.hash, hash);
      height += 1;
      this.subtrees.pop();
    }
    this.subtrees.push({ height, hash });
    this.size += 1;
  }

  /** The root of the present tree. */
  get root(): Uint8Array {
    const [last, ...others] = [...this.subtrees].reverse();
    if (last === undefined) return emptyRoot(this.crypto);
    return others.reduce((hash, { hash: left }) => nodeHashOf(this.crypto, left, hash), last.hash);
  }
}

function half(number: number): number {
  return Math.floor(number / 2);
}

function isPowerOfTwo(size: number): boolean {
  return Number.isInteger(Math.log2(size)) && 2 ** Math.round(Math.log2(size)) === size;
}

function isSize(size: number): boolean {
  return Number.isSafeInteger(size) && size >= 0;
}

function areHashes(hashes: readonly Uint8Array[]): boolean {
  return hashes.length <= PROOF_HASHES_MAX + 2 && hashes.every(({ length }) => length === HASH_BYTES);
}
