import { type Static, Type } from "@sinclair/typebox";
import { dateTime, oneOf, orNull } from "../../kernel/data/schema.ts";
import { COUNTED_MAX, countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import type { Attention } from "./alerting.ts";
import { shownName } from "./domain.ts";
import { lastDayOf } from "./history/last-day.ts";
import { LAST_DAY } from "./schema.ts";
import type { CheckStore, MonitorRow, MonitorStore } from "./store.ts";
import { MONITOR_TYPES, type MonitorType } from "./types.ts";

/** Open incidents in an overview: more than a person reads. */
export const INCIDENTS_SHOWN_MAX = 20;
/** Monitors in an overview. */
export const WORST_SHOWN_MAX = 5;
/** Newest incidents whose monitors may be among the worst, and monitors of each status: each monitor takes some microseconds. */
const CANDIDATES_MAX = 20;
const CHANNELS_SHOWN_MAX = 5;

const OpenIncident = Type.Object({
  id: Type.String({ examples: ["inc_01a2090d463772d49699ae61c4ae6b36"] }),
  title: Type.String({ examples: ["shop is down"] }),
  monitor_type: orNull(oneOf(Object.keys(MONITOR_TYPES) as MonitorType[]), {
    description: "Type of the monitor that opened the incident; null for a manual incident.",
  }),
  cause: orNull(Type.String(), {
    description: "Error of the check that opened the incident.",
    examples: ["the target responded with 503"],
  }),
  status: Type.String({ examples: ["investigating"] }),
  public: Type.Boolean(),
  started_at: dateTime(),
  acknowledged_at: orNull(dateTime()),
  updated_at: orNull(dateTime(), { description: "Time of the last posted update; null without one." }),
});

const WorstMonitor = Type.Object({
  monitor_id: Type.String({ examples: ["01a2090c-166c-740d-98cb-915cdebde699"] }),
  name: Type.String({ examples: ["shop"] }),
  status: oneOf(["up", "down", "unknown", "degraded", "overdue"]),
  ...LAST_DAY,
});

const FailingChannel = Type.Object({
  id: Type.String({ examples: ["ch_01a2090c76be776a9c2edab4e3bf6df3"] }),
  name: Type.String({ examples: ["ops"] }),
  error: Type.String({ examples: ["the target responded with 404"] }),
});

interface CardDeps {
  readonly monitors: Pick<MonitorStore, "countOf" | "countOverdue" | "page" | "monitor">;
  readonly checks: Pick<CheckStore, "hoursSince">;
  readonly attention: Attention;
}

/** The monitors' part of the overview. */
export function monitorCard(deps: CardDeps): OverviewCard {
  const { monitors, attention } = deps;
  return {
    area: "pulse",
    schema: countsSchema(["total", "up", "down", "overdue"], {
      incidents: Type.Optional(
        Type.Array(OpenIncident, { description: "Newest open incidents. With `details`." }),
      ),
      worst: Type.Optional(
        Type.Array(WorstMonitor, {
          description: "Monitors with the lowest uptime, worst first. With `details`.",
        }),
      ),
      channels_failing: Type.Optional(
        Type.Array(FailingChannel, {
          description: "Notification channels whose last message could not be delivered. With `details`.",
        }),
      ),
    }),
    read: ({ project: { ref } }) => {
      const [up = 0, down = 0, unknown = 0] = [1, 2, 3].map((status) =>
        monitors.countOf(ref, status, COUNTED_MAX),
      );
      const overdue = monitors.countOverdue(ref, COUNTED_MAX);
      return { total: up + down + unknown, up, down, overdue };
    },
    details: ({ project: { ref } }, now) => ({
      incidents: openIncidents(deps, ref),
      worst: worst(deps, ref, now),
      channels_failing: [...attention.failingChannels(ref, CHANNELS_SHOWN_MAX)],
    }),
  };
}

function openIncidents(deps: CardDeps, projectRef: number): Static<typeof OpenIncident>[] {
  return deps.attention.newestIncidents(projectRef, true, INCIDENTS_SHOWN_MAX).map((row) => ({
    id: row.id,
    title: row.title,
    monitor_type:
      row.monitorRef === null ? null : (deps.monitors.monitor(row.monitorRef)?.settings.type ?? null),
    cause: row.cause,
    status: row.status,
    public: row.isPublic,
    started_at: isoTime(row.startedAt),
    acknowledged_at: isoTimeOrNull(row.acknowledgedAt),
    updated_at: isoTimeOrNull(row.updatedAt),
  }));
}

/** The worst of those that are down, are slow, or had one of the newest incidents; without such, the newest monitors. */
function worst(deps: CardDeps, projectRef: number, now: number): Static<typeof WorstMonitor>[] {
  const { monitors, checks } = deps;
  const page = { projectRef, before: Number.MAX_SAFE_INTEGER, rowsMax: CANDIDATES_MAX };
  const troubled = deps.attention
    .newestIncidents(projectRef, null, CANDIDATES_MAX)
    .flatMap(({ monitorRef }) => (monitorRef === null ? [] : (monitors.monitor(monitorRef) ?? [])));
  const listed = (["down", "degraded", "overdue"] as const).flatMap((status) => monitors.page(page, status));
  const fillers = monitors.page({ ...page, rowsMax: WORST_SHOWN_MAX });
  const candidates = new Map([...listed, ...troubled, ...fillers].map((monitor) => [monitor.ref, monitor]));
  return [...candidates.values()]
    .map((monitor) => ({ monitor, ...lastDayOf(checks, monitor, now) }))
    .sort((a, b) => rankOf(a.monitor, a.uptime) - rankOf(b.monitor, b.uptime))
    .slice(0, WORST_SHOWN_MAX)
    .map(({ monitor, uptime, hours }) => ({
      monitor_id: monitor.monitorId,
      name: shownName(monitor.settings),
      status: monitor.degraded ? "degraded" : monitor.overdue ? "overdue" : monitor.status,
      uptime,
      hours,
    }));
}

/** Monitors without checks come last, unless a first ping is overdue. */
const UNCHECKED = 101;

function rankOf({ overdue }: MonitorRow, uptime: number | null): number {
  return overdue ? 0 : (uptime ?? UNCHECKED);
}
