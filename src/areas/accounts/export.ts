import { type AreaExport, asUuid } from "../../kernel/projects/account-export.ts";

/** What an export has of the account itself. Digests and sealed keys are not exported. */
export const accountExport: AreaExport = {
  ofAccount: [
    {
      type: "platform_key",
      table: "platform_keys",
      of: { account_ref: "ref" },
      key: ["id"],
      show: { id: null, digest: null, sealed: null },
    },
    {
      type: "account_entry",
      table: "account_entries",
      of: { account_ref: "ref" },
      key: ["sequence"],
      show: { request_id: asUuid },
    },
  ],
};
