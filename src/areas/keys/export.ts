import { AddressRanges } from "../../kernel/data/address-ranges.ts";
import {
  type AreaExport,
  asFlag,
  asHour,
  asJson,
  asName,
  asUuid,
} from "../../kernel/projects/account-export.ts";
import { OUTCOMES } from "./domain.ts";

const OF_KEY = { key_ref: "ref" };

/** Managed keys in an export, with their usage and without their digests, and roles. Those of deleted projects are empty. */
export const keyExport: AreaExport = {
  ofProject: [
    {
      type: "key_role",
      table: "key_roles",
      of: { project_ref: "ref" },
      key: ["ref"],
      show: { permissions: asJson },
    },
  ],
  ofAccount: [
    {
      type: "key",
      table: "keys",
      of: { account_ref: "ref" },
      key: ["created_at"],
      where: "deleted = 0",
      id: "id",
      show: {
        id: asUuid,
        digest: null,
        deleted: null,
        scopes: asJson,
        metadata: asJson,
        ratelimits: asJson,
        permissions: asJson,
        roles: asJson,
        holder: null,
        enabled: asFlag,
        allowed_ips: (value) => (value instanceof Uint8Array ? AddressRanges.of(value).texts : null),
      },
      contains: [
        { type: "key_use", table: "key_uses", of: OF_KEY, key: ["key_ref"] },
        { type: "key_allowance", table: "key_allowances", of: { ref: "ref" }, key: ["ref"] },
        {
          type: "key_hour",
          table: "key_hours",
          of: OF_KEY,
          key: ["hour", "outcome"],
          show: { hour: asHour, outcome: asName(OUTCOMES, 0) },
        },
      ],
    },
    {
      type: "key_limit_level",
      table: "key_limit_levels",
      of: { account_ref: "ref" },
      key: ["ref"],
      show: { level: null },
      more: ({ level, duration_ms }) => ({ remaining: Math.floor(Number(level) / Number(duration_ms)) }),
    },
  ],
};
