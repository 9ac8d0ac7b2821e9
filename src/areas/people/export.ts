import { type AreaExport, asFlag, asJson } from "../../kernel/projects/account-export.ts";

/** People in an export, without what logs them in. */
export const peopleExport: AreaExport = {
  ofAccount: [
    {
      type: "person",
      table: "people",
      of: { account_ref: "ref" },
      key: ["ref"],
      id: "id",
      show: { email_folded: null, disabled: asFlag, from_file: asFlag },
      contains: [
        {
          type: "passkey",
          table: "passkeys",
          of: { person_ref: "ref" },
          key: ["ref"],
          show: { public_key: null, transports: asJson },
        },
        {
          type: "identity",
          table: "person_identities",
          of: { person_ref: "ref" },
          key: ["issuer"],
          show: { sent_auth_time: asFlag },
        },
        { type: "person_project", table: "person_projects", of: { person_ref: "ref" }, key: ["project_ref"] },
        {
          type: "person_link",
          table: "person_links",
          of: { person_ref: "ref" },
          key: ["kind", "token_hash"],
          show: { token_hash: null, browser_hash: null },
        },
      ],
    },
  ],
};
