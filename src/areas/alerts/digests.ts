import type { Kernel } from "../../kernel/kernel.ts";
import { SUSPENDED_MS } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { ChannelMessage } from "./channel-kinds.ts";
import { DIGEST_ALERTS_MAX } from "./digest-message.ts";
import { DIGEST, quietUntil } from "./held-alerts.ts";
import type { Notifications } from "./notifications.ts";
import type { AlertDeps } from "./ports.ts";
import type { ChannelStore } from "./store.ts";

/** Ends of holds in one commit, up to 5 ms each: those of many channels end at the same time of day. */
const CONCURRENCY = 2;

/** Sends channels what they have missed. */
export class Digests {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler"> &
      Pick<AlertDeps, "isStopped"> & { readonly channels: ChannelStore },
    private readonly notifications: Notifications,
  ) {
    deps.scheduler.register(DIGEST, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => ({ record: (tx) => this.release(tx, Number(key)) }),
    });
  }

  /** Sends a channel what is held, and removes it, unless the channel must wait longer. */
  private release(tx: Tx, channelRef: number): void {
    const { channels, scheduler } = this.deps;
    const channel = channels.withRef(channelRef);
    if (channel === null || this.deps.isStopped(channel.projectRef)) return;
    const { quietHours, groupMs, accountRef } = channel;
    const isSuspended = scheduler.suspended.has(accountRef);
    const postponedTo = isSuspended ? tx.now + SUSPENDED_MS : quietUntil(quietHours, tx.now);
    if (postponedTo !== null) {
      scheduler.enqueue(tx, DIGEST, String(channelRef), postponedTo, null);
      return;
    }
    const alerts = channels.held(channelRef, DIGEST_ALERTS_MAX).map(({ message, ...alert }) => ({
      ...alert,
      message: JSON.parse(message) as ChannelMessage,
    }));
    const counts = channels.heldCounts(channelRef);
    if (counts.length === 0) return;
    const wasQuiet = alerts.some(({ at }) => quietUntil(quietHours, at) !== null);
    this.notifications.sendHeld(tx, channel, {
      alerts,
      counts,
      number: channels.digestNumber(channelRef),
      quietHours: wasQuiet ? quietHours : null,
      groupMs,
    });
    channels.releaseHeld(tx, channelRef);
  }
}
