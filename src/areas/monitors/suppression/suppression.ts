import { isUuid } from "../../../kernel/data/uuid.ts";
import { invalidField } from "../../../kernel/errors.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Alerting } from "../alerting.ts";
import { isOutdated, type MonitorEvent, type MonitorState } from "../domain.ts";
import type { MaintenanceWindows } from "../maintenance/windows.ts";
import type { AreaDeps } from "../ports.ts";
import type { CompletedCheck, MonitorRow, SuppressionReason } from "../store.ts";
import { checksTarget } from "../types.ts";
import { type Connectivity, RECHECK_MS } from "./connectivity.ts";
import type { SuppressionStore } from "./store.ts";

/** Longest chain of monitors that depend on each other. */
const DEPENDENCY_CHAIN_MAX = 3;
/** A monitor with this many status changes within {@link FLAPPING_WITHIN_MS} is flapping. */
export const FLAPPING_CHANGES = 5;
/** See {@link FLAPPING_CHANGES}. */
export const FLAPPING_WITHIN_MS = 30 * 60_000;
/** Flapping ends after this time without a status change. */
export const FLAPPING_END_MS = 15 * 60_000;

/** The job that ends the flapping of a monitor; its key is the monitor's reference. */
const FLAPPING_END_JOB = "monitors.settled";
const CONCURRENCY = 64;

/** The effect of a check without suppression. */
export interface CheckEffect {
  readonly state: MonitorState;
  /** The alert to send; null for none. */
  readonly event: MonitorEvent | null;
}

/** The effect of a check after suppression. */
export interface FinalEffect extends CheckEffect {
  /** Why the check is ignored; null if it counts. */
  readonly reason: SuppressionReason | null;
  /** The id of the parent's incident, or of the parent, that explains the failure: no alert is sent. */
  readonly suppressedBy: string | null;
  /** Whether channels are not notified of the change. */
  readonly isSilenced: boolean;
}

type Deps = Pick<AreaDeps, "monitors" | "scheduler" | "clock" | "stopped" | "writer"> & {
  readonly alerting: Pick<Alerting, "openIncidentOf">;
  readonly store: SuppressionStore;
  readonly connectivity: Connectivity;
  readonly maintenance: MaintenanceWindows;
  /** Notifies channels that a monitor is flapping, or of its status when flapping ends. */
  readonly notifyChannels: (tx: Tx, event: "monitor.flapping" | MonitorEvent, monitor: MonitorRow) => void;
};

/** Runs and records checks. */
interface Checker {
  run(monitor: MonitorRow, manual: boolean): Promise<CompletedCheck | null>;
  evaluate(monitor: MonitorRow, check: CompletedCheck): CheckEffect;
  record(tx: Tx, monitor: MonitorRow, checks: readonly CompletedCheck[]): void;
}

/** Suppresses alerts that are false or redundant: while offline, in maintenance, by dependency, when flapping. */
export class Suppression {
  /** Checks of parents that are running, by monitor. */
  private readonly inFlight = new Map<number, Promise<void>>();
  /** Parents whose checks these checks are waiting for, by monitor. */
  private readonly waitingFor = new Map<number, number>();

  constructor(private readonly deps: Deps) {
    deps.scheduler.register(FLAPPING_END_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => ({ record: (tx) => this.endFlapping(tx, Number(key)) }),
    });
  }

  /**
   * Looks for the cause of a failed check before it is recorded: checks the server's connectivity and the monitor's
   * parent, which may take requests. Returns the check, with `offline` set if the server is offline.
   */
  async investigate(
    monitor: MonitorRow,
    check: CompletedCheck,
    checker: Checker,
    isParent = false,
  ): Promise<CompletedCheck> {
    if (check.up || check.isUnknown || check.manual || check.offline !== undefined) return check;
    const { state, event } = checker.evaluate(monitor, check);
    const goesDown = state.status === "down" && monitor.status !== "down";
    const hasEffect = goesDown || event !== null;
    const scope = await this.deps.connectivity.offlineScopeOf(monitor, check, hasEffect);
    if (scope !== null) return { ...check, offline: scope };
    const parent = this.deps.store.parentOf(monitor.ref);
    const needsParent = parent !== 0 && (hasEffect || monitor.status !== "down");
    // Dependencies can change meanwhile: two checks that wait for each other would never end.
    if (!needsParent || (isParent && this.isWaitingFor(parent, monitor.ref))) return check;
    if (isParent) this.waitingFor.set(monitor.ref, parent);
    await this.checkAfter(parent, check.at, checker).finally(
      () => isParent && this.waitingFor.delete(monitor.ref),
    );
    return check;
  }

  /** Applies suppression to the effect of a check, in the unit of work that records it. */
  apply(tx: Tx, monitor: MonitorRow, check: CompletedCheck, effect: CheckEffect): FinalEffect {
    if (check.offline !== undefined)
      return ignored(monitor, check, "observer_offline", monitor.consecutiveFailures);
    if (this.isInMaintenance(monitor.ref, check.at))
      return ignored(monitor, check, "maintenance", effect.state.consecutiveFailures);
    const unsuppressed = { ...effect, reason: null, suppressedBy: null, isSilenced: false };
    if (effect.state.status === "down") return this.applyToFailure(tx, monitor, check, unsuppressed);
    const isRecovery = monitor.status === "down" && effect.state.status === "up";
    if (!isRecovery || this.isSuppressed(monitor)) return unsuppressed;
    return { ...unsuppressed, isSilenced: this.recordChange(tx, monitor, check) };
  }

  /** The monitor that a monitor depends on; null for none. */
  parentOf(ref: number): MonitorRow | null {
    const parent = this.deps.store.parentOf(ref);
    return parent === 0 ? null : this.deps.monitors.monitor(parent);
  }

  /** Sets the monitor that a monitor depends on, by its id; null removes it. @throws ApiError `validation_error` */
  setParent(tx: Tx, { ref, projectRef }: { ref: number; projectRef: number }, id: string | null): void {
    const { store, monitors } = this.deps;
    if (id === null) {
      store.removeParent(tx, ref);
      return;
    }
    const parent = isUuid(id.toLowerCase()) ? monitors.find(id.toLowerCase()) : null;
    if (parent === null || parent.projectRef !== projectRef)
      throw invalidField("depends_on", "must be the id of a monitor of this project");
    let above = 0;
    for (
      let ancestor = parent.ref;
      ancestor !== 0 && above <= DEPENDENCY_CHAIN_MAX;
      ancestor = store.parentOf(ancestor)
    ) {
      if (ancestor === ref)
        throw invalidField("depends_on", "must not be the monitor itself or depend on it");
      above += 1;
    }
    if (above + 1 + store.generationsBelow(ref) > DEPENDENCY_CHAIN_MAX)
      throw invalidField(
        "depends_on",
        `must not make a chain of more than ${DEPENDENCY_CHAIN_MAX} dependent monitors`,
      );
    store.setParent(tx, ref, parent.ref);
  }

  /** Until when notifications about a monitor must wait, epoch milliseconds; null: they need not. */
  suppressedUntil(ref: number, now: number): number | null {
    const { connectivity, maintenance } = this.deps;
    return maintenance.endFor(ref, now) ?? (connectivity.isOffline ? now + RECHECK_MS : null);
  }

  /** Whether a window of a monitor is open at a time, epoch milliseconds. */
  isInMaintenance(ref: number, at: number): boolean {
    return this.deps.maintenance.endFor(ref, at) !== null;
  }

  /** Whether any maintenance is planned for a monitor, whenever it is. */
  hasMaintenance(ref: number): boolean {
    return this.deps.maintenance.hasWindows(ref);
  }

  /** Whether the server is offline for every account, so that no pings arrive. Checks connectivity. */
  async isServerOffline(accountRef: number): Promise<boolean> {
    return (await this.deps.connectivity.checkScope(accountRef)) === "server";
  }

  /** Records that the server is offline. */
  recordOffline(tx: Tx): void {
    this.deps.connectivity.markOffline(tx, tx.now);
  }

  /** Since when pings of an account can arrive, epoch milliseconds; 0: since the start. */
  reachableSince(accountRef: number): number {
    return this.deps.connectivity.reachableSince(accountRef);
  }

  /** The fields of responses about suppression. */
  viewOf(monitor: MonitorRow) {
    const { ref } = monitor;
    return {
      depends_on: this.parentOf(ref)?.monitorId ?? null,
      flapping: this.isFlapping(monitor),
      maintenance: this.isInMaintenance(ref, this.deps.clock.now()),
    };
  }

  /** Deletes everything stored for a deleted monitor. */
  forget(tx: Tx, ref: number): void {
    const { store, maintenance, scheduler } = this.deps;
    store.removeParent(tx, ref);
    store.removeChildren(tx, ref);
    store.removeFlapping(tx, ref);
    maintenance.forget(tx, ref);
    scheduler.cancel(tx, FLAPPING_END_JOB, String(ref));
  }

  private applyToFailure(
    tx: Tx,
    monitor: MonitorRow,
    check: CompletedCheck,
    effect: FinalEffect,
  ): FinalEffect {
    const goesDown = monitor.status !== "down";
    if (!goesDown && effect.event === null) return effect;
    const parent = this.failingParent(monitor.ref);
    if (parent === null) {
      const isSilenced = goesDown ? this.recordChange(tx, monitor, check) : this.isFlapping(monitor);
      return { ...effect, isSilenced };
    }
    const suppressedBy = this.deps.alerting.openIncidentOf(parent.ref)?.id ?? parent.monitorId;
    // The alert stays due: it is sent when the parent recovers and this target does not.
    const state = { ...effect.state, alertedAt: monitor.alertedAt };
    return { ...effect, state, event: null, suppressedBy };
  }

  /** Whether the monitor's open incident is explained by its parent. */
  private isSuppressed({ ref }: MonitorRow): boolean {
    return (this.deps.alerting.openIncidentOf(ref)?.suppressedBy ?? null) !== null;
  }

  /** Whether the status of a monitor changes so often that channels are not notified of it. */
  isFlapping({ ref }: MonitorRow): boolean {
    return this.deps.store.flapping(ref)?.flapping === 1;
  }

  /** The monitor's parent, if it is active and its last check failed; null otherwise. */
  private failingParent(ref: number): MonitorRow | null {
    const parent = this.parentOf(ref);
    if (parent === null || !parent.settings.active) return null;
    return parent.status === "down" || parent.consecutiveFailures > 0 ? parent : null;
  }

  /** Records a status change. Returns whether the monitor is flapping, so that channels are not notified of it. */
  private recordChange(tx: Tx, monitor: MonitorRow, { at, manual }: CompletedCheck): boolean {
    const { store, scheduler, notifyChannels } = this.deps;
    const wasFlapping = this.isFlapping(monitor);
    // The first status is not a change, and the user sees what a manual check finds.
    if (monitor.status === "unknown" || manual) return wasFlapping;
    const before: number[] = JSON.parse(store.flapping(monitor.ref)?.changes ?? "[]");
    const changes = [...before, at].slice(-FLAPPING_CHANGES);
    const isFrequent = changes.length === FLAPPING_CHANGES && at - (changes[0] ?? 0) <= FLAPPING_WITHIN_MS;
    const isFlapping = wasFlapping || isFrequent;
    store.setFlapping(tx, {
      ref: monitor.ref,
      changes: JSON.stringify(changes),
      flapping: isFlapping ? 1 : 0,
    });
    if (!isFlapping) return false;
    scheduler.enqueue(tx, FLAPPING_END_JOB, String(monitor.ref), at + FLAPPING_END_MS, null);
    if (!wasFlapping) notifyChannels(tx, "monitor.flapping", monitor);
    return true;
  }

  /** Ends the flapping of a monitor whose status is stable, and notifies channels of the status. */
  private endFlapping(tx: Tx, ref: number): void {
    const { store, scheduler, monitors, stopped, notifyChannels } = this.deps;
    const monitor = monitors.monitor(ref);
    if (monitor === null || stopped.has(monitor.projectRef)) return;
    const until = this.suppressedUntil(ref, tx.now);
    if (until !== null) {
      scheduler.enqueue(tx, FLAPPING_END_JOB, String(ref), until, null);
      return;
    }
    store.removeFlapping(tx, ref);
    const { status, settings } = monitor;
    const shouldNotify = settings.active && status !== "unknown" && !this.isSuppressed(monitor);
    if (shouldNotify) notifyChannels(tx, `monitor.${status}`, monitor);
  }

  /** Checks a monitor unless it was checked after a time (epoch milliseconds). Concurrent callers share the check. */
  private checkAfter(ref: number, at: number, checker: Checker): Promise<void> {
    const monitor = this.deps.monitors.monitor(ref);
    const needsCheck =
      monitor !== null &&
      checksTarget(monitor.settings.type) &&
      monitor.settings.active &&
      (monitor.lastCheckedAt ?? 0) <= at;
    if (!needsCheck) return Promise.resolve();
    const running = this.inFlight.get(ref);
    if (running !== undefined) return running;
    const work = this.checkParent(monitor, checker).finally(() => this.inFlight.delete(ref));
    this.inFlight.set(ref, work);
    return work;
  }

  /** Whether a check waits for another monitor's check, directly or indirectly. */
  private isWaitingFor(ref: number, other: number): boolean {
    let awaited: number | undefined = ref;
    while (awaited !== undefined && awaited !== other) awaited = this.waitingFor.get(awaited);
    return awaited === other;
  }

  private async checkParent(monitor: MonitorRow, checker: Checker): Promise<void> {
    const check = await checker.run(monitor, false);
    if (check === null) return;
    const investigated = await this.investigate(monitor, check, checker, true);
    await this.deps.writer.submit((tx) => checker.record(tx, monitor, [investigated]));
  }
}

/** The effect of an ignored check: it updates the latency and the time of the last check, and no status. */
function ignored(
  monitor: MonitorRow,
  check: CompletedCheck,
  reason: SuppressionReason,
  consecutiveFailures: number,
): FinalEffect {
  const { at: lastCheckedAt, latencyMs } = check;
  const state = isOutdated(monitor, check)
    ? monitor
    : { ...monitor, latencyMs, lastCheckedAt, consecutiveFailures };
  return { state, event: null, reason, suppressedBy: null, isSilenced: true };
}
