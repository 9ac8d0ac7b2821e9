import type { Kernel } from "../../../kernel/kernel.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import type { Labels, Sample } from "../../../kernel/metrics/metrics.ts";
import { COUNTED_MAX } from "../../../kernel/projects/overview-card.ts";
import { shownName } from "../domain.ts";
import type { AreaDeps } from "../ports.ts";
import type { ProbeStore } from "../probes/store.ts";
import type { ProbeWorkplace } from "../probes/work.ts";
import type { MonitorRow } from "../store.ts";

/** Maximum number of monitors with metrics, so that `/metrics` stays at some hundred kilobytes. The oldest come first, so that no series ends. */
export const MONITORS_MEASURED_MAX = 500;
/** The same of probes: those of ten accounts of the highest tier. */
const PROBES_MEASURED_MAX = 500;

/** Reads the value of a gauge; null for none. */
type Read = (monitor: MonitorRow) => number | null;

type GaugeDeps = Pick<AreaDeps, "monitors" | "stopped" | "projectIdOf">;

/** Probes, and whether they are online. */
interface MeasuredProbes {
  readonly probes: Pick<ProbeStore, "oldest">;
  readonly workplace: Pick<ProbeWorkplace, "isOnline">;
}

/** Declares the Prometheus metrics of monitors. */
export function declareGauges({ metrics }: Pick<Kernel, "metrics">, deps: GaugeDeps): void {
  const { monitors } = deps;
  const labels = new LabelledMonitors(deps);
  const gauges: readonly (readonly [name: string, help: string, read: Read])[] = [
    ["up", "1 if up, 0 if down; omitted while the status is unknown.", upOf],
    ["degraded", "1 if up, but slow.", ({ degraded }) => (degraded ? 1 : 0)],
    ["overdue", "1 if it is a heartbeat whose first success is missing.", overdueOf],
    ["latency_seconds", "Latency of the last check.", ({ latencyMs }) => inSeconds(latencyMs)],
    [
      "last_check_timestamp_seconds",
      "Time of the last check, Unix time.",
      ({ lastCheckedAt }) => inSeconds(lastCheckedAt),
    ],
    [
      "certificate_not_after_timestamp_seconds",
      "Expiry of the certificate that the last check saw, Unix time.",
      ({ certificate }) => inSeconds(certificate?.notAfter ?? null),
    ],
    [
      "domain_expires_timestamp_seconds",
      "End of the registration that the last check saw, Unix time.",
      ({ domain }) => inSeconds(domain?.expiresAt ?? null),
    ],
  ];
  for (const [name, help, read] of gauges) {
    metrics.declare({
      name: `ninefold_monitor_${name}`,
      help: `Monitor: ${help}`,
      type: "gauge",
      labels: ["project", "monitor", "name", "type"],
      samples: () => labels.samples(read),
    });
  }
  metrics.number(
    "ninefold_monitors_omitted",
    `Monitors without metrics, above the maximum, counted up to ${COUNTED_MAX} monitors.`,
    () => Math.max(0, monitors.countAll(COUNTED_MAX) - MONITORS_MEASURED_MAX),
  );
}

/** Declares the Prometheus metric of probes. */
export function declareProbeGauge(
  { metrics }: Pick<Kernel, "metrics">,
  { probes, workplace, stopped, projectIdOf }: GaugeDeps & MeasuredProbes,
): void {
  metrics.declare({
    name: "ninefold_probe_online",
    help: "Probe: 1 if online, 0 if offline; omitted before its first request.",
    type: "gauge",
    labels: ["project", "probe"],
    samples: () =>
      probes.oldest(PROBES_MEASURED_MAX).flatMap((probe) => {
        const isOnline = stopped.has(probe.projectRef) ? null : workplace.isOnline(probe);
        const labels = { project: projectIdOf(probe.projectRef) ?? "", probe: probe.name };
        return isOnline === null ? [] : [{ labels, value: Number(isOnline) }];
      }),
  });
}

/** Monitors with metrics, and the labels of their series. */
class LabelledMonitors {
  /** Cached ids of projects, by reference. Ids are never reused. */
  private readonly projectIds = new LruMap<number, string | null>(MONITORS_MEASURED_MAX);

  constructor(private readonly deps: GaugeDeps) {}

  samples(read: Read): Sample[] {
    return this.deps.monitors.oldest(MONITORS_MEASURED_MAX).flatMap((monitor) => {
      const value = this.deps.stopped.has(monitor.projectRef) ? null : read(monitor);
      return value === null ? [] : [{ labels: this.labelsOf(monitor), value }];
    });
  }

  private labelsOf({ projectRef, monitorId, settings }: MonitorRow): Labels {
    return {
      project: this.projectIdOf(projectRef),
      monitor: monitorId,
      name: shownName(settings),
      type: settings.type,
    };
  }

  private projectIdOf(ref: number): string {
    return this.projectIds.getOrAdd(ref, () => this.deps.projectIdOf(ref)) ?? "";
  }
}

function upOf({ status }: MonitorRow): number | null {
  return status === "unknown" ? null : Number(status === "up");
}

/** Null for monitors that are no heartbeats. */
function overdueOf({ overdue, settings }: MonitorRow): number | null {
  return settings.type === "heartbeat" ? Number(overdue) : null;
}

function inSeconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1_000;
}
