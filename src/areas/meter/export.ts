import {
  type AreaExport,
  asFlag,
  asHour,
  asJson,
  asName,
  asText,
  asUuid,
  type ExportRow,
} from "../../kernel/projects/account-export.ts";
import { FIRST_KIND, KINDS } from "./book.ts";
import { HOLD_STATUSES, PERIODS, PLAN_MODES } from "./domain.ts";

const OF_METER = { project_ref: "project_ref", meter_ref: "ref" };

/** Meters in an export. `current`: balance and last entry of a meter now, since its row may be seconds behind. */
export function meterExport(
  current: (row: ExportRow) => { balance: number; lastSequence: number },
): AreaExport {
  const alert = { type: "meter_alert", table: "meter_alerts", key: ["meter_ref"] } as const;
  return {
    ofProject: [
      {
        type: "meter",
        table: "meters",
        of: { project_ref: "ref" },
        key: ["meter_id"],
        id: "meter_id",
        show: { last_sequence: null, has_extras: null, balance: (_, row) => current(row).balance },
        contains: [
          { ...alert, of: OF_METER },
          {
            type: "meter_plan",
            table: "meter_plans",
            of: { meter_ref: "ref" },
            key: ["meter_ref"],
            show: { every: asName(PERIODS, 1), mode: asName(PLAN_MODES, 1) },
          },
          {
            type: "meter_hold",
            table: "meter_holds",
            of: { meter_ref: "ref" },
            key: ["status", "ref"],
            show: { status: asName(HOLD_STATUSES, 1), at_most: asFlag, metadata: asJson },
          },
          {
            type: "meter_usage",
            table: "meter_usage",
            of: OF_METER,
            key: ["hour"],
            show: { hour: asHour, last_sequence: null },
          },
          {
            type: "meter_entry",
            table: "meter_entries",
            of: { meter_ref: "ref" },
            key: ["sequence"],
            newest: (row) => current(row).lastSequence,
            show: {
              kind: asName(KINDS, FIRST_KIND),
              request_id: (value, row, context) =>
                value instanceof Uint8Array && value.length > 0 ? asUuid(value, row, context) : null,
              hold_id: asText,
            },
          },
        ],
      },
      // For all meters of the project without their own.
      { ...alert, type: "meter_default_alert", of: { project_ref: "ref" }, where: "meter_ref = 0" },
    ],
  };
}
