import { type RequestHeaders, withDefaults } from "../../../kernel/outbound/headers.ts";
import type { OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { realDelay } from "../../../kernel/time/clock.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import {
  type AlertRules,
  afterCheck,
  hourOf,
  type MonitorEvent,
  type MonitorState,
  shownName,
} from "../domain.ts";
import type { CheckOutcome, Outages } from "../incidents/outages.ts";
import { readsBody } from "../options.ts";
import type { MonitorParts } from "../ports.ts";
import type { CompletedCheck, MonitorRow, MonitorSettings } from "../store.ts";
import type { Connectivity } from "../suppression/connectivity.ts";
import { SUPPRESSION_REASONS, type Suppression } from "../suppression/suppression.ts";
import { failureOf } from "./assertions.ts";
import { updatedCertificate } from "./certificate.ts";

/** Redirects that a check follows. */
const REDIRECTS_MAX = 5;
/** Bytes of the body that belong to a check. */
const BODY_BYTES_MAX = 64 * 1024;
/** A check during which the event loop stalled for longer says nothing about its target, and is made again. */
export const STALL_MS_MAX = 1_000;
/** How often such a check is made before it is left out. */
export const ATTEMPTS_MAX = 3;
/** Real time between tries: the stall may pass. */
const ATTEMPT_PAUSE_MS = 200;
/** How long checks are kept. */
export const CHECK_RETENTION_MS = 30 * 24 * 60 * 60 * 1000;

const USER_AGENT = "Svc-Pulse/1.0";

/** What a check found. `unknown`: the event loop stalled in each try, so that the check is left out. */
const OUTCOMES = ["up", "down", "unknown"] as const;

/** Makes checks and records what they found. */
export class Checks {
  private readonly counts;
  private nextSequence: number;

  constructor(
    private readonly parts: MonitorParts,
    private readonly outages: Outages,
    private readonly suppression: Suppression,
    private readonly connectivity: Connectivity,
  ) {
    this.counts = parts.metrics.counterTable(
      { name: "ninefold_monitor_checks_total", help: "Checks of monitors, by what they found." },
      { label: "trigger", values: ["scheduled", "manual"] },
      { label: "outcome", values: OUTCOMES },
    );
    this.nextSequence = parts.checks.highestSequence() + 1;
  }

  /** Makes a check. Null: in each try the event loop stalled or resources ran out, so nothing is known. */
  async make(monitor: MonitorRow, manual: boolean): Promise<CompletedCheck | null> {
    for (let tries = 0; tries < ATTEMPTS_MAX; tries += 1) {
      if (tries > 0) await realDelay(ATTEMPT_PAUSE_MS);
      const at = this.parts.clock.now();
      const outcome = await this.ask(monitor);
      if (!isConclusive(outcome)) continue;
      const line = this.connectivity.saw(monitor, outcome);
      const made = { ...madeOf(outcome, monitor.settings, at, manual), line };
      return this.connectivity.isInconclusive(line) ? { ...made, offline: "server" } : made;
    }
    this.counts[manual ? "manual" : "scheduled"].unknown.add();
    return null;
  }

  /** What a check would bring about by itself. */
  next(monitor: MonitorRow, made: CompletedCheck) {
    const rules = this.rulesOf(monitor);
    return afterCheck(monitor, made, made.ignoresThreshold ? { ...rules, threshold: 1 } : rules);
  }

  /** Records checks, queues their alerts, returns the monitor after them; nothing when it was deleted or changed meanwhile. */
  record(tx: Tx, checked: MonitorRow, made: readonly CompletedCheck[]): MonitorRow | null {
    const monitor = this.parts.monitors.monitor(checked.ref);
    if (monitor === null || monitor.version !== checked.version) return null;
    return this.recordNow(tx, monitor, made);
  }

  /** The same of a monitor that was read in this unit of work. */
  recordNow(tx: Tx, checked: MonitorRow, made: readonly CompletedCheck[]): MonitorRow {
    const { monitors } = this.parts;
    let monitor = checked;
    this.parts.changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
    const last = made.at(-1);
    if (last?.offline === "server") this.connectivity.begin(tx, last.at);
    else if (last?.line === "proved") this.connectivity.end(tx, last.at);
    const up = made.filter((check) => check.up).length;
    for (const check of made) monitor = this.recordOne(tx, monitor, check);
    monitors.updateState(tx, monitor);
    const counts = this.counts[made.some(({ manual }) => manual) ? "manual" : "scheduled"];
    tx.afterCommit(() => {
      counts.up.add(up);
      counts.down.add(made.length - up);
    });
    return monitor;
  }

  /** Records a success of a steady heartbeat. Returns the sequence of its check. */
  recordSuccess(tx: Tx, ref: number, previous: number): number {
    const sequence = this.nextSequence++;
    this.parts.checks.insertSuccess(tx, sequence, ref, previous, tx.now);
    tx.afterCommit(this.countSuccess);
    return sequence;
  }

  private readonly countSuccess = (): void => this.counts.scheduled.up.add();

  /** Makes a monitor's status unknown, and ends its incident: nothing is known of its target any more. Notifies nobody. */
  forgetStatus(tx: Tx, monitor: MonitorRow): void {
    const unknown = {
      status: "unknown",
      consecutiveFailures: 0,
      alertedAt: null,
      degraded: false,
      streak: 0,
    } as const;
    this.parts.monitors.updateState(tx, { ...monitor, ...unknown });
    this.outages.resolveIncident(tx, monitor.ref);
    this.parts.changes.inProject(tx, monitor.projectRef, "pulse", monitor.monitorId);
  }

  /** Returns the monitor after a check, whose row is still to be written. */
  private recordOne(tx: Tx, monitor: MonitorRow, made: CompletedCheck): MonitorRow {
    const { checks } = this.parts;
    const { ref } = monitor;
    const { state, event, mark, ...apply } = this.suppression.apply(
      tx,
      monitor,
      made,
      this.next(monitor, made),
    );
    if (made.again) {
      this.follow(tx, { before: monitor, after: state, made, event, ...apply });
      return { ...monitor, ...state };
    }
    const counts = mark === null ? 1 : 0;
    // A slow check may end after one of the next hour. It counts there: an hour that is closed stays as it is.
    const hour = Math.max(hourOf(made.at), monitor.hour);
    const isSameHour = monitor.hour === hour;
    if (monitor.checks > 0 && !isSameHour) {
      checks.insertHour(tx, { ref, hour: monitor.hour, checks: monitor.checks, up: monitor.up });
      if (this.parts.scheduler.clockTrust.isTrusted)
        checks.removeHoursBefore(tx, ref, hour - CHECK_RETENTION_MS);
    }
    const start = isSameHour ? monitor : { checks: 0, up: 0 };
    const current = { hour, checks: start.checks + counts, up: start.up + (made.up ? counts : 0) };
    const sequence = this.nextSequence++;
    const { at, up, manual, latencyMs, responseStatus, error, certificate: met } = made;
    const found = { at, up, manual, latencyMs, responseStatus, error };
    checks.insert(tx, {
      ...found,
      sequence,
      ref,
      previous: monitor.lastCheck,
      mark: mark === null ? 0 : SUPPRESSION_REASONS[mark],
    });
    this.follow(tx, { before: monitor, after: state, made, event, ...apply });
    // During planned work nobody is told: a certificate that ends is met again after it.
    const isNews = met !== undefined && mark === null && state.lastCheckedAt === made.at;
    const { tls_expiry_days: days } = monitor.settings;
    const certificate = isNews
      ? updatedCertificate(monitor.certificate, met, made, days)
      : monitor.certificate;
    const after = { ...monitor, ...state, ...current, lastCheck: sequence, certificate };
    this.outages.notifyHealth(tx, monitor, after, made);
    return after;
  }

  /** Opens or ends the incident of a check, and tells who is to be told of it. */
  private follow(tx: Tx, turn: CheckOutcome): void {
    const { before, after, made, event } = turn;
    if (event === null && after.status === before.status) return;
    const told = this.outages.recordOutcome(tx, turn);
    if (told !== null) sendAlert(tx, this.parts, before, told, after, made);
  }

  /** When a monitor alerts. */
  rulesOf({ settings, projectRef }: MonitorRow): AlertRules {
    return {
      threshold: settings.consecutive_threshold,
      recoveryThreshold: settings.recovery_threshold,
      degradedMs: settings.degraded_ms,
      cooldownMs: settings.cooldown_ms,
      notifyRecovery: settings.notify_recovery,
      hasListeners:
        settings.webhook_url !== null || settings.email_alert || this.outages.hasChannels(projectRef),
    };
  }

  private ask(monitor: MonitorRow): Promise<OutboundOutcome> {
    const { method, url, timeout, body: text } = monitor.settings;
    // Schemes have any case.
    const readsCertificate = url.slice(0, "https:".length).toLowerCase() === "https:";
    const body = method === "POST" ? text : null;
    return this.parts.outbound.send({
      account: monitor.accountRef,
      method,
      url,
      headers: this.headersOf(monitor, body),
      body: body === null ? null : Buffer.from(body),
      timeoutMs: timeout,
      bodyBytesMax: BODY_BYTES_MAX,
      keepsBody: readsBody(monitor.settings),
      readsCertificate,
      longerBody: "truncate",
      redirectsMax: REDIRECTS_MAX,
      // Connecting is part of what is checked.
      reuseConnection: false,
    });
  }

  private headersOf({ monitorId, settings: { headers } }: MonitorRow, body: string | null): RequestHeaders {
    const own: RequestHeaders =
      headers === null ? {} : JSON.parse(this.parts.vault.open(headers, sealContext(monitorId)));
    const type: RequestHeaders = body === null ? {} : { "Content-Type": typeOf(body) };
    return withDefaults(own, { "User-Agent": USER_AGENT, Accept: "*/*", ...type });
  }
}

/** Whether the outcome says anything about the target. */
function isConclusive(outcome: OutboundOutcome): boolean {
  if (outcome.stalledMs > STALL_MS_MAX) return false;
  return outcome.answered || outcome.failure.kind !== "local";
}

/** What sealed headers of a monitor are sealed for. */
export function sealContext(monitorId: string): string {
  return `monitor-headers:${monitorId}`;
}

function typeOf(body: string): string {
  try {
    JSON.parse(body);
    return "application/json";
  } catch {
    return "text/plain; charset=utf-8";
  }
}

function madeOf(
  outcome: OutboundOutcome,
  settings: MonitorSettings,
  at: number,
  manual: boolean,
): CompletedCheck {
  const { timeout: timeoutMs } = settings;
  const latencyMs = Math.min(outcome.latencyMs, timeoutMs);
  if (outcome.answered) {
    const { status, certificate } = outcome;
    const error = failureOf(settings, outcome);
    const made = { up: error === null, latencyMs, at, manual, responseStatus: status, error };
    return certificate === null ? made : { ...made, certificate };
  }
  const { kind, message } = outcome.failure;
  const error = `${kind}: ${message}`;
  const waited = kind === "timeout" ? timeoutMs : latencyMs;
  return { up: false, latencyMs: waited, at, manual, responseStatus: null, error };
}

/** Queues the alerts of an event, in the unit of work of the check itself: both happen or neither does. */
function sendAlert(
  tx: Tx,
  { notifier, owners, outbox }: MonitorParts,
  monitor: MonitorRow,
  event: MonitorEvent,
  { status, consecutiveFailures: consecutive_failures }: MonitorState,
  { at, latencyMs: latency_ms, responseStatus: response_status, error }: CompletedCheck,
): void {
  const { accountRef, projectRef, monitorId: monitor_id, settings } = monitor;
  const { url, webhook_url: target_url } = settings;
  const name = shownName(settings);
  if (target_url !== null) {
    const checked_at = Math.floor(at / 1_000);
    const timestamp = Math.floor(tx.now / 1_000);
    const body = JSON.stringify({
      event,
      monitor_id,
      name,
      url,
      status,
      previous_status: monitor.status,
      error,
      response_status,
      latency_ms,
      consecutive_failures,
      checked_at,
      timestamp,
    });
    notifier.notify(tx, { accountRef, projectRef, event, body, monitor_id, target_url });
  }
  // The mail server may have been taken away since the monitor was set up.
  if (!settings.email_alert || !outbox.available) return;
  const isDown = event === "monitor.down";
  const failures = `${consecutive_failures} ${consecutive_failures === 1 ? "check" : "checks"}`;
  const text = [
    isDown ? `${url} is down: ${failures} in a row failed.` : `${url} is up again.`,
    "",
    ...(error === null ? [] : [`Error: ${error}`]),
    `Response status: ${response_status ?? "none"}`,
    `Checked: ${isoTime(at)}`,
    `Latency: ${latency_ms} ms`,
    `Monitor: ${name} (${monitor_id})`,
  ].join("\n");
  const subject = `${isDown ? "Down" : "Up"}: ${name}`;
  outbox.enqueue(tx, accountRef, { to: owners.account(accountRef).email, subject, text });
}
