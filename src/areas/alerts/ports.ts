import type { AlertEvent } from "../../kernel/data/incident-words.ts";
import type { TierName } from "../../kernel/limits/tiers.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { Notifier } from "../../kernel/outbound/notification.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A monitor that a notification is about. */
export interface AlertedMonitor {
  readonly ref: number;
  readonly monitorId: string;
  readonly accountRef: number;
  readonly projectRef: number;
  /** As people see it. */
  readonly name: string;
  readonly url: string;
  /** Whether it requests a target. */
  readonly hasTarget: boolean;
  readonly status: string;
  /** Whether the account gets an e-mail. */
  readonly emailAlert: boolean;
  /** URL of its own webhook; null for none. */
  readonly webhookUrl: string | null;
}

/** Accounts that own channels. */
interface ChannelOwners {
  /** The current state of an account. */
  account(accountRef: number): { readonly email: string; readonly tier: TierName };
}

/** People of accounts, whom e-mails of channels can reach. */
interface ChannelPeople {
  /** Whether a person of an account can log in and has a role in a project; null if nobody of it has the address. */
  mayRead(accountRef: number, projectRef: number, email: string): boolean | null;
}

/** A message with which a channel gets alerts later: the channel, by reference, and the number of the message. */
export interface DigestKey {
  readonly channelRef: number;
  readonly number: number;
}

/** The incidents whose timelines show who was notified of them. */
interface AlertLog {
  find(incidentId: string): { readonly ref: number } | null;
  /** A token of a link in an alert about an incident to a channel; its reference is 0 for the e-mail of the account. */
  linkToken(incidentId: string, channelRef: number): string;
  /** `digest`: the message with which a channel gets the alert; null: it was sent. */
  addAlert(
    tx: Tx,
    incidentRef: number,
    alert: { readonly at: number; readonly event: AlertEvent; readonly channels: readonly string[] },
    digest: DigestKey | null,
  ): void;
  /** A message was sent: the timelines show its alerts. */
  addDigest(tx: Tx, digest: DigestKey & { readonly projectRef: number; readonly at: number }): void;
  /** Removes alerts of an incident whose messages were not sent. */
  removeUnsent(tx: Tx, incidentRef: number): void;
}

/** What alerts need of other areas and the kernel's optional parts. */
export interface AlertDeps {
  readonly owners: ChannelOwners;
  readonly people: ChannelPeople;
  /** Sends requests, signed and retried: all alerts of the server go through it. */
  readonly notifier: Notifier;
  readonly outbox: Outbox;
  readonly outbound: Pick<OutboundClient, "policy">;
  readonly incidents: AlertLog;
  /** Public base URL of the server now; null if it is not configured. */
  readonly publicUrl: () => string | null;
  /** The id of a project, for links. */
  readonly projectIdOf: (projectRef: number) => string | null;
  /** The time zone of texts of a project. */
  readonly timeZoneOf: (projectRef: number) => string;
  /** Whether a project is deleted. */
  readonly isStopped: (projectRef: number) => boolean;
}

/** An outage that continues. */
export interface OngoingOutage {
  readonly monitor: AlertedMonitor;
  readonly incidentId: string;
  readonly text: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Until when nobody is notified, epoch milliseconds; null: a notification can be sent now. */
  readonly silentUntil: number | null;
}

/** The outage of a monitor of which channels can be notified later or again; null for none. */
export type OngoingOutages = (monitorRef: number, now: number) => OngoingOutage | null;
