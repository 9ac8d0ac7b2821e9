import type { ComponentType } from "preact";
import { place } from "../../core/route.ts";
import { lazy } from "../../ui/lazy.tsx";
import { MonitorList } from "./monitor-list.tsx";

const MonitorPage = lazy(async () => (await import("./monitor.tsx")).MonitorPage);

const LISTS: Readonly<Record<string, ComponentType>> = {
  incidents: lazy(async () => (await import("./incidents.tsx")).IncidentsPage),
  channels: lazy(async () => (await import("./channels.tsx")).ChannelsPage),
  probes: lazy(async () => (await import("./probes.tsx")).ProbesPage),
  pages: lazy(async () => (await import("./status-pages.tsx")).StatusPagesPage),
  maintenance: lazy(async () => (await import("./maintenance.tsx")).MaintenancePage),
};

/** The list of monitors, one monitor, or another tab. */
export function MonitorsPage() {
  const [id] = place.value.rest;
  const List = LISTS[id ?? ""];
  if (List !== undefined) return <List />;
  return id === undefined ? <MonitorList /> : <MonitorPage key={id} id={id} />;
}
