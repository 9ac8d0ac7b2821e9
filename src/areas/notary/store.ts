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

/** A receipt as it is kept, with the chain hash of the one before (null for the first). */
export interface ReceiptRow {
  sequence: number;
  at: number;
  chain_hash: Uint8Array;
  signature: Uint8Array;
  log: string;
  prev_hash: Uint8Array | null;
}

/** What is written of a new receipt. */
export interface NewReceipt {
  readonly sequence: number;
  readonly at: number;
  readonly chainHash: Uint8Array;
  readonly signature: Uint8Array;
  readonly logText: string;
}

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
    this.insertChain = db.command<[number, string, string, Uint8Array, number]>(
      "INSERT INTO chains (project_ref, chain_id, public_key, private_key, created_at) VALUES (?, ?, ?, ?, ?)",
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

  addChain(
    tx: Tx,
    chain: { projectRef: number; chainId: string; publicKey: string; privateKey: Uint8Array },
  ): void {
    this.insertChain.run(tx, chain.projectRef, chain.chainId, chain.publicKey, chain.privateKey, tx.now);
  }

  removeChain(tx: Tx, ref: number): void {
    this.deleteChain.run(tx, ref);
  }

  append(tx: Tx, chainRef: number, receipt: NewReceipt): void {
    const { sequence, at, chainHash, signature, logText } = receipt;
    this.insertReceipt.run(tx, chainRef, sequence, at, chainHash, signature, logText);
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
