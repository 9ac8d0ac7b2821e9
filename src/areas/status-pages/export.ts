import { type AreaExport, asJson } from "../../kernel/projects/account-export.ts";

const OF_PROJECT = { project_ref: "ref" };

/** Status pages and their subscribers in an export. */
export const pageExport: AreaExport = {
  ofProject: [
    {
      type: "status_page",
      table: "status_pages",
      of: OF_PROJECT,
      key: ["ref"],
      isLarge: true,
      show: { settings: asJson },
    },
    { type: "status_subscriber", table: "status_subscribers", of: OF_PROJECT, key: ["ref"] },
  ],
};
