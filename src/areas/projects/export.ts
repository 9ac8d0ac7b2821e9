import { asFlag, type ExportedTable } from "../../kernel/projects/account-export.ts";

/** The projects of an account, with what the areas export of each. */
export function projectExport(contains: readonly ExportedTable[]): ExportedTable {
  return {
    type: "project",
    table: "projects",
    of: { account_ref: "ref" },
    key: ["ref"],
    id: "id",
    show: { is_default: asFlag, review: asFlag },
    contains,
  };
}
