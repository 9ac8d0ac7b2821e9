import { type AreaExport, asFlag, asJson } from "../../kernel/projects/account-export.ts";

/** Flags in an export. */
export const flagExport: AreaExport = {
  ofProject: [
    {
      type: "flag_proposal",
      table: "flag_proposals",
      of: { project_ref: "ref" },
      key: ["ref"],
      isLarge: true,
      id: "id",
      show: { change: asJson, was: asJson, became: asJson, proposed_by: asJson, decided_by: asJson },
    },
    { type: "flag_settings", table: "flag_projects", of: { project_ref: "ref" }, key: ["project_ref"] },
    {
      type: "flag",
      table: "flags",
      of: { project_ref: "ref" },
      key: ["ref"],
      isLarge: true,
      id: "flag_key",
      show: { enabled: asFlag, archived: asFlag, definition: asJson },
      contains: [
        { type: "flag_use", table: "flag_uses", of: { flag_ref: "ref" }, key: ["flag_ref"] },
        {
          type: "flag_evaluations",
          table: "flag_evaluations",
          of: { flag_ref: "ref" },
          key: ["flag_ref", "day"],
          show: { counts: asJson },
        },
        {
          type: "flag_schedule",
          table: "flag_schedules",
          of: { flag_ref: "ref" },
          key: ["ref"],
          show: { change: asJson, actor: asJson },
        },
      ],
    },
  ],
};
