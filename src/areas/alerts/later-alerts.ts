import type { Kernel } from "../../kernel/kernel.ts";
import { type JobOutcome, SUSPENDED_MS } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { quietUntil } from "./held-alerts.ts";
import type { ChannelNotification, Notifications } from "./notifications.ts";
import { DELAYED_ALERT, ESCALATION, type EscalationState } from "./notifications.ts";
import type { OngoingOutage, OngoingOutages } from "./ports.ts";
import type { ChannelStore } from "./store.ts";

/** Alerts in one commit, up to 1 ms each for a step to 10 channels: those of many outages are due at the same time. */
const CONCURRENCY = 8;

/** What the first alert of an outage says beside what is known later. */
export type DelayedAlert = Pick<ChannelNotification, "detail" | "facts">;

/** Sends alerts of outages that are still going on after some time: those that were delayed, and the steps of escalations. */
export class LaterAlerts {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler"> & {
      readonly channels: ChannelStore;
      readonly ongoingOutage: OngoingOutages;
    },
    private readonly notifications: Notifications,
  ) {
    const { scheduler } = deps;
    scheduler.register(DELAYED_ALERT, {
      concurrency: CONCURRENCY,
      run: async ({ key, payload }): Promise<JobOutcome> => ({
        record: (tx) => this.sendDelayed(tx, Number(key), payload as DelayedAlert),
      }),
    });
    scheduler.register(ESCALATION, {
      concurrency: CONCURRENCY,
      run: async ({ key, payload }): Promise<JobOutcome> => ({
        record: (tx) => this.escalate(tx, key, payload as EscalationState),
      }),
    });
  }

  private sendDelayed(tx: Tx, monitorRef: number, { detail = null, facts = {} }: DelayedAlert): void {
    const outage = this.deps.ongoingOutage(monitorRef, tx.now);
    if (outage === null) return;
    const { silentUntil, monitor } = outage;
    if (silentUntil !== null) {
      this.deps.scheduler.enqueue(tx, DELAYED_ALERT, String(monitorRef), silentUntil, { detail, facts });
      return;
    }
    this.notify(tx, outage, { detail, facts, toAccount: monitor.emailAlert, toWebhook: true });
  }

  /** Notifies the channels of a step, and schedules the next one. Nothing follows for an outage that is over or acknowledged. */
  private escalate(tx: Tx, key: string, state: EscalationState): void {
    const [monitorRef = 0, channelRef = 0] = key.split("/").map(Number);
    const { channels, scheduler, ongoingOutage } = this.deps;
    const channel = channels.withRef(channelRef);
    const outage = ongoingOutage(monitorRef, tx.now);
    if (channel === null || outage === null || outage.incidentId !== state.incidentId) return;
    const postponedTo = scheduler.suspended.has(channel.accountRef)
      ? tx.now + SUSPENDED_MS
      : (outage.silentUntil ?? quietUntil(channel.quietHours, tx.now));
    const { step, since } = state;
    if (postponedTo !== null) {
      // Later steps keep their distances.
      const shifted = { ...state, since: postponedTo - (channel.escalate[step]?.afterMs ?? 0) };
      scheduler.enqueue(tx, ESCALATION, key, postponedTo, shifted);
      return;
    }
    this.notifyStep(tx, outage, channel.escalate[step]?.channelRefs ?? [], step + 1);
    const next = channel.escalate[step + 1];
    if (next !== undefined)
      scheduler.enqueue(tx, ESCALATION, key, Math.max(since + next.afterMs, tx.now), {
        ...state,
        step: step + 1,
      });
  }

  private notifyStep(tx: Tx, outage: OngoingOutage, refs: readonly number[], number: number): void {
    for (const ref of refs) this.deps.channels.addEscalated(tx, outage.monitor.ref, ref);
    this.notify(tx, outage, { facts: { ...outage.facts, escalation_step: number }, onlyTo: refs });
  }

  private notify(
    tx: Tx,
    { monitor, incidentId, text }: OngoingOutage,
    more: Pick<ChannelNotification, "detail" | "facts" | "onlyTo" | "toAccount" | "toWebhook">,
  ): void {
    const { projectRef } = monitor;
    this.notifications.notifyChannels(tx, {
      projectRef,
      monitor,
      event: "monitor.down",
      incidentId,
      text,
      ...more,
    });
  }
}
