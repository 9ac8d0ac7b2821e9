import { changed } from "../../../kernel/audit/change.ts";
import { bytesToUuid, isUuid, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, type ErrorMeaning, invalidField, registerErrors } from "../../../kernel/errors.ts";
import type { Caller } from "../../../kernel/http/access/caller.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { CronTimes, isTimeZone } from "../../../kernel/scheduler/calendar.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, timestampOf } from "../../../kernel/time/date-time.ts";
import type { MonitorParts } from "../ports.ts";
import { LIST_LIMIT, type MonitorDeleted } from "../schema.ts";
import {
  MAINTENANCE_MAX,
  type Maintenance,
  type MaintenanceCreateBody,
  type MaintenancePage,
  type MaintenanceQuery,
  type MaintenanceUpdateBody,
  TIME_ZONE,
} from "./schema.ts";
import type { MaintenanceRow, MaintenanceSettings, MaintenanceStore } from "./store.ts";

const codes = registerErrors({
  maintenance_limit_exceeded: [403, "The project has the maximum number of maintenance entries."],
});

declare module "../../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** The job of the next start or end of a window; its key is the reference of the maintenance. */
const WINDOW_JOB = "monitors.maintenance";
/** Concurrent jobs: windows that start or end in one commit. */
const CONCURRENCY = 64;

type Parts = Pick<MonitorParts, "ids" | "scheduler" | "changes" | "monitors" | "stopped" | "steady"> & {
  readonly maintenance: MaintenanceStore;
  /** Checks a monitor immediately, so that a failure during the window is reported after it. */
  readonly recheck: (tx: Tx, ref: number) => void;
  readonly notifyChannels: (
    tx: Tx,
    event: "maintenance.started" | "maintenance.ended",
    row: MaintenanceRow,
  ) => void;
};

type Given = MaintenanceUpdateBody;

/** Manages maintenance windows, in which failures of monitors cause no alerts. */
export class MaintenanceService {
  private nextRef: number;

  constructor(private readonly parts: Parts) {
    this.nextRef = parts.maintenance.highestRef() + 1;
    parts.scheduler.register(WINDOW_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => ({ record: (tx) => this.onDue(tx, Number(key)) }),
    });
  }

  /** End of the window of a monitor that is open at a time (epoch milliseconds); null for none. */
  endFor(monitorRef: number, at: number): number | null {
    const { maintenance } = this.parts;
    return maintenance.hasWindows(monitorRef) === 0 ? null : maintenance.endFor(monitorRef, at, at) || null;
  }

  /** Whether a monitor is in any maintenance window, past ones included. */
  hasWindows(monitorRef: number): boolean {
    return this.parts.maintenance.hasWindows(monitorRef) !== 0;
  }

  /** Creates maintenance. @throws ApiError `validation_error`, `maintenance_limit_exceeded` */
  create(tx: Tx, { project }: Caller, given: MaintenanceCreateBody): Maintenance {
    const { maintenance, ids } = this.parts;
    const settings = this.settingsOf(given, null, tx.now);
    const monitors = this.refsOf(project.ref, given.monitor_ids ?? []);
    if (maintenance.count(project.ref) >= MAINTENANCE_MAX)
      throw new ApiError(
        "maintenance_limit_exceeded",
        `A project has at most ${MAINTENANCE_MAX} maintenance entries. Delete one that has ended.`,
      );
    const ref = this.nextRef++;
    const maintenanceId = prefixedId("mnt", ids.uuidV7());
    maintenance.insert(tx, { ...settings, ref, maintenanceId, projectRef: project.ref, now: tx.now });
    for (const monitor of monitors) this.addMonitor(tx, monitor, ref);
    const view = this.updateWindow(tx, ref);
    tx.audit({ ...about(view, "created"), before: null, after: auditedOf(view) });
    return view;
  }

  /** Updates maintenance. @throws ApiError `not_found`, `validation_error` */
  update(tx: Tx, projectRef: number, id: string, given: MaintenanceUpdateBody): Maintenance {
    const { maintenance } = this.parts;
    const before = this.find(projectRef, id);
    const was = this.view(before, tx.now);
    maintenance.update(tx, { ...this.settingsOf(given, before, tx.now), ref: before.ref, now: tx.now });
    if (given.monitor_ids !== undefined) this.replaceMonitors(tx, before, given.monitor_ids);
    const view = this.updateWindow(tx, before.ref);
    tx.audit(changed({ ...about(view, "changed"), before: auditedOf(was), after: auditedOf(view) }));
    return view;
  }

  /** Deletes maintenance; an open window ends. @throws ApiError `not_found` */
  delete(tx: Tx, projectRef: number, id: string): MonitorDeleted {
    const row = this.find(projectRef, id);
    const was = this.view(row, tx.now);
    tx.audit({ ...about(was, "deleted"), before: auditedOf(was), after: null });
    const monitors = this.parts.maintenance.monitorsOf(row.ref);
    this.remove(tx, row.ref);
    if (row.begun !== 0) this.endWindow(tx, row, monitors);
    return { deleted: true };
  }

  /** @throws ApiError `not_found` */
  read(projectRef: number, id: string, now: number): Maintenance {
    return this.view(this.find(projectRef, id), now);
  }

  /** Lists the maintenance of a project, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, query: MaintenanceQuery, now: number): MaintenancePage {
    const { status, limit = LIST_LIMIT, cursor } = query;
    const rows = this.parts.maintenance
      .page(projectRef, pageStart(cursor), MAINTENANCE_MAX)
      .filter((row) => status === undefined || statusOf(row, now) === status);
    const { items, ...next } = pageOf(rows.slice(0, limit + 1), limit, ({ ref }) => [ref]);
    return { maintenance: items.map((row) => this.view(row, now)), ...next };
  }

  /** Removes a deleted monitor from all maintenance. */
  forget(tx: Tx, monitorRef: number): void {
    this.parts.maintenance.forget(tx, monitorRef);
  }

  /** Removes at most `rowsMax` entries of a deleted project. Returns the number of removed entries. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const rows = this.parts.maintenance.page(projectRef, Number.MAX_SAFE_INTEGER, rowsMax);
    for (const { ref } of rows) this.remove(tx, ref);
    return rows.length;
  }

  private remove(tx: Tx, ref: number): void {
    const { maintenance, scheduler } = this.parts;
    scheduler.cancel(tx, WINDOW_JOB, String(ref));
    maintenance.removeMonitors(tx, ref);
    maintenance.remove(tx, ref);
  }

  private onDue(tx: Tx, ref: number): void {
    const row = this.parts.maintenance.row(ref);
    if (row !== null && !this.parts.stopped.has(row.projectRef)) this.updateWindow(tx, ref);
  }

  /** Starts or ends the window if it is time, and schedules the next change. Returns the maintenance afterwards. */
  private updateWindow(tx: Tx, ref: number): Maintenance {
    const { maintenance, scheduler } = this.parts;
    const { now } = tx;
    let row = this.row(ref);
    if (row.begun !== 0 && !isOpen(row, now)) row = this.endWindow(tx, row, maintenance.monitorsOf(ref));
    if (now >= row.ends_at) row = { ...row, ...windowAfter(row, now) };
    if (row.begun === 0 && isOpen(row, now)) row = this.startWindow(tx, row);
    maintenance.move(tx, row.starts_at, row.ends_at, row.begun, ref);
    const next = row.begun === 0 ? row.starts_at : row.ends_at;
    if (next > now) scheduler.enqueue(tx, WINDOW_JOB, String(ref), next, null);
    else scheduler.cancel(tx, WINDOW_JOB, String(ref));
    return this.view(row, now);
  }

  private startWindow(tx: Tx, row: MaintenanceRow): MaintenanceRow {
    this.parts.notifyChannels(tx, "maintenance.started", row);
    this.parts.changes.inProject(tx, row.projectRef, "pulse");
    return { ...row, begun: 1 };
  }

  private endWindow(tx: Tx, row: MaintenanceRow, monitors: readonly { ref: number }[]): MaintenanceRow {
    this.parts.notifyChannels(tx, "maintenance.ended", row);
    this.parts.changes.inProject(tx, row.projectRef, "pulse");
    for (const { ref } of monitors) this.parts.recheck(tx, ref);
    return { ...row, begun: 0 };
  }

  /** Monitors that are removed from an open window are checked, as at its end. */
  private replaceMonitors(tx: Tx, { ref, projectRef, begun }: MaintenanceRow, ids: readonly string[]): void {
    const { maintenance, recheck } = this.parts;
    const is = new Set(this.refsOf(projectRef, ids));
    const was = maintenance.monitorsOf(ref);
    maintenance.removeMonitors(tx, ref);
    for (const monitor of is) this.addMonitor(tx, monitor, ref);
    if (begun === 0) return;
    for (const monitor of was) if (!is.has(monitor.ref)) recheck(tx, monitor.ref);
  }

  private addMonitor(tx: Tx, monitorRef: number, ref: number): void {
    // A window that it is in changes what its pings come to.
    this.parts.steady.release(tx, monitorRef);
    this.parts.maintenance.addMonitor(tx, monitorRef, ref);
  }

  private find(projectRef: number, id: string): MaintenanceRow {
    const row = this.parts.maintenance.find(id);
    if (row === null || row.projectRef !== projectRef)
      throw new ApiError("not_found", "There is no maintenance with this id in this project.");
    return row;
  }

  private row(ref: number): MaintenanceRow {
    const row = this.parts.maintenance.row(ref);
    if (row === null) throw new Error(`maintenance ${ref} is gone`);
    return row;
  }

  private refsOf(projectRef: number, ids: readonly string[]): number[] {
    const { monitors } = this.parts;
    return ids.map((given, index) => {
      const id = given.toLowerCase();
      const monitor = isUuid(id) ? monitors.find(id) : null;
      if (monitor?.projectRef === projectRef) return monitor.ref;
      throw invalidField(`monitor_ids.${index}`, "must be the id of a monitor of this project");
    });
  }

  /** The settings after a change. `before`: null for new maintenance. @throws ApiError `validation_error` naming the field */
  private settingsOf(given: Given, before: MaintenanceRow | null, now: number): MaintenanceSettings {
    const { title = before?.title ?? "", message = before?.message ?? "" } = given;
    const isPublic = given.public ?? (before?.public ?? 0) !== 0;
    const common = { title, message, public: isPublic ? 1 : 0 };
    const recurs = before === null ? given.schedule !== undefined : before.schedule !== null;
    return { ...common, ...(recurs ? recurring(given, before, now) : once(given, before, now)) };
  }

  private view(row: MaintenanceRow, now: number): Maintenance {
    const { maintenanceId: id, title, message, schedule, tz, duration_ms } = row;
    const monitor_ids = this.parts.maintenance.idsOf(row.ref).map((one) => bytesToUuid(one.id));
    return {
      id,
      title,
      message,
      monitor_ids,
      status: statusOf(row, now),
      starts_at: isoTime(row.starts_at),
      ends_at: isoTime(row.ends_at),
      schedule,
      tz,
      duration_ms,
      public: row.public !== 0,
      created_at: isoTime(row.created_at),
      updated_at: isoTime(row.updated_at),
    };
  }
}

type Timing = Omit<MaintenanceSettings, "title" | "message" | "public">;
type Window = Pick<MaintenanceSettings, "starts_at" | "ends_at">;

function isOpen({ starts_at, ends_at }: Window, now: number): boolean {
  return starts_at <= now && now < ends_at;
}

function statusOf(row: Window, now: number): Maintenance["status"] {
  if (isOpen(row, now)) return "active";
  return row.starts_at > now ? "scheduled" : "ended";
}

/** The first window of recurring maintenance that ends after a time; the current one if there is none. */
function windowAfter(row: Timing, now: number): Window {
  const { schedule, tz, duration_ms } = row;
  if (schedule === null || duration_ms === null) return row;
  const starts_at = new CronTimes(schedule, tz ?? TIME_ZONE).after(now - duration_ms);
  return starts_at === null ? row : { starts_at, ends_at: starts_at + duration_ms };
}

function once(given: Given, before: MaintenanceRow | null, now: number): Timing {
  const wrong = (["schedule", "tz", "duration_ms"] as const).find((field) => given[field] !== undefined);
  if (wrong !== undefined) throw invalidField(wrong, "must be omitted without schedule");
  const at = (field: "starts_at" | "ends_at"): number => {
    const text = given[field];
    if (text !== undefined) return timestampOf(field, text);
    if (before !== null) return before[field];
    throw invalidField(field, "is required without schedule");
  };
  const [starts_at, ends_at] = [at("starts_at"), at("ends_at")];
  if (ends_at <= starts_at) throw invalidField("ends_at", "must be after starts_at");
  if (before === null && ends_at <= now) throw invalidField("ends_at", "must be in the future");
  return { starts_at, ends_at, schedule: null, tz: null, duration_ms: null };
}

function recurring(given: Given, before: MaintenanceRow | null, now: number): Timing {
  const wrong = (["starts_at", "ends_at"] as const).find((field) => given[field] !== undefined);
  if (wrong !== undefined) throw invalidField(wrong, "must be omitted with schedule");
  const schedule = given.schedule ?? before?.schedule ?? "";
  const tz = given.tz ?? before?.tz ?? TIME_ZONE;
  const duration_ms = given.duration_ms ?? before?.duration_ms ?? null;
  if (duration_ms === null) throw invalidField("duration_ms", "is required with schedule");
  if (!isTimeZone(tz)) throw invalidField("tz", "must be a time zone such as Europe/Berlin or UTC");
  const timing = { schedule, tz, duration_ms };
  const isSame = schedule === before?.schedule && tz === before.tz && duration_ms === before.duration_ms;
  if (isSame) return { ...timing, starts_at: before.starts_at, ends_at: before.ends_at };
  const times = timesOf(schedule, tz);
  const starts_at = times.after(now - duration_ms);
  if (starts_at === null) throw invalidField("schedule", "must match a time in the future");
  return { ...timing, starts_at, ends_at: starts_at + duration_ms };
}

function timesOf(schedule: string, tz: string): CronTimes {
  try {
    return new CronTimes(schedule, tz);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw invalidField(
      "schedule",
      "must be five fields such as 30 2 * * *, or one of @hourly, @daily, @weekly, @monthly and @yearly",
    );
  }
}

function about({ id, title }: Maintenance, what: string) {
  return { summary: `Maintenance ${title} ${what}`, target: { type: "maintenance", id } };
}

/** The fields that users set: those that only time changes are not audited. */
function auditedOf({ id, status, created_at, updated_at, ...settings }: Maintenance) {
  return settings;
}
