import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

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

/** What a new store's row holds. */
export type NewReceiptStore = Omit<ReceiptStoreRow, "ref" | "last_error">;

/** Where a copy of a receipt lies: everything null while it is buffered. */
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
    this.insertStore = db.command<[number, string, string, string, string, string, Uint8Array, number]>(
      "INSERT INTO receipt_stores (project_ref, endpoint, bucket, region, prefix, access_key_id, secret_access_key, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.updateKeys = db.command<[string, string, Uint8Array, number]>(
      "UPDATE receipt_stores SET region = ?, access_key_id = ?, secret_access_key = ?, last_error = NULL WHERE ref = ?",
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
    const { endpoint, bucket, region, prefix, access_key_id, secret_access_key } = store;
    this.insertStore.run(
      tx,
      projectRef,
      endpoint,
      bucket,
      region,
      prefix,
      access_key_id,
      secret_access_key,
      tx.now,
    );
  }

  /** Gives a store other credentials. */
  changeKeys(tx: Tx, ref: number, store: NewReceiptStore): void {
    this.updateKeys.run(tx, store.region, store.access_key_id, store.secret_access_key, ref);
  }

  setLastError(tx: Tx, ref: number, error: string | null): void {
    this.saveError.run(tx, error, ref);
  }

  buffer(tx: Tx, chainRef: number, sequence: number): void {
    this.insertCopy.run(tx, chainRef, sequence);
  }

  /** Notes that a buffered receipt lies in a store. False: it did so before. */
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
