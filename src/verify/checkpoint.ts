// Verifies checkpoints, and what they prove, in a browser, Bun or Node.
import { isNestedDeeper, isValueDeeper } from "../json-text.ts";
import { fromBase64, fromBase64Url, fromHex, toHex } from "./bytes.ts";
import { RECEIPT_LEVELS_MAX, reportInexactness } from "./chain.ts";
import { type NoteKey, noteKey, parseCheckpoint, parseNote, parseVkey, signatureBy } from "./note.ts";
import { checkReceipt, isObject, publicKeyX, type VerifierCrypto, verdictOf } from "./receipt.ts";
import { isConsistent, isIncluded, type LeafFields, leafHashOf, leafOf, type TreeHead } from "./tree.ts";

/** Nesting levels of a bundle: those of its receipt, and itself. */
const BUNDLE_LEVELS_MAX = RECEIPT_LEVELS_MAX + 1;

const PUBLIC_KEY_BYTES = 32;
const HASH = /^[0-9a-f]{64}$/;

/** The keys that the signatures of a checkpoint must be of. */
export interface CheckpointKeys {
  /** `x` of the chain's public key. */
  readonly publicKey?: string | null;
  /** The same with the origin: the `vkey` of a checkpoint. */
  readonly vkey?: string | null;
  /** `vkey`s of witnesses. */
  readonly witnesses?: readonly string[];
  /** How many of the witnesses must have signed; all of them by default. */
  readonly quorum?: number | null;
}

/** The outcome of verifying a checkpoint. */
export interface CheckpointVerdict {
  readonly valid: boolean;
  /** Name of the chain; null if the text is no checkpoint. */
  readonly origin: string | null;
  /** Number of receipts that it covers; null if the text is no checkpoint. */
  readonly size: number | null;
  /** Root of the tree, hex; null if the text is no checkpoint. */
  readonly root_hash: string | null;
  /** Names of the given witnesses that have signed it. */
  readonly witnesses: readonly string[];
  /** Omitted if it is valid. */
  readonly errors?: readonly string[];
}

/** Verifies the signatures of a checkpoint. */
export function checkCheckpoint(
  note: string,
  { publicKey = null, vkey = null, witnesses = [], quorum = null }: CheckpointKeys,
  crypto: VerifierCrypto,
): CheckpointVerdict {
  const parsed = parseNote(note);
  const checkpoint = parsed && parseCheckpoint(parsed.text);
  if (parsed === null || checkpoint === null) return malformed("the text is not a signed checkpoint");
  const errors: string[] = [];
  const keys = keysOf(crypto, checkpoint.origin, publicKey, vkey, errors);
  for (const key of keys) {
    if (key.name !== checkpoint.origin)
      errors.push(`the checkpoint is of ${checkpoint.origin}, the key of ${key.name}`);
    else if (signatureBy(crypto, parsed, key) === null)
      errors.push(`the checkpoint has no valid signature of ${key.name} with this key`);
  }
  const signed = witnesses.filter((witness) => {
    const key = parseVkey(crypto, witness);
    if (key === null) errors.push(`"${witness}" is not the vkey of a witness`);
    return key !== null && signatureBy(crypto, parsed, key) !== null;
  });
  const needed = quorum ?? witnesses.length;
  if (signed.length < needed)
    errors.push(
      `${signed.length} of ${witnesses.length} witnesses have signed the checkpoint, ${needed} must have`,
    );
  return {
    valid: errors.length === 0,
    origin: checkpoint.origin,
    size: checkpoint.size,
    root_hash: toHex(checkpoint.root),
    witnesses: signed.map((witness) => witness.slice(0, witness.indexOf("+"))),
    ...(errors.length > 0 && { errors }),
  };
}

function malformed(error: string): CheckpointVerdict {
  return { valid: false, origin: null, size: null, root_hash: null, witnesses: [], errors: [error] };
}

/** The keys that must have signed; an error without any. */
function keysOf(
  crypto: VerifierCrypto,
  origin: string,
  publicKey: string | null,
  vkey: string | null,
  errors: string[],
): NoteKey[] {
  const keys: NoteKey[] = [];
  const bytes = publicKey === null ? null : fromBase64Url(publicKey, PUBLIC_KEY_BYTES);
  const named = vkey === null ? null : parseVkey(crypto, vkey);
  if (bytes !== null) keys.push(noteKey(crypto, origin, bytes));
  if (named !== null) keys.push(named);
  if (publicKey !== null && bytes === null) errors.push("publicKey is not the x of an Ed25519 key");
  if (vkey !== null && named === null) errors.push("vkey is not a verifier key");
  if (publicKey === null && vkey === null) errors.push("publicKey or vkey is needed to verify a signature");
  return keys;
}

/** The outcome of verifying a bundle. */
export interface BundleVerdict {
  readonly valid: boolean;
  /** `sequence_id` of the receipt; null if it has none. */
  readonly sequence: string | null;
  /** Origin and size of the checkpoint; null if the bundle has none. */
  readonly origin: string | null;
  readonly size: number | null;
  /** `x` of the receipt's key. Compare it with the key that you trust, unless you passed it. */
  readonly publicKey: string | null;
  /** Omitted if the bundle is valid. */
  readonly errors?: readonly string[];
}

/**
 * Verifies a bundle: its receipt, the signature of its checkpoint, and that the checkpoint covers the receipt. Without a
 * given key, both must have the same one. `text`: of the bundle, which alone shows numbers that a parser has rounded.
 */
export function checkBundle(
  bundle: string | object,
  keys: CheckpointKeys,
  crypto: VerifierCrypto,
): BundleVerdict {
  const value = typeof bundle === "string" ? parsed(bundle) : bundle;
  if (!isObject(value) || isValueDeeper(value, BUNDLE_LEVELS_MAX) || value.type !== "ninefold-bundle/v1")
    return failed(["the text is not a bundle of the type ninefold-bundle/v1"]);
  const { receipt, inclusion, checkpoint } = value;
  const fields = isObject(receipt) ? receipt : {};
  const x = publicKeyX(fields.public_key);
  const errors = [...receiptErrors(bundle, value, crypto)];
  if (keys.publicKey && x !== keys.publicKey)
    errors.push("public_key of the receipt differs from the given key");
  const note = typeof checkpoint === "string" ? checkpoint : "";
  const signed = checkCheckpoint(note, { ...keys, publicKey: keys.publicKey ?? x }, crypto);
  errors.push(...(signed.errors ?? []));
  if (errors.length === 0 && !isCovered(crypto, fields, inclusion, signed))
    errors.push("the proof does not show that the checkpoint covers the receipt");
  const sequence = typeof fields.sequence_id === "string" ? fields.sequence_id : null;
  const found = { sequence, origin: signed.origin, size: signed.size, publicKey: x };
  return errors.length === 0 ? { valid: true, ...found } : { valid: false, ...found, errors };
}

function receiptErrors(
  bundle: string | object,
  value: Record<string, unknown>,
  crypto: VerifierCrypto,
): readonly string[] {
  const found = checkReceipt(value.receipt, crypto);
  if (typeof bundle === "string") reportInexactness(bundle, value, ["receipt"], found);
  return verdictOf(found).errors ?? [];
}

function parsed(text: string): unknown {
  if (isNestedDeeper(text, BUNDLE_LEVELS_MAX)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function failed(errors: readonly string[]): BundleVerdict {
  return { valid: false, sequence: null, origin: null, size: null, publicKey: null, errors };
}

/** Whether an inclusion proof leads from a valid receipt to the root of a valid checkpoint. */
function isCovered(
  crypto: VerifierCrypto,
  receipt: Record<string, unknown>,
  inclusion: unknown,
  { size, root_hash }: CheckpointVerdict,
): boolean {
  if (!isObject(inclusion) || size === null || root_hash === null) return false;
  const { leaf_index, tree_size, hashes } = inclusion;
  const path = hashesOf(hashes);
  if (path === null || tree_size !== size || leaf_index !== Number(receipt.sequence_id) - 1) return false;
  const leafHash = leafHashOf(crypto, leafOf(receipt as unknown as LeafFields));
  return isIncluded(crypto, {
    index: Number(leaf_index),
    size,
    leafHash,
    hashes: path,
    root: fromHex(root_hash),
  });
}

/** Size and root of a checkpoint, as {@link CheckpointVerdict} and the API have them. */
export interface CheckpointHead {
  readonly size: number | null;
  readonly root_hash: string | null;
}

/** Whether `hashes` (base64) prove that the tree of the newer checkpoint continues the one of the older. */
export function checkConsistency(
  older: CheckpointHead,
  newer: CheckpointHead,
  hashes: readonly string[],
  crypto: VerifierCrypto,
): boolean {
  const [from, to, path] = [headOf(older), headOf(newer), hashesOf(hashes)];
  return from !== null && to !== null && path !== null && isConsistent(crypto, from, to, path);
}

function headOf({ size, root_hash }: CheckpointHead): TreeHead | null {
  return size === null || root_hash === null || !HASH.test(root_hash)
    ? null
    : { size, root: fromHex(root_hash) };
}

function hashesOf(hashes: unknown): Uint8Array[] | null {
  if (!Array.isArray(hashes)) return null;
  const bytes = hashes.map(fromBase64);
  return bytes.every((hash) => hash !== null) ? bytes : null;
}
