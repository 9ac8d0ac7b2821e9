import type { Kernel } from "../../kernel/kernel.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import { isUnlimited } from "../../kernel/limits/tiers.ts";
import type { MailTrial } from "../../kernel/mail/outbox.ts";
import type { Notification } from "../../kernel/outbound/notification.ts";
import { sealedJson } from "../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { secondsOf } from "../../kernel/time/units.ts";
import {
  CHANNEL_KINDS,
  type ChannelMessage,
  headingOf,
  mailTextOf,
  redactedUrl,
  requestOf,
  shortened,
  TEXT_MAX,
} from "./channel-kinds.ts";
import { periodText, REMIND_MS, reminderKey } from "./domain.ts";
import type { AlertDeps, AlertedMonitor } from "./ports.ts";
import { CHANNELS_MAX, type ChannelConfig, type ChannelEvent } from "./schema.ts";
import type { ChannelRow, ChannelStore } from "./store.ts";

/** The configuration of a channel, with its secrets. */
export const CHANNEL_CONFIG = sealedJson<ChannelConfig>("channel-config");

/** A notification to channels. */
export interface ChannelNotification {
  readonly projectRef: number;
  /** The monitor that it is about; null: the project. Then the default channels are notified. */
  readonly monitor: AlertedMonitor | null;
  readonly event: ChannelEvent;
  /** Subject, on one line; the name of the monitor by default. */
  readonly title?: string;
  /** The event, on one line. */
  readonly text: string;
  /** More about it, in lines of its own. */
  readonly detail?: string | null;
  /** The only channel that is notified, by reference; without it, all that are meant. */
  readonly onlyTo?: number;
  /** Whether the channels are notified; true by default. */
  readonly toChannels?: boolean;
  /** Whether the e-mail address of the account is notified too, unless a channel does so; false by default. */
  readonly toAccount?: boolean;
  readonly incidentId?: string | null;
  /** Path of its page in the console; that of the monitor or incident by default. */
  readonly page?: string;
  /** Additional fields of the body of a webhook. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

type NoticeDeps = Pick<Kernel, "vault" | "clock" | "scheduler"> &
  Pick<AlertDeps, "notifier" | "outbox" | "owners" | "publicUrl" | "projectIdOf" | "incidents"> & {
    readonly channels: ChannelStore;
  };

/** Delays before retries, 24 hours in total, as for endpoints: an alert must survive an outage of a chat service. */
const CHANNEL_RETRIES = ["5s", "5m", "30m", "2h", "5h", "10h", "6h"] as const;

/** Pending alerts in memory, some megabytes. Older ones are not merged with newer ones. */
const PENDING_MAX = 10_000;

/** Removes a queued message. Returns whether it was still undelivered. */
type Withdraw = (tx: Tx) => boolean;

/** An alert that a target is down, which may be undelivered. */
interface PendingAlert {
  readonly withdraw: Withdraw;
  /** When the first undelivered alert was queued, epoch milliseconds. */
  readonly at: number;
}

/** The job of a channel's next reminder of an outage. */
export const REMINDER = "monitors.reminder";

const TEST_TEXT = "Test message: alerts of this channel arrive here";

/** Notifies channels in the unit of work of the event: either both are stored, or neither. */
export class Notifications {
  /** Projects with channels, so that other projects cost no time. */
  private readonly projects: Set<number>;
  /** By channel and monitor. */
  private readonly pending = new LruMap<string, PendingAlert>(PENDING_MAX);

  constructor(private readonly deps: NoticeDeps) {
    this.projects = new Set(deps.channels.projects().map(({ projectRef }) => projectRef));
    const recordAttempt = (tx: Tx, id: string, error: string | null): void => {
      deps.channels.recordAttempt(tx, error === null ? tx.now : null, error, id);
    };
    deps.notifier.onAttempt(recordAttempt);
    deps.outbox.onAttempt(recordAttempt);
  }

  /** Whether a project has channels. */
  hasChannels(projectRef: number): boolean {
    return this.projects.has(projectRef);
  }

  /** Called after a channel was created or deleted. */
  channelsChanged(tx: Tx, projectRef: number): void {
    const [had, has] = [this.projects.has(projectRef), this.deps.channels.count(projectRef, 1) > 0];
    const set = (is: boolean) => (is ? this.projects.add(projectRef) : this.projects.delete(projectRef));
    set(has);
    tx.onRollback(() => set(had));
  }

  /**
   * Notifies the channels of a monitor, else the project's default channels, each if it subscribes to the event; and the
   * address of the account, if the notification says so and no channel has notified it.
   */
  notifyChannels(tx: Tx, notification: ChannelNotification): void {
    const { monitor, toAccount = false } = notification;
    const messageOf = this.messages(notification, tx.now);
    const notified = new Set<string>();
    const names: string[] = [];
    for (const channel of this.channelsFor(notification)) {
      this.deliver(tx, String(channel.ref), notification, (downSince) =>
        this.send(tx, channel, monitor, messageOf(downSince)),
      );
      this.scheduleReminder(tx, channel, notification);
      const isMail = CHANNEL_KINDS[channel.kind].transport === "mail";
      if (isMail) for (const to of this.recipientsOf(channel)) notified.add(to.toLowerCase());
      if (!isMail || this.deps.outbox.available) names.push(channel.name);
    }
    const account = toAccount && monitor !== null ? this.deps.owners.account(monitor.accountRef) : null;
    if (account !== null && monitor !== null && !notified.has(account.email.toLowerCase())) {
      this.deliver(tx, "account", notification, (downSince) =>
        this.sendMail(tx, monitor.accountRef, [account.email], messageOf(downSince)),
      );
      if (this.deps.outbox.available) names.push(account.email);
    }
    this.recordAlert(tx, notification, names);
  }

  /** Stores which channels were notified of an incident, for its timeline. */
  private recordAlert(tx: Tx, { incidentId = null, event }: ChannelNotification, channels: string[]): void {
    const incident =
      incidentId === null || channels.length === 0 ? null : this.deps.incidents.find(incidentId);
    if (incident !== null) this.deps.incidents.addAlert(tx, incident.ref, { at: tx.now, event, channels });
  }

  /** The channels that a notification is for. */
  private channelsFor(notification: ChannelNotification): ChannelRow[] {
    const { projectRef, monitor, event, onlyTo, toChannels = true } = notification;
    const { channels, scheduler } = this.deps;
    if (!toChannels || !this.hasChannels(projectRef)) return [];
    const chosen = monitor === null ? null : channels.chosen(monitor.ref);
    return channels
      .page(projectRef, Number.MAX_SAFE_INTEGER, CHANNELS_MAX)
      .filter(
        ({ ref, isDefault, events, accountRef }) =>
          ref === (onlyTo ?? ref) &&
          (chosen === null ? isDefault : chosen.includes(ref)) &&
          events.includes(event) &&
          !scheduler.suspended.has(accountRef),
      );
  }

  /** Schedules the reminder after an alert that a target is down, in place of the one of an earlier outage. */
  private scheduleReminder(
    tx: Tx,
    { ref, remind }: ChannelRow,
    { monitor, event }: ChannelNotification,
  ): void {
    const intervalMs = REMIND_MS[remind];
    if (monitor === null || event !== "monitor.down" || intervalMs === null) return;
    this.deps.scheduler.enqueue(tx, REMINDER, reminderKey(monitor.ref, ref), tx.now + intervalMs, null);
  }

  /** A monitor is removed: nothing reminds of its outage any more. */
  cancelReminders(tx: Tx, { ref, projectRef }: Pick<AlertedMonitor, "ref" | "projectRef">): void {
    for (const channel of this.deps.channels.page(projectRef, Number.MAX_SAFE_INTEGER, CHANNELS_MAX))
      this.deps.scheduler.cancel(tx, REMINDER, reminderKey(ref, channel.ref));
  }

  /** Makes the message of a notification once, and another one for recipients that did not get the alert before it. */
  private messages(
    notification: ChannelNotification,
    now: number,
  ): (downSince: number | null) => ChannelMessage {
    let usual: ChannelMessage | null = null;
    return (downSince) => {
      if (downSince !== null) {
        const text = `was down ${periodText(downSince, now)}`;
        return this.messageOf({ ...notification, text }, now);
      }
      usual ??= this.messageOf(notification, now);
      return usual;
    };
  }

  /**
   * Queues a message in place of an undelivered alert to the same recipient. `send` takes since when the recipient has not
   * been notified of an outage that is over; null otherwise.
   */
  private deliver(
    tx: Tx,
    recipient: string,
    { monitor, event }: ChannelNotification,
    send: (downSince: number | null) => Withdraw,
  ): void {
    if (monitor === null || (event !== "monitor.down" && event !== "monitor.up")) {
      send(null);
      return;
    }
    const key = `${recipient}/${monitor.ref}`;
    const before = this.pending.get(key);
    const since = before?.withdraw(tx) === true ? before.at : null;
    const withdraw = send(event === "monitor.up" ? since : null);
    if (event === "monitor.down") this.pending.set(key, { withdraw, at: since ?? tx.now });
    else this.pending.delete(key);
    tx.onRollback(() => {
      if (before === undefined) this.pending.delete(key);
      else this.pending.set(key, before);
    });
  }

  /** Sends a test message immediately, without retries, and stores nothing. */
  async sendTest(channel: ChannelRow): Promise<MailTrial> {
    const message = this.testMessage(channel);
    if (CHANNEL_KINDS[channel.kind].transport === "http")
      return {
        ...(await this.deps.notifier.trial(this.notificationOf(channel, null, message))),
        response: null,
      };
    const mail = { subject: message.heading, text: mailTextOf(message) };
    let last: MailTrial = { status: null, response: null, error: "the channel has no recipients" };
    for (const to of this.recipientsOf(channel)) {
      last = await this.deps.outbox.trial({ to, ...mail });
      if (last.error !== null) break;
    }
    return last;
  }

  /** Seals a channel's configuration. */
  sealed(config: ChannelConfig, id: string): Uint8Array {
    return CHANNEL_CONFIG.seal(this.deps.vault, id, config);
  }

  /** A channel's configuration. */
  configOf({ config, id }: ChannelRow): ChannelConfig {
    return CHANNEL_CONFIG.open(this.deps.vault, id, config);
  }

  private testMessage({ name }: ChannelRow): ChannelMessage {
    const event = "channel.test";
    const timestamp = secondsOf(this.deps.clock.now());
    const facts = { event, name, text: TEST_TEXT, timestamp };
    const heading = headingOf(event, name);
    return {
      event,
      heading,
      text: TEST_TEXT,
      detail: null,
      url: null,
      link: null,
      incidentLink: null,
      facts,
    };
  }

  private messageOf(
    {
      projectRef,
      monitor,
      event,
      title,
      text: given,
      detail = null,
      incidentId = null,
      page,
      facts,
    }: ChannelNotification,
    now: number,
  ): ChannelMessage {
    const { projectIdOf } = this.deps;
    const publicUrl = this.deps.publicUrl();
    const text = shortened(given);
    const name = title ?? monitor?.name ?? "";
    const about =
      monitor === null
        ? { name }
        : { monitor_id: monitor.monitorId, name, url: monitor.url, status: monitor.status };
    const projectId = publicUrl === null ? null : projectIdOf(projectRef);
    const project = projectId === null ? "" : `/${projectId}`;
    const linkTo = (path: string) =>
      publicUrl === null ? null : `${publicUrl}/dashboard/#${project}${path}`;
    const incidentLink = incidentId === null ? null : linkTo(`/monitors/incidents/${incidentId}`);
    return {
      event,
      heading: headingOf(event, name),
      text,
      detail: detail && shortened(detail, TEXT_MAX - text.length + 1),
      url: monitor?.hasTarget ? monitor.url : null,
      link:
        (monitor === null ? incidentLink : null) ??
        linkTo(page ?? (monitor === null ? "/monitors" : `/monitors/${monitor.monitorId}`)),
      incidentLink,
      facts: { event, ...about, ...facts, incident_id: incidentId, text, timestamp: secondsOf(now) },
    };
  }

  /** Queues a message to a channel. */
  private send(
    tx: Tx,
    channel: ChannelRow,
    monitor: AlertedMonitor | null,
    message: ChannelMessage,
  ): Withdraw {
    const { notifier } = this.deps;
    if (CHANNEL_KINDS[channel.kind].transport === "mail")
      return this.sendMail(tx, channel.accountRef, this.recipientsOf(channel), message, channel.ref);
    const id = notifier.notify(tx, this.notificationOf(channel, monitor, message));
    this.deps.channels.setDelivery(tx, id, channel.ref);
    return (later) => notifier.withdraw(later, id);
  }

  /** `channelRef`: the channel that shows the result; null for an alert of a monitor itself. */
  private sendMail(
    tx: Tx,
    accountRef: number,
    recipients: readonly string[],
    message: ChannelMessage,
    channelRef: number | null = null,
  ): Withdraw {
    const { outbox } = this.deps;
    // The mail server may have been removed from the configuration since then.
    if (!outbox.available) return () => false;
    const mail = { subject: message.heading, text: mailTextOf(message) };
    const ids = recipients.map((to) => outbox.enqueue(tx, accountRef, { to, ...mail }));
    const [first] = ids;
    if (channelRef !== null && first !== undefined) this.deps.channels.setDelivery(tx, first, channelRef);
    return (later) => ids.map((id) => outbox.withdraw(later, id)).includes(true);
  }

  /** The channel's recipients if they are still allowed, else the account's address: that can have changed since. */
  private recipientsOf(channel: ChannelRow): readonly string[] {
    const { email, tier } = this.deps.owners.account(channel.accountRef);
    const { to = [] } = this.configOf(channel);
    const isAccountEmail = (address: string) => address.toLowerCase() === email.toLowerCase();
    return isUnlimited(tier) || (to.length === 1 && to.every(isAccountEmail)) ? to : [email];
  }

  private notificationOf(
    channel: ChannelRow,
    monitor: AlertedMonitor | null,
    message: ChannelMessage,
  ): Notification {
    const { kind, accountRef, projectRef } = channel;
    const config = this.configOf(channel);
    const { body, ...destination } = requestOf(kind, config, message);
    const monitor_id = monitor?.monitorId ?? null;
    const retry_schedule = CHANNEL_RETRIES;
    const notification = { accountRef, projectRef, event: message.event, monitor_id, body, retry_schedule };
    // Webhooks are signed, and their URL is not secret.
    const info = CHANNEL_KINDS[kind];
    if (info.transport === "http" && info.isSigned === true)
      return { ...notification, target_url: destination.url };
    return { ...notification, target_url: redactedUrl(destination.url), destination };
  }
}
