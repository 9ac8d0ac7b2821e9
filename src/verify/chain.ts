import { findInexactness, isNestedDeeper, JSON_LEVELS_MAX, pathText } from "../json-text.ts";
import {
  checkReceipt,
  type Findings,
  isObject,
  noFindings,
  publicKeyX,
  reportEverywhere,
  type Verdict,
  type VerifierCrypto,
  verdictOf,
} from "./receipt.ts";

/** Levels of a receipt: those of its log, and its own. */
export const RECEIPT_LEVELS_MAX = JSON_LEVELS_MAX + 1;

/** Reads and checks the text of one receipt. A name that occurs twice, or a number that a parser would change, makes it invalid. */
export function verifyReceiptText(
  text: string,
  crypto: VerifierCrypto,
): { receipt: unknown; verdict: Verdict } {
  if (isNestedDeeper(text, RECEIPT_LEVELS_MAX)) return { receipt: null, verdict: tooDeep() };
  let receipt: unknown;
  try {
    receipt = JSON.parse(text);
  } catch {
    return { receipt: null, verdict: unread("the receipt is not JSON") };
  }
  const found = checkReceipt(receipt, crypto);
  reportInexactness(text, receipt, [], found);
  return { receipt, verdict: verdictOf(found) };
}

/** The verdict on a receipt that is nested too deeply to be looked at. */
export function tooDeep(): Verdict {
  return unread(`the log is nested deeper than ${JSON_LEVELS_MAX} levels`);
}

function unread(problem: string): Verdict {
  const found = noFindings();
  reportEverywhere(found, problem);
  return verdictOf(found);
}

/**
 * Reports what a receipt's text says beyond its parsed value: in the log this puts the content in doubt, elsewhere
 * everything. `outside` names the members around the receipt in the text.
 */
export function reportInexactness(
  text: string,
  value: unknown,
  outside: readonly string[],
  found: Findings,
): void {
  const inexact = findInexactness(text, value, outside[0]);
  if (inexact === null) return;
  const path = inexact.path.slice(outside.length);
  const problem = `${path.length === 0 ? "receipt" : pathText(path)} ${inexact.problem}`;
  if (path[0] === "log" && path.length > 1) found.content_hash_matches.push(problem);
  else reportEverywhere(found, problem);
}

/** What is wrong in a chain, by receipt. */
export interface ChainProblem {
  /** Its `sequence_id`, if it has one. */
  readonly sequence: string | null;
  readonly problems: readonly string[];
}

const DIGITS = /^\d{1,20}$/;

/** Checks the receipts of one chain in their order, each by itself and as the successor of the one before. */
export class ChainVerifier {
  /** Receipts checked. */
  count = 0;
  /** Receipts with problems. */
  invalid = 0;
  /** `sequence_id` of the first and the last receipt. */
  first: string | null = null;
  last: string | null = null;
  private previousHash: unknown = null;

  /** `publicKey` is the `x` of the key that must have signed; without it, the first receipt's key must have signed all. */
  constructor(
    private readonly crypto: VerifierCrypto,
    /** The chain's public key: the one that was asked for, or else the first receipt's. */
    public publicKey: string | null = null,
  ) {}

  /** Checks the next receipt. Returns its `sequence_id`, if it has one, and what is wrong. */
  add(text: string): ChainProblem {
    const { receipt, verdict } = verifyReceiptText(text, this.crypto);
    const fields: Record<string, unknown> = isObject(receipt) ? receipt : {};
    const sequence = typeof fields.sequence_id === "string" ? fields.sequence_id : null;
    const inChain = [this.keyProblem(fields), this.orderProblem(fields, sequence)];
    const problems = [...(verdict.errors ?? []), ...inChain.filter((problem) => problem !== null)];
    this.count += 1;
    if (problems.length > 0) this.invalid += 1;
    if (sequence === null) return { sequence, problems };
    this.first ??= sequence;
    this.last = sequence;
    this.previousHash = fields.chain_hash;
    return { sequence, problems };
  }

  private keyProblem(fields: Record<string, unknown>): string | null {
    const key = publicKeyX(fields.public_key);
    if (key === null) return null;
    this.publicKey ??= key;
    return key === this.publicKey ? null : "public_key is not the chain's";
  }

  private orderProblem(fields: Record<string, unknown>, sequence: string | null): string | null {
    const { last } = this;
    if (last === null || sequence === null || !DIGITS.test(sequence) || !DIGITS.test(last)) return null;
    const step = BigInt(sequence) - BigInt(last);
    if (step > 1n) return `sequence_id ${sequence} follows ${last}: receipts are missing in between`;
    if (step < 1n)
      return `sequence_id ${sequence} follows ${last}: receipts are out of order, or the chain has a fork`;
    if (fields.prev_hash === this.previousHash) return null;
    return "prev_hash is not the chain_hash of the receipt before: one was changed, or the chain has a fork";
  }
}
