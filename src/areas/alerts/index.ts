import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport, ExportedTable } from "../../kernel/projects/account-export.ts";
import type { ProjectContents } from "../../kernel/projects/resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Channels } from "./channels.ts";
import { Digests } from "./digests.ts";
import { channelExport, exportOfMonitor } from "./export.ts";
import { LaterAlerts } from "./later-alerts.ts";
import { type ChannelNotification, Notifications, type WebhookAlert } from "./notifications.ts";
import type { AlertDeps, AlertedMonitor, OngoingOutages } from "./ports.ts";
import { Reminders } from "./reminders.ts";
import { channelRoutes } from "./routes.ts";
import { CHANNELS_MAX } from "./schema.ts";
import { channelStore } from "./store.ts";

type MonitorKey = Pick<AlertedMonitor, "ref" | "projectRef">;

/** What the area offers to the server. */
export interface AlertsArea extends ApiArea {
  readonly contents: ProjectContents;
  readonly exported: AreaExport;
  /** The channels of a monitor in an export. */
  readonly exportOfMonitor: ExportedTable;
  /** Notifies the channels of a monitor, else the default channels of the project, each if it subscribes to the event. */
  notifyChannels(tx: Tx, notification: ChannelNotification): void;
  /** Notifies the default channels of a project. */
  notifyProject(tx: Tx, notification: Omit<ChannelNotification, "monitor">): void;
  /** Alerts a single webhook, in the unit of work of the event. */
  notifyWebhook(tx: Tx, alert: WebhookAlert): void;
  hasChannels(projectRef: number): boolean;
  /** The ids of the channels of a monitor; null for the project's default channels. */
  channelIdsOf(monitor: MonitorKey): string[] | null;
  /** `channelIds`: null for the default channels. @throws ApiError `validation_error` for a channel of another project */
  chooseChannels(tx: Tx, monitor: MonitorKey, channelIds: readonly string[] | null): void;
  /** Ends what concerns a monitor that is deleted: its reminders, its channels. */
  monitorRemoved(tx: Tx, monitor: MonitorKey): void;
  /** Channels of a project whose last message could not be delivered, at most `channelsMax`. */
  failingChannels(
    projectRef: number,
    channelsMax: number,
  ): readonly { readonly id: string; readonly name: string; readonly error: string }[];
  /** Delays the alert of an outage until a time, epoch milliseconds; nobody is notified if the outage ends before. */
  delay(tx: Tx, alert: ChannelNotification & { readonly monitor: AlertedMonitor }, until: number): void;
  /** Notifies the channels of a monitor again at a time, epoch milliseconds, if its outage continues until then. */
  notifyAgainAt(tx: Tx, monitor: AlertedMonitor, at: number): void;
  /** The name of a channel; null for one that is gone. */
  channelName(channelRef: number): string | null;
  /** Whether the alert of a monitor's outage is delayed. */
  isDelayed(monitorRef: number): boolean;
  /** Drops the alert that is delayed. Returns whether there was one. */
  dropDelayed(tx: Tx, monitorRef: number): boolean;
  /**
   * Notifies channels of outages that continue: delayed alerts, steps of escalations, reminders. Called once, before the
   * scheduler starts.
   */
  followUp(ongoingOutage: OngoingOutages): void;
}

/** Builds the area: notification channels, and the messages that they receive. */
export function createAlerts(kernel: Kernel, deps: AlertDeps): AlertsArea {
  const channels = channelStore(kernel.db);
  const all = { ...kernel, ...deps, channels };
  const notifications = new Notifications(all);
  const managed = new Channels(all, notifications);
  new Digests(all, notifications);
  return {
    parts: [],
    routes: (api) => channelRoutes(api, managed),
    exported: channelExport(kernel.vault, kernel.db),
    exportOfMonitor: exportOfMonitor(kernel.db),
    contents: {
      removeRows(tx, projectRef, rowsMax) {
        const removed = channels.removeHeldOfProject(tx, projectRef, rowsMax);
        if (removed >= rowsMax) return removed;
        channels.removeOfProject(tx, projectRef, CHANNELS_MAX);
        notifications.channelsChanged(tx, projectRef);
        return removed;
      },
    },
    notifyChannels: (tx, notification) => notifications.notifyChannels(tx, notification),
    notifyProject: (tx, notification) => notifications.notifyChannels(tx, { ...notification, monitor: null }),
    notifyWebhook: (tx, alert) => notifications.notifyWebhook(tx, alert),
    hasChannels: (projectRef) => notifications.hasChannels(projectRef),
    channelIdsOf: ({ projectRef, ref }) => managed.idsFor(projectRef, ref),
    chooseChannels(tx, { projectRef, ref }, channelIds) {
      channels.choose(tx, ref, channelIds === null ? null : managed.refsOf(projectRef, channelIds));
    },
    monitorRemoved(tx, monitor) {
      notifications.cancelFollowUps(tx, monitor);
      channels.choose(tx, monitor.ref, null);
    },
    failingChannels: (projectRef, channelsMax) =>
      channels.failing(projectRef, channelsMax).map(({ id, name, lastError }) => ({
        id,
        name,
        error: lastError ?? "",
      })),
    delay: (tx, alert, until) => notifications.delay(tx, alert, until),
    notifyAgainAt: (tx, monitor, at) => notifications.notifyAgainAt(tx, monitor, at),
    channelName: (channelRef) => notifications.channelName(channelRef),
    isDelayed: (monitorRef) => notifications.isDelayed(monitorRef),
    dropDelayed: (tx, monitorRef) => notifications.dropDelayed(tx, monitorRef),
    followUp(ongoingOutage) {
      new Reminders({ ...all, ongoingOutage }, notifications);
      new LaterAlerts({ ...all, ongoingOutage }, notifications);
    },
  };
}
