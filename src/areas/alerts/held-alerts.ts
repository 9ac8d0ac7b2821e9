import { invalidField } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { endOfDailyPeriod, isTimeZone } from "../../kernel/scheduler/calendar.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { type ChannelMessage, shortened } from "./channel-kinds.ts";
import { DIGEST_ALERTS_MAX, type HeldAlert } from "./digest-message.ts";
import type { DigestKey } from "./ports.ts";
import type { QuietHours } from "./schema.ts";
import type { ChannelRow, ChannelStore } from "./store.ts";

/** The job that ends the hold of a channel; its key is the channel's reference. */
export const DIGEST = "monitors.digest";

/**
 * Held alerts of a channel, some kilobytes each: all that its message can show. Of more, those that a later one of their monitor
 * followed are dropped first; they are counted.
 */
export const HELD_ALERTS_MAX = DIGEST_ALERTS_MAX;
/** Held alerts of all channels of an account, 100 MB at most. More are counted only. */
export const HELD_OF_ACCOUNT_MAX = 10_000;

/** @throws ApiError `validation_error` for hours that are none, or in an unknown time zone */
export function assertHours(hours: QuietHours | null): void {
  if (hours === null) return;
  if (!isTimeZone(hours.time_zone))
    throw invalidField("quiet_hours.time_zone", "must be a time zone such as Europe/Berlin or UTC");
  if (hours.from === hours.to) throw invalidField("quiet_hours.to", "must be another time than from");
}

/** When the quiet hours end that a time is in, both in epoch milliseconds; null outside of them. */
export function quietUntil(hours: QuietHours | null, at: number): number | null {
  if (hours === null) return null;
  const [from, to] = [minuteOf(hours.from), minuteOf(hours.to)];
  return endOfDailyPeriod({ from, to, timeZone: hours.time_zone }, at);
}

/** The minute of the day of a time such as `22:00`. */
function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

/** Alerts that channels get later: after quiet hours, or together with others. A crash loses none. */
export class HeldAlerts {
  constructor(private readonly deps: Pick<Kernel, "scheduler"> & { readonly channels: ChannelStore }) {}

  /** Until when an alert to a channel is held, epoch milliseconds; null: it is sent now. */
  until({ ref, quietHours, groupMs }: ChannelRow, now: number): number | null {
    if (quietHours === null && groupMs === 0) return null;
    const quiet = quietUntil(quietHours, now);
    if (quiet !== null) return quiet;
    const dueAt = this.dueAt(ref);
    if (dueAt === null) return groupMs === 0 ? null : now + groupMs;
    // What is held goes first, so that alerts stay in their order; outside of quiet hours, it waits no longer than a group.
    return Math.min(Math.max(dueAt, now), now + groupMs);
  }

  /**
   * Stores an alert in the unit of work of its event, until a time that {@link until} returned. Returns the message in which the
   * channel will get it; null: a reminder of an outage that it will get anyway.
   */
  hold(tx: Tx, channel: ChannelRow, until: number, alert: HeldAlert): DigestKey | null {
    const { channels, scheduler } = this.deps;
    const { ref } = channel;
    const { monitorRef, event, message } = alert;
    const isRepeated =
      message.facts["reminder"] === true &&
      monitorRef !== null &&
      channels.lastHeld(ref, monitorRef)?.event === event;
    if (isRepeated) return null;
    this.store(tx, channel, alert);
    const dueAt = this.dueAt(ref);
    if (dueAt === null || Math.max(dueAt, tx.now) !== until)
      scheduler.enqueue(tx, DIGEST, String(ref), until, null);
    return { channelRef: ref, number: channels.digestNumber(ref) };
  }

  private store(tx: Tx, { ref, accountRef }: ChannelRow, alert: HeldAlert): void {
    const { channels } = this.deps;
    const { monitorRef, event, message, incidentRef } = alert;
    if (monitorRef !== null) channels.setFollowed(tx, ref, monitorRef);
    const isFull =
      channels.heldCount(ref) >= HELD_ALERTS_MAX || channels.heldOfAccount(accountRef) >= HELD_OF_ACCOUNT_MAX;
    const least = isFull ? channels.leastHeld(ref) : null;
    if (least !== null) channels.removeHeld(tx, least.ref);
    if (isFull) channels.countHeld(tx, ref, least?.event ?? event);
    // Other channels of the account hold all that it may.
    if (isFull && least === null) return;
    const stored = JSON.stringify(withShortPing(message));
    const row = { accountRef, channelRef: ref, monitorRef, incidentRef, event, at: tx.now, message: stored };
    channels.hold(tx, row);
  }

  /** Ends the hold of a channel whose settings have changed, unless it has quiet hours now. */
  settingsChanged(tx: Tx, { ref, quietHours }: ChannelRow): void {
    if (this.dueAt(ref) === null) return;
    const until = quietUntil(quietHours, tx.now) ?? tx.now;
    this.deps.scheduler.enqueue(tx, DIGEST, String(ref), until, null);
  }

  /** When the message with what a channel holds is sent; null: it holds nothing. */
  private dueAt(channelRef: number): number | null {
    return this.deps.scheduler.dueAt(DIGEST, String(channelRef));
  }
}

/** A message with the beginning of the body of a ping, so that many can be stored. */
function withShortPing(message: ChannelMessage): ChannelMessage {
  const { last_ping_body: body } = message.facts;
  if (typeof body !== "string") return message;
  return { ...message, facts: { ...message.facts, last_ping_body: shortened(body) } };
}
