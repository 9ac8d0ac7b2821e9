import type { AreaExport, ExportRow } from "../../kernel/projects/account-export.ts";

/** Held locks in an export. `locksOf`: those of a project. */
export function lockExport(locksOf: (projectRef: number) => Iterable<ExportRow>): AreaExport {
  return {
    ofProject: [
      {
        type: "lock",
        table: "locks",
        of: { project_ref: "ref" },
        key: ["fencing_token"],
        read: ({ ref }) => locksOf(Number(ref)),
      },
    ],
  };
}
