import type { ShownState } from "../../kernel/data/incident-words.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { EventReader } from "./event-reader.ts";
import { type Impacts, INCIDENTS_MAX, type IncidentPreview, impactsOf, previewOf } from "./events.ts";
import type { AnnouncedIncident, PageMonitor, PageWindows } from "./ports.ts";
import type { PageStore } from "./store.ts";
import { announce } from "./subscriptions/announcements.ts";
import type { SubscriberStore } from "./subscriptions/store.ts";
import { stateOf } from "./view.ts";

/** Maximum number of status pages of an incident: their settings are read for each request. */
export const PAGES_MAX = 5;

/** What status pages show of incidents. */
export interface IncidentPages {
  /** The monitors with the states that pages show. */
  monitors(
    projectRef: number,
    monitors: readonly PageMonitor[],
    now: number,
  ): { readonly id: string; readonly name: string; readonly state: ShownState }[];
  /** The newest pages of the project that show the incident, or would show it if it were public. */
  statusPages(
    incident: Pick<AnnouncedIncident, "id" | "projectRef">,
    monitors: readonly PageMonitor[],
  ): (IncidentPreview & { readonly slug: string; readonly title: string; readonly subscribers: number })[];
  /** Queues the notification of subscribers in the unit of work of a change, unless the incident has never been public. */
  announce(tx: Tx, incident: AnnouncedIncident, message?: string): void;
}

/** Builds what status pages show of incidents, and tell their subscribers. */
export function incidentPages({
  eventReader,
  maintenance,
  pages,
  subscribers,
  scheduler,
  ids,
}: Pick<Kernel, "scheduler" | "ids"> & {
  readonly eventReader: EventReader;
  readonly maintenance: Pick<PageWindows, "isPublicAt">;
  readonly pages: PageStore;
  readonly subscribers: SubscriberStore;
}): IncidentPages {
  /** Worst impact of the open public incidents, by the position of a monitor in the list. */
  function impactsOn(projectRef: number, monitors: readonly PageMonitor[], now: number): Impacts {
    const query = { since: now, withAutomatic: false, max: INCIDENTS_MAX, updatesMax: 0 };
    const positions = new Map(monitors.map(({ monitorId }, index) => [monitorId, index]));
    return impactsOf(
      eventReader.incidents(projectRef, query).map((incident) => ({
        ...incident,
        numbers: incident.monitorIds.flatMap((id) => positions.get(id) ?? []),
      })),
    );
  }
  return {
    announce: (tx, incident, message) => announce(tx, { subscribers, scheduler, ids }, incident, message),
    monitors(projectRef, monitors, now) {
      const impacts = impactsOn(projectRef, monitors, now);
      const maintained = monitors.flatMap(({ ref }, index) =>
        maintenance.isPublicAt(ref, now) ? [index] : [],
      );
      const events = { maintainedPositions: new Set(maintained), impacts };
      return monitors.map((monitor, index) => ({
        id: monitor.monitorId,
        name: monitor.name,
        state: stateOf(monitor, index, events),
      }));
    },
    statusPages({ id, projectRef }, monitors) {
      const incident = eventReader.incident(projectRef, id, 0);
      if (incident === null) return [];
      return pages.page(projectRef, Number.MAX_SAFE_INTEGER, PAGES_MAX).flatMap((page) => {
        const preview = page.settings.published ? previewOf(page, incident, monitors) : null;
        if (preview === null) return [];
        const { slug, settings, ref } = page;
        return { slug, title: settings.title, ...preview, subscribers: subscribers.confirmedCount(ref) };
      });
    },
  };
}
