import { STALL_MS_MAX } from "../../../kernel/outbound/event-loop.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { realDelay } from "../../../kernel/time/clock.ts";
import type { Alerting, HealthNotification } from "../alerting.ts";
import { updatedCertificate } from "../certificate.ts";
import { type AlertRules, afterCheck, NO_CHECKS, sumOf } from "../domain.ts";
import { factsOf } from "../facts.ts";
import { settled } from "../history/standing.ts";
import type { AreaDeps } from "../ports.ts";
import { type CompletedCheck, type MonitorRow, type MonitorSettings, SUPPRESSION_REASONS } from "../store.ts";
import type { Connectivity } from "../suppression/connectivity.ts";
import type { FinalEffect, Suppression } from "../suppression/suppression.ts";
import type { TargetDeps, TargetOutcome } from "../targets/target.ts";
import { targetOf } from "../targets/targets.ts";
import { effectsOf } from "./effects.ts";

/** Attempts before an inconclusive check is skipped. */
export const ATTEMPTS_MAX = 3;
/** Real time between attempts: the stall may pass. */
const ATTEMPT_PAUSE_MS = 200;

/** Results of checks, as metrics have them. `unknown`: every attempt was inconclusive, and the check was skipped. */
const OUTCOMES = ["up", "down", "unknown"] as const;

type Deps = TargetDeps &
  Pick<AreaDeps, "changes" | "checks" | "clock" | "metrics" | "monitors" | "scheduler">;

/** Runs checks and records their results. */
export class Checks {
  private readonly counts;
  private nextSequence: number;

  constructor(
    private readonly deps: Deps,
    private readonly alerting: Pick<Alerting, "carryOut" | "hasChannels" | "resolveIncident">,
    private readonly suppression: Suppression,
    private readonly connectivity: Connectivity,
  ) {
    this.counts = deps.metrics.counterTable(
      { name: "ninefold_monitor_checks_total", help: "Checks of monitors, by trigger and outcome." },
      { label: "trigger", values: ["scheduled", "manual"] },
      { label: "outcome", values: OUTCOMES },
    );
    this.nextSequence = deps.checks.highestSequence() + 1;
  }

  /** Runs a check. Returns null if every attempt was inconclusive: the event loop stalled, or resources ran out. */
  async run(monitor: MonitorRow, manual: boolean): Promise<CompletedCheck | null> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (attempt > 0) await realDelay(ATTEMPT_PAUSE_MS);
      const at = this.deps.clock.now();
      const outcome = await targetOf(monitor.settings.type).check(this.deps, monitor);
      if (!isConclusive(outcome)) continue;
      const sign = this.connectivity.recordOutcome(monitor, outcome);
      const check = { ...checkOf(outcome, monitor.settings, at, manual), connectivity: sign };
      return this.connectivity.isInconclusive(sign) ? { ...check, offline: "server" } : check;
    }
    this.counts[manual ? "manual" : "scheduled"].unknown.add();
    return null;
  }

  /** The effect of a check without suppression. */
  evaluate(monitor: MonitorRow, check: CompletedCheck) {
    const rules = this.rulesOf(monitor);
    return afterCheck(monitor, check, check.ignoresThreshold ? { ...rules, threshold: 1 } : rules);
  }

  /** Records checks and queues their alerts. Returns the monitor after them; null if it was deleted or changed meanwhile. */
  record(tx: Tx, checked: MonitorRow, checks: readonly CompletedCheck[]): MonitorRow | null {
    const monitor = this.deps.monitors.monitor(checked.ref);
    if (monitor === null || monitor.version !== checked.version) return null;
    return this.recordNow(tx, monitor, checks);
  }

  /** The same for a monitor that was read in this unit of work. */
  recordNow(tx: Tx, checked: MonitorRow, checks: readonly CompletedCheck[]): MonitorRow {
    const { monitors } = this.deps;
    let monitor = checked;
    this.deps.changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
    const last = checks.at(-1);
    if (last?.offline === "server") this.connectivity.markOffline(tx, last.at);
    else if (last?.connectivity === "proved") this.connectivity.markOnline(tx, last.at);
    const up = checks.filter((check) => check.up).length;
    for (const check of checks) monitor = this.recordOne(tx, monitor, check);
    monitors.updateState(tx, monitor);
    const counts = this.counts[checks.some(({ manual }) => manual) ? "manual" : "scheduled"];
    tx.afterCommit(() => {
      counts.up.add(up);
      counts.down.add(checks.length - up);
    });
    return monitor;
  }

  /** Records a success of a steady heartbeat. Returns the sequence of its check. */
  recordSuccess(tx: Tx, ref: number, previous: number): number {
    const sequence = this.nextSequence++;
    this.deps.checks.insertSuccess(tx, sequence, ref, previous, tx.now);
    tx.afterCommit(this.countSuccess);
    return sequence;
  }

  private readonly countSuccess = (): void => this.counts.scheduled.up.add();

  /** Sets the status of a monitor to unknown and resolves its incident, without notifications. */
  forgetStatus(tx: Tx, monitor: MonitorRow): void {
    const unknown = {
      status: "unknown",
      consecutiveFailures: 0,
      alertedAt: null,
      degraded: false,
      overdue: false,
      streak: 0,
      standsSince: null,
    } as const;
    this.deps.monitors.updateState(tx, { ...settled(this.deps, tx, monitor, tx.now), ...unknown });
    this.alerting.resolveIncident(tx, monitor.ref);
    this.deps.changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
  }

  /** Notifies of a monitor whose status has not changed. */
  notify(tx: Tx, monitor: MonitorRow, health: readonly HealthNotification[]): void {
    this.alerting.carryOut(tx, { monitor: factsOf(monitor), outcome: null, health });
  }

  /** Records one check. Returns the monitor after it, which the caller writes. */
  private recordOne(tx: Tx, monitor: MonitorRow, check: CompletedCheck): MonitorRow {
    const effect = this.suppression.apply(tx, monitor, check, this.evaluate(monitor, check));
    const after = check.isRepeat ? { ...monitor, ...effect.state } : this.store(tx, monitor, check, effect);
    this.alerting.carryOut(tx, effectsOf(monitor, after, check, effect));
    return after;
  }

  /** Stores a check and counts it. Returns the monitor after it. */
  private store(
    tx: Tx,
    monitor: MonitorRow,
    check: CompletedCheck,
    { state, reason }: FinalEffect,
  ): MonitorRow {
    const { at, up, manual, latencyMs, responseStatus, error, certificate: seen } = check;
    const isCounted = reason === null;
    const added = isCounted
      ? { ...NO_CHECKS, checks: 1, up: up ? 1 : 0, latencySum: up ? latencyMs : 0 }
      : NO_CHECKS;
    // A manual check stands for no time, and the one before it still does.
    const counted = manual ? monitor : settled(this.deps, tx, monitor, at);
    const current = { hour: counted.hour, ...sumOf(counted, added) };
    const standing = manual ? {} : { standsSince: isCounted ? at : null, standsUp: up };
    const sequence = this.nextSequence++;
    this.deps.checks.insert(tx, {
      at,
      up,
      manual,
      latencyMs,
      responseStatus,
      error,
      sequence,
      ref: monitor.ref,
      previous: monitor.lastCheck,
      mark: isCounted ? 0 : SUPPRESSION_REASONS[reason],
    });
    // A certificate seen during maintenance is ignored: the next check sees it again.
    const isRelevant = seen !== undefined && isCounted && state.lastCheckedAt === at;
    const certificate = isRelevant
      ? updatedCertificate(monitor.certificate, seen, check, monitor.settings.tls_expiry_days)
      : monitor.certificate;
    return { ...monitor, ...state, ...current, ...standing, lastCheck: sequence, certificate };
  }

  rulesOf({ settings, projectRef }: MonitorRow): AlertRules {
    return {
      threshold: settings.consecutive_threshold,
      recoveryThreshold: settings.recovery_threshold,
      degradedMs: settings.degraded_ms,
      cooldownMs: settings.cooldown_ms,
      notifyRecovery: settings.notify_recovery,
      hasListeners:
        settings.webhook_url !== null || settings.email_alert || this.alerting.hasChannels(projectRef),
    };
  }
}

/** Whether the outcome of a request says anything about the target. */
function isConclusive(outcome: TargetOutcome): boolean {
  if (outcome.stalledMs > STALL_MS_MAX) return false;
  return outcome.answered || outcome.failure.kind !== "local";
}

function checkOf(
  outcome: TargetOutcome,
  settings: MonitorSettings,
  at: number,
  manual: boolean,
): CompletedCheck {
  const { timeout: timeoutMs } = settings;
  const latencyMs = Math.min(outcome.latencyMs, timeoutMs);
  if (outcome.answered) {
    const { status, certificate, error } = outcome;
    const check = { up: error === null, latencyMs, at, manual, responseStatus: status, error };
    return certificate === null ? check : { ...check, certificate };
  }
  const { kind, message } = outcome.failure;
  const error = `${kind}: ${message}`;
  const durationMs = kind === "timeout" ? timeoutMs : latencyMs;
  return { up: false, latencyMs: durationMs, at, manual, responseStatus: null, error };
}
