import type { Inexactness } from "../../json-text.ts";
import { slices } from "../../kernel/background/time-slices.ts";
import { findInexactnessInSlices } from "../../kernel/http/requests/inexactness.ts";
import { reportInexactness, reportLogInexactness } from "../../verify/chain.ts";
import { createNativeCrypto } from "../../verify/native.ts";
import {
  checkReceipt,
  type Findings,
  isObject,
  isPosition,
  publicKeyX,
  type Receipt,
  verdictOf,
} from "../../verify/receipt.ts";
import type { ReceiptVerdict } from "./schema.ts";
import type { NotaryService } from "./service.ts";

const crypto = createNativeCrypto();

/**
 * Runs the three checks on a receipt: the portable checks, and a comparison with the notary's record. All of them run,
 * even if an earlier one fails.
 */
export function verifyAgainst(
  notary: NotaryService,
  projectRef: number,
  body: { receipt: unknown; log?: unknown },
  bodyText: string,
): ReceiptVerdict {
  const found = checkReceipt(body.receipt, crypto, body.log);
  reportInexactness(bodyText, body, ["receipt"], found);
  if (body.log !== undefined) reportLogInexactness(bodyText, body, ["log"], found);
  return verdictAgainst(notary, projectRef, body.receipt, found);
}

/** The same for a large body, in slices of the event loop. */
export async function verifyLargeAgainst(
  notary: NotaryService,
  projectRef: number,
  body: { receipt: unknown; log?: unknown },
  bodyText: string,
): Promise<ReceiptVerdict> {
  const found = checkReceipt(body.receipt, crypto, body.log);
  reportInexactness(bodyText, body, ["receipt"], found, await inexactnessOf(bodyText, body, "receipt"));
  if (body.log !== undefined)
    reportLogInexactness(bodyText, body, ["log"], found, await inexactnessOf(bodyText, body, "log"));
  return verdictAgainst(notary, projectRef, body.receipt, found);
}

/** What follows gets a slice of its own. */
async function inexactnessOf(bodyText: string, body: object, member: string): Promise<Inexactness | null> {
  const inexact = await findInexactnessInSlices(bodyText, body, member);
  await slices.next();
  return inexact;
}

function verdictAgainst(
  notary: NotaryService,
  projectRef: number,
  receipt: unknown,
  found: Findings,
): ReceiptVerdict {
  const fields = isObject(receipt) ? receipt : {};
  checkKey(notary.chain(projectRef)?.publicX, fields, found);
  checkRecord((sequence) => notary.receipt(projectRef, sequence), fields, found);
  const { errors, ...verdict } = verdictOf(found);
  return { ...verdict, metadata: metadataOf(fields), ...(errors && { errors: [...errors] }) };
}

function checkKey(chainX: string | undefined, fields: Record<string, unknown>, found: Findings): void {
  const x = publicKeyX(fields.public_key);
  if (chainX === undefined) found.signature_valid.push("this project has no chain");
  else if (x !== null && x !== chainX)
    found.signature_valid.push("public_key is not the key of this project's chain");
}

/** Fields compared with the record. The content check detects a changed log. */
const RECORDED_FIELDS = ["content_hash", "prev_hash", "chain_hash", "timestamp"] as const;

function checkRecord(
  receiptAt: (sequence: number) => Receipt | null,
  { sequence_id, ...fields }: Record<string, unknown>,
  found: Findings,
): void {
  if (!isPosition(sequence_id)) return;
  const position = Number(sequence_id);
  const stored = Number.isSafeInteger(position) ? receiptAt(position) : null;
  if (stored === null) {
    found.chain_link_valid.push(`this project's chain has no receipt ${sequence_id}`);
    return;
  }
  for (const field of RECORDED_FIELDS.filter((name) => fields[name] !== stored[name]))
    found.chain_link_valid.push(`${field} differs from the stored receipt ${sequence_id}`);
}

/** Returns the metadata of a verification; null for a malformed field. */
function metadataOf(fields: Record<string, unknown>): ReceiptVerdict["metadata"] {
  const { sequence_id, timestamp, public_key } = fields;
  const x = publicKeyX(public_key);
  return {
    sequence_id: isPosition(sequence_id) ? sequence_id : null,
    timestamp: Number.isSafeInteger(timestamp) ? Number(timestamp) : null,
    public_key: x === null ? null : { kty: "OKP", crv: "Ed25519", x },
  };
}
