import type { OfflineDatabase } from "../kernel/storage/offline.ts";

/** Where a notary chain ends in a backup. */
export interface ChainEnd {
  readonly chain_id: string;
  readonly sequence: number;
  /** Of its last receipt, epoch milliseconds. */
  readonly at: number;
}

/** Chains named one by one; the rest is counted. */
const CHAINS_NAMED_MAX = 20;

/** All SQL of restoring. Tolerates the schemas of earlier versions. */
export class RestoredStore {
  constructor(private readonly db: OfflineDatabase) {}

  /** No fencing token beyond this one had been given when the backup was made. */
  fencingReservedThrough(): number {
    const name = "lock_fencing_reserved_through";
    return this.db.get<{ value: number }>("SELECT value FROM settings WHERE name = ?", name)?.value ?? 0;
  }

  setFencingReservedThrough(through: number): void {
    this.db.execute(
      "INSERT OR REPLACE INTO settings (name, value) VALUES ('lock_fencing_reserved_through', CAST(? AS INTEGER))",
      through,
    );
  }

  /** The mark that the master key is recognised by. */
  masterKeyMark(): Uint8Array | null {
    const name = "master_key_check";
    return (
      this.db.get<{ value: Uint8Array }>("SELECT value FROM settings WHERE name = ?", name)?.value ?? null
    );
  }

  /** The chains that have receipts: some of them, and how many there are. */
  chains(): { readonly named: readonly ChainEnd[]; readonly count: number } {
    if (!this.db.hasTable("receipts")) return { named: [], count: 0 };
    const count = this.db.get<{ count: number }>(
      "SELECT count(*) AS count FROM chains WHERE EXISTS (SELECT 1 FROM receipts WHERE chain_ref = chains.ref)",
    );
    const named = this.db.all<ChainEnd>(
      `SELECT chain_id, sequence, at FROM chains JOIN receipts ON id =
         (SELECT id FROM receipts WHERE chain_ref = chains.ref ORDER BY sequence DESC LIMIT 1)
       ORDER BY chains.ref LIMIT ?`,
      CHAINS_NAMED_MAX,
    );
    return { named, count: count?.count ?? 0 };
  }

  /** Webhooks and e-mails that were still to be sent. */
  waitingDeliveries(): number {
    const row = this.db.get<{ count: number }>(
      "SELECT count(*) AS count FROM jobs WHERE kind IN ('relay.deliver', 'mail.send')",
    );
    return row?.count ?? 0;
  }

  /** The log's mode is kept in the file: a server that starts need not take it exclusively to set it. */
  useWriteAheadLog(): void {
    this.db.get("PRAGMA journal_mode = WAL");
  }
}
