import type { ProbeState } from "../../kernel/data/probe-state.ts";
import { withSecretsCovered } from "../../kernel/outbound/headers.ts";
import { managedView } from "../../kernel/resources/managed.ts";
import type { Fields } from "../../kernel/storage/tx.ts";
import { secondsOf } from "../../kernel/time/units.ts";
import type { Alerting } from "./alerting.ts";
import type { TypeBehaviors } from "./behaviors.ts";
import { daysLeft } from "./certificate.ts";
import { hostOf, isFailing, shownName } from "./domain.ts";
import type { Viewer } from "./heartbeats/heartbeats.ts";
import type { AreaDeps } from "./ports.ts";
import type { Monitor, MonitorStatus } from "./schema.ts";
import type { MonitorRow } from "./store.ts";
import type { Suppression } from "./suppression/suppression.ts";
import { MONITOR_CLIENT_KEY, MONITOR_HEADERS } from "./targets/http.ts";
import { checksTarget } from "./types.ts";
import type { Votes } from "./votes/votes.ts";

/** Representations of monitors in responses and in the audit log. */
export class MonitorViews {
  constructor(
    private readonly deps: Pick<AreaDeps, "checks" | "clock" | "vault" | "digests"> & {
      readonly alerting: Pick<Alerting, "channelIdsOf" | "openIncidentOf">;
      readonly suppression: Suppression;
      readonly behaviors: TypeBehaviors;
      readonly votes: Pick<Votes, "viewOf">;
    },
  ) {}

  /** A monitor with its headers. */
  whole(monitor: MonitorRow, viewer: Viewer): Monitor {
    return {
      id: monitor.monitorId,
      ...this.configuredOf(monitor),
      ...this.deps.behaviors(monitor.settings.type).view(monitor, viewer),
      headers: this.headersOf(monitor),
      ...this.lastCheckOf(monitor),
      ...this.deps.suppression.viewOf(monitor),
      ...this.managedOf(monitor, viewer, this.headersOf(monitor)),
    };
  }

  /** The same with `[secret]` in place of header values that may be secret. */
  covered(monitor: MonitorRow, viewer: Viewer): Monitor {
    const whole = this.whole(monitor, viewer);
    return { ...whole, headers: whole.headers && { ...withSecretsCovered(whole.headers) } };
  }

  /** A monitor with its status, without header values. */
  status(monitor: MonitorRow, viewer: Viewer): MonitorStatus {
    const headers = this.headersOf(monitor);
    return {
      monitor_id: monitor.monitorId,
      ...this.configuredOf(monitor),
      ...this.deps.behaviors(monitor.settings.type).view(monitor, viewer),
      header_names: Object.keys(headers ?? {}),
      ...this.lastCheckOf(monitor),
      ...this.deps.suppression.viewOf(monitor),
      consecutive_failures: monitor.consecutiveFailures,
      ...this.managedOf(monitor, viewer, headers),
    };
  }

  private managedOf(
    { monitorId, managedBy, settings }: MonitorRow,
    { caller }: Viewer,
    headers: Readonly<Record<string, string>> | null,
  ) {
    const { vault, digests } = this.deps;
    const tls_client_key = MONITOR_CLIENT_KEY.openOrNull(vault, monitorId, settings.tls_client_key);
    return {
      ...managedView(managedBy),
      ...digests.of(caller, "pulse", monitorId, { headers, tls_client_key }),
    };
  }

  /** The settings for the audit log, without results of checks. */
  audited(monitor: MonitorRow): Fields {
    const { created_at, updated_at, has_name, ...settings } = this.configuredOf(monitor);
    const timing = this.deps.behaviors(settings.type).settingsOf(monitor);
    const depends_on = this.deps.suppression.parentOf(monitor.ref)?.monitorId ?? null;
    return { ...settings, ...timing, depends_on, headers: this.headersOf(monitor) };
  }

  /** The settings without headers. */
  private configuredOf({ settings, ref, projectRef, createdAt, updatedAt }: MonitorRow) {
    const { headers, tls_client_key, ...others } = settings;
    return {
      ...others,
      interval: checksTarget(settings.type) ? others.interval : null,
      name: shownName(settings),
      has_name: settings.name !== null,
      channels: this.deps.alerting.channelIdsOf({ projectRef, ref }),
      created_at: secondsOf(createdAt),
      updated_at: secondsOf(updatedAt),
    };
  }

  private lastCheckOf(monitor: MonitorRow) {
    const { ref, status, latencyMs, lastCheckedAt, degraded, isSplit, overdue } = monitor;
    const at = lastCheckedAt === null ? null : secondsOf(lastCheckedAt);
    const probeStates = this.deps.votes.viewOf(monitor);
    // The last check may be that of a probe that sees it up.
    const isSeenDown = status === "down" || isSplit;
    const seenDown = isSeenDown ? probeStates.findLast(isDownVote) : undefined;
    const incident = status === "down" ? this.deps.alerting.openIncidentOf(ref) : null;
    return {
      status: isSplit ? ("degraded" as const) : status,
      latency_ms: latencyMs,
      last_checked_at: at,
      degraded,
      degraded_reason: degraded ? reasonOf(monitor) : null,
      probe_states: probeStates,
      overdue,
      failing: isFailing(monitor),
      certificate: certificateOf(monitor, this.deps.clock.now()),
      error: this.errorOf(monitor) ?? seenDown?.error ?? null,
      incident_id: incident?.id ?? null,
    };
  }

  /** Error of the last check. What has been up without a failure since has none, so that nothing is read. */
  private errorOf({ ref, status, consecutiveFailures, isSplit, lastCheck }: MonitorRow): string | null {
    if (lastCheck === 0 || (status === "up" && consecutiveFailures === 0 && !isSplit)) return null;
    const check = this.deps.checks.check(lastCheck);
    return check?.ref === ref ? check.error : null;
  }

  /** The headers of its checks; null without any. */
  headersOf({ monitorId, settings: { headers } }: MonitorRow): Record<string, string> | null {
    return MONITOR_HEADERS.openOrNull(this.deps.vault, monitorId, headers);
  }
}

/** Summary and target of an audit entry about a monitor. */
export function aboutMonitor({ monitorId, settings }: MonitorRow, what: string) {
  const host = checksTarget(settings.type) ? hostOf(settings.url) : shownName(settings);
  return { summary: `Monitor of ${host} ${what}`, target: { type: "monitor", id: monitorId } };
}

function isDownVote({ status, online }: ProbeState): boolean {
  return online && status === "down";
}

function reasonOf({ settings: { type }, isSplit }: MonitorRow): Exclude<Monitor["degraded_reason"], null> {
  if (type === "manual") return "incident";
  return isSplit ? "probes" : "slow";
}

function certificateOf({ certificate }: MonitorRow, now: number): Monitor["certificate"] {
  if (certificate === null) return null;
  const { notAfter, issuer, intermediate } = certificate;
  const view = { not_after: secondsOf(notAfter), days_left: daysLeft(certificate, now), issuer };
  return intermediate === undefined ? view : { ...view, intermediate };
}
