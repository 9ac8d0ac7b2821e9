import { type AreaExport, asFlag, asJson, asUuid } from "../../kernel/projects/account-export.ts";

/** The account's audit log in an export. */
export const auditExport: AreaExport = {
  ofAccount: [
    {
      type: "audit_entry",
      table: "audit_log",
      of: { account_ref: "ref" },
      key: ["sequence"],
      show: {
        key_id: asUuid,
        request_id: asUuid,
        was: asJson,
        became: asJson,
        schedule: asJson,
        truncated: asFlag,
      },
    },
  ],
};
