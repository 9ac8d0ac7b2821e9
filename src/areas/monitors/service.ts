import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, encodeCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierBound } from "../../kernel/tier-bounds.ts";
import type { CheckRow, CheckStore, StateRow } from "./check-store.ts";
import { CHECKS_KEPT_MS, type CheckMade, type Checks, sealContext } from "./checks.ts";
import { type MonitorStatus, uptimePercent } from "./domain.ts";
import type { CheckSchedule } from "./jobs.ts";
import { assertSettings, type GivenSettings, mergedSettings, type SettingsRules } from "./settings.ts";
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

/** What a monitor says of its target. */
export interface StatusView {
  readonly monitor_id: string;
  readonly url: string;
  readonly status: MonitorStatus;
  readonly latency_ms: number | null;
  readonly last_checked_at: number | null;
  readonly consecutive_failures: number;
}

/** What a list of monitors is narrowed by. */
export interface MonitorListQuery {
  readonly status: MonitorStatus | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const DAY_HOURS = 24;

/** The use cases of monitors. */
export class MonitorService {
  private nextRef: number;

  constructor(private readonly deps: MonitorServiceDeps) {
    this.nextRef = deps.monitors.highestRef() + 1;
  }

  /** Checks what a user sets, before any charge. @throws ApiError `validation_error`, `forbidden` */
  assertSettings(caller: Caller, given: GivenSettings): void {
    assertSettings(this.deps.rules, given, caller.account.tier);
  }

  /** Creates a monitor and begins to check it. @throws ApiError `monitor_limit_exceeded` */
  create(tx: Tx, caller: Caller, given: GivenSettings): object {
    const { monitors, checkStore, schedule, rules, ids, bound } = this.deps;
    bound.assertRoom(caller.account);
    const monitorId = ids.uuidV7();
    const { settings, warning } = mergedSettings(rules, given, monitorId, caller.account.tier, null);
    const ref = this.nextRef++;
    const owner = { accountRef: caller.account.ref, projectRef: caller.project.ref };
    monitors.insert(tx, { ...settings, ...owner, ref, monitorId });
    checkStore.insert(tx, ref, owner.projectRef);
    schedule.begin(tx, caller.account.ref, ref, settings.url);
    return this.fullView(this.find(owner.projectRef, monitorId), warning);
  }

  /** Changes a monitor. @throws ApiError `not_found` */
  update(tx: Tx, caller: Caller, monitorId: string, given: GivenSettings): object {
    const before = this.find(caller.project.ref, monitorId);
    const { tier } = caller.account;
    const { settings, warning } = mergedSettings(this.deps.rules, given, before.monitorId, tier, before);
    if (Object.keys(given).length > 0) {
      this.deps.monitors.update(tx, before.ref, settings);
      this.reschedule(tx, before, settings);
    }
    return this.fullView(this.find(caller.project.ref, monitorId), warning);
  }

  /** Deletes a monitor and what its checks found. @throws ApiError `not_found` */
  delete(tx: Tx, projectRef: number, monitorId: string): { deleted: true } {
    const { ref } = this.find(projectRef, monitorId);
    this.deps.schedule.end(tx, ref);
    this.deps.checkStore.removeHours(tx, ref, Number.MAX_SAFE_INTEGER);
    this.deps.checkStore.remove(tx, ref);
    this.deps.monitors.remove(tx, ref);
    return { deleted: true };
  }

  /** @throws ApiError `not_found` */
  status(projectRef: number, monitorId: string): StatusView {
    return this.statusView(this.find(projectRef, monitorId));
  }

  /** A page of a project's monitors, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, query: MonitorListQuery): { monitors: StatusView[]; cursor?: string } {
    const before = query.cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(query.cursor);
    const refs = this.deps.checkStore.page(projectRef, query.status, before, query.limit + 1);
    const page = pageOf(refs, query.limit, (ref) => [ref]);
    const monitors = page.items.map((ref) => this.statusView(this.monitorOf(ref)));
    return page.cursor === undefined ? { monitors } : { monitors, cursor: page.cursor };
  }

  /** A page of a monitor's checks, newest first, and its uptime. @throws ApiError `not_found`, `validation_error` */
  history(
    projectRef: number,
    monitorId: string,
    now: number,
    limit: number,
    cursor: string | undefined,
  ): object {
    const { ref } = this.find(projectRef, monitorId);
    const state = this.stateOf(ref);
    const checks: CheckRow[] = [];
    let sequence = cursor === undefined ? state.lastCheck : this.cursorOf(cursor, ref);
    while (sequence !== 0 && checks.length < limit) {
      const check = this.deps.checkStore.check(sequence);
      // Older ones have been removed.
      if (check === null) break;
      checks.push(check);
      sequence = check.previous;
    }
    const more = checks.length === limit && this.deps.checkStore.check(sequence) !== null;
    const counts = [...this.deps.checkStore.hours(ref, now - CHECKS_KEPT_MS), state.current];
    const percent = (days: number) => uptimePercent(counts, now, days * DAY_HOURS);
    return {
      checks: checks.map(checkView),
      uptime: { "24h": percent(1), "7d": percent(7), "30d": percent(30) },
      ...(more ? { cursor: encodeCursor([sequence]) } : {}),
    };
  }

  /** The monitor of a manual check, as it is now. @throws ApiError `not_found` */
  claim(projectRef: number, monitorId: string): MonitorRow {
    return this.find(projectRef, monitorId);
  }

  /** Makes a manual check. */
  check(monitor: MonitorRow): Promise<CheckMade | null> {
    return this.deps.checks.make(monitor, true);
  }

  /**
   * Records a manual check. It tells nobody.
   * @throws ApiError `not_found` when the monitor was deleted meanwhile, `service_unavailable` when the check says
   *   nothing since this server was held up.
   */
  settle(tx: Tx, monitor: MonitorRow, made: CheckMade | null): StatusView {
    if (made === null) {
      throw new ApiError("service_unavailable", "The server is too busy to measure. Try again in a moment.", {
        retryAfterSeconds: 1,
      });
    }
    this.deps.checks.record(tx, monitor, made);
    return this.status(monitor.projectRef, monitor.monitorId);
  }

  private reschedule(tx: Tx, before: MonitorRow, after: MonitorSettings): void {
    const { schedule } = this.deps;
    if (!after.active) {
      schedule.end(tx, before.ref);
      return;
    }
    const isSame = before.active && before.url === after.url && before.intervalMs === after.intervalMs;
    if (!isSame) schedule.begin(tx, before.accountRef, before.ref, after.url);
  }

  private find(projectRef: number, monitorId: string): MonitorRow {
    const id = monitorId.toLowerCase();
    const row = UUID.test(id) ? this.deps.monitors.find(id) : null;
    if (row === null || row.projectRef !== projectRef) {
      throw new ApiError("not_found", "There is no monitor with this id in this project.");
    }
    return row;
  }

  private cursorOf(cursor: string, ref: number): number {
    const sequence = decodeNumberCursor(cursor);
    const check = this.deps.checkStore.check(sequence);
    if (check !== null && check.monitor_ref !== ref) {
      throw invalidField("cursor", "is not a cursor of this monitor's history");
    }
    return sequence;
  }

  private monitorOf(ref: number): MonitorRow {
    const monitor = this.deps.monitors.monitor(ref);
    if (monitor === null) throw new Error(`monitor ${ref} is gone`);
    return monitor;
  }

  private stateOf(ref: number): StateRow {
    const state = this.deps.checkStore.state(ref);
    if (state === null) throw new Error(`monitor ${ref} has no state`);
    return state;
  }

  private statusView(monitor: MonitorRow): StatusView {
    const state = this.stateOf(monitor.ref);
    return {
      monitor_id: monitor.monitorId,
      url: monitor.url,
      status: state.status,
      latency_ms: state.latencyMs,
      last_checked_at: secondsOf(state.lastCheckedAt),
      consecutive_failures: state.consecutiveFailures,
    };
  }

  private fullView(monitor: MonitorRow, warning: string | null): object {
    const state = this.stateOf(monitor.ref);
    return {
      id: monitor.monitorId,
      url: monitor.url,
      method: monitor.method,
      headers: this.headersOf(monitor),
      body: monitor.body,
      timeout: monitor.timeoutMs,
      interval: monitor.intervalMs,
      consecutive_threshold: monitor.threshold,
      cooldown_ms: monitor.cooldownMs,
      webhook_url: monitor.webhookUrl,
      email_alert: monitor.emailAlert,
      notify_recovery: monitor.notifyRecovery,
      active: monitor.active,
      status: state.status,
      latency_ms: state.latencyMs,
      last_checked_at: secondsOf(state.lastCheckedAt),
      created_at: secondsOf(monitor.createdAt),
      updated_at: secondsOf(monitor.updatedAt),
      ...(warning === null ? {} : { warning }),
    };
  }

  private headersOf({ headers, monitorId }: MonitorRow): object | null {
    return headers === null ? null : JSON.parse(this.deps.rules.vault.open(headers, sealContext(monitorId)));
  }
}

function secondsOf(epochMs: number | null): number | null {
  return epochMs === null ? null : Math.floor(epochMs / 1_000);
}

function checkView(row: CheckRow): object {
  return {
    checked_at: secondsOf(row.checked_at),
    status: row.up === 0 ? "down" : "up",
    latency_ms: row.latency_ms,
    response_status: row.response_status,
    error: row.error,
    manual: row.manual !== 0,
  };
}
