import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, encodeCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierBound } from "../../kernel/tier-bounds.ts";
import { isUuid } from "../../kernel/uuid.ts";
import type { CheckRow, CheckStore, StateRow } from "./check-store.ts";
import { CHECKS_KEPT_MS, type CheckMade, type Checks, sealContext } from "./checks.ts";
import { uptimePercent } from "./domain.ts";
import type { CheckSchedule } from "./jobs.ts";
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
import { assertSettings, mergedSettings, type SettingsRules } from "./settings.ts";
import type { MonitorRow, MonitorSettings, MonitorStore } from "./store.ts";

/** What the service is built on. */
export interface MonitorServiceDeps {
  readonly monitors: MonitorStore;
  readonly checkStore: CheckStore;
  readonly checks: Checks;
  readonly schedule: CheckSchedule;
  readonly rules: SettingsRules;
  readonly ids: Ids;
  readonly bound: TierBound;
}

const DAY_HOURS = 24;

/** The use cases of monitors. */
export class MonitorService {
  private nextRef: number;

  constructor(private readonly deps: MonitorServiceDeps) {
    this.nextRef = deps.monitors.highestRef() + 1;
  }

  /** Checks what a user sets, before any charge. @throws ApiError `validation_error`, `forbidden` */
  assertSettings(caller: Caller, given: MonitorUpdateBody): void {
    assertSettings(this.deps.rules, given, caller.account.tier);
  }

  /** Creates a monitor and begins to check it. @throws ApiError `monitor_limit_exceeded` */
  create(tx: Tx, { account, project }: Caller, given: MonitorUpdateBody): Monitor {
    const { monitors, checkStore, schedule, rules, ids, bound } = this.deps;
    bound.assertRoom(account);
    const monitorId = ids.uuidV7();
    const { settings, ...warning } = mergedSettings(rules, given, monitorId, account.tier, null);
    const ref = this.nextRef++;
    monitors.insert(tx, { ref, monitorId, accountRef: account.ref, projectRef: project.ref }, settings);
    checkStore.insert(tx, ref, project.ref);
    schedule.begin(tx, account.ref, ref, settings.url);
    return { ...this.monitorOf(this.find(project.ref, monitorId)), ...warning };
  }

  /** Changes a monitor. @throws ApiError `not_found` */
  update(tx: Tx, { account, project }: Caller, monitorId: string, given: MonitorUpdateBody): Monitor {
    const { rules, monitors } = this.deps;
    const before = this.find(project.ref, monitorId);
    const { settings, ...warning } = mergedSettings(
      rules,
      given,
      before.monitorId,
      account.tier,
      before.settings,
    );
    if (Object.keys(given).length > 0) {
      monitors.update(tx, before.ref, settings);
      this.reschedule(tx, before, settings);
    }
    return { ...this.monitorOf(this.find(project.ref, monitorId)), ...warning };
  }

  /** Deletes a monitor and what its checks found. @throws ApiError `not_found` */
  delete(tx: Tx, projectRef: number, monitorId: string): MonitorDeleted {
    const { ref } = this.find(projectRef, monitorId);
    const { schedule, checkStore, monitors } = this.deps;
    schedule.end(tx, ref);
    checkStore.removeHours(tx, ref, Number.MAX_SAFE_INTEGER);
    checkStore.remove(tx, ref);
    monitors.remove(tx, ref);
    return { deleted: true };
  }

  /** @throws ApiError `not_found` */
  status(projectRef: number, monitorId: string): MonitorStatus {
    return this.statusOf(this.find(projectRef, monitorId));
  }

  /** A page of a project's monitors, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, { status, limit = LIST_LIMIT, cursor }: MonitorQuery): MonitorPage {
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
    const refs = this.deps.checkStore.page(projectRef, status, before, limit + 1);
    const { items, ...next } = pageOf(refs, limit, (ref) => [ref]);
    return { monitors: items.map((ref) => this.statusOf(this.withRef(ref))), ...next };
  }

  /** A page of a monitor's checks, newest first, and its uptime. @throws ApiError `not_found`, `validation_error` */
  history(
    projectRef: number,
    monitorId: string,
    now: number,
    { limit = LIST_LIMIT, cursor }: { limit?: number; cursor?: string },
  ): MonitorHistory {
    const { checkStore } = this.deps;
    const { ref } = this.find(projectRef, monitorId);
    const state = this.stateOf(ref);
    const checks: MonitorCheck[] = [];
    let sequence = cursor === undefined ? state.lastCheck : this.sequenceOf(cursor, ref);
    while (sequence !== 0 && checks.length < limit) {
      const check = checkStore.check(sequence);
      // Older ones have been removed.
      if (check === null) break;
      checks.push(checkOf(check));
      sequence = check.previous;
    }
    const more = checks.length === limit && checkStore.check(sequence) !== null;
    const counts = [...checkStore.hours(ref, now - CHECKS_KEPT_MS), state.current];
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
    const row = isUuid(id) ? this.deps.monitors.find(id) : null;
    if (row === null || row.projectRef !== projectRef) {
      throw new ApiError("not_found", "There is no monitor with this id in this project.");
    }
    return row;
  }

  /** Makes a manual check. */
  check(monitor: MonitorRow): Promise<CheckMade | null> {
    return this.deps.checks.make(monitor, true);
  }

  /**
   * Records a manual check. It sends no alert.
   * @throws ApiError `not_found` when the monitor was deleted meanwhile, `service_unavailable` when the check says
   *   nothing because this server's event loop stalled.
   */
  settle(tx: Tx, monitor: MonitorRow, made: CheckMade | null): MonitorStatus {
    if (made === null) {
      throw new ApiError("service_unavailable", "The server is too busy to measure. Try again in a moment.", {
        retryAfterSeconds: 1,
      });
    }
    this.deps.checks.record(tx, monitor, made);
    return this.status(monitor.projectRef, monitor.monitorId);
  }

  private reschedule(
    tx: Tx,
    { ref, accountRef, settings: before }: MonitorRow,
    after: MonitorSettings,
  ): void {
    const { schedule } = this.deps;
    const isSame = before.active && before.url === after.url && before.interval === after.interval;
    if (!after.active) schedule.end(tx, ref);
    else if (!isSame) schedule.begin(tx, accountRef, ref, after.url);
  }

  private sequenceOf(cursor: string, ref: number): number {
    const sequence = decodeNumberCursor(cursor);
    const check = this.deps.checkStore.check(sequence);
    if (check !== null && check.monitor_ref !== ref) {
      throw invalidField("cursor", "is not a cursor of this monitor's history");
    }
    return sequence;
  }

  private withRef(ref: number): MonitorRow {
    const monitor = this.deps.monitors.monitor(ref);
    if (monitor === null) throw new Error(`monitor ${ref} is gone`);
    return monitor;
  }

  private stateOf(ref: number): StateRow {
    const state = this.deps.checkStore.state(ref);
    if (state === null) throw new Error(`monitor ${ref} has no state`);
    return state;
  }

  private statusOf({ ref, monitorId, settings }: MonitorRow): MonitorStatus {
    const state = this.stateOf(ref);
    return {
      monitor_id: monitorId,
      url: settings.url,
      ...lastCheckOf(state),
      consecutive_failures: state.consecutiveFailures,
    };
  }

  private monitorOf({ ref, monitorId, settings, createdAt, updatedAt }: MonitorRow): Monitor {
    const { vault } = this.deps.rules;
    const { headers } = settings;
    return {
      id: monitorId,
      ...settings,
      headers: headers === null ? null : JSON.parse(vault.open(headers, sealContext(monitorId))),
      ...lastCheckOf(this.stateOf(ref)),
      created_at: secondsOf(createdAt),
      updated_at: secondsOf(updatedAt),
    };
  }
}

function lastCheckOf({ status, latencyMs, lastCheckedAt }: StateRow) {
  const at = lastCheckedAt === null ? null : secondsOf(lastCheckedAt);
  return { status, latency_ms: latencyMs, last_checked_at: at };
}

function checkOf({ checked_at, up, latency_ms, response_status, error, manual }: CheckRow): MonitorCheck {
  return {
    checked_at: secondsOf(checked_at),
    status: up === 0 ? "down" : "up",
    ...{ latency_ms, response_status, error },
    manual: manual !== 0,
  };
}

function secondsOf(epochMs: number): number {
  return Math.floor(epochMs / 1_000);
}
