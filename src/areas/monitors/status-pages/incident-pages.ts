import type { Kernel } from "../../../kernel/kernel.ts";
import { shownName } from "../domain.ts";
import type { IncidentPages } from "../incidents/incidents.ts";
import type { MaintenanceStore } from "../maintenance/store.ts";
import type { MonitorRow } from "../store.ts";
import type { EventReader } from "./event-reader.ts";
import { type Impacts, INCIDENTS_MAX, impactsOf, previewOf } from "./events.ts";
import type { PageStore } from "./store.ts";
import { announce } from "./subscriptions/announcements.ts";
import type { SubscriberStore } from "./subscriptions/store.ts";
import { stateOf } from "./view.ts";

/** Maximum number of status pages of an incident: their settings are read for each request. */
export const PAGES_MAX = 5;

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
  readonly maintenance: Pick<MaintenanceStore, "hasWindows" | "isPublicAt">;
  readonly pages: PageStore;
  readonly subscribers: SubscriberStore;
}): IncidentPages {
  /** Worst impact of the open public incidents, by the position of a monitor in the list. */
  function impactsOn(projectRef: number, monitors: readonly MonitorRow[], now: number): Impacts {
    const query = { since: now, withAutomatic: false, max: INCIDENTS_MAX, updatesMax: 0 };
    const positions = new Map(monitors.map(({ monitorId }, index) => [monitorId, index]));
    return impactsOf(
      eventReader
        .incidents(projectRef, query)
        .map((one) => ({ ...one, numbers: one.monitorIds.flatMap((id) => positions.get(id) ?? []) })),
    );
  }
  return {
    announce: (tx, incident, message) => announce(tx, { subscribers, scheduler, ids }, incident, message),
    monitors(projectRef, monitors, now) {
      const impacts = impactsOn(projectRef, monitors, now);
      const maintained = monitors.flatMap(({ ref }, index) =>
        maintenance.hasWindows(ref) !== 0 && maintenance.isPublicAt(ref, now, now) !== 0 ? [index] : [],
      );
      const events = { maintainedPositions: new Set(maintained), impacts };
      return monitors.map((row, index) => ({
        id: row.monitorId,
        name: shownName(row.settings),
        state: stateOf(row, index, events),
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
