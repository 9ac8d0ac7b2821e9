import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `chains`. */
export interface ChainRow {
  ref: number;
  project_ref: number;
  chain_id: string;
  public_key: string;
  private_key: Uint8Array;
  created_at: number;
}

/** A stored receipt, with the chain hash of the one before (null for the first). */
export interface ReceiptRow {
  sequence: number;
  at: number;
  chain_hash: Uint8Array;
  signature: Uint8Array;
  log: string;
  prev_hash: Uint8Array | null;
}

/** A new receipt. */
export type NewReceipt = Omit<ReceiptRow, "prev_hash">;

/** All SQL of chains and receipts. */
export class NotaryStore {
  private readonly insertChain;
  private readonly deleteChain;
  private readonly byProject;
  private readonly byChainId;
  private readonly insertReceipt;
  private readonly receiptAt;
  private readonly receiptUpTo;
  private readonly newest;
  private readonly deleteReceipts;

  constructor(db: Database) {
    const columns = "ref, project_ref, chain_id, public_key, private_key, created_at";
    this.insertChain = db.command<[Omit<ChainRow, "ref">]>(
      `INSERT INTO chains (project_ref, chain_id, public_key, private_key, created_at)
       VALUES ($project_ref, $chain_id, $public_key, $private_key, $created_at)`,
    );
    this.deleteChain = db.command<[number]>("DELETE FROM chains WHERE ref = ?");
    this.byProject = db.query<ChainRow, [number]>(`SELECT ${columns} FROM chains WHERE project_ref = ?`);
    this.byChainId = db.query<{ public_key: string }, [string]>(
      "SELECT public_key FROM chains WHERE chain_id = ?",
    );
    this.insertReceipt = db.command<[number, number, number, Uint8Array, Uint8Array, string]>(
      "INSERT INTO receipts (chain_ref, sequence, at, chain_hash, signature, log) VALUES (?, ?, ?, ?, ?, ?)",
    );
    const withPrevious = `SELECT own.sequence, own.at, own.chain_hash, own.signature, own.log, before.chain_hash AS prev_hash
       FROM receipts AS own
       LEFT JOIN receipts AS before ON before.chain_ref = own.chain_ref AND before.sequence = own.sequence - 1
       WHERE own.chain_ref = ?`;
    this.receiptAt = db.query<ReceiptRow, [number, number]>(`${withPrevious} AND own.sequence = ?`);
    this.receiptUpTo = db.query<ReceiptRow, [number, number]>(
      `${withPrevious} AND own.sequence <= ? ORDER BY own.sequence DESC LIMIT 1`,
    );
    this.newest = db.query<{ sequence: number; chain_hash: Uint8Array }, [number]>(
      "SELECT sequence, chain_hash FROM receipts WHERE chain_ref = ? ORDER BY sequence DESC LIMIT 1",
    );
    this.deleteReceipts = db.command<[number, number]>(
      "DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE chain_ref = ? LIMIT ?)",
    );
  }

  chainOf(projectRef: number): ChainRow | null {
    return this.byProject.get(projectRef);
  }

  /** The `x` of a chain's public key, or null when no chain has that id. */
  publicKey(chainId: string): string | null {
    return this.byChainId.get(chainId)?.public_key ?? null;
  }

  addChain(tx: Tx, chain: Omit<ChainRow, "ref" | "created_at">): void {
    this.insertChain.run(tx, { ...chain, created_at: tx.now });
  }

  removeChain(tx: Tx, ref: number): void {
    this.deleteChain.run(tx, ref);
  }

  append(tx: Tx, chainRef: number, receipt: NewReceipt): void {
    const { sequence, at, chain_hash, signature, log } = receipt;
    this.insertReceipt.run(tx, chainRef, sequence, at, chain_hash, signature, log);
  }

  receipt(chainRef: number, sequence: number): ReceiptRow | null {
    return this.receiptAt.get(chainRef, sequence);
  }

  /** The newest receipt at or before a position. */
  newestUpTo(chainRef: number, sequence: number): ReceiptRow | null {
    return this.receiptUpTo.get(chainRef, sequence);
  }

  /** The end of a chain, or null when it is empty. */
  head(chainRef: number): { sequence: number; chain_hash: Uint8Array } | null {
    return this.newest.get(chainRef);
  }

  /** Removes at most `rowsMax` receipts. Returns how many. */
  removeReceipts(tx: Tx, chainRef: number, rowsMax: number): number {
    return this.deleteReceipts.run(tx, chainRef, rowsMax);
  }
}

/** A row of `receipt_stores`. */
export interface ReceiptStoreRow {
  ref: number;
  endpoint: string;
  bucket: string;
  region: string;
  prefix: string;
  access_key_id: string;
  secret_access_key: Uint8Array;
  last_error: string | null;
}

/** A new store's row. */
export type NewReceiptStore = Omit<ReceiptStoreRow, "ref" | "last_error">;

/** Where the copy of a receipt is: all null while it is buffered. */
export interface CopyRow {
  endpoint: string | null;
  bucket: string | null;
  prefix: string | null;
}

const COLUMNS = "ref, endpoint, bucket, region, prefix, access_key_id, secret_access_key, last_error";

/** All SQL of receipt stores and of the copies in them. */
export class CopyStore {
  private readonly insertStore;
  private readonly updateKeys;
  private readonly newestStore;
  private readonly saveError;
  private readonly deleteStores;
  private readonly insertCopy;
  private readonly saveDelivered;
  private readonly copyAt;
  private readonly countBuffered;
  private readonly bufferedAfter;
  private readonly deleteCopies;

  constructor(db: Database) {
    this.insertStore = db.command<[NewReceiptStore & { project_ref: number; now: number }]>(
      `INSERT INTO receipt_stores (project_ref, endpoint, bucket, region, prefix, access_key_id, secret_access_key, created_at)
       VALUES ($project_ref, $endpoint, $bucket, $region, $prefix, $access_key_id, $secret_access_key, $now)`,
    );
    this.updateKeys = db.command<[NewReceiptStore & { ref: number }]>(
      `UPDATE receipt_stores SET region = $region, access_key_id = $access_key_id,
         secret_access_key = $secret_access_key, last_error = NULL WHERE ref = $ref`,
    );
    this.newestStore = db.query<ReceiptStoreRow, [number]>(
      `SELECT ${COLUMNS} FROM receipt_stores WHERE project_ref = ? ORDER BY ref DESC LIMIT 1`,
    );
    this.saveError = db.command<[string | null, number]>(
      "UPDATE receipt_stores SET last_error = ? WHERE ref = ?",
    );
    this.deleteStores = db.command<[number, number]>(
      "DELETE FROM receipt_stores WHERE ref IN (SELECT ref FROM receipt_stores WHERE project_ref = ? LIMIT ?)",
    );
    this.insertCopy = db.command<[number, number]>(
      "INSERT INTO receipt_copies (chain_ref, sequence, store_ref) VALUES (?, ?, NULL)",
    );
    this.saveDelivered = db.command<[number, number, number]>(
      "UPDATE receipt_copies SET store_ref = ? WHERE chain_ref = ? AND sequence = ? AND store_ref IS NULL",
    );
    this.copyAt = db.query<CopyRow, [number, number]>(
      `SELECT endpoint, bucket, prefix FROM receipt_copies
       LEFT JOIN receipt_stores ON receipt_stores.ref = receipt_copies.store_ref
       WHERE chain_ref = ? AND sequence = ?`,
    );
    this.countBuffered = db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM receipt_copies WHERE chain_ref = ? AND store_ref IS NULL",
    );
    this.bufferedAfter = db.query<{ sequence: number }, [number, number, number]>(
      "SELECT sequence FROM receipt_copies WHERE chain_ref = ? AND sequence > ? AND store_ref IS NULL ORDER BY sequence LIMIT ?",
    );
    this.deleteCopies = db.command<[number, number]>(
      "DELETE FROM receipt_copies WHERE (chain_ref, sequence) IN (SELECT chain_ref, sequence FROM receipt_copies WHERE chain_ref = ? LIMIT ?)",
    );
  }

  /** The store in force, or null when none is configured. */
  storeOf(projectRef: number): ReceiptStoreRow | null {
    return this.newestStore.get(projectRef);
  }

  addStore(tx: Tx, projectRef: number, store: NewReceiptStore): void {
    this.insertStore.run(tx, { ...store, project_ref: projectRef, now: tx.now });
  }

  /** Gives a store other credentials. */
  changeKeys(tx: Tx, ref: number, store: NewReceiptStore): void {
    this.updateKeys.run(tx, { ...store, ref });
  }

  setLastError(tx: Tx, ref: number, error: string | null): void {
    this.saveError.run(tx, error, ref);
  }

  buffer(tx: Tx, chainRef: number, sequence: number): void {
    this.insertCopy.run(tx, chainRef, sequence);
  }

  /** Records that a buffered receipt is in a store now. False when it was there already. */
  setDelivered(tx: Tx, chainRef: number, sequence: number, storeRef: number): boolean {
    return this.saveDelivered.run(tx, storeRef, chainRef, sequence) > 0;
  }

  /** The copy of a receipt, or null when it was made without a store. */
  copy(chainRef: number, sequence: number): CopyRow | null {
    return this.copyAt.get(chainRef, sequence);
  }

  bufferedCount(chainRef: number): number {
    return this.countBuffered.get(chainRef)?.count ?? 0;
  }

  /** Positions of buffered receipts after `sequence`, ascending. */
  buffered(chainRef: number, sequence: number, limit: number): number[] {
    return this.bufferedAfter.all(chainRef, sequence, limit).map((row) => row.sequence);
  }

  /** Removes at most `rowsMax` copies. Returns how many. */
  removeCopies(tx: Tx, chainRef: number, rowsMax: number): number {
    return this.deleteCopies.run(tx, chainRef, rowsMax);
  }

  /** Removes at most `rowsMax` stores of a project. Returns how many. */
  removeStores(tx: Tx, projectRef: number, rowsMax: number): number {
    return this.deleteStores.run(tx, projectRef, rowsMax);
  }
}
