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

/** Maximum nesting levels of a receipt: those of its log plus one. */
export const RECEIPT_LEVELS_MAX = JSON_LEVELS_MAX + 1;

/**
 * Parses and checks the text of one receipt. A duplicate name or a number that a parser would change makes it invalid.
 * `logText`: the log of a receipt without one.
 */
export function verifyReceiptText(
  text: string,
  crypto: VerifierCrypto,
  logText: string | null = null,
): { receipt: unknown; verdict: Verdict } {
  if (logText !== null && isNestedDeeper(logText, JSON_LEVELS_MAX))
    return { receipt: null, verdict: tooDeep() };
  if (isNestedDeeper(text, RECEIPT_LEVELS_MAX)) return { receipt: null, verdict: tooDeep() };
  const parsed = parsedText(text);
  if (parsed === null) return { receipt: null, verdict: failed("the receipt is not JSON") };
  const { value: receipt } = parsed;
  const log = logText === null ? undefined : parsedText(logText);
  if (log === null) return { receipt, verdict: failed("the log is not JSON") };
  const found = checkReceipt(receipt, crypto, log?.value);
  reportInexactness(text, receipt, [], found);
  if (log !== undefined && logText !== null) reportLogInexactness(logText, log.value, [], found);
  return { receipt, verdict: verdictOf(found) };
}

function parsedText(text: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** Something that a parser would lose, as `findInexactness` returns it. The package's types refer to nothing outside of it. */
interface Inexact {
  /** Names and indexes from the outside in. */
  readonly path: readonly (string | number)[];
  /** What is wrong, as the end of a sentence about the value at `path`. */
  readonly problem: string;
}

/**
 * Reports differences between the text of a log next to a receipt and its parsed value. `outside`: its path in the text;
 * `inexact`: what was found, if it was looked for already.
 */
export function reportLogInexactness(
  text: string,
  value: unknown,
  outside: readonly string[],
  found: Findings,
  inexact: Inexact | null = findInexactness(text, value, outside[0]),
): void {
  if (inexact !== null)
    found.content_hash_matches?.push(
      `${pathText(["log", ...inexact.path.slice(outside.length)])} ${inexact.problem}`,
    );
}

/** Returns the verdict on a receipt that is nested too deeply to be checked. */
export function tooDeep(): Verdict {
  return failed(`the log is nested deeper than ${JSON_LEVELS_MAX} levels`);
}

function failed(problem: string): Verdict {
  const found = noFindings();
  reportEverywhere(found, problem);
  return verdictOf(found);
}

/**
 * Reports differences between a receipt's text and its parsed value. In the log, they fail the content check; elsewhere,
 * all checks. `outside` is the path of the receipt in the text; `inexact` is what was found, if it was looked for already.
 */
export function reportInexactness(
  text: string,
  value: unknown,
  outside: readonly string[],
  found: Findings,
  inexact: Inexact | null = findInexactness(text, value, outside[0]),
): void {
  if (inexact === null) return;
  const path = inexact.path.slice(outside.length);
  const problem = `${path.length === 0 ? "receipt" : pathText(path)} ${inexact.problem}`;
  if (path[0] === "log" && path.length > 1) found.content_hash_matches?.push(problem);
  else reportEverywhere(found, problem);
}

/** The problems of one receipt in a chain. */
export interface ChainProblem {
  /** The receipt's `sequence_id`, or null. */
  readonly sequence: string | null;
  readonly problems: readonly string[];
}

const DIGITS = /^\d{1,20}$/;

/** Checks the receipts of one chain in ascending order, each individually and as the successor of the previous one. */
export class ChainVerifier {
  /** Number of receipts checked. */
  count = 0;
  /** Number of receipts with problems. */
  invalid = 0;
  /** Number of receipts without a log, of which only the hashes are checked. */
  withoutLog = 0;
  /** `sequence_id` of the first and the last receipt. */
  first: string | null = null;
  last: string | null = null;
  private previousHash: unknown = null;

  /** `publicKey` is the `x` of the expected key. If it is null, all receipts must have the key of the first one. */
  constructor(
    private readonly crypto: VerifierCrypto,
    public publicKey: string | null = null,
  ) {}

  /** Checks the next receipt and returns its problems. `logText`: the log of a receipt without one. */
  add(text: string, logText: string | null = null): ChainProblem & { readonly receipt: unknown } {
    const { receipt, verdict } = verifyReceiptText(text, this.crypto, logText);
    const fields: Record<string, unknown> = isObject(receipt) ? receipt : {};
    const sequence = typeof fields.sequence_id === "string" ? fields.sequence_id : null;
    const inChain = [this.keyProblem(fields), this.orderProblem(fields, sequence)];
    const problems = [...(verdict.errors ?? []), ...inChain.filter((problem) => problem !== null)];
    this.count += 1;
    if (problems.length > 0) this.invalid += 1;
    if (verdict.checks.content_hash_matches === null) this.withoutLog += 1;
    if (sequence === null) return { sequence, problems, receipt };
    this.first ??= sequence;
    this.last = sequence;
    this.previousHash = fields.chain_hash;
    return { sequence, problems, receipt };
  }

  private keyProblem(fields: Record<string, unknown>): string | null {
    const key = publicKeyX(fields.public_key);
    if (key === null) return null;
    this.publicKey ??= key;
    return key === this.publicKey ? null : "public_key differs from the chain's key";
  }

  private orderProblem(fields: Record<string, unknown>, sequence: string | null): string | null {
    const { last } = this;
    if (last === null || sequence === null || !DIGITS.test(sequence) || !DIGITS.test(last)) return null;
    const step = BigInt(sequence) - BigInt(last);
    if (step > 1n) return `sequence_id ${sequence} follows ${last}: receipts between them are missing`;
    if (step < 1n)
      return `sequence_id ${sequence} follows ${last}: receipts are out of order, or the chain has a fork`;
    if (fields.prev_hash === this.previousHash) return null;
    return "prev_hash differs from the chain_hash of the previous receipt: one was changed, or the chain has a fork";
  }
}
