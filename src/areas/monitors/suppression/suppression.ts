import { isUuid } from "../../../kernel/data/uuid.ts";
import { invalidField } from "../../../kernel/errors.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isOutdated, type MonitorEvent, type MonitorState } from "../domain.ts";
import type { MaintenanceService } from "../maintenance/maintenance.ts";
import type { MonitorParts } from "../ports.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import { type Connectivity, RECHECK_MS } from "./connectivity.ts";
import type { SuppressionStore } from "./store.ts";

/** Monitors that depend on each other, at most: the deepest has two above it. */
const DEPENDENT_MAX = 3;
/** So many changes of the status within {@link FLAPPING_WITHIN_MS} are flapping. */
export const FLAPPING_CHANGES = 5;
/** See {@link FLAPPING_CHANGES}. */
export const FLAPPING_WITHIN_MS = 30 * 60_000;
/** After so long without a change it is over. */
export const FLAPPING_END_MS = 15 * 60_000;

/** The job of the moment at which a monitor has flapped enough; its key is the monitor's reference. */
const FLAPPING_END_JOB = "monitors.settled";
const CONCURRENCY = 64;

/** Why a check counts for nothing. */
export type SuppressionReason = "observer_offline" | "maintenance";
/** As the rows of checks have them. */
export const SUPPRESSION_REASONS: Readonly<Record<SuppressionReason, number>> = {
  observer_offline: 1,
  maintenance: 2,
};

/** What a check would bring about. */
export interface CheckEffect {
  readonly state: MonitorState;
  readonly event: MonitorEvent | null;
}

/** What it does bring about. */
export interface FinalEffect extends CheckEffect {
  readonly mark: SuppressionReason | null;
  /** What it depends on has failed: the incident of that, else its id. Then nobody is told. */
  readonly suppressedBy: string | null;
  /** Whether channels are told nothing of the change. */
  readonly isSilenced: boolean;
}

type Parts = Pick<MonitorParts, "monitors" | "incidents" | "scheduler" | "clock" | "stopped" | "writer"> & {
  readonly store: SuppressionStore;
  readonly connectivity: Connectivity;
  readonly maintenance: MaintenanceService;
  /** Tells channels that a monitor flaps, or where it stands after that. */
  readonly notifyChannels: (tx: Tx, event: "monitor.flapping" | MonitorEvent, monitor: MonitorRow) => void;
};

/** Makes a check, and records it. */
interface Checker {
  make(monitor: MonitorRow, manual: boolean): Promise<CompletedCheck | null>;
  next(monitor: MonitorRow, made: CompletedCheck): CheckEffect;
  record(tx: Tx, monitor: MonitorRow, made: readonly CompletedCheck[]): void;
}

/** Keeps quiet what says nothing, or has been said: fewer false alarms. */
export class Suppression {
  private readonly inFlight = new Map<number, Promise<void>>();
  /** Of the checks under way: those that wait for another one's end, and for whose. */
  private readonly waits = new Map<number, number>();

  constructor(private readonly parts: Parts) {
    parts.scheduler.register(FLAPPING_END_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => ({ record: (tx) => this.settled(tx, Number(key)) }),
    });
  }

  /**
   * What a check comes to when the server's own line and the monitor's parent have been looked at. Comes before it is
   * recorded, since both may take requests.
   */
  async investigate(
    monitor: MonitorRow,
    made: CompletedCheck,
    by: Checker,
    isUnderWay = false,
  ): Promise<CompletedCheck> {
    if (made.up || made.manual || made.offline !== undefined) return made;
    const { state, event } = by.next(monitor, made);
    const goesDown = state.status === "down" && monitor.status !== "down";
    const matters = goesDown || event !== null;
    const scope = await this.parts.connectivity.holds(monitor, made, matters);
    if (scope !== null) return { ...made, offline: scope };
    const parent = this.parts.store.parentOf(monitor.ref);
    const isAsked = parent !== 0 && (matters || monitor.status !== "down");
    // What depends on what may change meanwhile: two checks that wait for each other would never end.
    if (!isAsked || (isUnderWay && this.waitsFor(parent, monitor.ref))) return made;
    if (isUnderWay) this.waits.set(monitor.ref, parent);
    await this.checkSince(parent, made.at, by).finally(() => isUnderWay && this.waits.delete(monitor.ref));
    return made;
  }

  /** What a check brings about where failures may have to be kept quiet. */
  apply(tx: Tx, monitor: MonitorRow, made: CompletedCheck, next: CheckEffect): FinalEffect {
    if (made.offline !== undefined)
      return held(monitor, made, "observer_offline", monitor.consecutiveFailures);
    if (this.parts.maintenance.endFor(monitor.ref, made.at) !== null)
      return held(monitor, made, "maintenance", next.state.consecutiveFailures);
    const plain = { ...next, mark: null, suppressedBy: null, isSilenced: false };
    const [was, is] = [monitor.status, next.state.status];
    if (is === "down") return this.down(tx, monitor, made, plain);
    return was === "down" ? this.up(tx, monitor, made, plain) : plain;
  }

  /** The monitor that one depends on; null for none. */
  parentOf(ref: number): MonitorRow | null {
    const parent = this.parts.store.parentOf(ref);
    return parent === 0 ? null : this.parts.monitors.monitor(parent);
  }

  /** Sets what a monitor depends on, by its id; null: nothing. @throws ApiError `validation_error` */
  setParent(tx: Tx, { ref, projectRef }: { ref: number; projectRef: number }, id: string | null): void {
    const { store, monitors } = this.parts;
    if (id === null) {
      store.removeParent(tx, ref);
      return;
    }
    const parent = isUuid(id.toLowerCase()) ? monitors.find(id.toLowerCase()) : null;
    if (parent === null || parent.projectRef !== projectRef)
      throw invalidField("depends_on", "must be the id of a monitor of this project");
    let above = 0;
    for (let one = parent.ref; one !== 0 && above <= DEPENDENT_MAX; one = store.parentOf(one)) {
      if (one === ref) throw invalidField("depends_on", "must not lead back to the monitor itself");
      above += 1;
    }
    if (above + 1 + store.generationsBelow(ref) > DEPENDENT_MAX)
      throw invalidField("depends_on", `leads to more than ${DEPENDENT_MAX} monitors in a row`);
    store.setParent(tx, ref, parent.ref);
  }

  /** Until when something waits that tells of a monitor; null: it does not. */
  suppressedUntil(ref: number, now: number): number | null {
    const { connectivity, maintenance } = this.parts;
    return maintenance.endFor(ref, now) ?? (connectivity.offline ? now + RECHECK_MS : null);
  }

  /** Whether what a monitor's checks bring about may depend on when they are made. */
  hasMaintenance(ref: number): boolean {
    return this.parts.maintenance.isPlannedFor(ref);
  }

  /** Whether the whole server seems offline, so that no pings can arrive. Notes it where an account alone seems so. */
  async isServerOffline(accountRef: number): Promise<boolean> {
    return (await this.parts.connectivity.offlineFor(accountRef)) === "server";
  }

  /** Notes that no pings can come in. */
  recordOffline(tx: Tx): void {
    this.parts.connectivity.begin(tx, tx.now);
  }

  /** Since when pings of an account can arrive again, epoch milliseconds; 0: since the start. */
  reachableSince(accountRef: number): number {
    return this.parts.connectivity.reachableSince(accountRef);
  }

  /** What answers say of a monitor. */
  viewOf(monitor: MonitorRow) {
    const { ref } = monitor;
    return {
      depends_on: this.parentOf(ref)?.monitorId ?? null,
      flapping: this.flaps(monitor),
      maintenance: this.parts.maintenance.endFor(ref, this.parts.clock.now()) !== null,
    };
  }

  /** A monitor is gone. */
  forget(tx: Tx, ref: number): void {
    const { store, maintenance, scheduler } = this.parts;
    store.removeParent(tx, ref);
    store.freeChildren(tx, ref);
    store.removeFlapping(tx, ref);
    maintenance.forget(tx, ref);
    scheduler.cancel(tx, FLAPPING_END_JOB, String(ref));
  }

  private down(tx: Tx, monitor: MonitorRow, made: CompletedCheck, plain: FinalEffect): FinalEffect {
    const goesDown = monitor.status !== "down";
    if (!goesDown && plain.event === null) return plain;
    const parent = this.failingParent(monitor.ref);
    if (parent === null)
      return { ...plain, isSilenced: goesDown ? this.changed(tx, monitor, made) : this.flaps(monitor) };
    const suppressedBy = this.parts.incidents.openOf(parent.ref)?.incidentId ?? parent.monitorId;
    // An alert is due as soon as the parent is well, and this one is not.
    const state = { ...plain.state, alertedAt: monitor.alertedAt };
    return { ...plain, state, event: null, suppressedBy };
  }

  private up(tx: Tx, monitor: MonitorRow, made: CompletedCheck, plain: FinalEffect): FinalEffect {
    return this.isSuppressed(monitor) ? plain : { ...plain, isSilenced: this.changed(tx, monitor, made) };
  }

  /** Whether nobody was told that a monitor is down, since what it depends on had failed. */
  private isSuppressed({ ref }: MonitorRow): boolean {
    return (this.parts.incidents.openOf(ref)?.suppressedBy ?? null) !== null;
  }

  private flaps({ ref }: MonitorRow): boolean {
    return this.parts.store.flapping(ref)?.flapping === 1;
  }

  /** The parent of a monitor if that is down, or its last check failed. One that is paused says nothing. */
  private failingParent(ref: number): MonitorRow | null {
    const parent = this.parentOf(ref);
    if (parent === null || !parent.settings.active) return null;
    return parent.status === "down" || parent.consecutiveFailures > 0 ? parent : null;
  }

  /** Counts a change of the status. Returns whether it is one too many to be told. */
  private changed(tx: Tx, monitor: MonitorRow, { at, manual }: CompletedCheck): boolean {
    const { store, scheduler, notifyChannels } = this.parts;
    const flapped = this.flaps(monitor);
    // From `unknown` nothing has changed, and what people find by hand they know.
    if (monitor.status === "unknown" || manual) return flapped;
    const before: number[] = JSON.parse(store.flapping(monitor.ref)?.changes ?? "[]");
    const changes = [...before, at].slice(-FLAPPING_CHANGES);
    const many = changes.length === FLAPPING_CHANGES && at - (changes[0] ?? 0) <= FLAPPING_WITHIN_MS;
    const flaps = flapped || many;
    store.setFlapping(tx, { ref: monitor.ref, changes: JSON.stringify(changes), flapping: flaps ? 1 : 0 });
    if (!flaps) return false;
    scheduler.enqueue(tx, FLAPPING_END_JOB, String(monitor.ref), at + FLAPPING_END_MS, null);
    if (!flapped) notifyChannels(tx, "monitor.flapping", monitor);
    return true;
  }

  /** A monitor that flapped has not changed for long: channels are told where it stands. */
  private settled(tx: Tx, ref: number): void {
    const { store, scheduler, monitors, stopped, notifyChannels } = this.parts;
    const monitor = monitors.monitor(ref);
    if (monitor === null || stopped.has(monitor.projectRef)) return;
    const end = this.suppressedUntil(ref, tx.now);
    if (end !== null) {
      scheduler.enqueue(tx, FLAPPING_END_JOB, String(ref), end, null);
      return;
    }
    store.removeFlapping(tx, ref);
    const isTold = monitor.settings.active && monitor.status !== "unknown" && !this.isSuppressed(monitor);
    if (isTold) notifyChannels(tx, `monitor.${monitor.status === "down" ? "down" : "up"}`, monitor);
  }

  /** Has a monitor checked, unless it was checked since a moment; with others that wait for the same. */
  private checkSince(ref: number, at: number, by: Checker): Promise<void> {
    const monitor = this.parts.monitors.monitor(ref);
    const isKnown =
      monitor === null ||
      monitor.settings.type !== "http" ||
      !monitor.settings.active ||
      (monitor.lastCheckedAt ?? 0) > at;
    if (isKnown) return Promise.resolve();
    const running = this.inFlight.get(ref);
    if (running !== undefined) return running;
    const work = this.check(monitor, by).finally(() => this.inFlight.delete(ref));
    this.inFlight.set(ref, work);
    return work;
  }

  /** Whether a check waits for another one, or for one that does. */
  private waitsFor(ref: number, other: number): boolean {
    let one: number | undefined = ref;
    while (one !== undefined && one !== other) one = this.waits.get(one);
    return one === other;
  }

  private async check(monitor: MonitorRow, by: Checker): Promise<void> {
    const made = await by.make(monitor, false);
    if (made === null) return;
    const investigate = await this.investigate(monitor, made, by, true);
    await this.parts.writer.submit((tx) => by.record(tx, monitor, [investigate]));
  }
}

/** A check that changes nothing but when, and how quickly, the target was last seen to do something. */
function held(
  monitor: MonitorRow,
  made: CompletedCheck,
  mark: SuppressionReason,
  consecutiveFailures: number,
): FinalEffect {
  const { at: lastCheckedAt, latencyMs } = made;
  const state = isOutdated(monitor, made)
    ? monitor
    : { ...monitor, latencyMs, lastCheckedAt, consecutiveFailures };
  return { state, event: null, mark, suppressedBy: null, isSilenced: true };
}
