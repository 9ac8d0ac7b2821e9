import {
  type AreaExport,
  asFlag,
  asJson,
  asName,
  asTime,
  asUuid,
  type ExportedTable,
  idLookup,
} from "../../kernel/projects/account-export.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Database } from "../../kernel/storage/database.ts";
import { PING_KEY } from "./heartbeats/heartbeats.ts";
import type { PingStore } from "./heartbeats/store.ts";
import type { IcmpResult } from "./icmp-result.ts";
import { icmpOf } from "./store.ts";
import { MONITOR_HEADERS } from "./targets/http.ts";

/** Packets of a check, as the API shows them. */
const asIcmp = (value: unknown): IcmpResult | null => icmpOf(typeof value === "string" ? value : null);

const OF_PROJECT = { project_ref: "ref" };
const OF_MONITOR = { monitor_ref: "ref" };

/** Monitors and maintenance in an export. */
export function monitorExport({
  db,
  vault,
  pings,
  exportedChannels,
}: {
  db: Database;
  vault: Vault;
  pings: Pick<PingStore, "lastPings">;
  exportedChannels: ExportedTable;
}): AreaExport {
  const monitorId = idLookup(db, "monitors", "monitor_id", asUuid);
  return {
    ofProject: [
      {
        type: "monitor",
        table: "monitors",
        of: OF_PROJECT,
        key: ["ref"],
        id: "monitor_id",
        show: {
          monitor_id: asUuid,
          // The type of the record has this name.
          type: null,
          // As the API shows them.
          headers: (value, row, context) =>
            MONITOR_HEADERS.open(
              vault,
              String(asUuid(row["monitor_id"] ?? "", row, context)),
              value as Uint8Array,
            ),
          tls_client_key: null,
          email_alert: asFlag,
          notify_recovery: asFlag,
          active: asFlag,
          options: asJson,
        },
        more: ({ type }) => ({ monitor_type: type }),
        contains: [
          {
            type: "monitor_dependency",
            table: "monitor_parents",
            of: OF_MONITOR,
            key: ["monitor_ref"],
            more: ({ parent_ref }) => ({ depends_on: monitorId(parent_ref) }),
          },
          exportedChannels,
          {
            type: "monitor_flapping",
            table: "monitor_quiet",
            of: OF_MONITOR,
            key: ["monitor_ref"],
            show: { changes: asJson, flapping: asFlag },
          },
          ...heartbeatTables(pings),
          {
            type: "monitor_state",
            table: "monitor_states",
            of: OF_MONITOR,
            key: ["monitor_ref"],
            show: {
              status: asName(["up", "down", "unknown"], 1),
              degraded: asFlag,
              overdue: asFlag,
              certificate: asJson,
              icmp: asIcmp,
              domain: asJson,
              last_check: null,
              hour: asTime,
            },
            contains: [
              {
                type: "monitor_check",
                table: "monitor_checks",
                of: { monitor_ref: "monitor_ref" },
                key: ["sequence"],
                newest: ({ last_check }) => Number(last_check),
                show: {
                  up: asFlag,
                  manual: asFlag,
                  icmp: asIcmp,
                  mark: asName(["counts", "offline", "maintenance", "late", "unknown"], 0),
                },
              },
            ],
          },
          {
            type: "monitor_hour",
            table: "monitor_hours",
            of: OF_MONITOR,
            key: ["hour"],
            show: { hour: asTime },
          },
          { type: "monitor_day", table: "monitor_days", of: OF_MONITOR, key: ["day"], show: { day: asTime } },
        ],
      },
      {
        type: "probe",
        table: "probes",
        of: OF_PROJECT,
        key: ["ref"],
        id: "probe_id",
        show: {
          probe_id: null,
          token_digest: null,
          last_seen_at: asTime,
          offline: asFlag,
          results: null,
        },
        more: ({ probe_id }) => ({ probe_id }),
      },
      {
        type: "ping_key",
        table: "heartbeat_ping_keys",
        of: OF_PROJECT,
        key: ["project_ref"],
        show: { digest: null, sealed: null },
        more: ({ project_ref, sealed }) => ({
          ping_key: PING_KEY.openOrNull(vault, Number(project_ref), sealed as Uint8Array),
        }),
      },
      {
        type: "maintenance",
        table: "monitor_maintenance",
        of: OF_PROJECT,
        key: ["ref"],
        id: "maintenance_id",
        show: { public: asFlag, begun: asFlag },
        contains: [
          {
            type: "maintenance_monitor",
            table: "monitor_maintained",
            of: { maintenance_ref: "ref" },
            key: ["monitor_ref"],
            more: ({ monitor_ref }) => ({ monitor_id: monitorId(monitor_ref) }),
          },
        ],
      },
    ],
  };
}

function heartbeatTables(pings: Pick<PingStore, "lastPings">): readonly ExportedTable[] {
  return [
    {
      type: "heartbeat",
      table: "heartbeats",
      of: OF_MONITOR,
      key: ["monitor_ref"],
      show: { ping_id: asUuid },
    },
    {
      type: "heartbeat_state",
      table: "heartbeat_states",
      of: OF_MONITOR,
      key: ["monitor_ref"],
      show: { started_rid: asUuid, waits_since: asTime },
    },
    {
      type: "heartbeat_ping",
      table: "heartbeat_pings",
      of: OF_MONITOR,
      key: ["id"],
      // Their ids are computed from the heartbeat's reference.
      read: ({ ref }) =>
        pings.lastPings(Number(ref)).map(({ durationMs, ...ping }) => ({ ...ping, duration_ms: durationMs })),
    },
  ];
}
