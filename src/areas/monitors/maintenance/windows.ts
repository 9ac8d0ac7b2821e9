import type { Tx } from "../../../kernel/storage/tx.ts";
import type { AreaDeps } from "../ports.ts";
import type { UnsavedMonitors } from "../store.ts";
import type { MaintenanceRow, MaintenanceStore } from "./store.ts";
import { isOpen, windowAfter } from "./timing.ts";

/** The job of the next start or end of a window; its key is the reference of the maintenance. */
const WINDOW_JOB = "monitors.maintenance";
/** Concurrent jobs: windows that start or end in one commit. */
const CONCURRENCY = 64;

type Deps = Pick<AreaDeps, "scheduler" | "changes" | "stopped"> & {
  readonly unsaved: Pick<UnsavedMonitors, "release">;
  readonly maintenance: MaintenanceStore;
  /** Checks a monitor immediately, so that a failure during the window is reported after it. */
  readonly recheck: (tx: Tx, ref: number) => void;
  /** Counts the time until now in a monitor's uptime, and the time from now on if it is observed. */
  readonly settle: (tx: Tx, ref: number, isObserved: boolean) => void;
  readonly notifyChannels: (
    tx: Tx,
    event: "maintenance.started" | "maintenance.ended",
    row: MaintenanceRow,
  ) => void;
};

/** Starts and ends maintenance windows, in which failures of monitors cause no alerts. */
export class MaintenanceWindows {
  constructor(private readonly deps: Deps) {
    deps.scheduler.register(WINDOW_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => ({ record: (tx) => this.onDue(tx, Number(key)) }),
    });
  }

  /** End of the window of a monitor that is open at a time (epoch milliseconds); null for none. */
  endFor(monitorRef: number, at: number): number | null {
    const { maintenance } = this.deps;
    return maintenance.hasWindows(monitorRef) === 0 ? null : maintenance.endFor(monitorRef, at, at) || null;
  }

  /** Whether a monitor is in any maintenance window, past ones included. */
  hasWindows(monitorRef: number): boolean {
    return this.deps.maintenance.hasWindows(monitorRef) !== 0;
  }

  /** Removes a deleted monitor from all maintenance. */
  forget(tx: Tx, monitorRef: number): void {
    this.deps.maintenance.forget(tx, monitorRef);
  }

  /** Removes at most `rowsMax` entries of a deleted project. Returns the number of removed entries. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const rows = this.deps.maintenance.page(projectRef, Number.MAX_SAFE_INTEGER, rowsMax);
    for (const { ref } of rows) this.remove(tx, ref);
    return rows.length;
  }

  /** Removes maintenance; an open window ends. */
  close(tx: Tx, row: MaintenanceRow): void {
    const monitors = this.deps.maintenance.monitorsOf(row.ref);
    this.remove(tx, row.ref);
    if (row.begun) this.endWindow(tx, row, monitors);
  }

  /** Starts or ends the window if it is time, and schedules the next change. */
  update(tx: Tx, stored: MaintenanceRow): void {
    const { maintenance, scheduler } = this.deps;
    const { now } = tx;
    const { ref } = stored;
    let row = stored;
    if (row.begun && !isOpen(row, now)) row = this.endWindow(tx, row, maintenance.monitorsOf(ref));
    if (now >= row.ends_at) row = { ...row, ...windowAfter(row, now) };
    if (!row.begun && isOpen(row, now)) row = this.startWindow(tx, row);
    maintenance.update(tx, row);
    const next = row.begun ? row.ends_at : row.starts_at;
    if (next > now) scheduler.enqueue(tx, WINDOW_JOB, String(ref), next, null);
    else scheduler.cancel(tx, WINDOW_JOB, String(ref));
  }

  /** Sets the monitors. Those that are removed from an open window are checked, as at its end. */
  setMonitors(tx: Tx, { ref, begun }: MaintenanceRow, monitors: readonly number[]): void {
    const { maintenance, settle } = this.deps;
    const is = new Set(monitors);
    const was = maintenance.monitorsOf(ref);
    maintenance.removeMonitors(tx, ref);
    for (const monitor of is) this.addMonitor(tx, monitor, ref);
    if (!begun) return;
    for (const monitor of was) if (!is.has(monitor.ref)) this.release(tx, monitor.ref);
    for (const monitor of is) settle(tx, monitor, false);
  }

  private onDue(tx: Tx, ref: number): void {
    const row = this.deps.maintenance.withRef(ref);
    if (row !== null && !this.deps.stopped.has(row.projectRef)) this.update(tx, row);
  }

  private startWindow(tx: Tx, row: MaintenanceRow): MaintenanceRow {
    this.deps.notifyChannels(tx, "maintenance.started", row);
    this.deps.changes.inProject(tx, row.projectRef, "pulse");
    for (const { ref } of this.deps.maintenance.monitorsOf(row.ref)) this.deps.settle(tx, ref, false);
    return { ...row, begun: true };
  }

  private endWindow(tx: Tx, row: MaintenanceRow, monitors: readonly { ref: number }[]): MaintenanceRow {
    this.deps.notifyChannels(tx, "maintenance.ended", row);
    this.deps.changes.inProject(tx, row.projectRef, "pulse");
    for (const { ref } of monitors) this.release(tx, ref);
    return { ...row, begun: false };
  }

  /** Observes a monitor again that a window no longer has, unless another one has it. */
  private release(tx: Tx, monitorRef: number): void {
    this.deps.settle(tx, monitorRef, this.endFor(monitorRef, tx.now) === null);
    this.deps.recheck(tx, monitorRef);
  }

  private addMonitor(tx: Tx, monitorRef: number, ref: number): void {
    // A window that it is in changes what its pings come to.
    this.deps.unsaved.release(tx, monitorRef);
    this.deps.maintenance.addMonitor(tx, monitorRef, ref);
  }

  private remove(tx: Tx, ref: number): void {
    const { maintenance, scheduler } = this.deps;
    scheduler.cancel(tx, WINDOW_JOB, String(ref));
    maintenance.removeMonitors(tx, ref);
    maintenance.remove(tx, ref);
  }
}
