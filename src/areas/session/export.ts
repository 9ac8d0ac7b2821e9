import type { AreaExport } from "../../kernel/projects/account-export.ts";

/** Sessions in an export, without what opens them. */
export const sessionExport: AreaExport = {
  ofAccount: [
    {
      type: "session",
      table: "sessions",
      of: { account_ref: "ref" },
      key: ["id"],
      show: { token_hash: null, key_digest: null, proof: null },
    },
  ],
};
