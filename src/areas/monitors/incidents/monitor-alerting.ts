import type { Alerting } from "../alerting.ts";
import type { Channels } from "../channels/channels.ts";
import type { Notifications } from "../channels/notifications.ts";
import { CHANNELS_MAX } from "../channels/schema.ts";
import type { ChannelStore } from "../channels/store.ts";
import type { MonitorPorts } from "../ports.ts";
import type { Incidents } from "./lifecycle.ts";
import { Outages } from "./outages.ts";
import type { IncidentStore } from "./store.ts";

interface AlertingParts extends Pick<MonitorPorts, "notifier"> {
  readonly channels: ChannelStore;
  readonly incidents: IncidentStore;
}

interface AlertingDeps {
  readonly notifications: Notifications;
  readonly incidents: Incidents;
  readonly channels: Channels;
}

/** Builds the incidents and channels of monitors. */
export function monitorAlerting(
  parts: AlertingParts,
  { notifications, incidents, channels }: AlertingDeps,
): Alerting {
  const outages = new Outages(parts.notifier, incidents, notifications);
  return {
    carryOut: (tx, effects) => outages.carryOut(tx, effects),
    notifyChannels: (tx, notification) => notifications.notifyChannels(tx, notification),
    hasChannels: (projectRef) => notifications.hasChannels(projectRef),
    channelIdsOf: ({ projectRef, ref }) => channels.idsFor(projectRef, ref),
    chooseChannels(tx, { projectRef, ref }, channelIds) {
      parts.channels.choose(tx, ref, channelIds === null ? null : channels.refsOf(projectRef, channelIds));
    },
    openIncidentOf: (monitorRef) => incidents.openOf(monitorRef),
    resolveIncident: (tx, monitorRef) => void incidents.resolve(tx, monitorRef, tx.now),
    outagesOf: (query) => parts.incidents.outagesOf(query),
    monitorRemoved(tx, monitor) {
      notifications.cancelReminders(tx, monitor);
      incidents.resolve(tx, monitor.ref, tx.now);
      parts.channels.choose(tx, monitor.ref, null);
    },
    removeRows(tx, projectRef, rowsMax) {
      const removed = parts.incidents.removeOfProject(tx, projectRef, rowsMax);
      if (removed >= rowsMax) return removed;
      parts.channels.removeOfProject(tx, projectRef, CHANNELS_MAX);
      notifications.channelsChanged(tx, projectRef);
      return removed;
    },
  };
}
