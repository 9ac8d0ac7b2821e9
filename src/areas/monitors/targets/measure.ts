import type { Certificate } from "../../../kernel/outbound/certificate.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { STALL_MS_MAX } from "../../../kernel/outbound/event-loop.ts";
import { realDelay } from "../../../kernel/time/clock.ts";
import type { IcmpResult } from "../icmp-result.ts";
import type { CheckedTarget, TargetOutcome } from "./target.ts";
import { targetOf } from "./targets.ts";

/** Attempts before an inconclusive check is skipped. */
export const ATTEMPTS_MAX = 3;
/** Real time between attempts: the stall may pass. */
const ATTEMPT_PAUSE_MS = 200;

/** What a check has measured, on the server or on a probe. */
export interface Measurement {
  /** Start of the check, by the clock of the caller. */
  readonly at: number;
  readonly up: boolean;
  /** Whether the check could not be made, so that it says nothing about the target; it is not `up` then. */
  readonly isUnknown?: boolean;
  readonly latencyMs: number;
  readonly responseStatus: number | null;
  readonly error: string | null;
  /** The certificate of the target, if it presented one. */
  readonly certificate?: Certificate;
  /** What became of the packets of an `icmp` check. */
  readonly icmp?: IcmpResult;
  /** When the registration of a `domain` ends, epoch milliseconds. */
  readonly expiresAt?: number;
}

/** A measurement, and the outcome that it is of. */
export interface MeasuredTarget {
  readonly outcome: TargetOutcome;
  readonly measured: Measurement;
}

/** Checks a target. Null if every attempt was inconclusive: the event loop stalled, or resources ran out. */
export async function measureTarget(
  outbound: OutboundClient,
  target: CheckedTarget,
  now: () => number,
): Promise<MeasuredTarget | null> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 0) await realDelay(ATTEMPT_PAUSE_MS);
    const at = now();
    const outcome = await targetOf(target.settings.type).check(outbound, target, at);
    if (isConclusive(outcome))
      return { outcome, measured: { at, ...findingsOf(outcome, target.settings.timeout) } };
  }
  return null;
}

/** Whether the outcome of a request says anything about the target. */
function isConclusive(outcome: TargetOutcome): boolean {
  if (outcome.stalledMs > STALL_MS_MAX) return false;
  return outcome.answered || outcome.failure.kind !== "local";
}

function findingsOf(outcome: TargetOutcome, timeoutMs: number): Omit<Measurement, "at"> {
  const latencyMs = Math.min(outcome.latencyMs, timeoutMs);
  const { icmp, expiresAt } = outcome;
  const details = { ...(icmp && { icmp }), ...(expiresAt !== undefined && { expiresAt }) };
  if (outcome.answered) {
    const { status, certificate, error } = outcome;
    const found = { up: error === null, latencyMs, responseStatus: status, error, ...details };
    const findings = outcome.isUnknown ? { ...found, isUnknown: true } : found;
    return certificate === null ? findings : { ...findings, certificate };
  }
  const { kind, message } = outcome.failure;
  const durationMs = kind === "timeout" ? timeoutMs : latencyMs;
  const findings = { up: false, latencyMs: durationMs, responseStatus: null, error: `${kind}: ${message}` };
  return kind === "unsupported" ? { ...findings, isUnknown: true } : { ...findings, ...details };
}
