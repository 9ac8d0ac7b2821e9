import { type Clock, realDelay } from "../../kernel/clock.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import { withDefaults } from "../../kernel/outbound/given-headers.ts";
import type { OutboundOutcome } from "../../kernel/outbound/outcome.ts";
import type { RequestHeaders } from "../../kernel/outbound/request-head.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { type AlertDeps, tell } from "./alerts.ts";
import type { CheckStore } from "./check-store.ts";
import type { CheckCounts } from "./counts.ts";
import { afterCheck, type CheckResult, hourOf } from "./domain.ts";
import type { MonitorRow, MonitorStore } from "./store.ts";

/** Redirects that a check follows. */
const REDIRECTS_MAX = 5;
/** Bytes of the body that belong to a check. */
const BODY_BYTES_MAX = 64 * 1024;
/** A check during which this process was held up for longer says nothing about its target, and is made again. */
export const HELD_UP_MS_MAX = 1_000;
/** Times that such a check is made before it is left out. */
export const TRIES_MAX = 3;
/** Real time between them: what holds a process up may pass. */
const TRIES_PAUSE_MS = 200;
/** How long checks are kept. */
export const CHECKS_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

const USER_AGENT = "Svc-Pulse/1.0";

/** A check that was made: its result, and what it saw. */
export interface CheckMade {
  readonly result: CheckResult;
  readonly responseStatus: number | null;
  readonly error: string | null;
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

  /** Makes a check. Null: this process was held up or out of resources each time, so nothing is known. */
  async make(monitor: MonitorRow, manual: boolean): Promise<CheckMade | null> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      if (tries > 0) await realDelay(TRIES_PAUSE_MS);
      const at = this.deps.clock.now();
      const outcome = await this.ask(monitor);
      if (saysSomething(outcome)) return madeOf(outcome, monitor.timeoutMs, at, manual);
    }
    this.deps.counts[manual ? "manual" : "scheduled"].unknown.add();
    return null;
  }

  /**
   * Records a check, and queues what is to be told of it. Returns false when the monitor was deleted or changed since:
   * then the check was one of something else.
   */
  record(tx: Tx, checked: MonitorRow, made: CheckMade): boolean {
    const monitor = this.deps.monitors.monitor(checked.ref);
    const before = this.deps.checks.state(checked.ref);
    if (monitor === null || before === null || monitor.version !== checked.version) return false;
    const { result, responseStatus, error } = made;
    const { state, event } = afterCheck(before, result, {
      threshold: monitor.threshold,
      cooldownMs: monitor.cooldownMs,
      notifyRecovery: monitor.notifyRecovery,
      hasListeners: monitor.webhookUrl !== null || monitor.emailAlert,
    });
    const counted = before.current;
    // A slow check may end after a later one that began in the next hour. It counts there: an hour that is closed stays.
    const hour = Math.max(hourOf(result.at), counted.hour);
    if (counted.checks > 0 && counted.hour !== hour) {
      this.deps.checks.closeHour(tx, monitor.ref, counted, hour - CHECKS_KEPT_MS);
    }
    const start = counted.hour === hour ? counted : { hour, checks: 0, up: 0 };
    const current = { hour, checks: start.checks + 1, up: start.up + (result.up ? 1 : 0) };
    this.deps.checks.record(tx, before, state, result, { responseStatus, error }, current);
    const counts = this.deps.counts[result.manual ? "manual" : "scheduled"];
    tx.afterCommit(() => (result.up ? counts.up : counts.down).add());
    if (event !== null) tell(tx, this.deps, monitor, { event, previous: before.status, state, result });
    return true;
  }

  private ask(monitor: MonitorRow): Promise<OutboundOutcome> {
    const body = monitor.method === "POST" ? monitor.body : null;
    return this.deps.outbound.send({
      account: monitor.accountRef,
      method: monitor.method,
      url: monitor.url,
      headers: this.headersOf(monitor, body),
      body: body === null ? null : Buffer.from(body),
      timeoutMs: monitor.timeoutMs,
      bodyBytesMax: BODY_BYTES_MAX,
      keepsBody: false,
      longerBody: "truncate",
      redirectsMax: REDIRECTS_MAX,
      // A check is one of connecting, too.
      reuseConnection: false,
    });
  }

  private headersOf(monitor: MonitorRow, body: string | null): RequestHeaders {
    const own: RequestHeaders =
      monitor.headers === null
        ? {}
        : JSON.parse(this.deps.vault.open(monitor.headers, sealContext(monitor.monitorId)));
    const type: RequestHeaders = body === null ? {} : { "Content-Type": typeOf(body) };
    return withDefaults(own, { "User-Agent": USER_AGENT, Accept: "*/*", ...type });
  }
}

/** Whether what happened was the target's doing. */
function saysSomething(outcome: OutboundOutcome): boolean {
  if (outcome.heldUpMs > HELD_UP_MS_MAX) return false;
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
  if (outcome.answered) {
    const { status, latencyMs } = outcome;
    const up = status < 400;
    const error = up ? null : `the target answered ${status}`;
    return {
      result: { up, latencyMs: Math.min(latencyMs, timeoutMs), at, manual },
      responseStatus: status,
      error,
    };
  }
  const { kind, message } = outcome.failure;
  const latencyMs = kind === "timeout" ? timeoutMs : Math.min(outcome.latencyMs, timeoutMs);
  return {
    result: { up: false, latencyMs, at, manual },
    responseStatus: null,
    error: `${kind}: ${message}`,
  };
}
