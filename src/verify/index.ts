// The package's entry `ninefold/verify`: checks receipts anywhere, without a server.
import { isValueDeeper } from "../json-text.ts";
import { type ChainProblem, ChainVerifier, RECEIPT_LEVELS_MAX, tooDeep, verifyReceiptText } from "./chain.ts";
import {
  type BundleVerdict,
  type CheckpointHead,
  type CheckpointKeys,
  type CheckpointVerdict,
  checkBundle,
  checkCheckpoint,
  checkConsistency,
} from "./checkpoint.ts";
import { createPortableCrypto } from "./noble.ts";
import { checkReceipt, type Verdict, verdictOf } from "./receipt.ts";

export type { ChainProblem } from "./chain.ts";
export type { BundleVerdict, CheckpointHead, CheckpointKeys, CheckpointVerdict } from "./checkpoint.ts";
export { type Note, type NoteSignature, parseNote } from "./note.ts";
export type { Verdict } from "./receipt.ts";

/**
 * Checks one receipt: signature, content and link. Pass its text if you have it: only the text shows duplicate names and
 * numbers that a parser has rounded. Compare `public_key` with the key that you trust.
 *
 * @param log the log, as a text or parsed, of a receipt without one. Without it, `content_hash_matches` of such a receipt is null.
 */
export function verifyReceipt(receipt: string | object, log?: string | object): Verdict {
  const crypto = createPortableCrypto();
  if (typeof receipt === "string" || typeof log === "string")
    return verifyReceiptText(textOf(receipt), crypto, log === undefined ? null : textOf(log)).verdict;
  const isTooDeep = isValueDeeper(receipt, RECEIPT_LEVELS_MAX) || isValueDeeper(log, RECEIPT_LEVELS_MAX);
  return isTooDeep ? tooDeep() : verdictOf(checkReceipt(receipt, crypto, log));
}

function textOf(value: string | object): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The outcome of {@link verifyChain}. */
export interface ChainVerdict {
  /** Whether there is at least one receipt and all are valid. */
  readonly valid: boolean;
  /** Number of receipts checked. */
  readonly count: number;
  /** First `sequence_id`. */
  readonly first: string | null;
  /** Last `sequence_id`. */
  readonly last: string | null;
  /** `x` of the chain's key. Compare it with the key that you trust, unless you passed it. */
  readonly publicKey: string | null;
  /** Problems, by receipt. */
  readonly found: readonly ChainProblem[];
}

/**
 * Checks the receipts of one chain in ascending order, each individually and as the successor of the previous one.
 *
 * @param receipts texts or parsed receipts.
 * @param publicKey `x` of the expected key. If it is null, all receipts must have the key of the first one.
 */
export function verifyChain(
  receipts: Iterable<string | object>,
  publicKey: string | null = null,
): ChainVerdict {
  const chain = new ChainVerifier(createPortableCrypto(), publicKey);
  const found: ChainProblem[] = [];
  for (const receipt of receipts) {
    const { sequence, problems } = chain.add(typeof receipt === "string" ? receipt : JSON.stringify(receipt));
    if (problems.length > 0) found.push({ sequence, problems });
  }
  const { count, first, last } = chain;
  return { valid: count > 0 && found.length === 0, count, first, last, publicKey: chain.publicKey, found };
}

/**
 * Verifies a bundle of the notary: the receipt, the checkpoint's signature, and that the checkpoint covers the receipt. Pass
 * its text if you have it, and the key that you trust: without one, receipt and checkpoint must have the same key.
 */
export function verifyBundle(bundle: string | object, keys: CheckpointKeys = {}): BundleVerdict {
  return checkBundle(bundle, keys, createPortableCrypto());
}

/** Verifies the signatures of a checkpoint: of the chain, by `publicKey` or `vkey`, and of `witnesses`. */
export function verifyCheckpoint(note: string, keys: CheckpointKeys): CheckpointVerdict {
  return checkCheckpoint(note, keys, createPortableCrypto());
}

/**
 * Whether a consistency proof (`hashes`, base64) shows that the chain of the newer checkpoint continues the one of the older:
 * nothing was removed, changed or reordered. Verify both checkpoints with {@link verifyCheckpoint} first.
 */
export function verifyConsistency(
  older: CheckpointHead,
  newer: CheckpointHead,
  hashes: readonly string[],
): boolean {
  return checkConsistency(older, newer, hashes, createPortableCrypto());
}
