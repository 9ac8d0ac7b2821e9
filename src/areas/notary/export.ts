import {
  type AreaExport,
  asBase64,
  asFlag,
  asJson,
  type ExportRow,
} from "../../kernel/projects/account-export.ts";
import { masked } from "./domain.ts";
import type { Receipt } from "./schema.ts";

/** Chains in an export with their receipts as `ninefold verify` reads them, without private keys. */
export function notaryExport(receiptOf: (row: ExportRow) => Receipt | null): AreaExport {
  return {
    ofProject: [
      {
        type: "chain",
        table: "chains",
        of: { project_ref: "ref" },
        key: ["project_ref"],
        id: "chain_id",
        show: {
          private_key: null,
          tree_backlog: null,
          is_public: asFlag,
          restored: null,
          fork: null,
          index_fields: asJson,
          retained_after: null,
        },
        contains: [
          {
            type: "receipt",
            table: "receipts",
            of: { chain_ref: "ref" },
            key: ["sequence"],
            isLarge: true,
            show: { id: null, sequence: null, at: null, chain_hash: null, signature: null, log: null },
            more: (row) => ({ ...receiptOf(row) }),
          },
          {
            type: "checkpoint",
            table: "notary_checkpoints",
            of: { chain_ref: "ref" },
            key: ["epoch", "size"],
            show: { root: asBase64, signature: asBase64 },
          },
          {
            type: "checkpoint_cosignature",
            table: "notary_cosignatures",
            of: { chain_ref: "ref" },
            key: ["ref"],
            show: { ref: null },
          },
          { type: "witness", table: "notary_witnesses", of: { chain_ref: "ref" }, key: ["position"] },
          { type: "receipt_copy", table: "receipt_copies", of: { chain_ref: "ref" }, key: ["sequence"] },
        ],
      },
      {
        type: "receipt_store",
        table: "receipt_stores",
        of: { project_ref: "ref" },
        key: ["ref"],
        show: { access_key_id: (value) => masked(String(value)), secret_access_key: null },
      },
    ],
  };
}
