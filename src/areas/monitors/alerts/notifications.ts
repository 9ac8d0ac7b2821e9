import { isUnlimited } from "../../../kernel/limits/tiers.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { shownName } from "../domain.ts";
import type { MonitorNotification, MonitorParts, TrialResult } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import {
  CHANNEL_KINDS,
  type ChannelMessage,
  headingOf,
  redactedUrl,
  requestOf,
  shortened,
  textOf,
} from "./channel-kinds.ts";
import { CHANNELS_MAX, type ChannelConfig, type ChannelEvent } from "./schema.ts";
import type { ChannelRow } from "./store.ts";

/** A notification to channels. */
export interface ChannelNotification {
  readonly projectRef: number;
  /** The monitor that it is about; null: the project. Then the default channels are notified. */
  readonly monitor: MonitorRow | null;
  readonly event: ChannelEvent;
  /** Subject, on one line; the name of the monitor by default. */
  readonly title?: string;
  /** The event, on one line, without a full stop. */
  readonly text: string;
  readonly incidentId?: string | null;
  /** Additional fields of the body of a webhook. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

type NoticeParts = Pick<
  MonitorParts,
  "vault" | "notifier" | "outbox" | "owners" | "publicUrl" | "channels" | "clock" | "scheduler"
>;

/** Delays before retries, 24 hours in total, as for endpoints: an alert must survive an outage of a chat service. */
const CHANNEL_RETRIES = ["5s", "5m", "30m", "2h", "5h", "10h", "6h"] as const;

/** Pending alerts in memory, some megabytes. Older ones are not merged with newer ones. */
const PENDING_MAX = 10_000;

/** An alert that a target is down, which may be undelivered. */
interface PendingAlert {
  readonly id: string;
  /** When the first undelivered alert was queued, epoch milliseconds. */
  readonly at: number;
}

const TEST_TEXT = "Test message: alerts of this channel arrive here";

/** Notifies channels in the unit of work of the event: either both are stored, or neither. */
export class Notifications {
  /** Projects with channels, so that other projects cost no time. */
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

  /** Called after a channel was created or deleted. */
  channelsChanged(tx: Tx, projectRef: number): void {
    const [had, has] = [this.projects.has(projectRef), this.parts.channels.count(projectRef) > 0];
    const set = (is: boolean) => (is ? this.projects.add(projectRef) : this.projects.delete(projectRef));
    set(has);
    tx.onRollback(() => set(had));
  }

  /** Notifies the channels of a monitor, else the project's default channels, each if it subscribes to the event. */
  notifyChannels(tx: Tx, notification: ChannelNotification): void {
    const { projectRef, monitor, event } = notification;
    if (!this.hasChannels(projectRef)) return;
    const chosen = monitor === null ? null : this.parts.channels.chosen(monitor.ref);
    let message: ChannelMessage | null = null;
    for (const channel of this.parts.channels.page(projectRef, Number.MAX_SAFE_INTEGER, CHANNELS_MAX)) {
      const isRecipient = chosen === null ? channel.isDefault : chosen.includes(channel.ref);
      if (
        !isRecipient ||
        !channel.events.includes(event) ||
        this.parts.scheduler.suspended.has(channel.accountRef)
      )
        continue;
      const downSince = this.withdrawPending(tx, channel, notification);
      message ??= this.messageOf(notification, tx.now);
      if (event !== "monitor.up" || downSince === null) {
        this.remember(tx, channel, notification, this.send(tx, channel, monitor, message), downSince);
        continue;
      }
      const text = `was down ${timeText(downSince)}–${timeText(tx.now)} UTC`;
      this.send(tx, channel, monitor, this.messageOf({ ...notification, text }, tx.now));
      this.remember(tx, channel, notification, null, null);
    }
  }

  /**
   * Cancels an undelivered alert that a newer one replaces. Returns since when the channel has not been notified; null if
   * everything was delivered.
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

  /** Sends a test message immediately, without retries, and stores nothing. */
  sendTest(channel: ChannelRow): Promise<TrialResult> {
    return this.parts.notifier.trial(this.notificationOf(channel, null, this.testMessage(channel)));
  }

  /** Queues the test message of a channel of the kind `email`. */
  queueTestMail(tx: Tx, channel: ChannelRow): void {
    this.send(tx, channel, null, this.testMessage(channel));
  }

  /** Seals a channel's configuration. */
  sealed(config: ChannelConfig, channelId: string): Uint8Array {
    return this.parts.vault.seal(JSON.stringify(config), sealContext(channelId));
  }

  /** A channel's configuration. */
  configOf({ config, channelId }: ChannelRow): ChannelConfig {
    return JSON.parse(this.parts.vault.open(config, sealContext(channelId)));
  }

  private testMessage({ name }: ChannelRow): ChannelMessage {
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

  /** Queues a message. Returns the id of the notification; null for e-mails, which the outbox sends. */
  private send(
    tx: Tx,
    channel: ChannelRow,
    monitor: MonitorRow | null,
    message: ChannelMessage,
  ): string | null {
    const { notifier, outbox } = this.parts;
    if (CHANNEL_KINDS[channel.kind].request !== null)
      return notifier.notify(tx, this.notificationOf(channel, monitor, message));
    // The mail server may have been removed from the configuration since then.
    if (!outbox.available) return null;
    const mail = { subject: message.heading, text: textOf(message).replaceAll(" · ", "\n") };
    for (const to of this.recipientsOf(channel)) outbox.enqueue(tx, channel.accountRef, { to, ...mail });
    return null;
  }

  /** The channel's recipients if they are still allowed, else the account's address: that can have changed since. */
  private recipientsOf(channel: ChannelRow): readonly string[] {
    const { email, tier } = this.parts.owners.account(channel.accountRef);
    const { to = [] } = this.configOf(channel);
    const isAccountEmail = (address: string) => address.toLowerCase() === email.toLowerCase();
    return isUnlimited(tier) || (to.length === 1 && to.every(isAccountEmail)) ? to : [email];
  }

  private notificationOf(
    channel: ChannelRow,
    monitor: MonitorRow | null,
    message: ChannelMessage,
  ): MonitorNotification {
    const { kind, accountRef, projectRef } = channel;
    const config = this.configOf(channel);
    const { body, ...destination } = requestOf(kind, config, message);
    const monitor_id = monitor?.monitorId ?? null;
    const retry_schedule = CHANNEL_RETRIES;
    const notification = { accountRef, projectRef, event: message.event, monitor_id, body, retry_schedule };
    // Webhooks are signed, and their URL is not secret.
    if (CHANNEL_KINDS[kind].isSigned === true) return { ...notification, target_url: destination.url };
    return { ...notification, target_url: redactedUrl(destination.url), destination };
  }
}

/** The context that configurations are sealed for. */
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
