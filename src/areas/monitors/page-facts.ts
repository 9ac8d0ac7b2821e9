import type { MonitorRow } from "./store.ts";

/** An incident, as far as a page shows it. */
export interface PageIncident {
  /** Never shown as it is. */
  readonly id: string;
  readonly kind: "auto" | "manual";
  readonly title: string;
  readonly impact: "degraded" | "outage";
  readonly status: string;
  readonly public: boolean;
  readonly monitorIds: readonly string[];
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly resolvedAt: number | null;
  /** Oldest first. */
  readonly updates: readonly { readonly at: number; readonly status: string; readonly message: string }[];
}

/** A time of maintenance; of one that comes again, one of its times. */
export interface PageMaintenance {
  /** Never shown as it is; each time has its own. */
  readonly id: string;
  readonly title: string;
  readonly message: string;
  readonly public: boolean;
  /** Empty: an announcement that is about none. */
  readonly monitorIds: readonly string[];
  /** Epoch milliseconds. */
  readonly startsAt: number;
  readonly endsAt: number;
  /** When it was made known; a time of one that comes again, when it begins. */
  readonly announcedAt: number;
}

/** What pages show beside checks. */
export interface PageFacts {
  /** A project's incidents that are open, or ended at `since` or later; newest first, at most `max`. */
  incidents(projectRef: number, since: number, max: number): readonly PageIncident[];
  /** Open incidents of all projects. */
  openIncidents(): number;
  /** A project's times of maintenance that touch a stretch of time, in order. */
  maintenance(projectRef: number, from: number, until: number): readonly PageMaintenance[];
  /** Whether a monitor answers, but slowly. */
  isDegraded(monitor: MonitorRow): boolean;
  /** When the certificate that its last check saw ends, epoch milliseconds; null where none is known. */
  certificateEndsAt(monitor: MonitorRow): number | null;
  /** For how long nothing was counted of a monitor between two moments, and why. */
  unobserved(
    monitorRef: number,
    from: number,
    until: number,
  ): { readonly observerMs: number; readonly maintenanceMs: number };
}

/**
 * THE JOINT of status pages with incidents, maintenance, degraded states and certificates: all that they ask of the rest
 * of the area. What the area does not have yet is answered as if there were none of it.
 */
export function pageFacts(): PageFacts {
  return {
    incidents: () => [],
    openIncidents: () => 0,
    maintenance: () => [],
    isDegraded: () => false,
    certificateEndsAt: () => null,
    unobserved: () => ({ observerMs: 0, maintenanceMs: 0 }),
  };
}
