import type { Kernel } from "../../../kernel/kernel.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import type { Labels, Sample } from "../../../kernel/metrics/metrics.ts";
import { shownName } from "../domain.ts";
import type { MonitorParts } from "../ports.ts";
import type { EventReader } from "../status-pages/event-reader.ts";
import type { MonitorRow } from "../store.ts";

/** Monitors that have series: a page of metrics stays some hundred kilobytes. The oldest come first, so that none goes. */
export const MONITORS_MEASURED_MAX = 500;

/** What a gauge reads of a monitor; null: it has no value now. */
type Read = (monitor: MonitorRow) => number | null;

type GaugeParts = Pick<MonitorParts, "monitors" | "stopped" | "projectIdOf"> & {
  readonly eventReader: Pick<EventReader, "openIncidents">;
};

/** Declares what Prometheus reads of monitors, by project and name. */
export function declareGauges({ metrics }: Pick<Kernel, "metrics">, parts: GaugeParts): void {
  const { monitors, eventReader } = parts;
  const labels = new LabelledMonitors(parts);
  const gauges: readonly (readonly [name: string, help: string, read: Read])[] = [
    ["up", "1 while it is up, 0 while it is down; left out before its first check.", upOf],
    ["degraded", "1 while it answers, but slowly.", ({ degraded }) => (degraded ? 1 : 0)],
    ["latency_seconds", "Time of its last check.", ({ latencyMs }) => inSeconds(latencyMs)],
    [
      "last_check_timestamp_seconds",
      "When it was last checked, Unix time.",
      ({ lastCheckedAt }) => inSeconds(lastCheckedAt),
    ],
    [
      "certificate_not_after_timestamp_seconds",
      "When the certificate ends that its last check saw, Unix time.",
      ({ certificate }) => inSeconds(certificate?.notAfter ?? null),
    ],
  ];
  for (const [name, help, read] of gauges) {
    metrics.declare({
      name: `ninefold_monitor_${name}`,
      help: `Of a monitor. ${help}`,
      type: "gauge",
      labels: ["project", "monitor", "name", "type"],
      samples: () => labels.samples(read),
    });
  }
  metrics.number("ninefold_monitors_omitted", "Monitors beyond those that have series of their own.", () =>
    Math.max(0, monitors.countAll() - MONITORS_MEASURED_MAX),
  );
  metrics.number(
    "ninefold_incidents_open",
    "Incidents that are open, of all projects.",
    eventReader.openIncidents,
  );
}

/** The monitors that are measured, and what their series are called. */
class LabelledMonitors {
  /** An id is never given anew; there are no more of them than monitors that are measured. */
  private readonly projectIds = new LruMap<number, string | null>(MONITORS_MEASURED_MAX);

  constructor(private readonly parts: GaugeParts) {}

  samples(read: Read): Sample[] {
    return this.parts.monitors.oldest(MONITORS_MEASURED_MAX).flatMap((monitor) => {
      const value = this.parts.stopped.has(monitor.projectRef) ? null : read(monitor);
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
    return this.projectIds.getOrAdd(ref, () => this.parts.projectIdOf(ref)) ?? "";
  }
}

function upOf({ status }: MonitorRow): number | null {
  return status === "unknown" ? null : Number(status === "up");
}

function inSeconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1_000;
}
