import { latenciesOf, NO_LATENCIES } from "../../../kernel/data/latencies.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Alerting, HealthNotification } from "../alerting.ts";
import { updatedCertificate } from "../certificate.ts";
import { type AlertRules, afterCheck, NO_CHECKS, sumOf } from "../domain.ts";
import { factsOf } from "../facts.ts";
import { settled } from "../history/standing.ts";
import type { AreaDeps } from "../ports.ts";
import { updatedRegistration } from "../registration.ts";
import type { Registries } from "../registry/registries.ts";
import {
  type CompletedCheck,
  LATE_MARK,
  type MonitorRow,
  SUPPRESSION_REASONS,
  storedIcmp,
  UNKNOWN_MARK,
} from "../store.ts";
import type { Connectivity } from "../suppression/connectivity.ts";
import type { FinalEffect, Suppression } from "../suppression/suppression.ts";
import { MONITOR_CLIENT_KEY, MONITOR_HEADERS } from "../targets/http.ts";
import { measureTarget } from "../targets/measure.ts";
import { hasLatency } from "../types.ts";
import { isVoting, statesOf, type Verdict, type Votes } from "../votes/votes.ts";
import { effectsOf } from "./effects.ts";

/** Results of checks, as metrics have them. `unknown`: every attempt was inconclusive, or the check could not be made. */
const OUTCOMES = ["up", "down", "unknown"] as const;

/** Newer checks that a late one is put behind: those of some minutes. */
const LATE_WALKED_MAX = 20;
/** Thresholds apply to each probe: its vote counts at once. */
const VERDICT_RULES = { threshold: 1, recoveryThreshold: 1, degradedMs: null };

/** A state that people give to a monitor. */
export interface GivenState {
  readonly up: boolean;
  /** Whether it is up, but impaired. */
  readonly degraded: boolean;
}

type Deps = Pick<
  AreaDeps,
  "changes" | "checks" | "clock" | "metrics" | "monitors" | "outbound" | "scheduler" | "timeZoneOf" | "vault"
>;

/** Runs checks and records their results. */
export class Checks {
  private readonly counts;
  private nextSequence: number;

  constructor(
    private readonly deps: Deps,
    private readonly alerting: Pick<
      Alerting,
      "carryOut" | "hasChannels" | "openIncidentOf" | "resolveIncident"
    >,
    private readonly suppression: Suppression,
    private readonly connectivity: Connectivity,
    private readonly votes: Votes,
    private readonly registries: Pick<Registries, "serverOf">,
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
    const { clock, outbound, vault } = this.deps;
    const { settings, monitorId, accountRef: account } = monitor;
    const headers = MONITOR_HEADERS.openOrNull(vault, monitorId, settings.headers);
    const clientKey = MONITOR_CLIENT_KEY.openOrNull(vault, monitorId, settings.tls_client_key);
    const target = { account, settings, headers, clientKey, registries: this.registries };
    const result = await measureTarget(outbound, target, () => clock.now());
    if (result === null) {
      this.counts[manual ? "manual" : "scheduled"].unknown.add();
      return null;
    }
    if (result.measured.isUnknown) return { ...result.measured, manual };
    const sign = this.connectivity.recordOutcome(monitor, result.outcome);
    const check = { ...result.measured, manual, connectivity: sign };
    return this.connectivity.isInconclusive(sign) ? { ...check, offline: "server" } : check;
  }

  /** The effect of a check without suppression. */
  evaluate(monitor: MonitorRow, check: CompletedCheck) {
    const rules = this.rulesOf(monitor);
    // Where probes vote, the thresholds are those of each probe.
    if (isVoting(monitor)) return afterCheck(monitor, check, { ...rules, ...VERDICT_RULES });
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
    const unknown = checks.filter((check) => check.isUnknown).length;
    for (const check of checks)
      monitor = check.isLate ? this.storeLate(tx, monitor, check) : this.recordOne(tx, monitor, check);
    monitors.updateState(tx, monitor);
    const counts = this.counts[checks.some(({ manual }) => manual) ? "manual" : "scheduled"];
    tx.afterCommit(() => {
      counts.up.add(up);
      counts.down.add(checks.length - up - unknown);
      counts.unknown.add(unknown);
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
      isSplit: false,
      overdue: false,
      streak: 0,
      standsSince: null,
    } as const;
    this.deps.monitors.updateState(tx, { ...settled(this.deps, tx, monitor, tx.now), ...unknown });
    this.alerting.resolveIncident(tx, monitor.ref);
    this.deps.changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
  }

  /** Records the state that people have given to a monitor without checks. Its time counts from now on; nobody is notified. */
  recordState(tx: Tx, monitor: MonitorRow, { up, degraded }: GivenState): void {
    const status = up ? ("up" as const) : ("down" as const);
    if (monitor.status === status && monitor.degraded === degraded) return;
    const { latencyMs, lastCheckedAt, consecutiveFailures, alertedAt, streak } = monitor;
    const unchanged = { latencyMs, lastCheckedAt, consecutiveFailures, alertedAt, streak };
    const state = { ...unchanged, status, degraded, isSplit: false, overdue: false };
    const isObserved = monitor.settings.active && !this.suppression.isInMaintenance(monitor.ref, tx.now);
    const error = up ? null : "an incident is open";
    const check: CompletedCheck = {
      up,
      latencyMs: 0,
      at: tx.now,
      manual: false,
      isImmediate: true,
      responseStatus: null,
      error,
    };
    const effect = { state, event: null, reason: null, suppressedBy: null, isSilenced: true };
    const isNews = monitor.status !== status;
    this.deps.monitors.updateState(
      tx,
      isObserved && isNews ? this.store(tx, monitor, check, effect) : { ...monitor, ...state },
    );
    this.deps.changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
  }

  /** Notifies of a monitor whose status has not changed. */
  notify(tx: Tx, monitor: MonitorRow, health: readonly HealthNotification[]): void {
    this.alerting.carryOut(tx, { monitor: factsOf(monitor), outcome: null, health });
  }

  /**
   * Counts the votes of a monitor without a new check: votes lapse, and probes go offline. Without any, the status is unknown,
   * and channels are notified.
   */
  recordVotes(tx: Tx, ref: number): void {
    const { monitors, changes } = this.deps;
    const monitor = monitors.monitor(ref);
    if (monitor === null || !monitor.settings.active || !isVoting(monitor)) return;
    const after = this.recount(tx, monitor, this.votes.tally(monitor, tx.now));
    if (after === monitor) return;
    monitors.updateState(tx, after);
    changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
  }

  /** Whether the votes of a monitor say something else than its status, such as after one has lapsed. */
  hasNewVerdict(monitor: MonitorRow, now: number): boolean {
    return isVoting(monitor) && this.isNews(monitor, this.votes.tally(monitor, now), now);
  }

  private isNews(monitor: MonitorRow, verdict: Verdict | null, now: number): boolean {
    if (verdict === null) return monitor.status !== "unknown" && this.votes.isObservable(monitor, now);
    return monitor.status !== (verdict.isDown ? "down" : "up") || monitor.isSplit !== verdict.isSplit;
  }

  /** The monitor after votes have been counted without a new one; the same if they change nothing. */
  private recount(tx: Tx, monitor: MonitorRow, verdict: Verdict | null): MonitorRow {
    if (!this.isNews(monitor, verdict, tx.now)) return monitor;
    if (verdict === null) return this.markedUnknown(tx, monitor);
    const check: CompletedCheck = {
      up: !verdict.isDown,
      latencyMs: monitor.latencyMs ?? 0,
      at: tx.now,
      manual: false,
      responseStatus: null,
      error: verdict.error,
      isRepeat: true,
    };
    const after = this.recordVerdict(tx, settled(this.deps, tx, monitor, tx.now), check, verdict);
    const { lastCheckedAt } = monitor;
    return { ...after, lastCheckedAt, standsSince: tx.now, standsUp: !verdict.isDown };
  }

  /** Nobody can check it: its incident stays as it is, and no time counts. */
  private markedUnknown(tx: Tx, monitor: MonitorRow, error: string | null = null): MonitorRow {
    const unknown = { status: "unknown", degraded: false, isSplit: false, standsSince: null } as const;
    const after = { ...settled(this.deps, tx, monitor, tx.now), ...unknown };
    if (this.suppression.suppressedUntil(monitor.ref, tx.now) !== null) return after;
    const text =
      error === null
        ? "none of its probes reports: its status is unknown"
        : `its status is unknown: ${error}`;
    const facts = { status: "unknown", previous_status: monitor.status };
    const probe_states = this.votes.viewOf(monitor);
    this.notify(tx, after, [{ event: "monitor.unknown", text, facts: { ...facts, error, probe_states } }]);
    return after;
  }

  /** Records the verdict of votes, cast by a check. Returns the monitor after it. */
  private recordVerdict(
    tx: Tx,
    monitor: MonitorRow,
    check: CompletedCheck,
    { isDown, isSplit, isSlow, error, voters }: Verdict,
  ): MonitorRow {
    const before = this.continued(monitor);
    const judged: CompletedCheck = {
      ...check,
      up: !isDown,
      error: isDown ? (check.error ?? error) : null,
      at: Math.max(check.at, monitor.lastCheckedAt ?? 0),
      isImmediate: true,
      probeStates: statesOf(voters),
    };
    const evaluated = this.evaluate(before, judged);
    const state = { ...evaluated.state, degraded: isSplit || isSlow, isSplit };
    const effect = this.suppression.apply(tx, before, judged, { ...evaluated, state });
    const after = check.isRepeat
      ? { ...before, ...effect.state }
      : this.store(tx, before, judged, effect, check);
    this.alerting.carryOut(tx, effectsOf(before, after, judged, effect, this.deps.timeZoneOf));
    return after;
  }

  /** A monitor before a check by which it is known again: its outage continues. */
  private continued(monitor: MonitorRow): MonitorRow {
    const isOutage = monitor.status === "unknown" && this.alerting.openIncidentOf(monitor.ref) !== null;
    return isOutage ? { ...monitor, status: "down" } : monitor;
  }

  /** Records that a voter could not check: its vote lapses, and those of others decide. */
  private recordUnable(
    tx: Tx,
    monitor: MonitorRow,
    check: CompletedCheck,
    verdict: Verdict | null,
  ): MonitorRow {
    const sequence = this.nextSequence++;
    this.insert(tx, check, { sequence, ref: monitor.ref, previous: monitor.lastCheck, mark: UNKNOWN_MARK });
    const lastCheckedAt = Math.max(check.at, monitor.lastCheckedAt ?? 0);
    const stored = { ...monitor, lastCheck: sequence, lastCheckedAt };
    const isNobodyAble = verdict === null && monitor.status !== "unknown" && this.votes.isNobodyAble(monitor);
    if (isNobodyAble) return this.markedUnknown(tx, stored, check.error);
    return this.recount(tx, stored, verdict);
  }

  /** Stores a check that came too late to count, in its place among the others. Returns the monitor after it. */
  private storeLate(tx: Tx, monitor: MonitorRow, check: CompletedCheck): MonitorRow {
    const { checks } = this.deps;
    let [previous, newer] = [monitor.lastCheck, 0];
    for (let walked = 0; walked < LATE_WALKED_MAX; walked += 1) {
      const other = checks.check(previous);
      if (other === null || other.ref !== monitor.ref || other.at <= check.at) break;
      [previous, newer] = [other.previous, other.sequence];
    }
    const sequence = this.nextSequence++;
    this.insert(tx, check, { sequence, ref: monitor.ref, previous, mark: LATE_MARK });
    if (newer === 0) return { ...monitor, lastCheck: sequence };
    checks.setPrevious(tx, sequence, newer);
    return monitor;
  }

  private insert(
    tx: Tx,
    { at, up, manual, latencyMs, responseStatus, error, probe, icmp }: CompletedCheck,
    row: {
      readonly sequence: number;
      readonly ref: number;
      readonly previous: number;
      readonly mark: number;
    },
  ): void {
    const probeName = probe?.name ?? null;
    this.deps.checks.insert(tx, {
      at,
      up,
      manual,
      latencyMs,
      responseStatus,
      error,
      ...row,
      probe: probeName,
      icmp: icmp === undefined ? null : storedIcmp(icmp),
    });
  }

  /** Records one check. Returns the monitor after it, which the caller writes. */
  private recordOne(tx: Tx, monitor: MonitorRow, check: CompletedCheck): MonitorRow {
    // A check from a place that is offline is no vote.
    if (check.offline === undefined && isVoting(monitor)) {
      const verdict = this.votes.cast(tx, monitor, check, this.rulesOf(monitor));
      if (check.isUnknown) return this.recordUnable(tx, monitor, check, verdict);
      if (verdict !== null) return this.recordVerdict(tx, monitor, check, verdict);
      // Fewer failures than the threshold, and nobody else has seen it yet.
      return this.store(tx, monitor, check, notCounted(monitor, check), check);
    }
    const before = check.isUnknown ? monitor : this.continued(monitor);
    const effect = this.suppression.apply(tx, before, check, this.evaluate(before, check));
    const after = check.isRepeat ? { ...before, ...effect.state } : this.store(tx, before, check, effect);
    this.alerting.carryOut(tx, effectsOf(before, after, check, effect, this.deps.timeZoneOf));
    return after;
  }

  /** Stores a check and counts it. `own`: what it saw itself, where votes decide. Returns the monitor after it. */
  private store(
    tx: Tx,
    monitor: MonitorRow,
    check: CompletedCheck,
    { state, reason }: FinalEffect,
    countedCheck = check,
  ): MonitorRow {
    const { at, up, manual, certificate: seen, icmp = monitor.icmp, expiresAt } = check;
    const isUnknown = countedCheck.isUnknown === true;
    const isCounted = reason === null && !isUnknown;
    const added = isCounted ? countOf(monitor, countedCheck) : NO_CHECKS;
    // A manual check stands for no time, and the one before it still does.
    const counted = manual ? monitor : settled(this.deps, tx, monitor, at);
    const current = { hour: counted.hour, ...sumOf(counted, added) };
    const standing = manual ? {} : { standsSince: isCounted ? at : null, standsUp: up };
    const sequence = this.nextSequence++;
    this.insert(tx, countedCheck, {
      sequence,
      ref: monitor.ref,
      previous: monitor.lastCheck,
      mark: isUnknown ? UNKNOWN_MARK : reason === null ? 0 : SUPPRESSION_REASONS[reason],
    });
    // A certificate seen during maintenance is ignored: the next check sees it again.
    const isRelevant = seen !== undefined && isCounted && state.lastCheckedAt === at;
    const certificate = isRelevant
      ? updatedCertificate(monitor.certificate, seen, check, monitor.settings.tls_expiry_days)
      : monitor.certificate;
    const isCurrent = expiresAt !== undefined && isCounted && state.lastCheckedAt === at;
    const domain = isCurrent ? updatedRegistration(monitor.domain, expiresAt, check) : monitor.domain;
    return { ...monitor, ...state, ...current, ...standing, lastCheck: sequence, certificate, icmp, domain };
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

/** The effect of a check that nobody's vote follows from. */
function countOf({ settings: { type } }: MonitorRow, { up, latencyMs }: CompletedCheck): typeof NO_CHECKS {
  if (!up) return { ...NO_CHECKS, checks: 1 };
  return {
    ...NO_CHECKS,
    checks: 1,
    up: 1,
    latencySum: latencyMs,
    latencies: hasLatency(type, latencyMs) ? latenciesOf([latencyMs]) : NO_LATENCIES,
  };
}

function notCounted(monitor: MonitorRow, { at, latencyMs }: CompletedCheck): FinalEffect {
  const state = { ...monitor, latencyMs, lastCheckedAt: Math.max(at, monitor.lastCheckedAt ?? 0) };
  return { state, event: null, reason: null, suppressedBy: null, isSilenced: true };
}
