import { type Clock, realDelay } from "../../kernel/clock.ts";
import type { Counter } from "../../kernel/metrics/instruments.ts";
import type { Metrics } from "../../kernel/metrics/metrics.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import { type RequestHeaders, withDefaults } from "../../kernel/outbound/headers.ts";
import type { OutboundOutcome } from "../../kernel/outbound/outcome.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { type AlertDeps, sendAlert } from "./alerts.ts";
import type { CheckDetails, CheckStore } from "./check-store.ts";
import { afterCheck, type CheckResult, hourOf } from "./domain.ts";
import type { MonitorRow, MonitorStore } from "./store.ts";

/** Redirects that a check follows. */
const REDIRECTS_MAX = 5;
/** Bytes of the body that belong to a check. */
const BODY_BYTES_MAX = 64 * 1024;
/** A check during which the event loop stalled for longer says nothing about its target, and is made again. */
export const STALL_MS_MAX = 1_000;
/** How often such a check is made before it is left out. */
export const TRIES_MAX = 3;
/** Real time between tries: the stall may pass. */
const TRIES_PAUSE_MS = 200;
/** How long checks are kept. */
export const CHECKS_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

const USER_AGENT = "Svc-Pulse/1.0";

/** Who asks for a check. */
const TRIGGERS = ["scheduled", "manual"] as const;
/** What a check found. `unknown`: the event loop stalled in each try, so that the check is left out. */
const OUTCOMES = ["up", "down", "unknown"] as const;

/** What is counted of checks. */
export type CheckCounts = Readonly<
  Record<(typeof TRIGGERS)[number], Readonly<Record<(typeof OUTCOMES)[number], Counter>>>
>;

/** Declares the metrics of checks. */
export function declareCheckCounts(metrics: Metrics): CheckCounts {
  return metrics.counterTable(
    { name: "ninefold_monitor_checks_total", help: "Checks of monitors, by what they found." },
    { label: "trigger", values: TRIGGERS },
    { label: "outcome", values: OUTCOMES },
  );
}

/** A check that was made: its result, and what it saw. */
export interface CheckMade {
  readonly result: CheckResult;
  readonly details: CheckDetails;
}

/** What checks are built on. */
export interface CheckDeps extends AlertDeps {
  readonly monitors: MonitorStore;
  readonly checks: CheckStore;
  readonly outbound: OutboundClient;
  readonly clock: Clock;
  readonly vault: Vault;
  readonly counts: CheckCounts;
}

/** Makes checks and records what they found. */
export class Checks {
  constructor(private readonly deps: CheckDeps) {}

  /** Makes a check. Null: in each try the event loop stalled or resources ran out, so nothing is known. */
  async make(monitor: MonitorRow, manual: boolean): Promise<CheckMade | null> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      if (tries > 0) await realDelay(TRIES_PAUSE_MS);
      const at = this.deps.clock.now();
      const outcome = await this.ask(monitor);
      if (saysSomething(outcome)) return madeOf(outcome, monitor.settings.timeout, at, manual);
    }
    this.deps.counts[manual ? "manual" : "scheduled"].unknown.add();
    return null;
  }

  /** Records a check and queues its alerts; nothing when the monitor was deleted or changed since it was made. */
  record(tx: Tx, checked: MonitorRow, { result, details }: CheckMade): void {
    const { monitors, checks } = this.deps;
    const monitor = monitors.monitor(checked.ref);
    const before = checks.state(checked.ref);
    if (monitor === null || before === null || monitor.version !== checked.version) return;
    const { settings } = monitor;
    const { state, event } = afterCheck(before, result, {
      threshold: settings.consecutive_threshold,
      cooldownMs: settings.cooldown_ms,
      notifyRecovery: settings.notify_recovery,
      hasListeners: settings.webhook_url !== null || settings.email_alert,
    });
    const counted = before.current;
    // A slow check may end after one of the next hour. It counts there: an hour that is closed stays as it is.
    const hour = Math.max(hourOf(result.at), counted.hour);
    if (counted.checks > 0 && counted.hour !== hour) {
      checks.closeHour(tx, monitor.ref, counted, hour - CHECKS_KEPT_MS);
    }
    const start = counted.hour === hour ? counted : { hour, checks: 0, up: 0 };
    const current = { hour, checks: start.checks + 1, up: start.up + (result.up ? 1 : 0) };
    checks.record(tx, before, state, result, details, current);
    const counts = this.deps.counts[result.manual ? "manual" : "scheduled"];
    tx.afterCommit(() => (result.up ? counts.up : counts.down).add());
    if (event !== null) sendAlert(tx, this.deps, monitor, { event, previous: before.status, state, result });
  }

  private ask(monitor: MonitorRow): Promise<OutboundOutcome> {
    const { settings } = monitor;
    const body = settings.method === "POST" ? settings.body : null;
    return this.deps.outbound.send({
      account: monitor.accountRef,
      method: settings.method,
      url: settings.url,
      headers: this.headersOf(monitor, body),
      body: body === null ? null : Buffer.from(body),
      timeoutMs: settings.timeout,
      bodyBytesMax: BODY_BYTES_MAX,
      keepsBody: false,
      longerBody: "truncate",
      redirectsMax: REDIRECTS_MAX,
      // Connecting is part of what is checked.
      reuseConnection: false,
    });
  }

  private headersOf({ monitorId, settings: { headers } }: MonitorRow, body: string | null): RequestHeaders {
    const own: RequestHeaders =
      headers === null ? {} : JSON.parse(this.deps.vault.open(headers, sealContext(monitorId)));
    const type: RequestHeaders = body === null ? {} : { "Content-Type": typeOf(body) };
    return withDefaults(own, { "User-Agent": USER_AGENT, Accept: "*/*", ...type });
  }
}

/** Whether the outcome says anything about the target. */
function saysSomething(outcome: OutboundOutcome): boolean {
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

function madeOf(outcome: OutboundOutcome, timeoutMs: number, at: number, manual: boolean): CheckMade {
  const latencyMs = Math.min(outcome.latencyMs, timeoutMs);
  if (outcome.answered) {
    const { status } = outcome;
    const up = status < 400;
    const error = up ? null : `the target answered ${status}`;
    return { result: { up, latencyMs, at, manual }, details: { responseStatus: status, error } };
  }
  const { kind, message } = outcome.failure;
  return {
    result: { up: false, latencyMs: kind === "timeout" ? timeoutMs : latencyMs, at, manual },
    details: { responseStatus: null, error: `${kind}: ${message}` },
  };
}
