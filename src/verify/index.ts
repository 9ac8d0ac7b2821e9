// The package's entry `ninefold/verify`: receipts checked anywhere, without a server.
import { isValueDeeper } from "../json-text.ts";
import { type ChainProblem, ChainVerifier, RECEIPT_LEVELS_MAX, tooDeep, verifyReceiptText } from "./chain.ts";
import { createPortableCrypto } from "./noble.ts";
import { checkReceipt, type Verdict, verdictOf } from "./receipt.ts";

export type { ChainProblem } from "./chain.ts";
export type { Verdict } from "./receipt.ts";

/**
 * Checks one receipt: signature, content, link. If you have its text, pass that: it shows what the parsed object does not, a
 * name that occurs twice or a number that a parser has rounded. Compare its `public_key` with the one that you know.
 */
export function verifyReceipt(receipt: string | object): Verdict {
  const crypto = createPortableCrypto();
  if (typeof receipt === "string") return verifyReceiptText(receipt, crypto).verdict;
  return isValueDeeper(receipt, RECEIPT_LEVELS_MAX) ? tooDeep() : verdictOf(checkReceipt(receipt, crypto));
}

/** The outcome of {@link verifyChain}. */
export interface ChainVerdict {
  /** Whether there was a receipt, and nothing was wrong with any. */
  readonly valid: boolean;
  /** Receipts looked at. */
  readonly count: number;
  /** The first and the last `sequence_id`. */
  readonly first: string | null;
  readonly last: string | null;
  /** The `x` of the chain's key. Compare it with the one that you know, unless you gave it. */
  readonly publicKey: string | null;
  readonly found: readonly ChainProblem[];
}

/**
 * Checks receipts of one chain, in ascending order: each by itself, and as the successor of the one before.
 *
 * @param receipts their texts, or parsed.
 * @param publicKey the `x` of the key that must have signed; else the first receipt's must have signed all.
 */
export function verifyChain(
  receipts: Iterable<string | object>,
  publicKey: string | null = null,
): ChainVerdict {
  const chain = new ChainVerifier(createPortableCrypto(), publicKey);
  const found: ChainProblem[] = [];
  for (const receipt of receipts) {
    const problem = chain.add(typeof receipt === "string" ? receipt : JSON.stringify(receipt));
    if (problem.problems.length > 0) found.push(problem);
  }
  const { count, first, last } = chain;
  return { valid: count > 0 && found.length === 0, count, first, last, publicKey: chain.publicKey, found };
}
