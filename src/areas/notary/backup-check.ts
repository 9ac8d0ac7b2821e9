import {
  type BackupCheck,
  below,
  counted,
  type LostSecret,
  lostLines,
  type OnRows,
  type Problems,
  type RestoreStep,
  ROWS_PER_STEP,
} from "../../kernel/data/backup-check.ts";
import type { OfflineDatabase } from "../../kernel/storage/offline.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { toHex } from "../../verify/bytes.ts";
import { createNativeCrypto } from "../../verify/native.ts";
import { chainHashOf, NO_HASH } from "../../verify/receipt.ts";
import { leafHashOf, leafOf, RunningTree } from "../../verify/tree.ts";

interface ChainRow {
  ref: number;
  chain_id: string;
  public_key: string;
  /** 1 if the project is deleted: its receipts are then removed in any order. */
  leaving: number;
}

interface ReceiptRow {
  sequence: number;
  at: number;
  chain_hash: Uint8Array;
  signature: Uint8Array;
  log: string;
  /** Hash of a log that was not sent or is deleted. */
  content_hash: Uint8Array | null;
}

const UTF8 = new TextEncoder();

interface CheckpointRow {
  size: number;
  root: Uint8Array;
}

/**
 * Checks every notary chain: positions without gaps from 1, hashes that match the logs, valid signatures, and the roots of its
 * checkpoints.
 */
export const chainsCheck: BackupCheck = {
  name: "notary chains",
  async run(db, problems, onRows) {
    const chains = db.all<ChainRow>(
      `SELECT chains.ref, chain_id, public_key, deleted_at IS NOT NULL AS leaving
       FROM chains LEFT JOIN projects ON projects.ref = project_ref ORDER BY chains.ref`,
    );
    const active = chains.filter(({ leaving }) => leaving === 0);
    let receipts = 0;
    for (const chain of active) {
      receipts += await checkChain(db, chain, problems, (rows) => onRows(receipts + rows));
    }
    const orphan = db.get<{ id: number }>(
      "SELECT id FROM receipts WHERE chain_ref NOT IN (SELECT ref FROM chains) LIMIT 1",
    );
    if (orphan !== null) problems.add(`receipt row ${orphan.id}: its chain does not exist`);
    return `${counted(active.length, "chain")}, ${counted(receipts, "receipt")}`;
  },
};

async function checkChain(
  db: OfflineDatabase,
  { ref, chain_id, public_key }: ChainRow,
  problems: Problems,
  onRows: OnRows,
): Promise<number> {
  const crypto = createNativeCrypto();
  const key = Buffer.from(public_key, "base64url");
  const tree = new RunningTree(crypto);
  const checkpoints = db.hasTable("notary_checkpoints")
    ? db.all<CheckpointRow>(
        "SELECT size, root FROM notary_checkpoints WHERE chain_ref = ? ORDER BY size",
        ref,
      )
    : [];
  const checkRoots = () => {
    for (; checkpoints[0] !== undefined && checkpoints[0].size <= tree.size; checkpoints.shift()) {
      if (Buffer.compare(checkpoints[0].root, tree.root) !== 0)
        problems.add(
          `chain ${chain_id}: its receipts are not those of the checkpoint of size ${checkpoints[0].size}`,
        );
    }
  };
  checkRoots();
  let previous: Uint8Array = Buffer.from(NO_HASH, "hex");
  let expected = 1;
  let count = 0;
  const rows = db.rows<ReceiptRow>(
    db.hasTable("receipts_without_log")
      ? `SELECT sequence, at, chain_hash, signature, log, content_hash FROM receipts
         LEFT JOIN receipts_without_log USING (chain_ref, sequence) WHERE chain_ref = ? ORDER BY sequence`
      : "SELECT sequence, at, chain_hash, signature, log, NULL AS content_hash FROM receipts WHERE chain_ref = ? ORDER BY sequence",
    ref,
  );
  for (const { sequence, at, chain_hash, signature, log, content_hash } of rows) {
    const name = `chain ${chain_id}, receipt ${sequence}`;
    if (sequence !== expected) problems.add(`${name}: expected ${expected} at this position`);
    const content = content_hash ?? crypto.sha256(UTF8.encode(log));
    if (log === "" && content_hash === null) problems.add(`${name}: it has neither a log nor its hash`);
    if (log !== "" && content_hash !== null) problems.add(`${name}: its log should be deleted`);
    const hash = chainHashOf(crypto, previous, BigInt(sequence), content);
    if (Buffer.compare(hash, chain_hash) !== 0)
      problems.add(`${name}: the hash does not match its log and the previous receipt`);
    if (!crypto.verifyEd25519(signature, chain_hash, key))
      problems.add(`${name}: the signature does not match the chain's key`);
    const leaf = {
      sequence_id: String(sequence),
      timestamp: at,
      content_hash: toHex(content),
      chain_hash: toHex(chain_hash),
    };
    tree.add(leafHashOf(crypto, leafOf(leaf)));
    checkRoots();
    previous = chain_hash;
    expected = sequence + 1;
    count += 1;
    if (count % ROWS_PER_STEP === 0) await onRows(count);
  }
  for (const { size } of checkpoints)
    problems.add(`chain ${chain_id}: it ends at ${count}, before its checkpoint of size ${size}`);
  return count;
}

/**
 * Begins a new epoch of each chain: its checkpoints get another origin, since the lost ones may have signed other receipts. A
 * backup of a version without epochs gets it by its migration.
 */
export const raiseChainEpochs: RestoreStep = (db) => {
  if (db.get("SELECT 1 FROM pragma_table_info('chains') WHERE name = 'restored'") === null) return [];
  db.execute(
    "UPDATE chains SET epoch = epoch + 1, fork = NULL, restored = (SELECT value FROM settings WHERE name = 'restored')",
  );
  return [];
};

/**
 * Forgets the key with which this server signs as a witness, so that it gets another one: it does not know what it has cosigned
 * after the backup, and could cosign a second history with the same key.
 */
export const replaceWitnessKey: RestoreStep = (db) => {
  if (!db.hasTable("notary_witness_key") || db.get("SELECT 1 FROM notary_witness_key") === null) return [];
  db.execute("DELETE FROM notary_witness_key");
  return [
    "witness   as a witness, this server gets another key, since it does not know what it cosigned after the backup: give the operators of the witnessed chains its new vkey (GET /v1/witness/peer)",
  ];
};

/** Reports the last receipt of each chain after a restore. */
export const reportChainEnds: RestoreStep = (db) => {
  if (!db.hasTable("receipts")) return [];
  const ends = db.all<{ chain_id: string; sequence: number; at: number }>(
    `SELECT chain_id, sequence, at FROM chains JOIN receipts ON id =
       (SELECT id FROM receipts WHERE chain_ref = chains.ref ORDER BY sequence DESC LIMIT 1)
     ORDER BY chains.ref`,
  );
  if (ends.length === 0) return [];
  return [
    `notary    ${ends.length === 1 ? "1 chain ends" : `${ends.length} chains end`} at the time of the backup: later receipts are lost, and their sequence_ids will be reused`,
    ...below(ends.map(({ chain_id, sequence, at }) => `${chain_id} ends at ${sequence} (${isoTime(at)})`)),
  ];
};

/** Removes what a lost master key has sealed of the notary: chains end and stay verifiable, storages need their credentials. */
export const forgetNotarySecrets: RestoreStep = (db) => {
  db.execute("UPDATE chains SET private_key = x''");
  db.execute("UPDATE receipt_stores SET secret_access_key = x''");
  const of =
    "JOIN projects ON projects.ref = project_ref JOIN accounts ON accounts.ref = projects.account_ref";
  return [
    ...lostLines(
      "chain",
      "signing keys of chains: their receipts can be verified, but no more are added; a new project has a new chain",
      db.all<LostSecret>(`SELECT chain_id AS id, projects.name, email FROM chains ${of} ORDER BY chains.ref`),
    ),
    ...lostLines(
      "storage",
      "credentials of receipt storages: set them again with POST /v1/witness/config",
      db.all<LostSecret>(
        `SELECT projects.id, bucket AS name, email FROM receipt_stores ${of}
         WHERE receipt_stores.ref IN (SELECT max(ref) FROM receipt_stores GROUP BY project_ref) ORDER BY receipt_stores.ref`,
      ),
    ),
  ];
};
