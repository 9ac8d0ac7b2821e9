import { changed, type Fields } from "../../kernel/audit/change.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { Call } from "../../kernel/http/call.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, encodeCursor, pageOf, pageStart } from "../../kernel/http/pagination.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { TierBound } from "../../kernel/tier-bounds.ts";
import { isUuid, uuidToBytes } from "../../kernel/uuid.ts";
import { daysLeft } from "./certificate.ts";
import type { Channels } from "./channels.ts";
import { CHECKS_KEPT_MS, Checks, sealContext } from "./checks.ts";
import { isFailing, shownName, uptimePercent } from "./domain.ts";
import type { Incidents } from "./incidents.ts";
import { CheckSchedule } from "./jobs.ts";
import type { MaintenanceService } from "./maintenance.ts";
import type { Notices } from "./notices.ts";
import { Outages } from "./outages.ts";
import type { MonitorParts } from "./ports.ts";
import { MARKS, type Quiet } from "./quiet.ts";
import { quietParts } from "./quiet-parts.ts";
import {
  LIST_LIMIT,
  type Monitor,
  type MonitorCheck,
  type MonitorDeleted,
  type MonitorHistory,
  type MonitorPage,
  type MonitorQuery,
  type MonitorStatus,
  type MonitorUpdateBody,
} from "./schema.ts";
import { assertSettings, mergedSettings } from "./settings.ts";
import type { MonitorRow, MonitorSettings, StoredCheck } from "./store.ts";

const DAY_HOURS = 24;

/** The use cases of monitors. */
export class MonitorService {
  private readonly checks: Checks;
  private readonly schedule: CheckSchedule;
  private readonly bound: TierBound;
  private readonly quiet: Quiet;
  readonly maintenance: MaintenanceService;
  private nextRef: number;

  constructor(
    private readonly parts: MonitorParts,
    private readonly told: {
      readonly notices: Notices;
      readonly incidents: Incidents;
      readonly channels: Channels;
    },
  ) {
    const { quiet, observer, maintenance } = quietParts(parts, told.notices, () => this.schedule);
    this.quiet = quiet;
    this.maintenance = maintenance;
    this.checks = new Checks(parts, new Outages(told.incidents, told.notices), quiet, observer);
    this.schedule = new CheckSchedule(parts, this.checks, quiet);
    this.bound = new TierBound(parts.db, parts.tiers, "monitors", "monitor_limit_exceeded");
    this.nextRef = parts.monitors.highestRef() + 1;
  }

  /** Checks what a user sets, before any charge. @throws ApiError `validation_error`, `forbidden` */
  assertSettings(caller: Caller, given: MonitorUpdateBody): void {
    assertSettings(this.parts, given, caller.account.tier);
  }

  /** Creates a monitor and begins to check it. @throws ApiError `monitor_limit_exceeded`, `monitor_name_taken` */
  create(tx: Tx, { account, project }: Caller, given: MonitorUpdateBody): Monitor {
    const { monitors, ids } = this.parts;
    this.assertNameFree(project.ref, given.name, null);
    this.bound.assertRoom(account);
    const monitorId = ids.uuidV7();
    const { settings, ...warning } = mergedSettings(this.parts, given, monitorId, account.tier, null);
    const ref = this.nextRef++;
    monitors.insert(tx, {
      ...settings,
      ...{ ref, accountRef: account.ref, projectRef: project.ref, now: tx.now },
      monitorId: uuidToBytes(monitorId),
    });
    monitors.insertState(tx, ref, project.ref);
    if (given.depends_on) this.quiet.setParent(tx, { ref, projectRef: project.ref }, given.depends_on);
    this.choose(tx, project.ref, ref, given.channels);
    this.schedule.begin(tx, account.ref, ref, settings.url);
    const made = this.monitorOf(this.find(project.ref, monitorId));
    tx.audit({ ...aboutMonitor(made, "created"), before: null, after: settingsOf(made) });
    return { ...made, ...warning };
  }

  /** Changes a monitor. @throws ApiError `not_found`, `monitor_name_taken` */
  update(tx: Tx, { account, project }: Caller, monitorId: string, given: MonitorUpdateBody): Monitor {
    const before = this.find(project.ref, monitorId);
    const { ref, monitorId: id, settings: old } = before;
    this.assertNameFree(project.ref, given.name, ref);
    const { settings, ...warning } = mergedSettings(this.parts, given, id, account.tier, old);
    const was = this.monitorOf(before);
    if (given.depends_on !== undefined) this.quiet.setParent(tx, before, given.depends_on);
    if (Object.keys(given).length > 0) {
      this.choose(tx, project.ref, ref, given.channels);
      this.parts.monitors.update(tx, { ...settings, ref, now: tx.now });
      this.reschedule(tx, before, settings);
      if (settings.url !== old.url) this.parts.monitors.forgetCertificate(tx, ref);
    }
    const is = this.monitorOf(this.find(project.ref, monitorId));
    tx.audit(changed({ ...aboutMonitor(is, "changed"), before: settingsOf(was), after: settingsOf(is) }));
    return { ...is, ...warning };
  }

  /** Deletes a monitor and what its checks found. @throws ApiError `not_found` */
  delete(tx: Tx, projectRef: number, monitorId: string): MonitorDeleted {
    const monitor = this.find(projectRef, monitorId);
    const last = this.monitorOf(monitor);
    tx.audit({ ...aboutMonitor(last, "deleted"), before: settingsOf(last), after: null });
    this.remove(tx, monitor.ref, Number.MAX_SAFE_INTEGER);
    return { deleted: true };
  }

  /** Removes at most `rowsMax` rows of a deleted project. Returns how many. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    let removed = 0;
    for (const { ref } of this.parts.monitors.ofProject(projectRef, rowsMax)) {
      removed += this.remove(tx, ref, rowsMax - removed);
      if (removed >= rowsMax) return removed;
    }
    removed += this.maintenance.removeRows(tx, projectRef, rowsMax - removed);
    if (removed >= rowsMax) return removed;
    removed += this.parts.incidents.removeOfProject(tx, projectRef, rowsMax - removed);
    if (removed >= rowsMax) return removed;
    this.parts.channels.removeOfProject(tx, projectRef);
    this.told.notices.channelsChanged(tx, projectRef);
    this.parts.stopped.forget(tx, projectRef);
    return removed;
  }

  /** @throws ApiError `not_found` */
  status(projectRef: number, monitorId: string): MonitorStatus {
    return this.statusOf(this.find(projectRef, monitorId));
  }

  /** A page of a project's monitors, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, query: MonitorQuery): MonitorPage {
    const { limit = LIST_LIMIT } = query;
    const { rows, floor } = this.rowsOf(projectRef, query, limit + 1);
    const { items, ...next } = pageOf(rows, limit, ({ ref }) => [ref]);
    const more = next.cursor === undefined && floor > 0 ? { cursor: encodeCursor([floor]) } : next;
    return { monitors: items.map((row) => this.statusOf(row)), ...more };
  }

  private rowsOf(projectRef: number, { status, active, name, cursor }: MonitorQuery, rowsMax: number) {
    const { monitors } = this.parts;
    const params = { projectRef, before: pageStart(cursor), rowsMax };
    if (name !== undefined) {
      const named = [monitors.named(projectRef, name) ?? []].flat();
      const isWanted = ({ settings, ...row }: MonitorRow) =>
        (status === "degraded" ? row.degraded : row.status === (status ?? row.status)) &&
        settings.active === (active ?? settings.active);
      return { rows: named.filter(isWanted), floor: 0 };
    }
    if (active !== undefined) return monitors.walk(params, { status: status ?? null, active });
    return { rows: monitors.page(params, status), floor: 0 };
  }

  /** A page of a monitor's checks, newest first, and its uptime. @throws ApiError `not_found`, `validation_error` */
  history(
    projectRef: number,
    monitorId: string,
    now: number,
    { limit = LIST_LIMIT, cursor }: { limit?: number; cursor?: string },
  ): MonitorHistory {
    const { checks: store } = this.parts;
    const monitor = this.find(projectRef, monitorId);
    const checks: MonitorCheck[] = [];
    let sequence = cursor === undefined ? monitor.lastCheck : this.sequenceOf(cursor, monitor.ref);
    while (sequence !== 0 && checks.length < limit) {
      const check = store.check(sequence);
      // Older ones have been removed.
      if (check === null) break;
      checks.push(checkOf(check));
      sequence = check.previous;
    }
    const more = checks.length === limit && store.check(sequence) !== null;
    const counts = [...store.hoursSince(monitor.ref, now - CHECKS_KEPT_MS), monitor];
    const percent = (days: number) => uptimePercent(counts, now, days * DAY_HOURS);
    return {
      checks,
      uptime: { "24h": percent(1), "7d": percent(7), "30d": percent(30) },
      ...(more ? { cursor: encodeCursor([sequence]) } : {}),
    };
  }

  /** A monitor of a project. @throws ApiError `not_found` */
  find(projectRef: number, monitorId: string): MonitorRow {
    const id = monitorId.toLowerCase();
    const row = isUuid(id) ? this.parts.monitors.find(id) : null;
    if (row === null || row.projectRef !== projectRef) {
      throw new ApiError("not_found", "There is no monitor with this id in this project.");
    }
    return row;
  }

  /**
   * Makes and records a manual check. It sends no alert.
   * @throws ApiError `not_found` also when the monitor was deleted meanwhile, `service_unavailable` when the check says
   *   nothing because this server's event loop stalled.
   */
  checkNow(call: Call, monitorId: string) {
    // A check may take 30 s, and more when it must be made again.
    call.setIdleTimeout(0);
    return call.performAcross({
      claim: () => this.find(call.caller.project.ref, monitorId),
      outside: (monitor) => this.checks.make(monitor, true),
      settle: (tx, monitor, made) => {
        if (made === null) {
          throw new ApiError(
            "service_unavailable",
            "The server is too busy to measure. Try again in a moment.",
            {
              retryAfterSeconds: 1,
            },
          );
        }
        this.checks.record(tx, monitor, [made]);
        return this.status(monitor.projectRef, monitorId);
      },
    });
  }

  /** Removes at most `rowsMax` rows of a monitor: its hours, then itself. Returns how many. */
  private remove(tx: Tx, ref: number, rowsMax: number): number {
    const { checks, monitors } = this.parts;
    const hours = checks.removeHours(tx, ref, rowsMax);
    if (hours === rowsMax) return hours;
    this.schedule.end(tx, ref);
    this.quiet.forget(tx, ref);
    this.told.incidents.end(tx, ref, tx.now);
    this.parts.channels.choose(tx, ref, null);
    monitors.removeState(tx, ref);
    monitors.remove(tx, ref);
    return hours + 1;
  }

  /** `channelIds`: null for the default ones, undefined to leave them as they are. */
  private choose(tx: Tx, projectRef: number, ref: number, channelIds: readonly string[] | null | undefined) {
    if (channelIds === undefined) return;
    const { channels } = this.told;
    const refs = channelIds === null ? null : channels.refsOf(projectRef, channelIds);
    this.parts.channels.choose(tx, ref, refs);
  }

  private reschedule(
    tx: Tx,
    { ref, accountRef, settings: before }: MonitorRow,
    after: MonitorSettings,
  ): void {
    const isSame = before.active && before.url === after.url && before.interval === after.interval;
    if (!after.active) this.schedule.end(tx, ref);
    else if (!isSame) this.schedule.begin(tx, accountRef, ref, after.url);
  }

  private sequenceOf(cursor: string, ref: number): number {
    const sequence = decodeNumberCursor(cursor);
    const check = this.parts.checks.check(sequence);
    if (check !== null && check.ref !== ref) {
      throw invalidField("cursor", "is not a cursor of this monitor's history");
    }
    return sequence;
  }

  /** A name is unique in its project. `ownRef`: the monitor that may have it already. @throws ApiError `monitor_name_taken` */
  private assertNameFree(projectRef: number, name: string | null | undefined, ownRef: number | null): void {
    const holder = name === null || name === undefined ? null : this.parts.monitors.named(projectRef, name);
    if (holder === null || holder.ref === ownRef) return;
    const { monitorId: monitor_id } = holder;
    const message = `The monitor ${monitor_id} of this project has this name: change that one, or choose another name.`;
    throw new ApiError("monitor_name_taken", message, { extras: { monitor_id } });
  }

  private monitorOf(monitor: MonitorRow): Monitor {
    return {
      id: monitor.monitorId,
      ...this.configuredOf(monitor),
      headers: this.headersOf(monitor),
      ...this.lastCheckOf(monitor),
      ...this.quiet.viewOf(monitor),
    };
  }

  private statusOf(monitor: MonitorRow): MonitorStatus {
    return {
      monitor_id: monitor.monitorId,
      ...this.configuredOf(monitor),
      header_names: Object.keys(this.headersOf(monitor) ?? {}),
      ...this.lastCheckOf(monitor),
      ...this.quiet.viewOf(monitor),
      consecutive_failures: monitor.consecutiveFailures,
    };
  }

  /** What was set, but for the headers. */
  private configuredOf({ settings, ref, projectRef, createdAt, updatedAt }: MonitorRow) {
    const { headers, ...others } = settings;
    return {
      ...others,
      name: shownName(settings),
      channels: this.told.channels.namedBy(projectRef, ref),
      created_at: secondsOf(createdAt),
      updated_at: secondsOf(updatedAt),
    };
  }

  private lastCheckOf(monitor: MonitorRow) {
    const { ref, status, latencyMs, lastCheckedAt, degraded } = monitor;
    const at = lastCheckedAt === null ? null : secondsOf(lastCheckedAt);
    const incident = status === "down" ? this.told.incidents.openOf(ref) : null;
    return {
      ...{ status, latency_ms: latencyMs, last_checked_at: at },
      ...{ degraded, failing: isFailing(monitor) },
      certificate: certificateOf(monitor, this.parts.clock.now()),
      incident_id: incident?.incidentId ?? null,
    };
  }

  private headersOf({ monitorId, settings: { headers } }: MonitorRow): Record<string, string> | null {
    return headers && JSON.parse(this.parts.vault.open(headers, sealContext(monitorId)));
  }
}

/** What the audit log says of a monitor. */
function aboutMonitor({ id, url }: Monitor, what: string) {
  return {
    summary: `Monitor of ${URL.parse(url)?.host ?? "nothing"} ${what}`,
    target: { type: "monitor", id },
  };
}

/** What users set, and nothing that checks find out. */
function settingsOf(monitor: Monitor): Fields {
  const { id, status, latency_ms, last_checked_at, incident_id, created_at, updated_at, ...more } = monitor;
  const { flapping, maintenance, degraded, failing, certificate, warning, ...settings } = more;
  return settings;
}

function certificateOf({ certificate }: MonitorRow, now: number): Monitor["certificate"] {
  if (certificate === null) return null;
  const { notAfter, issuer } = certificate;
  return { not_after: secondsOf(notAfter), days_left: daysLeft(certificate, now), issuer };
}

function checkOf({ at, up, latencyMs, responseStatus, error, manual, mark }: StoredCheck): MonitorCheck {
  return {
    checked_at: secondsOf(at),
    status: up === 0 ? "down" : "up",
    ...{ latency_ms: latencyMs, response_status: responseStatus, error },
    manual: manual !== 0,
    observer_offline: mark === MARKS.observer_offline,
    maintenance: mark === MARKS.maintenance,
  };
}

function secondsOf(epochMs: number): number {
  return Math.floor(epochMs / 1_000);
}
