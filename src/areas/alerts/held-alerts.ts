import { invalidField } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { endOfDailyPeriod, isTimeZone } from "../../kernel/scheduler/calendar.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { type ChannelMessage, shortened } from "./channel-kinds.ts";
import type { QuietHours } from "./schema.ts";
import type { ChannelRow, ChannelStore, HeldAlertRow } from "./store.ts";

/** The job that ends the hold of a channel; its key is the channel's reference. */
export const DIGEST = "monitors.digest";

/** Held alerts of a channel, some kilobytes each. Of more, those that a later one of their monitor followed are dropped first. */
export const HELD_ALERTS_MAX = 1_000;

/** An alert that a channel gets later. */
export interface HeldAlert extends Pick<HeldAlertRow, "monitorRef" | "event"> {
  readonly message: ChannelMessage;
}

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
    // What is held goes first: alerts stay in their order.
    if (this.isHolding(ref)) return now;
    return groupMs === 0 ? null : now + groupMs;
  }

  /** Stores an alert in the unit of work of its event, until a time that {@link until} returned. */
  hold(tx: Tx, channel: ChannelRow, until: number, { monitorRef, event, message }: HeldAlert): void {
    const { channels, scheduler } = this.deps;
    const { ref } = channel;
    const isRepeated =
      message.facts["reminder"] === true &&
      monitorRef !== null &&
      channels.lastHeld(ref, monitorRef)?.event === event;
    if (isRepeated) return;
    if (channels.heldCount(ref) >= HELD_ALERTS_MAX) {
      channels.dropHeld(tx, ref);
      channels.setHeldDropped(tx, channels.heldDropped(ref) + 1, ref);
    }
    const stored = JSON.stringify(withShortPing(message));
    channels.hold(tx, { channelRef: ref, monitorRef, event, at: tx.now, message: stored });
    if (quietUntil(channel.quietHours, tx.now) !== null || !this.isHolding(ref))
      scheduler.enqueue(tx, DIGEST, String(ref), until, null);
  }

  /** Ends the hold of a channel whose settings have changed, unless it has quiet hours now. */
  settingsChanged(tx: Tx, { ref, quietHours }: ChannelRow): void {
    if (!this.isHolding(ref)) return;
    const until = quietUntil(quietHours, tx.now) ?? tx.now;
    this.deps.scheduler.enqueue(tx, DIGEST, String(ref), until, null);
  }

  private isHolding(channelRef: number): boolean {
    return this.deps.scheduler.has(DIGEST, String(channelRef));
  }
}

/** A message with the beginning of the body of a ping, so that many can be stored. */
function withShortPing(message: ChannelMessage): ChannelMessage {
  const { last_ping_body: body } = message.facts;
  if (typeof body !== "string") return message;
  return { ...message, facts: { ...message.facts, last_ping_body: shortened(body) } };
}
