// The package's entry `ninefold/verify`: checks receipts anywhere, without a server.
import { isValueDeeper } from "../json-text.ts";
import { type ChainProblem, ChainVerifier, RECEIPT_LEVELS_MAX, tooDeep, verifyReceiptText } from "./chain.ts";
import { createPortableCrypto } from "./noble.ts";
import { checkReceipt, type Verdict, verdictOf } from "./receipt.ts";

export type { ChainProblem } from "./chain.ts";
export type { Verdict } from "./receipt.ts";

/**
 * Checks one receipt: signature, content and link. Pass its text if you have it: only the text shows duplicate names and
 * numbers that a parser has rounded. Compare `public_key` with the key that you trust.
 */
export function verifyReceipt(receipt: string | object): Verdict {
  const crypto = createPortableCrypto();
  if (typeof receipt === "string") return verifyReceiptText(receipt, crypto).verdict;
  return isValueDeeper(receipt, RECEIPT_LEVELS_MAX) ? tooDeep() : verdictOf(checkReceipt(receipt, crypto));
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
    const problem = chain.add(typeof receipt === "string" ? receipt : JSON.stringify(receipt));
    if (problem.problems.length > 0) found.push(problem);
  }
  const { count, first, last } = chain;
  return { valid: count > 0 && found.length === 0, count, first, last, publicKey: chain.publicKey, found };
}
