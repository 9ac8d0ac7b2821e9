import type { Static } from "@sinclair/typebox";
import { bytesToUuid, isUuid } from "../../../kernel/data/uuid.ts";
import { invalidField } from "../../../kernel/errors.ts";
import type { ResourceContext } from "../../../kernel/resources/declaration.ts";
import { limitPerProject } from "../../../kernel/resources/limit.ts";
import { resource } from "../../../kernel/resources/resource.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import type { AreaDeps } from "../ports.ts";
import { LIST_LIMIT, MonitorDeleted } from "../schema.ts";
import {
  MAINTENANCE_MAX,
  Maintenance,
  MaintenanceCreateBody,
  MaintenanceStatus,
  MaintenanceUpdateBody,
  TIME_ZONE,
} from "./schema.ts";
import type { MaintenanceRow, MaintenanceStore } from "./store.ts";
import { statusOf, timingOf } from "./timing.ts";
import type { MaintenanceWindows } from "./windows.ts";

/** Declares maintenance: windows in which failures of monitors cause no alerts. */
export function maintenanceResource(
  { ids, monitors }: Pick<AreaDeps, "ids" | "monitors">,
  maintenance: MaintenanceStore,
  windows: MaintenanceWindows,
) {
  /** The references of monitors. @throws ApiError `validation_error` for an id of no monitor of the project */
  function refsOf(projectRef: number, monitorIds: readonly string[]): number[] {
    return monitorIds.map((monitorId, index) => {
      const id = monitorId.toLowerCase();
      const monitor = isUuid(id) ? monitors.find(id) : null;
      if (monitor?.projectRef === projectRef) return monitor.ref;
      throw invalidField(`monitor_ids.${index}`, "must be the id of a monitor of this project");
    });
  }
  function view(row: MaintenanceRow, { tx }: ResourceContext): Maintenance {
    return {
      id: row.id,
      title: row.title,
      message: row.message,
      monitor_ids: maintenance.idsOf(row.ref).map((monitor) => bytesToUuid(monitor.id)),
      status: statusOf(row, tx.now),
      starts_at: isoTime(row.starts_at),
      ends_at: isoTime(row.ends_at),
      schedule: row.schedule,
      tz: row.tz,
      duration_ms: row.duration_ms,
      public: row.public,
      created_at: isoTime(row.createdAt),
      updated_at: isoTime(row.updatedAt),
    };
  }

  return resource(ids, {
    type: "maintenance",
    title: "maintenance",
    idPrefix: "mnt",
    path: "/v1/pulse/maintenance",
    operations: "monitors.maintenance",
    tag: "Monitors",
    access: { area: "pulse", cost: 1, limit: "monitor" },
    file: {
      check: (body: Static<typeof MaintenanceCreateBody>) => void timingOf(body, null, 0),
      defaults: { message: "", monitor_ids: [], public: false, tz: TIME_ZONE },
      computed: ({ schedule }) => (schedule === null ? [] : ["starts_at", "ends_at"]),
    },
    name: { field: "title", taken: null },
    limit: limitPerProject(
      "maintenance_limit_exceeded",
      MAINTENANCE_MAX,
      maintenance.count,
      `A project has at most ${MAINTENANCE_MAX} maintenance entries. Delete one that has ended.`,
    ),
    store: maintenance,
    schema: Maintenance,
    view,
    summary: ({ title }, done) => `Maintenance ${title} ${done}`,
    // Only time changes the status.
    audited: ({ id, status, created_at, updated_at, ...settings }) => settings,
    list: {
      summary: "List maintenance, newest first",
      description:
        "Includes past windows, at most 100 in a project. `status` selects those in progress, for example.",
      key: "maintenance",
      schema: "MaintenancePage",
      limit: LIST_LIMIT,
      filters: { status: MaintenanceStatus },
      rows({ tx, caller: { project } }, { before, rowsMax }, { status }) {
        const all = maintenance.page(project.ref, before, MAINTENANCE_MAX);
        return all
          .filter((row) => status === undefined || statusOf(row, tx.now) === status)
          .slice(0, rowsMax);
      },
    },
    read: {
      summary: "Get a maintenance entry",
      description:
        "`status` follows the clock. For recurring windows, the times are those of the current or the next window.",
    },
    create: {
      role: "responder",
      summary: "Create a maintenance window",
      description:
        "A single window from `starts_at` to `ends_at`, or recurring windows by `schedule` and `duration_ms`. Failures during a window cause no alerts.",
      example: {
        title: "Move to a larger machine",
        starts_at: "2030-01-31T22:00:00Z",
        ends_at: "2030-01-31T23:00:00Z",
      },
      body: MaintenanceCreateBody,
      row({ tx, caller: { project } }, body, identity) {
        refsOf(project.ref, body.monitor_ids ?? []);
        return {
          ...identity,
          title: body.title,
          message: body.message ?? "",
          public: body.public ?? false,
          ...timingOf(body, null, tx.now),
          begun: false,
        };
      },
      created({ tx }, row, { monitor_ids = [] }) {
        windows.setMonitors(tx, row, refsOf(row.projectRef, monitor_ids));
        windows.update(tx, row);
      },
    },
    change: {
      verb: "update",
      role: "responder",
      summary: "Update a maintenance window",
      description: "Omitted fields stay unchanged. A single window cannot become recurring, or the reverse.",
      example: { message: "It takes an hour longer." },
      body: MaintenanceUpdateBody,
      row({ tx }, before, body) {
        refsOf(before.projectRef, body.monitor_ids ?? []);
        return {
          ...before,
          title: body.title ?? before.title,
          message: body.message ?? before.message,
          public: body.public ?? before.public,
          ...timingOf(body, before, tx.now),
          updatedAt: tx.now,
        };
      },
      changed({ tx }, row, { monitor_ids }) {
        if (monitor_ids !== undefined) windows.setMonitors(tx, row, refsOf(row.projectRef, monitor_ids));
        windows.update(tx, row);
      },
    },
    delete: {
      role: "responder",
      summary: "Delete a maintenance window",
      description: "An open window ends immediately.",
      schema: MonitorDeleted,
      remove: ({ tx }, row) => windows.close(tx, row),
    },
  });
}
