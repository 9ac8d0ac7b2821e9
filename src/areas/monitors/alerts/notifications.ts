import { isUnlimited } from "../../../kernel/limits/tiers.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { shownName } from "../domain.ts";
import type { MonitorNotification, MonitorParts, TrialResult } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import {
  type ChannelMessage,
  headingOf,
  redactedUrl,
  requestOf,
  shortened,
  textOf,
} from "./channel-kinds.ts";
import { CHANNELS_MAX, type ChannelConfig, type ChannelEvent } from "./schema.ts";
import type { ChannelRow } from "./store.ts";

/** Something that channels are told of. */
export interface ChannelNotification {
  readonly projectRef: number;
  /** Null: it is about the project, whose default channels are told. */
  readonly monitor: MonitorRow | null;
  readonly event: ChannelEvent;
  /** What it is about, on one line; of a monitor its name where nothing is given. */
  readonly title?: string;
  /** What has happened, on one line, without a full stop. */
  readonly text: string;
  readonly incidentId?: string | null;
  /** What the body of a webhook says besides. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

type NoticeParts = Pick<
  MonitorParts,
  "vault" | "notifier" | "outbox" | "owners" | "publicUrl" | "channels" | "clock" | "scheduler"
>;

/** Waits before retries, as endpoints have them, up to 24 hours in all: a chat service that is down must not swallow an alert. */
const CHANNEL_RETRIES = ["5s", "5m", "30m", "2h", "5h", "10h", "6h"] as const;

/** Alerts that may not have arrived yet and are remembered in memory, some megabytes: older ones are not merged. */
const PENDING_MAX = 10_000;

/** An alert that a target is down, which may not have arrived yet. */
interface PendingAlert {
  readonly id: string;
  /** When the first one was queued that has not arrived, epoch milliseconds. */
  readonly at: number;
}

/** What a test says. */
const TEST_TEXT = "A test: alerts of this channel arrive here";

/** Tells channels, each in the unit of work of what it is told of: both happen or neither does. */
export class Notifications {
  /** Projects that have channels: all others take no time. */
  private readonly projects: Set<number>;
  /** By channel and monitor. */
  private readonly pending = new Map<string, PendingAlert>();

  constructor(private readonly parts: NoticeParts) {
    this.projects = new Set(parts.channels.projects().map(({ projectRef }) => projectRef));
  }

  /** Whether a project has channels. */
  hasChannels(projectRef: number): boolean {
    return this.projects.has(projectRef);
  }

  /** A project may have got its first channel, or lost its last one. */
  channelsChanged(tx: Tx, projectRef: number): void {
    const [had, has] = [this.projects.has(projectRef), this.parts.channels.count(projectRef) > 0];
    const set = (is: boolean) => (is ? this.projects.add(projectRef) : this.projects.delete(projectRef));
    set(has);
    tx.onRollback(() => set(had));
  }

  /** Tells the channels of a monitor, else the project's default ones, each if it wants to know of such events. */
  notifyChannels(tx: Tx, notice: ChannelNotification): void {
    const { projectRef, monitor, event } = notice;
    if (!this.hasChannels(projectRef)) return;
    const chosen = monitor === null ? null : this.parts.channels.chosen(monitor.ref);
    let told: ChannelMessage | null = null;
    for (const channel of this.parts.channels.page(projectRef, Number.MAX_SAFE_INTEGER, CHANNELS_MAX)) {
      const isRecipient = chosen === null ? channel.isDefault : chosen.includes(channel.ref);
      if (
        !isRecipient ||
        !channel.events.includes(event) ||
        this.parts.scheduler.suspended.has(channel.accountRef)
      )
        continue;
      const downSince = this.withdrawPending(tx, channel, notice);
      told ??= this.messageOf(notice, tx.now);
      if (event !== "monitor.up" || downSince === null) {
        this.remember(tx, channel, notice, this.send(tx, channel, monitor, told), downSince);
        continue;
      }
      const text = `was down ${timeText(downSince)}–${timeText(tx.now)} UTC`;
      this.send(tx, channel, monitor, this.messageOf({ ...notice, text }, tx.now));
      this.remember(tx, channel, notice, null, null);
    }
  }

  /**
   * Cancels the alert of a monitor that has not arrived at a channel yet, where a newer one says more. Returns since when the
   * channel has not been notified; null where everything has arrived.
   */
  private withdrawPending(
    tx: Tx,
    channel: ChannelRow,
    { monitor, event }: ChannelNotification,
  ): number | null {
    if (monitor === null || (event !== "monitor.down" && event !== "monitor.up")) return null;
    const before = this.pending.get(`${channel.ref}/${monitor.ref}`);
    return before !== undefined && this.parts.notifier.withdraw(tx, before.id) ? before.at : null;
  }

  private remember(
    tx: Tx,
    channel: ChannelRow,
    { monitor, event }: ChannelNotification,
    id: string | null,
    since: number | null,
  ): void {
    if (monitor === null || (event !== "monitor.down" && event !== "monitor.up")) return;
    const key = `${channel.ref}/${monitor.ref}`;
    const before = this.pending.get(key);
    this.pending.delete(key);
    if (id !== null && event === "monitor.down") this.pending.set(key, { id, at: since ?? tx.now });
    if (this.pending.size > PENDING_MAX) this.pending.delete(this.pending.keys().next().value ?? "");
    tx.onRollback(() => {
      if (before === undefined) this.pending.delete(key);
      else this.pending.set(key, before);
    });
  }

  /** Sends a test at once, once only, and keeps nothing of it. */
  trial(channel: ChannelRow): Promise<TrialResult> {
    return this.parts.notifier.trial(this.notificationOf(channel, null, this.testOf(channel)));
  }

  /** A test of a channel that writes e-mails: these have a queue of their own. */
  trialByMail(tx: Tx, channel: ChannelRow): void {
    this.send(tx, channel, null, this.testOf(channel));
  }

  /** Seals a channel's configuration. */
  sealed(config: ChannelConfig, channelId: string): Uint8Array {
    return this.parts.vault.seal(JSON.stringify(config), sealContext(channelId));
  }

  /** A channel's configuration. */
  configOf({ config, channelId }: ChannelRow): ChannelConfig {
    return JSON.parse(this.parts.vault.open(config, sealContext(channelId)));
  }

  private testOf({ name }: ChannelRow): ChannelMessage {
    const event = "channel.test";
    const timestamp = secondsOf(this.parts.clock.now());
    const facts = { event, name, text: TEST_TEXT, timestamp };
    return { event, heading: headingOf(event, name), text: TEST_TEXT, link: null, facts };
  }

  private messageOf(
    { monitor, event, title, text: given, incidentId = null, facts }: ChannelNotification,
    now: number,
  ): ChannelMessage {
    const { publicUrl } = this.parts;
    const text = shortened(given);
    const name = title ?? (monitor === null ? "" : shownName(monitor.settings));
    const about =
      monitor === null
        ? { name }
        : { monitor_id: monitor.monitorId, name, url: monitor.settings.url, status: monitor.status };
    const incident = incidentId === null ? "" : `/incidents/${incidentId}`;
    const page = monitor === null ? incident : `/${monitor.monitorId}`;
    return {
      event,
      heading: headingOf(event, name),
      text,
      link: publicUrl === null ? null : `${publicUrl}/dashboard/#/monitors${page}`,
      facts: { event, ...about, ...facts, incident_id: incidentId, text, timestamp: secondsOf(now) },
    };
  }

  /** Returns the id of the notification; null of e-mails, which have a queue of their own. */
  private send(tx: Tx, channel: ChannelRow, monitor: MonitorRow | null, told: ChannelMessage): string | null {
    const { notifier, outbox } = this.parts;
    if (channel.kind !== "email") return notifier.notify(tx, this.notificationOf(channel, monitor, told));
    // The mail server may have been taken away since the channel was made.
    if (!outbox.available) return null;
    const mail = { subject: told.heading, text: textOf(told).replaceAll(" · ", "\n") };
    for (const to of this.recipientsOf(channel)) outbox.enqueue(tx, channel.accountRef, { to, ...mail });
    return null;
  }

  /** Those of the channel while they are its account's own: that may have another address now, and the old one another owner. */
  private recipientsOf(channel: ChannelRow): readonly string[] {
    const { email, tier } = this.parts.owners.account(channel.accountRef);
    const { to = [] } = this.configOf(channel);
    const isOwn = (address: string) => address.toLowerCase() === email.toLowerCase();
    return isUnlimited(tier) || (to.length === 1 && to.every(isOwn)) ? to : [email];
  }

  private notificationOf(
    channel: ChannelRow,
    monitor: MonitorRow | null,
    told: ChannelMessage,
  ): MonitorNotification {
    const { kind, accountRef, projectRef } = channel;
    if (kind === "email") throw new Error("e-mails are no requests");
    const config = this.configOf(channel);
    const { body, ...destination } = requestOf(kind, config, told);
    const monitor_id = monitor?.monitorId ?? null;
    const retry_schedule = CHANNEL_RETRIES;
    const notification = { accountRef, projectRef, event: told.event, monitor_id, body, retry_schedule };
    // Of these the receiver knows by their signature who they are from, and their URL is shown.
    if (kind === "webhook") return { ...notification, target_url: destination.url };
    return { ...notification, target_url: redactedUrl(destination.url), destination };
  }
}

/** What a sealed configuration is sealed for. */
function sealContext(channelId: string): string {
  return `channel-config:${channelId}`;
}

/** `10:02`. */
function timeText(epochMs: number): string {
  return isoTime(epochMs).slice(11, 16);
}

function secondsOf(epochMs: number): number {
  return Math.floor(epochMs / 1_000);
}
