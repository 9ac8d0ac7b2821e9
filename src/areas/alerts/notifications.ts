import type { AlertEvent } from "../../kernel/data/incident-words.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import type { MailTrial } from "../../kernel/mail/outbox.ts";
import type { Notification } from "../../kernel/outbound/notification.ts";
import { sealedJson } from "../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { secondsOf } from "../../kernel/time/units.ts";
import {
  CHANNEL_KINDS,
  type ChannelMessage,
  type HttpTransport,
  headingOf,
  INNER_CHANNELS,
  mailTextOf,
  redactedUrl,
  shortened,
  TEXT_MAX,
  type Transport,
} from "./channel-kinds.ts";
import {
  type Digest,
  type DigestAlert,
  digestMessage,
  type HeldAlert,
  isOngoing,
  totalOf,
} from "./digest-message.ts";
import { periodText, REMIND_MS, reminderKey } from "./domain.ts";
import { HeldAlerts } from "./held-alerts.ts";
import { mailRecipients, recipientNow } from "./mail-recipients.ts";
import type { AlertDeps, AlertedMonitor } from "./ports.ts";
import { CHANNELS_MAX, type ChannelConfig } from "./schema.ts";
import type { ChannelRow, ChannelStore } from "./store.ts";

/** The configuration of a channel, with its secrets. */
export const CHANNEL_CONFIG = sealedJson<ChannelConfig>("channel-config");

/** A notification to channels. */
export interface ChannelNotification {
  readonly projectRef: number;
  /** The monitor that it is about; null: the project. Then the default channels are notified. */
  readonly monitor: AlertedMonitor | null;
  readonly event: AlertEvent;
  /** Subject, on one line; the name of the monitor by default. */
  readonly title?: string;
  /** The event, on one line. */
  readonly text: string;
  /** More about it, in lines of its own. */
  readonly detail?: string | null;
  /** The only channels that are notified, by reference: again, or by a step of an escalation. Without it, all that are meant. */
  readonly onlyTo?: readonly number[];
  /** Whether the channels are notified; true by default. */
  readonly toChannels?: boolean;
  /** Whether the e-mail address of the account is notified too, unless a channel does so; false by default. */
  readonly toAccount?: boolean;
  /** Whether the monitor's own webhook is notified too; false by default. */
  readonly toWebhook?: boolean;
  readonly incidentId?: string | null;
  /** Path of its page in the console; that of the monitor or incident by default. */
  readonly page?: string;
  /** Additional fields of the body of a webhook. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

type NoticeDeps = Pick<Kernel, "vault" | "clock" | "scheduler"> &
  Pick<
    AlertDeps,
    "notifier" | "outbox" | "owners" | "people" | "publicUrl" | "projectIdOf" | "timeZoneOf" | "incidents"
  > & {
    readonly channels: ChannelStore;
  };

/** Pending alerts in memory, some megabytes. Older ones are not merged with newer ones. */
const PENDING_MAX = 10_000;

/** Who is alerted: a channel of the project, or a channel inside. */
interface Recipient {
  /** Identifies it among the recipients of a monitor; null: a newer alert does not replace an undelivered one. */
  readonly key: string | null;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly transport: Transport;
  readonly config: ChannelConfig;
  /** The channel of the project, which shows the result; null for a channel inside. */
  readonly channel: ChannelRow | null;
  /** Its name on the timeline of an incident; null: it is not shown there. */
  readonly name: string | null;
}

/** An alert to a single webhook, outside of monitors. */
export interface WebhookAlert {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: "meter.low";
  readonly url: string;
  /** Subject, on one line. */
  readonly title: string;
  readonly text: string;
  /** The body. */
  readonly facts: Readonly<Record<string, unknown>>;
}

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
/** The job of an alert that is delayed until an outage has lasted for some time; its key is the monitor's reference. */
export const DELAYED_ALERT = "monitors.held-alert";
/** The job of the next step of a channel's escalation of an outage. */
export const ESCALATION = "monitors.escalation";

/** Where an escalation is. */
export interface EscalationState {
  readonly incidentId: string | null;
  /** When the channel was notified, epoch milliseconds. */
  readonly since: number;
  /** The next step, from 0. */
  readonly step: number;
}

const TEST_TEXT = "Test message: alerts of this channel arrive here";

/** What a channel has missed, as it is stored. */
export interface MissedAlerts extends Pick<Digest, "counts" | "quietHours" | "groupMs"> {
  /** Of the messages of the channel. */
  readonly number: number;
  /** Those that are shown before others come first. */
  readonly alerts: readonly Omit<DigestAlert, "actionLink">[];
}

/** Notifies channels in the unit of work of the event: either both are stored, or neither. */
export class Notifications {
  /** Projects with channels, so that other projects cost no time. */
  private readonly projects: Set<number>;
  /** By channel and monitor. */
  private readonly pending = new LruMap<string, PendingAlert>(PENDING_MAX);
  /** Alerts that channels get later. */
  readonly held: HeldAlerts;

  constructor(private readonly deps: NoticeDeps) {
    this.held = new HeldAlerts(deps);
    this.projects = new Set(deps.channels.projects().map(({ projectRef }) => projectRef));
    const recordAttempt = (tx: Tx, id: string, error: string | null): void => {
      deps.channels.recordAttempt(tx, error === null ? tx.now : null, error, id);
    };
    deps.notifier.onAttempt(recordAttempt);
    deps.outbox.onAttempt(recordAttempt);
    deps.outbox.chooseRecipients((audience, to) => recipientNow(deps, audience, to));
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
   * Notifies the channels of a monitor, else the project's default channels, each if it subscribes to the event; and, if the
   * notification says so, the address of the account, unless a channel has notified it, and the monitor's own webhook.
   */
  notifyChannels(tx: Tx, notification: ChannelNotification): void {
    const { monitor, event } = notification;
    const messageOf = this.messages(notification, tx.now);
    const names: string[] = [];
    const isFirst = isFirstAlert(notification);
    // An outage that ended without a notification may have left some.
    if (isFirst && monitor !== null) this.deps.channels.removeEscalated(tx, monitor.ref);
    for (const recipient of this.recipientsOf(notification)) {
      const { key, channel, name } = recipient;
      const heldUntil = channel && this.held.until(channel, tx.now);
      if (channel !== null && heldUntil !== null) {
        this.hold(tx, channel, heldUntil, notification, messageOf(null));
      } else {
        const actionLink = this.actionLinkFor(notification, recipient);
        this.deliver(tx, { key, monitorRef: monitor?.ref ?? null, event }, (downSince) =>
          this.send(tx, recipient, monitor?.monitorId ?? null, { ...messageOf(downSince), actionLink }),
        );
        if (name !== null && this.isSent(recipient)) names.push(name);
      }
      if (channel !== null) this.scheduleReminder(tx, channel, notification);
      if (channel !== null && isFirst)
        this.scheduleEscalation(tx, channel, notification, heldUntil ?? tx.now);
    }
    const incidentRef = names.length === 0 ? null : this.incidentRefOf(notification);
    if (incidentRef !== null)
      this.deps.incidents.addAlert(tx, incidentRef, { at: tx.now, event, channels: names }, null);
    if (monitor !== null && event === "monitor.up") this.deps.channels.removeEscalated(tx, monitor.ref);
  }

  /** An alert that a channel gets later, which the timeline of its incident shows then. */
  private hold(
    tx: Tx,
    channel: ChannelRow,
    until: number,
    notification: ChannelNotification,
    message: ChannelMessage,
  ): void {
    const { monitor, event } = notification;
    const incidentRef = this.incidentRefOf(notification);
    const alert = { monitorRef: monitor?.ref ?? null, incidentRef, event, message };
    const digest = this.held.hold(tx, channel, until, alert);
    if (digest === null || incidentRef === null) return;
    this.deps.incidents.addAlert(tx, incidentRef, { at: tx.now, event, channels: [channel.name] }, digest);
  }

  /** Delays the alert of an outage until a time, epoch milliseconds. */
  delay(
    tx: Tx,
    { monitor, detail, facts }: ChannelNotification & { readonly monitor: AlertedMonitor },
    until: number,
  ): void {
    this.deps.scheduler.enqueue(tx, DELAYED_ALERT, String(monitor.ref), until, { detail, facts });
  }

  /** Whether the alert of a monitor's outage is delayed. */
  isDelayed(monitorRef: number): boolean {
    return this.deps.scheduler.has(DELAYED_ALERT, String(monitorRef));
  }

  /** Drops the alert that is delayed. Returns whether there was one. */
  dropDelayed(tx: Tx, monitorRef: number): boolean {
    return this.deps.scheduler.cancel(tx, DELAYED_ALERT, String(monitorRef));
  }

  /** Sends a channel what was held: a single alert as it is, unless it is of quiet hours, and others in one message. */
  sendHeld(tx: Tx, channel: ChannelRow, { alerts, number, ...missed }: MissedAlerts): void {
    const recipient = this.recipientOf(channel);
    const { key, transport } = recipient;
    const linked = alerts.map((alert) => {
      const notification = { event: alert.event, incidentId: incidentIn(alert) };
      const actionLink = isOngoing(alerts, alert) ? this.actionLinkFor(notification, recipient) : null;
      return { ...alert, actionLink };
    });
    const [single] = linked;
    if (single !== undefined && totalOf(missed.counts) === 1 && missed.quietHours === null) {
      const { message, actionLink, monitorRef, event } = single;
      const { monitor_id: monitorId } = message.facts;
      this.deliver(tx, { key, monitorRef, event }, (downSince) =>
        this.send(tx, recipient, typeof monitorId === "string" ? monitorId : null, {
          ...(downSince === null
            ? message
            : withText(message, this.downText(channel.projectRef, downSince, tx.now))),
          actionLink,
        }),
      );
    } else {
      for (const { monitorRef } of linked) this.forgetPending(tx, `${key}/${monitorRef}`);
      const link = this.linkTo(channel.projectRef, "/monitors/incidents");
      const zone = this.deps.timeZoneOf(channel.projectRef);
      const digest = { ...missed, alerts: linked, link, now: tx.now, zone };
      this.send(tx, recipient, null, digestMessage(digest, transport.transport === "mail"));
    }
    const { ref: channelRef, projectRef } = channel;
    if (this.isSent(recipient))
      this.deps.incidents.addDigest(tx, { channelRef, number, projectRef, at: tx.now });
  }

  /** The text of a recovery that replaces the alert of its outage. */
  private downText(projectRef: number, since: number, now: number): string {
    return `was down ${periodText(since, now, this.deps.timeZoneOf(projectRef))}`;
  }

  private isSent({ transport }: Recipient): boolean {
    return transport.transport === "http" || this.deps.outbox.available;
  }

  /** Alerts a single webhook. */
  notifyWebhook(tx: Tx, { accountRef, projectRef, event, url, title, text, facts }: WebhookAlert): void {
    const transport = INNER_CHANNELS.meterWebhook;
    const recipient = {
      key: null,
      accountRef,
      projectRef,
      transport,
      config: { url },
      channel: null,
      name: null,
    };
    this.send(tx, recipient, null, plainMessage(event, title, text, facts));
  }

  /** All recipients of a notification: first the channels of the project, then those inside. */
  private recipientsOf(notification: ChannelNotification): Recipient[] {
    const { monitor, toAccount = false, toWebhook = false } = notification;
    const recipients = this.channelsFor(notification).map((channel) => this.recipientOf(channel));
    if (monitor === null) return recipients;
    const { accountRef, projectRef, webhookUrl } = monitor;
    const inside = { accountRef, projectRef, channel: null };
    if (toAccount) {
      const { email } = this.deps.owners.account(accountRef);
      const isNotified = recipients.some(
        ({ transport, config: { to = [] } }) =>
          transport.transport === "mail" &&
          to.some((address) => address.toLowerCase() === email.toLowerCase()),
      );
      const { accountMail: transport } = INNER_CHANNELS;
      if (!isNotified)
        recipients.push({ ...inside, key: "account", transport, config: { to: [email] }, name: email });
    }
    if (toWebhook && webhookUrl !== null) {
      const { monitorWebhook: transport } = INNER_CHANNELS;
      recipients.push({ ...inside, key: null, transport, config: { url: webhookUrl }, name: null });
    }
    return recipients;
  }

  /** The incident that a notification is about; null for none. */
  private incidentRefOf({ incidentId = null }: Pick<ChannelNotification, "incidentId">): number | null {
    return incidentId === null ? null : (this.deps.incidents.find(incidentId)?.ref ?? null);
  }

  /** The channels that a notification is for. */
  private channelsFor(notification: ChannelNotification): ChannelRow[] {
    const { projectRef, monitor, event, onlyTo, toChannels = true } = notification;
    const { channels, scheduler } = this.deps;
    if (!toChannels || !this.hasChannels(projectRef)) return [];
    const chosen = monitor === null ? null : channels.chosen(monitor.ref);
    const escalated = monitor === null ? [] : channels.escalatedFor(monitor.ref);
    const isStatus = event === "monitor.down" || event === "monitor.up";
    return channels
      .page(projectRef, Number.MAX_SAFE_INTEGER, CHANNELS_MAX)
      .filter(({ ref, isDefault, events, accountRef }) => {
        const isEscalated = escalated.includes(ref);
        const isMeant = isEscalated || (chosen === null ? isDefault : chosen.includes(ref));
        return (
          (onlyTo?.includes(ref) ?? true) &&
          isMeant &&
          (events.includes(event) || (isEscalated && isStatus)) &&
          !scheduler.suspended.has(accountRef)
        );
      });
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

  /**
   * Schedules the first step of the escalation of an outage, in place of the one of an earlier outage. `since`: when the
   * channel gets the alert, epoch milliseconds.
   */
  private scheduleEscalation(
    tx: Tx,
    { ref, escalate: [first] }: ChannelRow,
    { monitor, incidentId = null }: ChannelNotification,
    since: number,
  ): void {
    if (monitor === null) return;
    const key = reminderKey(monitor.ref, ref);
    if (first === undefined) return;
    const state: EscalationState = { incidentId, since, step: 0 };
    this.deps.scheduler.enqueue(tx, ESCALATION, key, since + first.afterMs, state);
  }

  /** A monitor is removed: nobody is notified of its outage any more. */
  cancelFollowUps(tx: Tx, { ref, projectRef }: Pick<AlertedMonitor, "ref" | "projectRef">): void {
    const { channels, scheduler } = this.deps;
    this.dropDelayed(tx, ref);
    channels.removeEscalated(tx, ref);
    for (const { incidentRef } of channels.heldIncidents(ref))
      this.deps.incidents.removeUnsent(tx, incidentRef);
    channels.removeHeldOf(tx, ref);
    for (const channel of channels.page(projectRef, Number.MAX_SAFE_INTEGER, CHANNELS_MAX))
      for (const kind of [REMINDER, ESCALATION]) scheduler.cancel(tx, kind, reminderKey(ref, channel.ref));
  }

  /** The URL with which a recipient acknowledges or snoozes an outage; null where there is none. */
  private actionLinkFor(
    { event, incidentId = null }: Pick<ChannelNotification, "event" | "incidentId">,
    { transport, channel }: Recipient,
  ): string | null {
    const publicUrl = this.deps.publicUrl();
    if (event !== "monitor.down" || incidentId === null || publicUrl === null) return null;
    // Programs have the API.
    if (transport.transport === "http" && transport.isSigned === true) return null;
    return `${publicUrl}/alerts/${this.deps.incidents.linkToken(incidentId, channel?.ref ?? 0)}`;
  }

  /** Notifies the channels of a monitor again at a time, epoch milliseconds, if its outage continues until then. */
  notifyAgainAt(tx: Tx, monitor: AlertedMonitor, at: number): void {
    const { projectRef, ref } = monitor;
    for (const channel of this.channelsFor({ projectRef, monitor, event: "monitor.down", text: "" }))
      this.deps.scheduler.enqueue(tx, REMINDER, reminderKey(ref, channel.ref), at, { once: true });
  }

  /** The name of a channel; null for one that is gone. */
  channelName(channelRef: number): string | null {
    return this.deps.channels.withRef(channelRef)?.name ?? null;
  }

  /** Makes the message of a notification once, and another one for recipients that did not get the alert before it. */
  private messages(
    notification: ChannelNotification,
    now: number,
  ): (downSince: number | null) => ChannelMessage {
    let usual: ChannelMessage | null = null;
    return (downSince) => {
      if (downSince !== null) {
        const text = this.downText(notification.projectRef, downSince, now);
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
    { key: recipient, monitorRef, event }: Pick<HeldAlert, "monitorRef" | "event"> & Pick<Recipient, "key">,
    send: (downSince: number | null) => Withdraw,
  ): void {
    if (recipient === null || monitorRef === null || (event !== "monitor.down" && event !== "monitor.up")) {
      send(null);
      return;
    }
    const key = `${recipient}/${monitorRef}`;
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

  /** An undelivered alert stays, and no newer one replaces it. */
  private forgetPending(tx: Tx, key: string): void {
    const before = this.pending.get(key);
    if (before === undefined) return;
    this.pending.delete(key);
    tx.onRollback(() => this.pending.set(key, before));
  }

  /** Sends a test message immediately, without retries, and stores nothing. */
  async sendTest(channel: ChannelRow): Promise<MailTrial> {
    const message = this.testMessage(channel);
    const recipient = this.recipientOf(channel);
    const { transport, config } = recipient;
    if (transport.transport === "http")
      return {
        ...(await this.deps.notifier.trial(requestTo(recipient, transport, null, message))),
        response: null,
      };
    const mail = { subject: message.heading, text: mailTextOf(message) };
    let last: MailTrial = { status: null, response: null, error: "the channel has no recipients" };
    for (const to of config.to ?? []) {
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
    return plainMessage(event, name, TEST_TEXT, { event, name, text: TEST_TEXT, timestamp });
  }

  private messageOf(
    {
      projectRef,
      monitor,
      event,
      title,
      text: fullText,
      detail = null,
      incidentId = null,
      page,
      facts,
    }: ChannelNotification,
    now: number,
  ): ChannelMessage {
    const text = shortened(fullText);
    const name = title ?? monitor?.name ?? "";
    const about =
      monitor === null
        ? { name }
        : { monitor_id: monitor.monitorId, name, url: monitor.url, status: monitor.status };
    const linkTo = (path: string) => this.linkTo(projectRef, path);
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
      actionLink: null,
      facts: { event, ...about, ...facts, incident_id: incidentId, text, timestamp: secondsOf(now) },
    };
  }

  /** URL of a page of a project in the console; null if the public URL is not configured. */
  private linkTo(projectRef: number, path: string): string | null {
    const publicUrl = this.deps.publicUrl();
    if (publicUrl === null) return null;
    const projectId = this.deps.projectIdOf(projectRef);
    return `${publicUrl}/dashboard/#${projectId === null ? "" : `/${projectId}`}${path}`;
  }

  /** Queues a message to a recipient. `monitorId`: the monitor that it is about; null for none. */
  private send(tx: Tx, recipient: Recipient, monitorId: string | null, message: ChannelMessage): Withdraw {
    const { notifier, outbox, channels } = this.deps;
    const { transport, channel, accountRef, projectRef, config } = recipient;
    const showResultOf = (id: string | undefined) => {
      if (channel !== null && id !== undefined) channels.setDelivery(tx, id, channel.ref);
    };
    if (transport.transport === "http") {
      const id = notifier.notify(tx, requestTo(recipient, transport, monitorId, message));
      showResultOf(id);
      return (later) => notifier.withdraw(later, id);
    }
    // The mail server may have been removed from the configuration since then.
    if (!outbox.available) return () => false;
    const mail = { subject: message.heading, text: mailTextOf(message) };
    const addresses = config.to ?? [];
    const audience = { accountRef, projectRef, addresses };
    const ids = addresses.map((to) => outbox.enqueue(tx, accountRef, { to, ...mail }, audience));
    showResultOf(ids[0]);
    return (later) => ids.map((id) => outbox.withdraw(later, id)).includes(true);
  }

  /** A channel of a project, with those of its e-mail addresses that are allowed now. */
  private recipientOf(channel: ChannelRow): Recipient {
    const { ref, name, kind, accountRef, projectRef } = channel;
    const stored = this.configOf(channel);
    const transport = CHANNEL_KINDS[kind];
    const config =
      transport.transport === "mail"
        ? { ...stored, to: mailRecipients(this.deps, channel, stored.to ?? []) }
        : stored;
    return { key: String(ref), accountRef, projectRef, transport, config, channel, name };
  }
}

/** Whether channels are notified of an outage for the first time. */
function isFirstAlert({ event, onlyTo, toChannels = true }: ChannelNotification): boolean {
  return event === "monitor.down" && onlyTo === undefined && toChannels;
}

/** The incident of a held alert; null for none. */
function incidentIn({ message: { facts } }: HeldAlert): string | null {
  const { incident_id: id } = facts;
  return typeof id === "string" ? id : null;
}

/** A message with another text. */
function withText(message: ChannelMessage, text: string): ChannelMessage {
  return { ...message, text, facts: { ...message.facts, text } };
}

/** A message of which links and a target say nothing. */
function plainMessage(
  event: ChannelMessage["event"],
  title: string,
  text: string,
  facts: ChannelMessage["facts"],
): ChannelMessage {
  const heading = headingOf(event, title);
  const links = { link: null, incidentLink: null, actionLink: null };
  return { event, heading, text, detail: null, url: null, ...links, facts };
}

/** A message as a request to a recipient. */
function requestTo(
  { accountRef, projectRef, config }: Recipient,
  { request, retries, isSigned }: HttpTransport,
  monitorId: string | null,
  message: ChannelMessage,
): Notification {
  const { body, ...destination } = request(config, message);
  const notification = {
    accountRef,
    projectRef,
    event: message.event,
    monitor_id: monitorId,
    body,
    ...(retries === null ? {} : { retry_schedule: retries }),
  };
  return isSigned === true
    ? { ...notification, target_url: destination.url }
    : { ...notification, target_url: redactedUrl(destination.url), destination };
}
