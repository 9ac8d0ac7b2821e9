import { sign } from "node:crypto";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { isEqual, toBase64 } from "../../../verify/bytes.ts";
import { createNativeCrypto } from "../../../verify/native.ts";
import { checkpointText, type NoteKey, noteKey, signatureLine, vkeyOf } from "../../../verify/note.ts";
import { leafOf } from "../../../verify/tree.ts";
import type { ChainActor } from "../chain.ts";
import { assertOneHistory, originOf } from "../history.ts";
import type { Bundle, ConsistencyProof, InclusionProof, SignedCheckpoint } from "../schema.ts";
import { CHAIN_ENDED, type NotaryService } from "../service.ts";
import type { CheckpointRow, CheckpointStore, CosignatureRow, WitnessStore } from "../store.ts";
import type { Submissions } from "../submissions.ts";
import type { HashTree } from "../tree/hash-tree.ts";
import { leafHash } from "../tree/receipt-tree.ts";

/** Minimum time between two checkpoints of a chain, so that requests cannot make the server sign without limit. */
export const CHECKPOINT_INTERVAL_MS = 1_000;

/** Newest checkpoints of a chain that are stored; of older ones only the last of each day (UTC). */
export const CHECKPOINTS_STORED_MAX = 1_000;

/** Text of the first line of a proof in the format of c2sp.org/tlog-proof. */
const TLOG_PROOF = "c2sp.org/tlog-proof@v1";

/** A checkpoint as it is submitted to witnesses. */
export interface SubmittedCheckpoint {
  readonly epoch: number;
  /** The key of its chain under the origin of this epoch. */
  readonly key: NoteKey;
  readonly size: number;
  /** With the signature of the chain only. */
  readonly note: string;
  /** Hashes that prove that the tree continues the one of an older size. */
  readonly prove: (oldSize: number) => readonly Uint8Array[];
}

/** Signs checkpoints, and proves what they cover. */
export class Checkpoints {
  private readonly crypto = createNativeCrypto();

  constructor(
    private readonly notary: NotaryService,
    private readonly store: CheckpointStore,
    private readonly witnesses: WitnessStore,
    private readonly submissions: Submissions,
  ) {}

  /**
   * Whether a request that needs a checkpoint over `size` receipts has to wait for a unit of work that signs one.
   * @throws ApiError `conflict` before init.
   */
  mustSign(projectRef: number, size: number): boolean {
    const chain = this.notary.chainToUse(projectRef);
    const newest = this.newest(chain);
    return newest === null || newest.size < Math.min(size, chain.sequence);
  }

  /** Number of receipts in a project's chain. @throws ApiError `conflict` before init. */
  size(projectRef: number): number {
    return this.notary.chainToUse(projectRef).sequence;
  }

  /** @throws ApiError `not_found` for a position that the project has no receipt at, or no chain. */
  assertReceipt(projectRef: number, sequence: number): void {
    const chain = this.notary.chain(projectRef);
    if (chain === undefined || sequence > chain.sequence) throw noReceipt(sequence);
  }

  /** Milliseconds until a checkpoint can be signed, from `now`. */
  waitMs(chain: ChainActor, now: number): number {
    const newest = this.newest(chain);
    const elapsed = newest === null ? CHECKPOINT_INTERVAL_MS : now - newest.signed_at;
    // A clock that was set back does not stop checkpoints.
    return elapsed < 0 ? 0 : Math.max(0, CHECKPOINT_INTERVAL_MS - elapsed);
  }

  /**
   * Signs a checkpoint over all receipts, if there are new ones and the last one is old enough. Returns the newest.
   *
   * @throws ApiError `conflict` if the chain has ended, `service_unavailable` while its tree is incomplete.
   */
  sign(tx: Tx, chain: ChainActor): CheckpointRow {
    const newest = this.newest(chain);
    if (newest !== null && (newest.size === chain.sequence || this.waitMs(chain, tx.now) > 0)) return newest;
    assertOneHistory(chain);
    if (chain.backlog > 0) throw incomplete();
    if (chain.privateKey === null) {
      if (newest !== null) return newest;
      throw new ApiError("conflict", CHAIN_ENDED);
    }
    const tree = this.notary.trees.of(chain.ref);
    // A signed size is never signed again with another root, nor a smaller one: that would be proof of a fork.
    if (newest !== null && (newest.size > chain.sequence || !isEqual(tree.root(newest.size), newest.root)))
      throw new Error(`chain ${chain.chainId} does not continue its checkpoint of size ${newest.size}`);
    const size = chain.sequence;
    const root = tree.root(size);
    const text = checkpointText({ origin: originOf(chain), size, root });
    const signature = sign(null, Buffer.from(text), chain.privateKey);
    const row: CheckpointRow = { size, root, signature, signed_at: tx.now };
    this.store.add(tx, { ...row, chain_ref: chain.ref, epoch: chain.epoch });
    this.removeOld(tx, chain);
    this.submissions.schedule(tx, chain);
    return row;
  }

  /** Signs a checkpoint if it can be, and returns the newest as a response. @throws ApiError as {@link sign}. */
  current(projectRef: number, tx?: Tx): SignedCheckpoint {
    const chain = this.notary.chainToUse(projectRef, tx);
    const row = tx === undefined ? this.newest(chain) : this.sign(tx, chain);
    if (row === null) throw new Error("a checkpoint is read before one is signed");
    return this.view(chain, row);
  }

  /** The newest checkpoint of a chain, without signing one; null if there is none. */
  newestOf(projectRef: number): SignedCheckpoint | null {
    const chain = this.notary.chainToUse(projectRef);
    const row = this.newest(chain);
    return row && this.view(chain, row);
  }

  /**
   * Proves that a receipt is part of the tree of `size` receipts; of the newest checkpoint without a size.
   *
   * @throws ApiError `validation_error` for a size below the position or above the chain, `not_found` for a position that the
   *   chain does not have, `conflict` if no checkpoint covers it yet.
   */
  inclusion(projectRef: number, sequence: number, size: number | null, tx?: Tx): InclusionProof {
    const { chain, row, fields } = this.covering(projectRef, sequence, size, tx);
    const hash = leafHash(fields);
    const treeSize = size ?? row.size;
    return {
      leaf_index: sequence - 1,
      tree_size: treeSize,
      leaf_hash: Buffer.from(hash).toString("hex"),
      hashes: this.tree(chain)
        .inclusion(sequence - 1, treeSize)
        .map(toBase64),
      checkpoint: this.note(chain, row),
    };
  }

  /**
   * Proves that the tree of `to` receipts continues the one of `from`; without `to` that of the newest checkpoint.
   *
   * @throws ApiError `validation_error` for sizes that the chain does not have, `conflict` if no checkpoint covers `to` yet.
   */
  consistency(projectRef: number, from: number, to: number | null, tx?: Tx): ConsistencyProof {
    const chain = this.notary.chainToUse(projectRef, tx);
    if (to !== null && to > chain.sequence) throw invalidField("to", beyond(chain.sequence));
    const row = this.signedOver(chain, to ?? Math.min(from, chain.sequence), tx);
    const size = to ?? row.size;
    if (from > size) throw invalidField("from", `must be at most ${size}, the size of the newer tree`);
    return {
      from,
      to: size,
      hashes: this.tree(chain).consistency(from, size).map(toBase64),
      checkpoint: this.note(chain, row),
    };
  }

  /** Returns a receipt with its proof, for an auditor without access to the server. @throws ApiError as {@link inclusion}. */
  bundle(projectRef: number, sequence: number, tx?: Tx): Bundle {
    const { checkpoint, ...inclusion } = this.inclusion(projectRef, sequence, null, tx);
    const receipt = this.notary.receipt(projectRef, sequence);
    if (receipt === null) throw noReceipt(sequence);
    return {
      type: "ninefold-bundle/v1",
      receipt,
      inclusion,
      checkpoint,
      public_key: receipt.public_key,
    };
  }

  /** Returns the same in the format of c2sp.org/tlog-proof, with the leaf as `extra`. @throws ApiError as {@link inclusion}. */
  tlogProof(projectRef: number, sequence: number, tx?: Tx): string {
    const proof = this.inclusion(projectRef, sequence, null, tx);
    const { fields } = this.covering(projectRef, sequence, null, tx);
    const lines = [
      TLOG_PROOF,
      `extra ${toBase64(leafOf(fields))}`,
      `index ${proof.leaf_index}`,
      ...proof.hashes,
      "",
      proof.checkpoint,
    ];
    return lines.join("\n");
  }

  /** The hashes of a tile of a project's tree. */
  hashes(projectRef: number, level: number, tile: number): readonly Uint8Array[] {
    return this.tree(this.notary.chainToUse(projectRef)).tile(level, tile);
  }

  private covering(projectRef: number, sequence: number, size: number | null, tx?: Tx) {
    const chain = this.notary.chainToUse(projectRef, tx);
    if (size !== null && size > chain.sequence) throw invalidField("size", beyond(chain.sequence));
    if (size !== null && size < sequence) throw invalidField("size", "must be at least sequence_id");
    const fields = this.notary.leafFields(chain, sequence);
    if (fields === null) throw noReceipt(sequence);
    return { chain, row: this.signedOver(chain, size ?? sequence, tx), fields };
  }

  /** The newest checkpoint, which covers `size` receipts. */
  private signedOver(chain: ChainActor, size: number, tx?: Tx): CheckpointRow {
    const row = tx === undefined ? this.newest(chain) : this.sign(tx, chain);
    if (row !== null && row.size >= size) return row;
    const problem = `No checkpoint covers ${size} receipts yet: at most one is signed per second. Retry in a second.`;
    throw new ApiError("conflict", problem, { retryAfterSeconds: 1 });
  }

  private tree(chain: ChainActor): HashTree {
    if (chain.backlog > 0) throw incomplete();
    return this.notary.trees.of(chain.ref);
  }

  /** Whether a checkpoint of the present origin was signed. */
  hasSigned(chain: ChainActor): boolean {
    return this.newest(chain) !== null;
  }

  private newest(chain: ChainActor): CheckpointRow | null {
    return this.store.newest(chain.ref, chain.epoch);
  }

  private view(chain: ChainActor, row: CheckpointRow): SignedCheckpoint {
    return {
      origin: originOf(chain),
      size: row.size,
      root_hash: Buffer.from(row.root).toString("hex"),
      signed_at: isoTime(row.signed_at),
      vkey: vkeyOf(this.key(chain)),
      cosignatures: this.cosignatures(chain, row).map(({ vkey, signed_at }) => ({
        name: vkey.slice(0, vkey.indexOf("+")),
        signed_at: isoTime(signed_at),
      })),
      note: this.note(chain, row),
    };
  }

  /** The newest checkpoint of an epoch as it is sent to witnesses; null without one. */
  submitted(chain: ChainActor, epoch: number): SubmittedCheckpoint | null {
    const row = this.store.newest(chain.ref, epoch);
    if (row === null) return null;
    return {
      epoch,
      key: this.key(chain, epoch),
      size: row.size,
      note: this.ownNote(chain, row, epoch),
      prove: (oldSize) => this.notary.trees.of(chain.ref).consistency(oldSize, row.size),
    };
  }

  /** The note with the cosignatures known. */
  private note(chain: ChainActor, row: CheckpointRow): string {
    const lines = this.cosignatures(chain, row).map(({ line }) => `${line}\n`);
    return this.ownNote(chain, row, chain.epoch) + lines.join("");
  }

  private ownNote(chain: ChainActor, { size, root, signature }: CheckpointRow, epoch: number): string {
    const text = checkpointText({ origin: originOf(chain, epoch), size, root });
    return `${text}\n${signatureLine(this.key(chain, epoch), signature)}\n`;
  }

  private cosignatures({ ref, epoch }: ChainActor, { size }: CheckpointRow): CosignatureRow[] {
    return this.witnesses.cosignatures(ref, epoch, size);
  }

  private key(chain: ChainActor, epoch: number = chain.epoch): NoteKey {
    return noteKey(this.crypto, originOf(chain, epoch), Buffer.from(chain.publicX, "base64url"));
  }

  /** Each new checkpoint moves one out of the newest: it stays if it is the last one of its day. */
  private removeOld(tx: Tx, { ref, epoch }: ChainActor): void {
    const [newer, older] = this.store.pairAfter(ref, epoch, CHECKPOINTS_STORED_MAX - 1);
    if (newer === undefined || older === undefined || dayOf(newer) !== dayOf(older)) return;
    this.store.remove(tx, ref, epoch, older.size);
    this.witnesses.removeCosignatures(tx, ref, epoch, older.size);
  }
}

function dayOf({ signed_at }: Pick<CheckpointRow, "signed_at">): number {
  return Math.floor(signed_at / DAY_MS);
}

function beyond(size: number): string {
  return `must be at most ${size}, the number of receipts in the chain`;
}

function noReceipt(sequence: number): ApiError {
  return new ApiError("not_found", `This project's chain has no receipt ${sequence}.`);
}

function incomplete(): ApiError {
  const problem = "The tree over the receipts of an earlier version is being computed. Retry later.";
  return new ApiError("service_unavailable", problem, { retryAfterSeconds: 1 });
}
