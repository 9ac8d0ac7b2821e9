import {
  type BackupCheck,
  below,
  counted,
  type OnRows,
  type Problems,
  type RestoreStep,
  ROWS_PER_STEP,
} from "../../kernel/data/backup-check.ts";
import type { OfflineDatabase } from "../../kernel/storage/offline.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { createNativeCrypto } from "../../verify/native.ts";
import { chainHashOf, NO_HASH } from "../../verify/receipt.ts";

interface ChainRow {
  ref: number;
  chain_id: string;
  public_key: string;
  /** 1 if the project is deleted: its receipts are then removed in any order. */
  leaving: number;
}

interface ReceiptRow {
  sequence: number;
  chain_hash: Uint8Array;
  signature: Uint8Array;
  log: string;
}

const UTF8 = new TextEncoder();

/** Checks every notary chain: positions without gaps from 1, hashes that match the logs, and valid signatures. */
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
  let previous: Uint8Array = Buffer.from(NO_HASH, "hex");
  let expected = 1;
  let count = 0;
  const rows = db.rows<ReceiptRow>(
    "SELECT sequence, chain_hash, signature, log FROM receipts WHERE chain_ref = ? ORDER BY sequence",
    ref,
  );
  for (const { sequence, chain_hash, signature, log } of rows) {
    const name = `chain ${chain_id}, receipt ${sequence}`;
    if (sequence !== expected) problems.add(`${name}: expected ${expected} at this position`);
    const hash = chainHashOf(crypto, previous, BigInt(sequence), crypto.sha256(UTF8.encode(log)));
    if (Buffer.compare(hash, chain_hash) !== 0)
      problems.add(`${name}: the hash does not match its log and the previous receipt`);
    if (!crypto.verifyEd25519(signature, chain_hash, key))
      problems.add(`${name}: the signature does not match the chain's key`);
    previous = chain_hash;
    expected = sequence + 1;
    count += 1;
    if (count % ROWS_PER_STEP === 0) await onRows(count);
  }
  return count;
}

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
