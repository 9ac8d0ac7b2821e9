import { ActorRegistry } from "../../kernel/actors/registry.ts";
import type { CallerProject } from "../../kernel/callers/caller.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import { decodeNumberCursor, encodeCursor } from "../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { sealedText } from "../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { createNativeCrypto } from "../../verify/native.ts";
import { chainHashOf, NO_HASH, type PublicKeyJwk, type Receipt } from "../../verify/receipt.ts";
import type { LeafFields } from "../../verify/tree.ts";
import {
  type ChainActor,
  chainIdOf,
  contentHashOf,
  type LogEntry,
  type PredictedReceipt,
  privateKeyOf,
  publicXOf,
  SEED_BYTES,
  signHash,
} from "./chain.ts";
import { assertOneHistory } from "./history.ts";
import type { ChainCreated, ChainExists, ReceiptPage } from "./schema.ts";
import { type ReceiptSearch, Search } from "./search/search.ts";
import { matchingPrediction, type SignInBackground, SpeculativeSigner } from "./speculative-signing.ts";
import type { ChainRow, NotaryStore, PublicChainRow, ReceiptRow } from "./store.ts";
import { ReceiptTrees } from "./tree/receipt-tree.ts";

/** The seed of a chain's signing key, in base64url. */
const SIGNING_KEY = sealedText("notary-key");

/** Chains in memory, about 2 KB each. Any other chain costs two indexed reads and the decryption of its key. */
const CHAINS_IN_MEMORY_MAX = 16_384;

/**
 * Bytes of logs on one page of receipts. A page is parsed and serialized in one step of a few milliseconds; it ends with
 * the receipt that exceeds this size.
 */
export const PAGE_LOG_BYTES_MAX = 256 * 1024;

/** Head of an empty chain. */
const NO_RECEIPT = { sequence: 0, chain_hash: new Uint8Array(32) };

/** Kind of the durable job that signs a checkpoint after a receipt. Its key is the project. */
export const CHECKPOINT_JOB = "notary.checkpoint";

/** Default time between a receipt and the checkpoint that covers it without a request. */
const CHECKPOINT_DELAY_MS = 1_000;

/** The chains of receipts, one per project. */
export class NotaryService {
  private readonly crypto = createNativeCrypto();
  private readonly chains: ActorRegistry<number, ChainActor>;
  private readonly signing: SpeculativeSigner;

  /** The Merkle trees over the chains. */
  readonly trees: ReceiptTrees;

  /** The index over the values of logs. */
  readonly search: Search;

  constructor(
    private readonly store: NotaryStore,
    private readonly kernel: Pick<Kernel, "vault" | "ids" | "writer" | "cores" | "scheduler"> & {
      readonly checkpointDelayMs?: number;
    },
    inMemoryMax = CHAINS_IN_MEMORY_MAX,
    signInBackground?: SignInBackground,
  ) {
    this.trees = new ReceiptTrees(store.tree);
    this.search = new Search(store.search);
    const { writer, cores } = kernel;
    this.chains = new ActorRegistry(inMemoryMax);
    this.signing = new SpeculativeSigner(this.crypto, () => writer.queued, cores, signInBackground);
  }

  /** Creates a project's chain and its key pair. If the chain exists, this changes nothing. `origin`: of its checkpoints. */
  init(
    tx: Tx,
    userId: string,
    project: CallerProject,
    origin: string | null = null,
  ): ChainCreated | ChainExists {
    const existing = this.store.chainOf(project.ref);
    if (existing !== null) {
      tx.audit(null);
      return { success: false, chain_id: existing.chain_id };
    }
    const { vault, ids } = this.kernel;
    const seed = ids.bytes(SEED_BYTES);
    const chain_id = chainIdOf(userId, project.id);
    const public_key = publicXOf(privateKeyOf(seed));
    const private_key = SIGNING_KEY.seal(vault, chain_id, Buffer.from(seed).toString("base64url"));
    const row = { project_ref: project.ref, chain_id, public_key, private_key, origin };
    this.store.addChain(tx, { ...row, now: tx.now });
    const target = { type: "chain", id: chain_id };
    const after = { public_key, ...(origin !== null && { origin }) };
    tx.audit({ summary: "Chain of receipts created", target, before: null, after });
    return { success: true, publicKey: jwkOf(public_key), createdAt: isoTime(tx.now), chain_id };
  }

  /** Starts to sign a log's receipt in advance, if that saves time. Call it just before queuing the unit of work that appends it. */
  predict(projectRef: number, entry: LogEntry): PredictedReceipt | null {
    const chain = this.chain(projectRef);
    return chain === undefined ? null : this.signing.predict(chain, entry.contentHash);
  }

  /**
   * Appends a receipt to the project's chain. Position, hashes, signature and row are created in one synchronous step; a
   * correct prediction supplies the hash and the signature.
   *
   * @throws ApiError `conflict` before init.
   */
  append(
    tx: Tx,
    projectRef: number,
    entry: LogEntry,
    predicted: PredictedReceipt | null = null,
  ): { chain: ChainActor; receipt: Receipt } {
    const chain = this.chainToUse(projectRef, tx);
    const { sequence: lastSequence, hash: lastHash, privateKey } = chain;
    if (privateKey === null) throw new ApiError("conflict", CHAIN_ENDED);
    assertOneHistory(chain);
    const sequence = lastSequence + 1;
    const match = matchingPrediction(predicted, chain);
    const chain_hash = match?.hash ?? chainHashOf(this.crypto, lastHash, BigInt(sequence), entry.contentHash);
    const signature = match?.signature ?? signHash(privateKey, chain_hash);
    this.store.append(tx, chain.ref, sequence, tx.now, chain_hash, signature, entry.text);
    tx.onRollback(() => {
      chain.sequence = lastSequence;
      chain.hash = lastHash;
    });
    chain.sequence = sequence;
    chain.hash = chain_hash;
    const row = {
      sequence,
      at: tx.now,
      chain_hash,
      signature,
      prev_hash: lastHash,
    };
    const receipt =
      entry.log === null
        ? this.addHash(tx, chain, row, entry)
        : receiptOf(chain, row, entry.contentHash, { log: entry.log });
    if (entry.log !== null && chain.indexed.length > 0) this.search.add(tx, chain, sequence, entry.log);
    this.trees.add(tx, chain, receipt);
    if (!chain.checkpointDue) this.scheduleCheckpoint(tx, projectRef, chain);
    return { chain, receipt };
  }

  /** Stores what a receipt has instead of a log. */
  private addHash(tx: Tx, chain: ChainActor, row: Omit<ReceiptRow, "log">, entry: LogEntry): Receipt {
    const { contentHash: content_hash, note } = entry;
    const { sequence } = row;
    this.store.redactions.addHash(tx, {
      chain_ref: chain.ref,
      sequence,
      content_hash,
      note: note ?? null,
    });
    return receiptOf(chain, row, content_hash, note === undefined ? {} : { note });
  }

  /** Returns the project's chain. @throws ApiError `conflict` before init. */
  chainToUse(projectRef: number, tx?: Tx): ChainActor {
    const chain = this.chain(projectRef, tx);
    if (chain !== undefined) return chain;
    throw new ApiError("conflict", "This project has no chain yet. Call POST /v1/witness/sys/init first.");
  }

  /** Returns the fields of a receipt that its leaf covers, or null. */
  leafFields(chain: ChainActor, sequence: number): LeafFields | null {
    const row = this.store.receipt(chain.ref, sequence);
    if (row === null) return null;
    return {
      sequence_id: String(row.sequence),
      timestamp: row.at,
      content_hash: this.contentOf(chain, row).hash.toHex(),
      chain_hash: row.chain_hash.toHex(),
    };
  }

  /** Returns the receipt at a position, or null. */
  receipt(projectRef: number, sequence: number): Receipt | null {
    const chain = this.chain(projectRef);
    if (chain === undefined) return null;
    const row = this.store.receipt(chain.ref, sequence);
    return row && this.read(chain, row);
  }

  /** Whether the text of a receipt is deleted. */
  isRedacted(chainRef: number, sequence: number): boolean {
    return typeof this.store.redactions.withoutLog(chainRef, sequence)?.redacted_at === "number";
  }

  /** Returns the JSON text of a receipt, without parsing its log; null past the end. */
  receiptText(projectRef: number, sequence: number): string | null {
    const chain = this.chain(projectRef);
    const row = chain && this.store.receipt(chain.ref, sequence);
    if (!chain || !row) return null;
    if (row.log === "") return JSON.stringify(this.read(chain, row));
    const fields = receiptOf(chain, row, contentHashOf(row.log), {});
    return `${JSON.stringify(fields).slice(0, -1)},"log":${row.log}}`;
  }

  /**
   * Returns a page of a project's receipts, newest first.
   * @throws ApiError `validation_error` for a cursor of another list, and a search that cannot be made.
   */
  receipts(
    projectRef: number,
    limit: number,
    cursor: string | undefined,
    search: ReceiptSearch = {},
  ): ReceiptPage {
    const chain = this.chain(projectRef);
    const newest = chain?.sequence ?? 0;
    const start = cursor === undefined ? newest : decodeNumberCursor(cursor);
    if (cursor !== undefined && (start < 1 || start > newest)) {
      throw invalidField("cursor", "is not a cursor of this project's receipts");
    }
    const found = this.search.find(chain, search);
    const receipts: Receipt[] = [];
    if (chain === undefined) return { receipts };
    let logBytes = 0;
    let sequence = found.newest(Math.min(start, found.highest));
    for (let rows = 0; sequence >= found.lowest && rows < limit && logBytes < PAGE_LOG_BYTES_MAX; rows += 1) {
      // If a row is lost, its neighbours are still listed and show the gap.
      const row = this.store.newestUpTo(chain.ref, sequence);
      const receipt = row && this.read(chain, row);
      if (receipt !== null && found.matches(receipt)) receipts.push(receipt);
      logBytes += row?.log.length ?? 0;
      sequence = found.newest((row?.sequence ?? 1) - 1);
    }
    return sequence < found.lowest ? { receipts } : { receipts, cursor: encodeCursor([sequence]) };
  }

  private read(chain: ChainActor, row: ReceiptRow): Receipt {
    const { hash, ...content } = this.contentOf(chain, row);
    return receiptOf(chain, row, hash, row.log === "" ? content : { log: JSON.parse(row.log) });
  }

  /** The content hash of a stored receipt, and what it has instead of a log. */
  private contentOf(
    { ref }: ChainActor,
    { log, sequence }: ReceiptRow,
  ): Pick<Receipt, "note" | "redacted_at"> & { readonly hash: Uint8Array } {
    if (log !== "") return { hash: contentHashOf(log) };
    const row = this.store.redactions.withoutLog(ref, sequence);
    if (row === null) throw new Error(`chain ${ref}, receipt ${sequence}: the hash of its log is lost`);
    const { content_hash: hash, note, redacted_at } = row;
    return {
      hash,
      ...(note !== null && { note }),
      ...(redacted_at !== null && { redacted_at: isoTime(redacted_at) }),
    };
  }

  /** Returns a chain of any account. @throws ApiError `not_found` */
  chainById(chainId: string): PublicChainRow {
    const row = this.store.chainById(chainId);
    if (row === null) throw noSuchChain();
    return row;
  }

  /** Publishes a project's checkpoints and tiles, or stops that. @throws ApiError `conflict` before init. */
  setPublic(tx: Tx, projectRef: number, isPublic: boolean): void {
    const chain = this.chainToUse(projectRef, tx);
    const before = this.chainById(chain.chainId).is_public === 1;
    this.store.setPublic(tx, isPublic ? 1 : 0, chain.ref);
    tx.audit({
      summary: isPublic ? "Transparency log published" : "Transparency log withdrawn",
      target: { type: "chain", id: chain.chainId },
      before: { public: before },
      after: { public: isPublic },
    });
  }

  /** Returns the project's chain, if it has one. Inside a unit of work, pass the unit. */
  chain(projectRef: number, tx?: Tx): ChainActor | undefined {
    return this.chains.get(projectRef, () => {
      const row = this.store.chainOf(projectRef);
      if (row === null) return undefined;
      // The row may have been written by the current batch, which may fail to commit.
      tx?.onRollback(() => this.chains.drop(projectRef));
      return this.activate(projectRef, row);
    });
  }

  /** Removes at most `rowsMax` receipts of a project, and the chain after the last one. Returns the number of rows removed. */
  remove(tx: Tx, projectRef: number, rowsMax: number): number {
    const row = this.store.chainOf(projectRef);
    if (row === null) return 0;
    let removed = this.store.removeReceipts(tx, row.ref, rowsMax);
    if (removed < rowsMax) removed += this.trees.remove(tx, row.ref, rowsMax - removed);
    if (removed < rowsMax) removed += this.search.removeAll(tx, row.ref, rowsMax - removed);
    if (removed < rowsMax) removed += this.store.redactions.remove(tx, row.ref, rowsMax - removed);
    if (removed < rowsMax) removed += this.store.checkpoints.removeAll(tx, row.ref, rowsMax - removed);
    if (removed < rowsMax)
      removed += this.store.witnesses.removeAllCosignatures(tx, row.ref, rowsMax - removed);
    if (removed === rowsMax) return removed;
    this.store.witnesses.removeWitnesses(tx, row.ref);
    this.store.removeChain(tx, row.ref);
    // If this is rolled back, the chain is read again.
    this.chains.drop(projectRef);
    return removed + 1;
  }

  /** The first receipt after a checkpoint schedules the next one. */
  private scheduleCheckpoint(tx: Tx, projectRef: number, chain: ChainActor): void {
    const { scheduler, checkpointDelayMs = CHECKPOINT_DELAY_MS } = this.kernel;
    scheduler.enqueue(tx, CHECKPOINT_JOB, String(projectRef), tx.now + checkpointDelayMs, null);
    tx.onRollback(() => {
      chain.checkpointDue = false;
    });
    chain.checkpointDue = true;
  }

  private activate(projectRef: number, row: ChainRow): ChainActor {
    const { ref, chain_id, public_key: publicX, private_key } = row;
    const { sequence, chain_hash: hash } = this.store.head(ref) ?? NO_RECEIPT;
    const seed = () => Buffer.from(SIGNING_KEY.open(this.kernel.vault, chain_id, private_key), "base64url");
    const privateKey = private_key.length === 0 ? null : privateKeyOf(seed());
    return {
      recent: false,
      idle: true,
      ref,
      projectRef,
      chainId: chain_id,
      origin: row.origin ?? `ninefold/${chain_id}`,
      epoch: row.epoch,
      backlog: row.tree_backlog,
      restored: row.restored,
      fork: row.fork,
      indexed: row.index_fields === null ? [] : JSON.parse(row.index_fields),
      retainDays: row.retain_days,
      checkpointDue: false,
      submitAfter: 0,
      publicX,
      privateKey,
      sequence,
      hash,
      predicted: null,
    };
  }
}

/** Message for a chain whose private key is lost. */
export const CHAIN_ENDED =
  "The signing key of this chain was lost in a restore without the master key. Its receipts can still be verified, but none can be added. Use another project, which has its own chain.";

function receiptOf(
  chain: ChainActor,
  row: Omit<ReceiptRow, "log">,
  contentHash: Uint8Array,
  content: Pick<Receipt, "log" | "note" | "redacted_at">,
): Receipt {
  return {
    version: 1,
    sequence_id: String(row.sequence),
    content_hash: contentHash.toHex(),
    prev_hash: row.prev_hash === null ? NO_HASH : row.prev_hash.toHex(),
    chain_hash: row.chain_hash.toHex(),
    signature: row.signature.toHex(),
    timestamp: row.at,
    public_key: jwkOf(chain.publicX),
    ...content,
  };
}

/** The error for a chain that does not exist, or is not shown to everyone. */
export function noSuchChain(): ApiError {
  return new ApiError("not_found", "No chain has this id.");
}

/** The public key of a chain as a JSON Web Key. */
export function jwkOf(x: string): PublicKeyJwk {
  return { kty: "OKP", crv: "Ed25519", x };
}
