import type { Database } from "../../kernel/storage/database.ts";
import { searchStore } from "./search/store.ts";
import { treeStore } from "./tree/store.ts";

/** A row of `chains`. */
export interface ChainRow {
  ref: number;
  chain_id: string;
  public_key: string;
  private_key: Uint8Array;
  /** Origin of its checkpoints; null if it is derived from the chain id. */
  origin: string | null;
  epoch: number;
  /** The first receipts that may lack leaves; 0 once the tree is complete. */
  tree_backlog: number;
  /** JSON: what a restore has noted, until it is declared in the chain. */
  restored: string | null;
  /** JSON: where others have seen a longer history. */
  fork: string | null;
  /** JSON: JSON Pointers; null for none. */
  index_fields: string | null;
  retain_days: number;
}

type NewChain = Pick<ChainRow, "chain_id" | "public_key" | "private_key" | "origin"> & {
  project_ref: number;
  now: number;
};

/** A chain as anyone may see it, if it is public. */
export interface PublicChainRow {
  project_ref: number;
  public_key: string;
  is_public: number;
}

/** A stored receipt with the chain hash of the previous one (null for the first). */
export interface ReceiptRow {
  sequence: number;
  at: number;
  chain_hash: Uint8Array;
  signature: Uint8Array;
  /** Empty for a receipt without one. */
  log: string;
  prev_hash: Uint8Array | null;
}

export type NotaryStore = ReturnType<typeof notaryStore>;

/** All SQL of chains and receipts, and of what lies over them. */
export function notaryStore(db: Database) {
  const receipts = `SELECT own.sequence, own.at, own.chain_hash, own.signature, own.log, before.chain_hash AS prev_hash
    FROM receipts AS own
    LEFT JOIN receipts AS before ON before.chain_ref = own.chain_ref AND before.sequence = own.sequence - 1
    WHERE own.chain_ref = ?`;
  return {
    tree: treeStore(db),
    redactions: redactionStore(db),
    search: searchStore(db),
    checkpoints: checkpointStore(db),
    witnesses: witnessStore(db),
    chainOf: db.one<ChainRow, [projectRef: number]>(
      `SELECT ref, chain_id, public_key, private_key, origin, epoch, tree_backlog, restored, fork, index_fields, retain_days FROM chains WHERE project_ref = ?`,
    ),
    chainById: db.one<PublicChainRow, [chainId: string]>(
      "SELECT project_ref, public_key, is_public FROM chains WHERE chain_id = ?",
    ),
    addChain: db.change<[NewChain]>(
      `INSERT INTO chains (project_ref, chain_id, public_key, private_key, origin, created_at)
       VALUES ($project_ref, $chain_id, $public_key, $private_key, $origin, $now)`,
    ),
    /** Projects whose chains were restored. */
    restored: db.all<{ readonly project_ref: number }, []>(
      "SELECT project_ref FROM chains WHERE restored IS NOT NULL ORDER BY ref",
    ),
    setHistory: db.change<
      [
        {
          ref: number;
          epoch: number;
          restored: string | null;
          fork: string | null;
        },
      ]
    >("UPDATE chains SET epoch = $epoch, restored = $restored, fork = $fork WHERE ref = $ref"),
    setPublic: db.change<[isPublic: number, ref: number]>("UPDATE chains SET is_public = ? WHERE ref = ?"),
    removeChain: db.change<[ref: number]>("DELETE FROM chains WHERE ref = ?"),
    // Hot path: positional parameters are faster than named ones.
    append: db.change<
      [chainRef: number, sequence: number, at: number, hash: Uint8Array, signature: Uint8Array, log: string]
    >("INSERT INTO receipts (chain_ref, sequence, at, chain_hash, signature, log) VALUES (?, ?, ?, ?, ?, ?)"),
    receipt: db.one<ReceiptRow, [chainRef: number, sequence: number]>(`${receipts} AND own.sequence = ?`),
    /** Newest receipt at or before a position. */
    newestUpTo: db.one<ReceiptRow, [chainRef: number, sequence: number]>(
      `${receipts} AND own.sequence <= ? ORDER BY own.sequence DESC LIMIT 1`,
    ),
    /** Oldest receipt after a position. */
    oldestAfter: db.one<ReceiptRow, [chainRef: number, sequence: number]>(
      `${receipts} AND own.sequence > ? ORDER BY own.sequence LIMIT 1`,
    ),
    /** Last receipt of a chain, or null when the chain is empty. */
    head: db.one<Pick<ReceiptRow, "sequence" | "chain_hash">, [chainRef: number]>(
      "SELECT sequence, chain_hash FROM receipts WHERE chain_ref = ? ORDER BY sequence DESC LIMIT 1",
    ),
    removeReceipts: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}

/** A row of `receipt_stores`. */
export interface ReceiptStoreRow {
  ref: number;
  endpoint: string;
  bucket: string;
  region: string;
  prefix: string;
  access_key_id: string;
  /** Sealed. */
  secret_access_key: Uint8Array;
  /** Error of the last delivery; null when it succeeded. */
  last_error: string | null;
}

export type NewReceiptStore = Omit<ReceiptStoreRow, "ref" | "last_error">;

/** The fields that locate an object. */
export type StoreLocation = Pick<ReceiptStoreRow, "endpoint" | "bucket" | "prefix">;

export type CopyStore = ReturnType<typeof copyStore>;

/** All SQL of the copies of receipts and of the stores that hold them. */
export function copyStore(db: Database) {
  return {
    /** The current store, or null when none is configured. */
    storeOf: db.one<ReceiptStoreRow, [projectRef: number]>(
      `SELECT ref, endpoint, bucket, region, prefix, access_key_id, secret_access_key, last_error
       FROM receipt_stores WHERE project_ref = ? ORDER BY ref DESC LIMIT 1`,
    ),
    addStore: db.change<[NewReceiptStore & { project_ref: number; now: number }]>(
      `INSERT INTO receipt_stores (project_ref, endpoint, bucket, region, prefix, access_key_id, secret_access_key, created_at)
       VALUES ($project_ref, $endpoint, $bucket, $region, $prefix, $access_key_id, $secret_access_key, $now)`,
    ),
    updateCredentials: db.change<[NewReceiptStore & { ref: number }]>(
      `UPDATE receipt_stores SET region = $region, access_key_id = $access_key_id,
         secret_access_key = $secret_access_key, last_error = NULL WHERE ref = $ref`,
    ),
    countStores: db.number<[projectRef: number]>(
      "SELECT count(*) AS n FROM receipt_stores WHERE project_ref = ?",
    ),
    setLastError: db.change<[error: string | null, ref: number]>(
      "UPDATE receipt_stores SET last_error = ? WHERE ref = ?",
    ),
    removeStores: db.change<[projectRef: number, rowsMax: number]>(
      "DELETE FROM receipt_stores WHERE ref IN (SELECT ref FROM receipt_stores WHERE project_ref = ? LIMIT ?)",
    ),
    buffer: db.change<[chainRef: number, sequence: number]>(
      "INSERT INTO receipt_copies (chain_ref, sequence, store_ref) VALUES (?, ?, NULL)",
    ),
    /** Records the delivery of a buffered receipt. Changes no row if it is already recorded. */
    setDelivered: db.change<[storeRef: number, chainRef: number, sequence: number]>(
      "UPDATE receipt_copies SET store_ref = ? WHERE chain_ref = ? AND sequence = ? AND store_ref IS NULL",
    ),
    /** Buffers a delivered receipt again. Changes no row if its copy is not in this store. */
    bufferAgain: db.change<[chainRef: number, sequence: number, storeRef: number]>(
      "UPDATE receipt_copies SET store_ref = NULL WHERE chain_ref = ? AND sequence = ? AND store_ref = ?",
    ),
    /** Location of a receipt's copy: nulls while it is buffered, no row if no store was configured for it. */
    copy: db.one<StoreLocation | Record<keyof StoreLocation, null>, [chainRef: number, sequence: number]>(
      `SELECT endpoint, bucket, prefix FROM receipt_copies
       LEFT JOIN receipt_stores ON receipt_stores.ref = receipt_copies.store_ref
       WHERE chain_ref = ? AND sequence = ?`,
    ),
    bufferedCount: db.number<[chainRef: number]>(
      "SELECT count(*) AS n FROM receipt_copies WHERE chain_ref = ? AND store_ref IS NULL",
    ),
    /** Creation time of the oldest buffered receipt, epoch milliseconds; 0 when none is buffered. */
    bufferedSince: db.number<[chain: { readonly chainRef: number }]>(
      `SELECT at AS n FROM receipts WHERE chain_ref = $chainRef AND sequence =
         (SELECT min(sequence) FROM receipt_copies WHERE chain_ref = $chainRef AND store_ref IS NULL)`,
    ),
    /** Positions of buffered receipts after `sequence`, ascending. */
    buffered: db.all<{ sequence: number }, [chainRef: number, sequence: number, limit: number]>(
      "SELECT sequence FROM receipt_copies WHERE chain_ref = ? AND sequence > ? AND store_ref IS NULL ORDER BY sequence LIMIT ?",
    ),
    removeCopies: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM receipt_copies WHERE (chain_ref, sequence) IN (SELECT chain_ref, sequence FROM receipt_copies WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}

/** What is stored of a receipt instead of its log. */
interface WithoutLogRow {
  readonly content_hash: Uint8Array;
  /** Null without one, and once it is deleted. */
  readonly note: string | null;
  /** Epoch milliseconds; null if nothing was deleted. */
  readonly redacted_at: number | null;
}

/** A chain whose logs are deleted by age. */
interface RetentionRow {
  readonly ref: number;
  readonly project_ref: number;
  readonly retain_days: number;
  /** Position up to which that is done. */
  readonly retained_after: number;
}

/** All SQL of receipts without a log, and of the deletion of logs. */
function redactionStore(db: Database) {
  return {
    withoutLog: db.one<WithoutLogRow, [chainRef: number, sequence: number]>(
      "SELECT content_hash, note, redacted_at FROM receipts_without_log WHERE chain_ref = ? AND sequence = ?",
    ),
    addHash: db.change<
      [
        {
          chain_ref: number;
          sequence: number;
          content_hash: Uint8Array;
          note: string | null;
        },
      ]
    >(
      `INSERT INTO receipts_without_log (chain_ref, sequence, content_hash, note)
       VALUES ($chain_ref, $sequence, $content_hash, $note)`,
    ),
    /** Deletes a log's text. Its bytes are overwritten in the file. */
    eraseLog: db.erasure<[chainRef: number, sequence: number]>(
      "UPDATE receipts SET log = '' WHERE chain_ref = ? AND sequence = ?",
    ),
    /** Notes the deletion, and deletes the note. */
    setRedacted: db.erasure<
      [
        {
          chain_ref: number;
          sequence: number;
          content_hash: Uint8Array;
          now: number;
        },
      ]
    >(
      `INSERT INTO receipts_without_log (chain_ref, sequence, content_hash, redacted_at)
       VALUES ($chain_ref, $sequence, $content_hash, $now)
       ON CONFLICT DO UPDATE SET note = NULL, redacted_at = $now`,
    ),
    /** The next chain with a retention. */
    nextRetention: db.one<RetentionRow, [afterRef: number]>(
      `SELECT ref, project_ref, retain_days, retained_after FROM chains
       WHERE retain_days > 0 AND ref > ? ORDER BY ref LIMIT 1`,
    ),
    setRetainedAfter: db.change<[sequence: number, ref: number]>(
      "UPDATE chains SET retained_after = ? WHERE ref = ?",
    ),
    remove: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM receipts_without_log WHERE (chain_ref, sequence) IN (SELECT chain_ref, sequence FROM receipts_without_log WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}

/** A row of `notary_checkpoints`. */
export type CheckpointRow = {
  readonly size: number;
  readonly root: Uint8Array;
  readonly signature: Uint8Array;
  readonly signed_at: number;
};

export type CheckpointStore = ReturnType<typeof checkpointStore>;

/** All SQL of checkpoints. */
function checkpointStore(db: Database) {
  const columns = "size, root, signature, signed_at";
  return {
    add: db.change<[CheckpointRow & { chain_ref: number; epoch: number }]>(
      `INSERT INTO notary_checkpoints (chain_ref, epoch, ${columns})
       VALUES ($chain_ref, $epoch, $size, $root, $signature, $signed_at)`,
    ),
    /** The newest checkpoint of an epoch. */
    newest: db.one<CheckpointRow, [chainRef: number, epoch: number]>(
      `SELECT ${columns} FROM notary_checkpoints WHERE chain_ref = ? AND epoch = ? ORDER BY size DESC LIMIT 1`,
    ),
    /** Two neighbours, the newer one first, after the newest `skipped`. */
    pairAfter: db.all<
      Pick<CheckpointRow, "size" | "signed_at">,
      [ref: number, epoch: number, skipped: number]
    >(
      `SELECT size, signed_at FROM notary_checkpoints WHERE chain_ref = ? AND epoch = ?
       ORDER BY size DESC LIMIT 2 OFFSET ?`,
    ),
    remove: db.change<[chainRef: number, epoch: number, size: number]>(
      "DELETE FROM notary_checkpoints WHERE chain_ref = ? AND epoch = ? AND size = ?",
    ),
    removeAll: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM notary_checkpoints WHERE (chain_ref, epoch, size) IN (SELECT chain_ref, epoch, size FROM notary_checkpoints WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}

/** A row of `notary_witnesses`. */
export type WitnessRow = {
  readonly name: string;
  readonly url: string;
  readonly vkey: string;
  readonly epoch: number;
  readonly size: number;
  readonly cosigned_at: number | null;
  readonly last_error: string | null;
};

/** A cosignature of a stored checkpoint. */
export type CosignatureRow = {
  readonly vkey: string;
  /** As it is in the note, without the newline. */
  readonly line: string;
  readonly signed_at: number;
};

export type WitnessStore = ReturnType<typeof witnessStore>;

/** All SQL of the witnesses of chains, and of what they have cosigned. */
function witnessStore(db: Database) {
  const columns = "name, url, vkey, epoch, size, cosigned_at, last_error";
  return {
    witnesses: db.all<WitnessRow, [chainRef: number]>(
      `SELECT ${columns} FROM notary_witnesses WHERE chain_ref = ? ORDER BY position`,
    ),
    add: db.change<[WitnessRow & { chain_ref: number; position: number }]>(
      `INSERT INTO notary_witnesses (chain_ref, position, ${columns})
       VALUES ($chain_ref, $position, $name, $url, $vkey, $epoch, $size, $cosigned_at, $last_error)`,
    ),
    /** Records a cosignature. */
    setCosigned: db.change<
      [{ chain_ref: number; vkey: string; epoch: number; size: number; cosigned_at: number }]
    >(
      `UPDATE notary_witnesses SET epoch = $epoch, size = $size, cosigned_at = $cosigned_at, last_error = NULL
       WHERE chain_ref = $chain_ref AND vkey = $vkey`,
    ),
    setError: db.change<[error: string, chainRef: number, vkey: string]>(
      "UPDATE notary_witnesses SET last_error = ? WHERE chain_ref = ? AND vkey = ?",
    ),
    removeWitnesses: db.change<[chainRef: number]>("DELETE FROM notary_witnesses WHERE chain_ref = ?"),
    cosignatures: db.all<CosignatureRow, [chainRef: number, epoch: number, size: number]>(
      `SELECT vkey, line, signed_at FROM notary_cosignatures
       WHERE chain_ref = ? AND epoch = ? AND size = ? ORDER BY vkey`,
    ),
    /** Stores a cosignature; a later one of the same witness replaces it. */
    addCosignature: db.change<[CosignatureRow & { chain_ref: number; epoch: number; size: number }]>(
      `INSERT OR REPLACE INTO notary_cosignatures (chain_ref, epoch, size, vkey, line, signed_at)
       VALUES ($chain_ref, $epoch, $size, $vkey, $line, $signed_at)`,
    ),
    removeCosignatures: db.change<[chainRef: number, epoch: number, size: number]>(
      "DELETE FROM notary_cosignatures WHERE chain_ref = ? AND epoch = ? AND size = ?",
    ),
    removeAllCosignatures: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM notary_cosignatures WHERE ref IN (SELECT ref FROM notary_cosignatures WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}
