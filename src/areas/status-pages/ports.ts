import type { Impact, IncidentStatus } from "../../kernel/data/incident-words.ts";
import type { UptimeCounts } from "../../kernel/data/uptime.ts";
import type { TierName, Tiers } from "../../kernel/limits/tiers.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { PageSettings } from "./schema.ts";

/** Counts of a day, and how long no result counted. */
export interface PageDay extends UptimeCounts {
  /** Milliseconds in which the server was offline. */
  readonly observerMs: number;
  /** Milliseconds in maintenance windows. */
  readonly maintenanceMs: number;
}

/** A monitor on a page. */
export interface PageMonitor {
  readonly ref: number;
  readonly monitorId: string;
  readonly projectRef: number;
  /** As people see it: it may contain the host of its target, unless `isNamed`. */
  readonly name: string;
  readonly isNamed: boolean;
  readonly url: string;
  /** Whether it requests a target. */
  readonly hasTarget: boolean;
  readonly isActive: boolean;
  readonly status: "up" | "down" | "unknown";
  readonly degraded: boolean;
  /** Whether it is a heartbeat whose first success is missing. */
  readonly overdue: boolean;
  /** Milliseconds; null before the first check. */
  readonly latencyMs: number | null;
  /** Epoch milliseconds; null before the first check. */
  readonly lastCheckedAt: number | null;
}

/** A monitor with its history. */
export interface MonitorWithHistory extends PageMonitor {
  /** Whole days until its certificate expires, negative after that; null without one. */
  certificateDays(now: number): number | null;
  /** Whole days until the registration of its domain ends, negative after that; null without one. */
  domainDays(now: number): number | null;
  /** Counts by the start of the day in UTC, from a day until now, today included. */
  days(from: number, now: number): ReadonlyMap<number, PageDay>;
  /** Counts of the hours that began after a time, until now. */
  hours(after: number, now: number): readonly (UptimeCounts & { readonly hour: number })[];
}

/** Monitors by id; null for none. */
export interface PageMonitors {
  find(monitorId: string): PageMonitor | null;
  findWithHistory(monitorId: string): MonitorWithHistory | null;
}

/** A stored incident. */
export interface StoredIncident {
  readonly ref: number;
  readonly id: string;
  readonly title: string;
  readonly titleGiven: number;
  readonly impact: Impact;
  readonly status: string;
  readonly isAuto: number;
  readonly isPublic: number;
  /** JSON array of ids. */
  readonly monitorIds: string;
  readonly startedAt: number;
  readonly resolvedAt: number | null;
}

interface IncidentQuery {
  readonly projectRef: number;
  /** Epoch milliseconds: incidents that were resolved before it are omitted. */
  readonly since: number;
  readonly rowsMax: number;
}

/** What is stored of incidents. */
export interface PageIncidents {
  readonly ofPages: {
    /** Public manual incidents, newest first. */
    manual(query: IncidentQuery): StoredIncident[];
    /** Incidents that monitors opened, newest first. */
    automatic(query: IncidentQuery): StoredIncident[];
    incident(incidentId: string, projectRef: number): StoredIncident | null;
  };
  updatesCount(ref: number): number;
  /** Newest updates of an incident, newest first. `links`: offsets of the links in the message, as JSON. */
  newestUpdates(
    ref: number,
    rowsMax: number,
  ): {
    readonly at: number;
    readonly status: string;
    readonly message: string;
    readonly links: string | null;
  }[];
  /** Maximum number of updates of an incident. */
  readonly updatesMax: number;
}

/** A maintenance window; the current or next one of recurring windows. */
export interface StoredWindow {
  readonly ref: number;
  readonly id: string;
  readonly title: string;
  readonly message: string;
  readonly public: boolean;
  readonly starts_at: number;
  readonly ends_at: number;
  readonly schedule: string | null;
  readonly createdAt: number;
}

/** Maintenance windows. */
export interface PageWindows {
  ofProject(projectRef: number): StoredWindow[];
  monitorIdsOf(ref: number): string[];
  /** Whether a public window of a monitor is open. */
  isPublicAt(monitorRef: number, at: number): boolean;
}

/** An incident that subscribers are notified of. */
export interface AnnouncedIncident {
  readonly projectRef: number;
  readonly id: string;
  readonly status: IncidentStatus;
  /** Whether it is, or was, public. */
  readonly announced: boolean;
}

/** What status pages need of other areas and the kernel's optional parts. */
export interface PageDeps {
  readonly monitors: PageMonitors;
  /** Whether a project is deleted. */
  readonly isStopped: (projectRef: number) => boolean;
  readonly incidents: PageIncidents;
  readonly maintenance: PageWindows;
  /** Accounts that own pages. */
  readonly owners: {
    account(accountRef: number): { readonly tier: TierName; readonly suspended: boolean };
  };
  readonly tiers: Tiers;
  readonly outbox: Outbox;
  /** Public base URL of the server now; null if it is not configured. */
  readonly publicUrl: () => string | null;
  /** What pages show that have no color, logo or website of their own. */
  readonly brand: () => Pick<PageSettings, "color" | "logo" | "website_url">;
  /** File name of the stylesheet. */
  readonly statusStyle: string;
  /** The time zone of texts of a project. */
  readonly timeZoneOf: (projectRef: number) => string;
}
