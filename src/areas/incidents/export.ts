import { type AreaExport, asFlag, asJson } from "../../kernel/projects/account-export.ts";

/** Incidents in an export. */
export const incidentExport: AreaExport = {
  ofProject: [
    {
      type: "incident",
      table: "incidents",
      of: { project_ref: "ref" },
      key: ["ref"],
      id: "incident_id",
      show: { monitor_ids: asJson, probe_states: asJson, public: asFlag, title_given: asFlag },
      contains: [
        {
          type: "incident_update",
          table: "incident_updates",
          of: { incident_ref: "ref" },
          key: ["number"],
          show: { links: asJson },
        },
        {
          type: "incident_alert",
          table: "incident_alerts",
          of: { incident_ref: "ref" },
          key: ["number"],
          show: { channels: asJson },
        },
      ],
    },
  ],
};
