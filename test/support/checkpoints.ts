import { getPublicKey, sign } from "@noble/ed25519";
import { HashTree } from "../../src/areas/notary/tree/hash-tree.ts";
import { toBase64, toHex } from "../../src/verify/bytes.ts";
import { createNativeCrypto } from "../../src/verify/native.ts";
import {
  COSIGNATURE,
  checkpointText,
  cosignatureBytes,
  cosignedText,
  noteKey,
  signatureLine,
  vkeyOf,
} from "../../src/verify/note.ts";
import type { Receipt } from "../../src/verify/receipt.ts";
import { leafHashOf, leafOf } from "../../src/verify/tree.ts";
// Sets the hash of the signatures.
import "./receipts.ts";

const crypto = createNativeCrypto();
const ORIGIN = "example.com/audit";
/** When the witnesses of tests sign, in epoch seconds. */
const SIGNED_AT = 1_760_000_100;

function seedOf(byte: number): Uint8Array {
  return new Uint8Array(32).fill(byte);
}

/** The public key of a seed of equal bytes. */
export function publicKeyOf(byte: number): Uint8Array {
  return getPublicKey(seedOf(byte));
}

/** The tree over receipts, fewer than a tile has. */
export function treeOf(receipts: readonly Receipt[]): HashTree {
  const hashes = receipts.map((receipt) => leafHashOf(crypto, leafOf(receipt)));
  return new HashTree(crypto, {
    hashes: (level, first, count) => (level === 0 ? hashes.slice(first, first + count) : []),
  });
}

/** A signed checkpoint over the first receipts of a chain with a seed of equal bytes. */
export function checkpointOf(receipts: readonly Receipt[], size: number, byte = 7, origin = ORIGIN): string {
  const text = checkpointText({ origin, size, root: treeOf(receipts).root(size) });
  const signature = sign(Buffer.from(text), seedOf(byte));
  return `${text}\n${signatureLine(noteKey(crypto, origin, publicKeyOf(byte)), signature)}\n`;
}

/** A witness with a seed of equal bytes. */
export function witnessOf(byte: number) {
  const key = noteKey(crypto, `witness.example/${byte}`, publicKeyOf(byte), COSIGNATURE);
  return { byte, key, vkey: vkeyOf(key) };
}

/** A checkpoint with the cosignatures of witnesses. `time` is in epoch seconds. */
export function cosignedBy(
  note: string,
  witnesses: readonly ReturnType<typeof witnessOf>[],
  time = SIGNED_AT,
): string {
  const text = note.slice(0, note.lastIndexOf("\n\n") + 1);
  const lines = witnesses.map(({ byte, key }) => {
    const signature = sign(Buffer.from(cosignedText(text, time)), seedOf(byte));
    return `${signatureLine(key, cosignatureBytes(time, signature))}\n`;
  });
  return note + lines.join("");
}

/** The bundle of a receipt in its chain. */
export function bundleOf(receipts: readonly Receipt[], sequence: number) {
  const receipt = receipts[sequence - 1];
  if (receipt === undefined) throw new Error(`the chain has no receipt ${sequence}`);
  return {
    type: "ninefold-bundle/v1",
    receipt,
    inclusion: {
      leaf_index: sequence - 1,
      tree_size: receipts.length,
      leaf_hash: toHex(leafHashOf(crypto, leafOf(receipt))),
      hashes: treeOf(receipts)
        .inclusion(sequence - 1, receipts.length)
        .map(toBase64),
    },
    checkpoint: checkpointOf(receipts, receipts.length),
    public_key: receipt.public_key,
  };
}
