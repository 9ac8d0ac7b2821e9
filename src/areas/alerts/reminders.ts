import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import { REMIND_MS, reminderKey } from "./domain.ts";
import { type Notifications, REMINDER } from "./notifications.ts";
import type { OngoingOutages } from "./ports.ts";
import type { ChannelStore } from "./store.ts";

/** Reminders in one commit, up to 0.5 ms each: those of many outages are due at the same time. */
const CONCURRENCY = 16;

/** The end of a snooze: a channel is reminded once, whatever its `remind`. */
interface SnoozeEnd {
  readonly once: true;
}

/** Reminds channels of targets that stay down. */
export class Reminders {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler"> & {
      readonly channels: ChannelStore;
      readonly ongoingOutage: OngoingOutages;
    },
    private readonly notifications: Notifications,
  ) {
    deps.scheduler.register(REMINDER, {
      concurrency: CONCURRENCY,
      run: async ({ key, payload }) => {
        const [monitorRef = 0, channelRef = 0] = key.split("/").map(Number);
        return { record: (tx) => this.remind(tx, monitorRef, channelRef, payload as SnoozeEnd | null) };
      },
    });
  }

  /** Repeats an alert, which schedules the next reminder. Nothing is repeated of an outage that is over or acknowledged. */
  private remind(tx: Tx, monitorRef: number, channelRef: number, snooze: SnoozeEnd | null): void {
    const { channels, scheduler, ongoingOutage } = this.deps;
    const channel = channels.withRef(channelRef);
    const intervalMs = channel && (REMIND_MS[channel.remind] ?? (snooze === null ? null : HOUR_MS));
    const outage = intervalMs === null ? null : ongoingOutage(monitorRef, tx.now);
    if (channel === null || intervalMs === null || outage === null) return;
    const { silentUntil, facts, ...about } = outage;
    const isSuspended = scheduler.suspended.has(channel.accountRef);
    const postponedTo = isSuspended ? tx.now + intervalMs : silentUntil;
    if (postponedTo !== null) {
      scheduler.enqueue(tx, REMINDER, reminderKey(monitorRef, channelRef), postponedTo, snooze);
      return;
    }
    const { projectRef } = about.monitor;
    this.notifications.notifyChannels(tx, {
      ...about,
      projectRef,
      event: "monitor.down",
      facts: { ...facts, reminder: true },
      onlyTo: [channelRef],
    });
  }
}
