import { ActorRegistry } from "../../kernel/actors/registry.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { CallerProject } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, encodeCursor } from "../../kernel/http/pagination.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { createNativeCrypto } from "../../verify/native.ts";
import { chainHashOf, NO_HASH, type PublicKeyJwk, type Receipt } from "../../verify/receipt.ts";
import { ChainActor } from "./actor.ts";
import { contentHashOf, type LogEntry } from "./log-entry.ts";
import { chainIdOf, privateKeyOf, publicXOf, SEED_BYTES, signHash } from "./signing.ts";
import type { ChainRow, NotaryStore, ReceiptRow } from "./store.ts";

/** Chains kept in memory, about 2 KB each: a chain beyond that costs two indexed reads and the opening of its key. */
const CHAINS_IN_MEMORY_MAX = 16_384;

/**
 * Bytes of logs on one page of receipts: a page of a hundred receipts of 1 MiB would hold up everyone else. A page ends
 * with the receipt that passes this.
 */
export const PAGE_LOG_BYTES_MAX = 2 * 1024 * 1024;

const NO_HASH_BYTES = new Uint8Array(32);

/** What becomes of an init. */
export type Initialized =
  | {
      readonly created: true;
      readonly chainId: string;
      readonly publicKey: PublicKeyJwk;
      readonly createdAt: number;
    }
  | { readonly created: false; readonly chainId: string };

/** The chains of receipts, one per project. */
export class NotaryService {
  private readonly store: NotaryStore;
  private readonly vault: Vault;
  private readonly ids: Ids;
  private readonly crypto = createNativeCrypto();
  private readonly chains;

  constructor(deps: { store: NotaryStore; vault: Vault; ids: Ids; inMemoryMax?: number }) {
    this.store = deps.store;
    this.vault = deps.vault;
    this.ids = deps.ids;
    this.chains = new ActorRegistry<number, ChainActor>(deps.inMemoryMax ?? CHAINS_IN_MEMORY_MAX);
  }

  /** Makes a project's chain with a key pair of its own; a second time changes nothing. */
  init(tx: Tx, userId: string, project: CallerProject): Initialized {
    const existing = this.store.chainOf(project.ref);
    if (existing !== null) return { created: false, chainId: existing.chain_id };
    const seed = this.ids.bytes(SEED_BYTES);
    const chainId = chainIdOf(userId, project.id);
    const publicKey = publicXOf(privateKeyOf(seed));
    const privateKey = this.vault.seal(Buffer.from(seed).toString("base64url"), sealContext(chainId));
    this.store.addChain(tx, { projectRef: project.ref, chainId, publicKey, privateKey });
    return { created: true, chainId, publicKey: jwkOf(publicKey), createdAt: tx.now };
  }

  /**
   * Appends a receipt to the project's chain: position, hashes, signature and row are one synchronous piece of work.
   *
   * @throws ApiError `conflict` before init.
   */
  append(tx: Tx, projectRef: number, entry: LogEntry): { chain: ChainActor; receipt: Receipt } {
    const chain = this.chain(projectRef, tx);
    if (chain === undefined) {
      throw new ApiError("conflict", "This project has no chain yet. Call POST /v1/witness/sys/init first.");
    }
    const { sequence: lastSequence, hash: lastHash } = chain;
    const sequence = lastSequence + 1;
    const chainHash = chainHashOf(this.crypto, lastHash, BigInt(sequence), entry.contentHash);
    const signature = signHash(chain.privateKey, chainHash);
    this.store.append(tx, chain.ref, { sequence, at: tx.now, chainHash, signature, logText: entry.text });
    tx.onRollback(() => {
      chain.sequence = lastSequence;
      chain.hash = lastHash;
    });
    chain.sequence = sequence;
    chain.hash = chainHash;
    const receipt: Receipt = {
      version: 1,
      sequence_id: String(sequence),
      content_hash: entry.contentHash.toHex(),
      prev_hash: lastHash.toHex(),
      chain_hash: chainHash.toHex(),
      signature: signature.toHex(),
      timestamp: tx.now,
      public_key: jwkOf(chain.publicX),
      log: entry.log,
    };
    return { chain, receipt };
  }

  /** The receipt at a position, or null. */
  receipt(projectRef: number, sequence: number): Receipt | null {
    const chain = this.chain(projectRef);
    if (chain === undefined) return null;
    const row = this.store.receipt(chain.ref, sequence);
    return row === null ? null : receiptOf(chain, row);
  }

  /**
   * A page of a project's receipts, newest first.
   * @throws ApiError `validation_error` for a cursor that is not this list's.
   */
  receipts(
    projectRef: number,
    limit: number,
    cursor: string | undefined,
  ): { receipts: Receipt[]; cursor: string | undefined } {
    const chain = this.chain(projectRef);
    const newest = chain?.sequence ?? 0;
    let sequence = cursor === undefined ? newest : decodeNumberCursor(cursor);
    if (cursor !== undefined && (sequence < 1 || sequence > newest)) {
      throw invalidField("cursor", "is not a cursor of this project's receipts");
    }
    const receipts: Receipt[] = [];
    if (chain === undefined) return { receipts, cursor: undefined };
    let logBytes = 0;
    while (sequence > 0 && receipts.length < limit && logBytes < PAGE_LOG_BYTES_MAX) {
      // Should a row be lost, its neighbours are still listed: then they show the gap.
      const row = this.store.newestUpTo(chain.ref, sequence);
      if (row !== null) receipts.push(receiptOf(chain, row));
      logBytes += row?.log.length ?? 0;
      sequence = (row?.sequence ?? 1) - 1;
    }
    return { receipts, cursor: sequence <= 0 ? undefined : encodeCursor([sequence]) };
  }

  /** The public key of a chain, whoever it belongs to; null when there is none. */
  publicKey(chainId: string): PublicKeyJwk | null {
    const x = this.store.publicKey(chainId);
    return x === null ? null : jwkOf(x);
  }

  /** The project's chain, if it has one. Inside a unit of work it is handed the unit. */
  chain(projectRef: number, tx?: Tx): ChainActor | undefined {
    return this.chains.get(projectRef, () => {
      const row = this.store.chainOf(projectRef);
      if (row === null) return undefined;
      // Read inside a unit of work, it may hold what that unit's batch wrote and does not commit after all.
      tx?.onRollback(() => this.chains.drop(projectRef));
      return this.activate(row);
    });
  }

  /** Removes at most `rowsMax` receipts of a project, and with the last of them the chain. Returns how many rows. */
  remove(tx: Tx, projectRef: number, rowsMax: number): number {
    const row = this.store.chainOf(projectRef);
    if (row === null) return 0;
    const removed = this.store.removeReceipts(tx, row.ref, rowsMax);
    if (removed === rowsMax) return removed;
    this.store.removeChain(tx, row.ref);
    // Also when this is taken back: then it is read again.
    this.chains.drop(projectRef);
    return removed + 1;
  }

  private activate(row: ChainRow): ChainActor {
    const seed = Buffer.from(this.vault.open(row.private_key, sealContext(row.chain_id)), "base64url");
    const head = this.store.head(row.ref);
    return new ChainActor({
      ref: row.ref,
      chainId: row.chain_id,
      publicX: row.public_key,
      privateKey: privateKeyOf(seed),
      sequence: head?.sequence ?? 0,
      hash: head?.chain_hash ?? NO_HASH_BYTES,
    });
  }
}

function receiptOf(chain: ChainActor, row: ReceiptRow): Receipt {
  return {
    version: 1,
    sequence_id: String(row.sequence),
    content_hash: contentHashOf(row.log).toHex(),
    prev_hash: row.prev_hash === null ? NO_HASH : row.prev_hash.toHex(),
    chain_hash: row.chain_hash.toHex(),
    signature: row.signature.toHex(),
    timestamp: row.at,
    public_key: jwkOf(chain.publicX),
    log: JSON.parse(row.log),
  };
}

function jwkOf(x: string): PublicKeyJwk {
  return { kty: "OKP", crv: "Ed25519", x };
}

function sealContext(chainId: string): string {
  return `notary-key:${chainId}`;
}
