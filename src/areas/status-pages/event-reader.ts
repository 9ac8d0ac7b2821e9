import { mapInSlices } from "../../kernel/background/time-slices.ts";
import type { Impact } from "../../kernel/data/incident-words.ts";
import type { PageIncidents, PageWindows, StoredIncident, StoredWindow } from "./ports.ts";

/** An update of an incident. */
export interface PageUpdate {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly status: string;
  readonly message: string;
  /** Offsets of the links in the message, see `linksOf`; null if they are not stored. */
  readonly links: readonly number[] | null;
}

/** Fields of an incident that a page shows. */
export interface PageIncident {
  readonly id: string;
  readonly kind: "auto" | "manual";
  readonly title: string;
  /** Whether the title was written by a person. An automatic title is never shown, since it can contain a host. */
  readonly titleGiven: boolean;
  readonly impact: Impact;
  readonly status: string;
  readonly public: boolean;
  readonly monitorIds: readonly string[];
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly resolvedAt: number | null;
  /** Number of all updates, also of those that are not included. */
  readonly updatesCount: number;
  /** Newest updates, newest first. */
  readonly updates: readonly PageUpdate[];
}

/** A time in which a monitor was down. */
export interface PageOutage {
  /** Id of its incident. */
  readonly id: string;
  readonly monitorIds: readonly string[];
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Null while it continues. */
  readonly endedAt: number | null;
}

/** A maintenance window; one occurrence of a recurring one. */
export interface PageMaintenance {
  /** Unique per occurrence; never shown. */
  readonly id: string;
  readonly title: string;
  readonly message: string;
  readonly public: boolean;
  /** Empty for an announcement about the whole page. */
  readonly monitorIds: readonly string[];
  /** Epoch milliseconds. */
  readonly startsAt: number;
  readonly endsAt: number;
  /** Creation of the window, or the start of an occurrence; epoch milliseconds. */
  readonly announcedAt: number;
}

/** Reads the incidents and maintenance windows that status pages show. */
export interface EventReader {
  /** Lists a project's incidents that are open or were resolved at `since` or later, newest first, with their newest updates. */
  incidents(
    projectRef: number,
    query: {
      readonly since: number;
      readonly withAutomatic: boolean;
      readonly max: number;
      readonly updatesMax: number;
    },
  ): readonly PageIncident[];
  /** Lists the outages of a project's monitors that continue or ended at `since` or later, newest first. */
  outages(projectRef: number, since: number, max: number): readonly PageOutage[];
  /** Returns an incident of a project with its newest updates, or null. */
  incident(projectRef: number, incidentId: string, updatesMax: number): PageIncident | null;
  /** Lists a project's public maintenance windows that overlap a period, by start. */
  maintenance(projectRef: number, from: number, until: number): Promise<readonly PageMaintenance[]>;
}

/** Builds the reader of what is stored of incidents and maintenance. */
export function eventReader(
  incidents: Pick<PageIncidents, "ofPages" | "newestUpdates" | "updatesCount">,
  maintenance: Pick<PageWindows, "ofProject" | "monitorIdsOf">,
): EventReader {
  const { ofPages } = incidents;
  const incidentOf = (
    { ref, isAuto, isPublic, titleGiven, monitorIds, ...row }: StoredIncident,
    updatesMax: number,
  ): PageIncident => ({
    ...row,
    kind: isAuto === 0 ? "manual" : "auto",
    public: isPublic !== 0,
    titleGiven: titleGiven !== 0,
    monitorIds: JSON.parse(monitorIds),
    updatesCount: incidents.updatesCount(ref),
    updates: incidents
      .newestUpdates(ref, updatesMax)
      .map(({ links, ...update }) => ({ ...update, links: links === null ? null : JSON.parse(links) })),
  });
  const windowOf = (row: StoredWindow): PageMaintenance => ({
    id: `${row.id} ${row.starts_at}`,
    title: row.title,
    message: row.message,
    public: row.public,
    startsAt: row.starts_at,
    endsAt: row.ends_at,
    monitorIds: maintenance.monitorIdsOf(row.ref),
    announcedAt: row.schedule === null ? row.createdAt : row.starts_at,
  });
  return {
    incidents(projectRef, { since, withAutomatic, max, updatesMax }) {
      const query = { projectRef, since, rowsMax: max };
      const rows = [...ofPages.manual(query), ...(withAutomatic ? ofPages.automatic(query) : [])];
      return rows
        .sort((a, b) => b.ref - a.ref)
        .slice(0, max)
        .map((row) => incidentOf(row, updatesMax));
    },
    outages(projectRef, since, max) {
      return ofPages
        .automatic({ projectRef, since, rowsMax: max })
        .map(({ id, monitorIds, startedAt, resolvedAt }) => ({
          id,
          monitorIds: JSON.parse(monitorIds),
          startedAt,
          endedAt: resolvedAt,
        }));
    },
    incident(projectRef, incidentId, updatesMax) {
      const row = ofPages.incident(incidentId, projectRef);
      return row && incidentOf(row, updatesMax);
    },
    async maintenance(projectRef, from, until) {
      const rows = maintenance
        .ofProject(projectRef)
        .filter((row) => row.public && row.starts_at < until && row.ends_at >= from);
      const windows = await mapInSlices(rows, windowOf);
      return windows.sort((a, b) => a.startsAt - b.startsAt);
    },
  };
}
