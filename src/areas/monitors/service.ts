import { changed } from "../../kernel/audit/change.ts";
import type { Caller } from "../../kernel/callers/caller.ts";
import { isUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { encodeCursor, pageOf, pageStart } from "../../kernel/http/requests/pagination.ts";
import { TierLimit } from "../../kernel/limits/tier-limits.ts";
import { hasSecrets } from "../../kernel/outbound/headers.ts";
import { assertSecretStays, isOtherOrigin } from "../../kernel/secrets/bound-secret.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Alerting } from "./alerting.ts";
import type { TypeBehaviors } from "./behaviors.ts";
import type { Checks } from "./checks/checks.ts";
import type { CheckQueue } from "./checks/queue.ts";
import type { Heartbeats, Viewer } from "./heartbeats/heartbeats.ts";
import type { HeartbeatStore } from "./heartbeats/store.ts";
import type { DayStore } from "./history/day-store.ts";
import type { Days } from "./history/days.ts";
import { historyOf } from "./history/history.ts";
import { lastDayOf } from "./history/last-day.ts";
import { settle } from "./history/standing.ts";
import type { MaintenanceWindows } from "./maintenance/windows.ts";
import { LOCAL } from "./options.ts";
import type { AreaDeps } from "./ports.ts";
import type { ProbeAssignments } from "./probes/probes.ts";
import type { ProbeStore } from "./probes/store.ts";
import type { ProbeWorkplace } from "./probes/work.ts";
import {
  LIST_LIMIT,
  type Monitor,
  type MonitorDeleted,
  type MonitorHistory,
  type MonitorHistoryQuery,
  type MonitorPage,
  type MonitorQuery,
  type MonitorStatus,
  type MonitorUpdateBody,
} from "./schema.ts";
import { assertSettings, mergedSettings } from "./settings.ts";
import type { MonitorRow, MonitorSettings } from "./store.ts";
import type { Suppression } from "./suppression/suppression.ts";
import { assertRegisteredName } from "./targets/registration.ts";
import { assertOfType, assertRequired, type GivenMonitor, splitGiven } from "./type-fields.ts";
import { checksTarget, MONITOR_TYPES } from "./types.ts";
import { aboutMonitor, type MonitorViews } from "./views.ts";

/** The project of a ping key. */
interface PingedProject {
  readonly projectRef: number;
  readonly accountRef: number;
}

/** Owner of a new monitor. */
type Owner = {
  readonly account: Pick<Caller["account"], "ref" | "tier">;
  readonly project: { readonly ref: number };
};

/** Settings of a new monitor. */
type NewMonitor = GivenMonitor & { readonly managed_by?: "apply" };

interface ServiceDeps extends AreaDeps {
  readonly alerting: Alerting;
  readonly days: Days;
  readonly dayCounts: DayStore;
  readonly heartbeats: HeartbeatStore;
  readonly probes: ProbeStore;
  readonly assignments: ProbeAssignments;
  readonly probeWork: Pick<ProbeWorkplace, "chosenFor" | "request">;
  readonly windows: MaintenanceWindows;
  readonly suppression: Suppression;
  readonly checker: Checks;
  readonly queue: CheckQueue;
  readonly heartbeatService: Heartbeats;
  readonly behaviors: TypeBehaviors;
  readonly views: MonitorViews;
}

/** A probe has made and recorded the check. */
const BY_PROBE = "by probe";
/** A probe was asked, and has sent no result. */
const NOT_BY_PROBE = "not by probe";

/** Manages monitors. */
export class MonitorService {
  private readonly bound: TierLimit;
  private nextRef: number;

  constructor(private readonly deps: ServiceDeps) {
    this.bound = new TierLimit(deps.db, deps.tiers, "monitors", "monitor_limit_exceeded");
    this.nextRef = deps.monitors.highestRef() + 1;
  }

  /** Checks given settings before anything is charged. @throws ApiError `validation_error`, `forbidden` */
  assertSettings(caller: Caller, body: MonitorUpdateBody, monitorId?: string): void {
    // An unknown monitor is rejected after the charge.
    const { settings } = (monitorId !== undefined && this.findOrNull(caller.project.ref, monitorId)) || {};
    const probes = body.probes ?? settings?.probes ?? [LOCAL];
    // A monitor that the server begins to check must lead where it may go.
    const isNewHere = settings !== undefined && !settings.probes.includes(LOCAL) && probes.includes(LOCAL);
    const target = isNewHere && settings.type === "http" ? { url: settings.url } : {};
    const host = isNewHere && settings.host !== null ? { host: settings.host } : {};
    const resolver = isNewHere && settings.resolver !== null ? { resolver: settings.resolver } : {};
    const changed = { ...target, ...host, ...resolver, ...body };
    if ((settings?.type ?? body.type) === "domain" && body.host != null) assertRegisteredName(body.host);
    assertSettings(this.deps, changed, caller.account.tier, probes.includes(LOCAL));
  }

  /** The same for a new monitor, including required fields. */
  assertTerms(caller: Caller, body: GivenMonitor): void {
    const { type = "http" } = body;
    assertRequired(type, body);
    assertOfType(type, body);
    this.assertSettings(caller, body);
  }

  /**
   * Creates a monitor and starts its checks, or waits for its pings.
   * @throws ApiError `monitor_limit_exceeded`, `monitor_name_taken`, `monitor_slug_taken`, `ping_id_taken`,
   *   `validation_error`
   */
  create(tx: Tx, viewer: Viewer, body: NewMonitor): Monitor {
    const { monitor, ...warning } = this.insert(tx, viewer.caller, body);
    tx.audit({ ...aboutMonitor(monitor, "created"), before: null, after: this.deps.views.audited(monitor) });
    return { ...this.deps.views.whole(monitor, viewer), ...warning };
  }

  /** Creates a monitor without an audit entry: see {@link create}. */
  insert(tx: Tx, { account, project }: Owner, { managed_by, ...body }: NewMonitor) {
    const { alerting, monitors, ids } = this.deps;
    this.assertNameFree(project.ref, body.name, null);
    this.bound.assertCapacity(account);
    const monitorId = ids.uuidV7();
    const { type = "http", timing, addresses, common } = splitGiven(body);
    const terms = mergedSettings(this.deps, { ...common, type }, monitorId, account.tier, null);
    const behavior = this.deps.behaviors(type);
    const settings = { ...terms.settings, ...behavior.fixedSettings(monitorId, terms.settings) };
    const ref = this.nextRef++;
    monitors.insert(tx, {
      ...settings,
      ref,
      accountRef: account.ref,
      projectRef: project.ref,
      now: tx.now,
      monitorId: uuidToBytes(monitorId),
      managedBy: managed_by ?? null,
    });
    monitors.insertState(tx, ref, project.ref);
    const monitor = this.find(project.ref, monitorId);
    if (body.depends_on) this.deps.suppression.setParent(tx, monitor, body.depends_on);
    if (body.channels !== undefined) alerting.chooseChannels(tx, monitor, body.channels);
    this.deps.assignments.assign(tx, monitor, true);
    behavior.start(tx, monitor, timing, addresses);
    const hasWarning = terms.warning !== undefined && checksTarget(type);
    return { monitor: this.find(project.ref, monitorId), ...(hasWarning ? { warning: terms.warning } : {}) };
  }

  /** Creates a heartbeat for the first ping to a slug. Returns its reference. @throws ApiError `monitor_limit_exceeded` */
  createPinged(tx: Tx, { projectRef, accountRef }: PingedProject, slug: string): number {
    const { owners, monitors } = this.deps;
    const { tier } = owners.account(accountRef);
    const named = monitors.named(projectRef, slug) === null ? { name: slug } : {};
    const owner = { account: { ref: accountRef, tier }, project: { ref: projectRef } };
    return this.insert(tx, owner, { type: "heartbeat", slug, ...named }).monitor.ref;
  }

  /**
   * Updates a monitor. The response has the values of its headers if the request has set them, or if the caller may read them.
   *
   * @throws ApiError `not_found`, `monitor_name_taken`, `monitor_slug_taken`, `validation_error`; `conflict` for a URL of
   *   another origin without the headers that are sent there
   */
  update(tx: Tx, viewer: Viewer, monitorId: string, body: MonitorUpdateBody): Monitor {
    const { account, project } = viewer.caller;
    const { alerting } = this.deps;
    const before = this.find(project.ref, monitorId);
    const { ref, monitorId: id, settings: old } = before;
    assertOfType(old.type, body);
    if (body.headers === undefined && hasSecrets(this.deps.views.headersOf(before) ?? {})) {
      const moved = { field: "url", before: old.url, after: body.url ?? old.url };
      assertSecretStays(viewer.caller, { ...moved, secretField: "headers" });
    }
    assertClientKeyStays(old, body);
    this.assertNameFree(project.ref, body.name, ref);
    const { timing, common } = splitGiven(body);
    const behavior = this.deps.behaviors(old.type);
    const { settings: merged, ...warning } = mergedSettings(this.deps, common, id, account.tier, old);
    const settings = { ...merged, ...behavior.fixedSettings(id, merged) };
    const was = this.deps.views.audited(before);
    if (body.depends_on !== undefined) this.deps.suppression.setParent(tx, before, body.depends_on);
    if (Object.keys(body).length > 0) {
      if (body.channels !== undefined) alerting.chooseChannels(tx, before, body.channels);
      const isObserved = settings.active && this.deps.windows.endFor(ref, tx.now) === null;
      settle(this.deps, tx, ref, isObserved);
      this.deps.monitors.update(tx, { ...settings, ref, now: tx.now });
      behavior.update(tx, before, settings, timing);
      const isFresh = settings.url !== old.url || settings.active !== old.active;
      this.deps.assignments.assign(tx, { ...before, settings }, isFresh);
    }
    const is = this.find(project.ref, monitorId);
    tx.audit(changed({ ...aboutMonitor(is, "changed"), before: was, after: this.deps.views.audited(is) }));
    const isReadable = body.headers !== undefined || viewer.caller.scopes.has("*");
    const shown = isReadable ? this.deps.views.whole(is, viewer) : this.deps.views.covered(is, viewer);
    return { ...shown, ...warning };
  }

  /** Deletes a monitor and its history. @throws ApiError `not_found` */
  delete(tx: Tx, projectRef: number, monitorId: string): MonitorDeleted {
    const monitor = this.find(projectRef, monitorId);
    tx.audit({ ...aboutMonitor(monitor, "deleted"), before: this.deps.views.audited(monitor), after: null });
    this.remove(tx, monitor, Number.MAX_SAFE_INTEGER);
    return { deleted: true };
  }

  /** Removes at most `rowsMax` rows of a deleted project. Returns the number of removed rows. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    let removed = 0;
    for (const { ref } of this.deps.monitors.ofProject(projectRef, rowsMax)) {
      removed += this.removeChecks(tx, ref, rowsMax - removed);
      if (removed >= rowsMax) return removed;
      removed += this.remove(tx, { ref, projectRef }, rowsMax - removed);
      if (removed >= rowsMax) return removed;
    }
    removed += this.deps.windows.removeRows(tx, projectRef, rowsMax - removed);
    if (removed >= rowsMax) return removed;
    removed += this.deps.probes.forgetResultsOfProject(tx, projectRef, rowsMax - removed);
    if (removed >= rowsMax) return removed;
    removed += this.deps.probes.removeOfProject(tx, projectRef, rowsMax - removed);
    if (removed >= rowsMax) return removed;
    this.deps.heartbeats.removeKey(tx, projectRef);
    this.deps.stopped.forget(tx, projectRef);
    return removed;
  }

  /** @throws ApiError `not_found` */
  status(viewer: Viewer, monitorId: string): MonitorStatus {
    return this.deps.views.status(this.find(viewer.caller.project.ref, monitorId), viewer);
  }

  /** Lists a project's monitors, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(viewer: Viewer, query: MonitorQuery): MonitorPage {
    const { limit = LIST_LIMIT } = query;
    const { rows, floor } = this.rowsOf(viewer.caller.project.ref, query, limit + 1);
    const { items, ...next } = pageOf(rows, limit, ({ ref }) => [ref]);
    const more = next.cursor === undefined && floor > 0 ? { cursor: encodeCursor([floor]) } : next;
    const now = this.deps.clock.now();
    const dayOf = (row: MonitorRow) =>
      query.details === true ? lastDayOf(this.deps.checks, row, now) : undefined;
    return {
      monitors: items.map((row) => ({ ...this.deps.views.status(row, viewer), ...dayOf(row) })),
      ...more,
    };
  }

  private rowsOf(projectRef: number, { status, active, name, cursor }: MonitorQuery, rowsMax: number) {
    const { monitors } = this.deps;
    const params = { projectRef, before: pageStart(cursor), rowsMax };
    if (name !== undefined) {
      const named = [monitors.named(projectRef, name) ?? []].flat();
      const matches = ({ settings, ...row }: MonitorRow) =>
        (status === "degraded" || status === "overdue"
          ? row[status]
          : row.status === (status ?? row.status)) && settings.active === (active ?? settings.active);
      return { rows: named.filter(matches), floor: 0 };
    }
    if (active !== undefined) return monitors.walk(params, { status: status ?? null, active });
    return { rows: monitors.page(params, status), floor: 0 };
  }

  /** Lists a monitor's checks, newest first, with its uptime and outages. @throws ApiError `not_found`, `validation_error` */
  history(projectRef: number, monitorId: string, now: number, query: MonitorHistoryQuery): MonitorHistory {
    return historyOf(this.deps, this.find(projectRef, monitorId), now, query);
  }

  /** A monitor of a project. @throws ApiError `not_found` */
  find(projectRef: number, monitorId: string): MonitorRow {
    const row = this.findOrNull(projectRef, monitorId);
    if (row === null) throw new ApiError("not_found", "There is no monitor with this id in this project.");
    return row;
  }

  private findOrNull(projectRef: number, monitorId: string): MonitorRow | null {
    const id = monitorId.toLowerCase();
    const row = isUuid(id) ? this.deps.monitors.find(id) : null;
    return row !== null && row.projectRef === projectRef ? row : null;
  }

  /**
   * Runs and records a manual check, on the server or on a probe. It causes no alert.
   * @throws ApiError `not_found` also when the monitor was deleted meanwhile, `invalid_request` for a heartbeat,
   *   `service_unavailable` if the check is inconclusive because the event loop stalled, `probe_offline`,
   *   `validation_error` for a probe that the monitor does not have
   */
  checkNow(call: Call, monitorId: string, probe?: string) {
    // A check takes up to 30 s, and more if it is repeated.
    call.setIdleTimeout(0);
    return call.performAcross({
      claim: () => {
        const monitor = this.findCheckable(call.caller.project.ref, monitorId);
        return { monitor, probeRef: this.deps.probeWork.chosenFor(monitor, probe) };
      },
      outside: async ({ monitor, probeRef }) => {
        if (probeRef === null) return await this.deps.checker.run(monitor, true);
        return (await this.deps.probeWork.request(probeRef, monitor, true)) ? BY_PROBE : NOT_BY_PROBE;
      },
      settle: (tx, { monitor }, check) => {
        if (check === BY_PROBE) return this.status(call, monitorId);
        if (check === NOT_BY_PROBE)
          throw new ApiError("probe_offline", "The probe was asked for the check, and has sent no result.");
        if (check === null) {
          throw new ApiError("service_unavailable", "The server is too busy to measure. Retry in a second.", {
            retryAfterSeconds: 1,
          });
        }
        this.deps.checker.record(tx, monitor, [check]);
        return this.status(call, monitorId);
      },
    });
  }

  private findCheckable(projectRef: number, monitorId: string): MonitorRow {
    const monitor = this.find(projectRef, monitorId);
    if (checksTarget(monitor.settings.type)) return monitor;
    const { noun, waitsFor } = MONITOR_TYPES[monitor.settings.type];
    throw new ApiError(
      "invalid_request",
      `${noun[0]?.toUpperCase()}${noun.slice(1)} has no target to check: it waits for ${waitsFor}.`,
    );
  }

  /** Removes at most `rowsMax` checks of a monitor, newest first: the others remain a valid history. Returns how many. */
  private removeChecks(tx: Tx, ref: number, rowsMax: number): number {
    const { checks, monitors } = this.deps;
    let last = monitors.monitor(ref)?.lastCheck ?? 0;
    let removed = 0;
    while (last !== 0 && removed < rowsMax) {
      const check = checks.check(last);
      // Older ones have expired.
      if (check === null || check.ref !== ref) last = 0;
      else {
        if (checks.removeCheck(tx, last) === 0) checks.emptyCheck(tx, last);
        last = check.previous;
        removed += 1;
      }
    }
    if (removed > 0) monitors.setLastCheck(tx, ref, last);
    return removed;
  }

  /** Removes at most `rowsMax` rows of a monitor: first its counts, then itself. Returns the number of removed rows. */
  private remove(tx: Tx, monitor: Pick<MonitorRow, "ref" | "projectRef">, rowsMax: number): number {
    const { alerting, checks, dayCounts, monitors } = this.deps;
    const { ref } = monitor;
    const hours = checks.removeHours(tx, ref, rowsMax);
    const counts = hours + (hours < rowsMax ? dayCounts.remove(tx, ref, rowsMax - hours) : 0);
    if (counts === rowsMax) return counts;
    this.deps.queue.end(tx, ref);
    this.deps.assignments.forget(tx, ref);
    this.deps.suppression.forget(tx, ref);
    alerting.monitorRemoved(tx, monitor);
    const pings = this.deps.heartbeatService.remove(tx, ref);
    monitors.removeState(tx, ref);
    monitors.remove(tx, ref);
    return counts + pings + 1;
  }

  /** `exceptRef`: the monitor that may already have the name. @throws ApiError `monitor_name_taken` */
  private assertNameFree(
    projectRef: number,
    name: string | null | undefined,
    exceptRef: number | null,
  ): void {
    const holder = name === null || name === undefined ? null : this.deps.monitors.named(projectRef, name);
    if (holder === null || holder.ref === exceptRef) return;
    const { monitorId: monitor_id } = holder;
    const message = `The monitor ${monitor_id} of this project has this name: change that one, or choose another name.`;
    throw new ApiError("monitor_name_taken", message, { extras: { monitor_id } });
  }
}

/**
 * Rejects another origin for a client key that the request does not contain: nobody can read it, so that nobody may have it
 * used elsewhere.
 *
 * @throws ApiError `conflict`
 */
function assertClientKeyStays(
  { url, tls_client_key: stored }: MonitorSettings,
  body: Pick<MonitorUpdateBody, "url" | "tls_client_certificate" | "tls_client_key">,
): void {
  const isStored =
    stored !== null && body.tls_client_key === undefined && body.tls_client_certificate !== null;
  if (!isStored || !isOtherOrigin(url, body.url ?? url)) return;
  const message =
    "url leads to another origin, to which the stored client certificate would be presented. Send tls_client_key again with the new url.";
  throw new ApiError("conflict", message);
}
