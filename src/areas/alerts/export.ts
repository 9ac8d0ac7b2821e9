import {
  type AreaExport,
  asFlag,
  asJson,
  type ExportedTable,
  idLookup,
} from "../../kernel/projects/account-export.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Database } from "../../kernel/storage/database.ts";
import { redactedConfig } from "./channel-kinds.ts";
import { CHANNEL_CONFIG } from "./notifications.ts";
import type { ChannelKind } from "./schema.ts";
import type { EscalationStep } from "./store.ts";

/** Channels in an export. */
export function channelExport(vault: Vault, db: Database): AreaExport {
  const idOf = idLookup(db, "channels", "channel_id");
  return {
    ofProject: [
      {
        type: "channel",
        table: "channels",
        of: { project_ref: "ref" },
        key: ["ref"],
        show: {
          config: (value, { kind, channel_id }) =>
            redactedConfig(
              String(kind) as ChannelKind,
              CHANNEL_CONFIG.open(vault, String(channel_id), value as Uint8Array),
            ),
          is_default: asFlag,
          events: asJson,
          quiet_hours: asJson,
          held_dropped: null,
          escalate: (value) =>
            (JSON.parse(String(value)) as EscalationStep[]).map(({ afterMs, channelRefs }) => ({
              after_ms: afterMs,
              channel_ids: channelRefs.map(idOf),
            })),
        },
      },
    ],
  };
}

/** The channels of a monitor in an export. */
export function exportOfMonitor(db: Database): ExportedTable {
  return {
    type: "monitor_channels",
    table: "monitor_channels",
    of: { monitor_ref: "ref" },
    key: ["monitor_ref"],
    show: { channel_refs: null },
    more: ({ channel_refs }) => ({
      channels: (JSON.parse(String(channel_refs)) as number[]).map(idLookup(db, "channels", "channel_id")),
    }),
  };
}
