import type { Tx } from "../../kernel/storage/tx.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { DAY_MS, secondsOf } from "../../kernel/time/units.ts";
import type { CheckQueue } from "./checks/queue.ts";
import type { HeartbeatView } from "./heartbeat-fields.ts";
import type { Heartbeats, Viewer } from "./heartbeats/heartbeats.ts";
import { mergedTiming } from "./heartbeats/settings.ts";
import type { HeartbeatSettings } from "./heartbeats/store.ts";
import type { ManualMonitors } from "./manual.ts";
import { daysUntil } from "./registration.ts";
import type { Registries } from "./registry/registries.ts";
import type { Monitor } from "./schema.ts";
import type { MonitorRow, MonitorSettings, MonitorStore } from "./store.ts";
import { targetOf } from "./targets/targets.ts";
import type { GivenAddresses, GivenTiming } from "./type-fields.ts";
import type { MonitorType } from "./types.ts";

/** What the server does for monitors of one type. Its fields are in `MONITOR_TYPES`. */
export interface TypeBehavior {
  /** Settings that the type determines, also from other settings. */
  fixedSettings(monitorId: string, settings: MonitorSettings): Partial<MonitorSettings>;
  /** Starts the checks of a new monitor, or waits for its pings. */
  start(tx: Tx, monitor: MonitorRow, timing: GivenTiming, addresses: GivenAddresses): void;
  /** Applies changed settings. */
  update(tx: Tx, before: MonitorRow, settings: MonitorSettings, timing: GivenTiming): void;
  /** Reports a failure that was suppressed until now. */
  recheck(tx: Tx, monitor: MonitorRow): void;
  /** Additional fields of responses. */
  view(monitor: MonitorRow, viewer: Viewer): Partial<HeartbeatView & Pick<Monitor, "icmp" | "domain">>;
  /** Additional settings in the audit log. */
  settingsOf(monitor: MonitorRow): Partial<HeartbeatSettings>;
}

/** The behavior of each type. */
export type TypeBehaviors = (type: MonitorType) => TypeBehavior;

/** Builds the behavior of each type. */
export function typeBehaviors(
  monitors: Pick<MonitorStore, "forgetFound">,
  queue: CheckQueue,
  heartbeats: Heartbeats,
  manualMonitors: ManualMonitors,
  registries: Pick<Registries, "begin">,
  clock: Pick<Clock, "now">,
): TypeBehaviors {
  const checked: TypeBehavior = {
    fixedSettings: (_monitorId, settings) => ({ url: targetOf(settings.type).urlOf(settings) }),
    start(tx, { accountRef, ref, settings }) {
      queue.begin(tx, accountRef, ref, settings.url);
    },
    update(tx, { ref, accountRef, settings: before }, after) {
      const isSame = before.active && before.url === after.url && before.interval === after.interval;
      if (!after.active) queue.end(tx, ref);
      else if (!isSame) queue.begin(tx, accountRef, ref, after.url);
      if (after.url !== before.url) monitors.forgetFound(tx, ref);
    },
    recheck(tx, monitor) {
      // A healthy target has nothing to report, and frequent maintenance windows must not add checks.
      if (monitor.consecutiveFailures > 0)
        queue.checkAt(tx, { ...monitor, url: monitor.settings.url }, tx.now);
    },
    view: ({ settings, icmp }) => (settings.type === "icmp" ? { icmp } : {}),
    settingsOf: () => ({}),
  };
  const domain: TypeBehavior = {
    ...checked,
    // Registries change a registration at most once a day.
    fixedSettings: (id, settings) => ({ ...checked.fixedSettings(id, settings), interval: DAY_MS }),
    start(tx, monitor, timing, addresses) {
      registries.begin(tx);
      checked.start(tx, monitor, timing, addresses);
    },
    view: ({ domain: seen }) => ({
      domain: seen && { expires_at: secondsOf(seen.expiresAt), days_left: daysUntil(seen, clock.now()) },
    }),
  };
  const heartbeat: TypeBehavior = {
    // The column of URLs is not null, and responses have this placeholder.
    fixedSettings: (monitorId) => ({ url: `heartbeat:${monitorId}`, interval: 0 }),
    start: (tx, monitor, timing, addresses) =>
      heartbeats.create(tx, monitor, mergedTiming(timing, null, tx.now), addresses),
    update(tx, before, settings, timing) {
      const merged = mergedTiming(timing, heartbeats.of(before), tx.now);
      heartbeats.change(tx, before, { ...before, settings }, merged);
    },
    recheck: (tx, { ref }) => heartbeats.rescheduleDeadline(tx, ref),
    view: (monitor, viewer) => heartbeats.view(monitor, viewer),
    settingsOf: (monitor) => heartbeats.settingsOf(monitor),
  };
  const manual: TypeBehavior = {
    fixedSettings: (monitorId) => ({ url: `manual:${monitorId}`, interval: 0 }),
    start: (tx, { monitorId }) => manualMonitors.follow(tx, [monitorId]),
    update(tx, { monitorId, settings: before }, after) {
      if (after.active && !before.active) manualMonitors.follow(tx, [monitorId]);
    },
    recheck() {
      // Its state is what people say, also during maintenance.
    },
    view: () => ({}),
    settingsOf: () => ({}),
  };
  return (type) => {
    if (type === "manual") return manual;
    if (type === "domain") return domain;
    return type === "heartbeat" ? heartbeat : checked;
  };
}
