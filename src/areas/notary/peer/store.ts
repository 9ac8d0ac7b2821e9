import type { Database } from "../../../kernel/storage/database.ts";

/** The newest checkpoint of an origin that this server has cosigned. */
export type WitnessedRow = {
  readonly size: number;
  readonly root: Uint8Array;
  readonly note: string;
};

export type PeerStore = ReturnType<typeof peerStore>;

/** All SQL of this server as a witness for others. */
export function peerStore(db: Database) {
  return {
    key: db.one<{ private_key: Uint8Array }, []>("SELECT private_key FROM notary_witness_key"),
    addKey: db.change<[privateKey: Uint8Array]>(
      "INSERT INTO notary_witness_key (id, private_key) VALUES (1, ?)",
    ),
    witnessed: db.one<WitnessedRow, [originHash: string]>(
      "SELECT size, root, note FROM notary_witnessed WHERE origin_hash = ?",
    ),
    setWitnessed: db.change<[WitnessedRow & { origin_hash: string }]>(
      "INSERT OR REPLACE INTO notary_witnessed (origin_hash, size, root, note) VALUES ($origin_hash, $size, $root, $note)",
    ),
  };
}
