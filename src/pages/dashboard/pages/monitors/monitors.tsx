import type { ComponentType } from "preact";
import type { MonitorCheck, MonitorStatus } from "../../../../client/generated/api.ts";
import { Bars } from "../../charts/bars.tsx";
import { requestOf } from "../../core/api.ts";
import { percent } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { lazy } from "../../ui/lazy.tsx";
import { filterValue, ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { barsLabel, barsOf } from "./check-bars.ts";
import { certificateEnd, stateOf, workOf } from "./monitor-facts.tsx";

const STATE = {
  name: "status",
  label: "State",
  options: [
    ["", "All"],
    ["up", "Up"],
    ["down", "Down"],
    ["degraded", "Slow"],
    ["unknown", "Not checked yet"],
    ["paused", "Paused"],
  ],
} as const;

const MonitorPage = lazy(async () => (await import("./monitor.tsx")).MonitorPage);
const HeartbeatForm = lazy(async () => (await import("./heartbeat-form.tsx")).HeartbeatForm);
const MonitorForm = lazy(async () => (await import("./monitor-form.tsx")).MonitorForm);

const EXAMPLE = { url: "https://example.com/health", interval: 60_000 };

const LISTS: Readonly<Record<string, ComponentType>> = {
  incidents: lazy(async () => (await import("./incidents.tsx")).IncidentsPage),
  channels: lazy(async () => (await import("./channels.tsx")).ChannelsPage),
  pages: lazy(async () => (await import("./status-pages.tsx")).StatusPagesPage),
  maintenance: lazy(async () => (await import("./maintenance.tsx")).MaintenancePage),
};

/** The list of monitors, one monitor, or another tab. */
export function MonitorsPage() {
  const [id] = place.value.rest;
  const List = LISTS[id ?? ""];
  if (List !== undefined) return <List />;
  return id === undefined ? <MonitorList /> : <MonitorPage key={id} id={id} />;
}

function MonitorList() {
  const status = filterValue(STATE);
  const list = useList("monitors.list", "monitors", ["pulse"], {
    keyOf: ({ monitor_id }) => monitor_id,
    query: status === "paused" ? { active: false } : { status },
  });
  const withBars = new Set((list.data ?? []).slice(0, ROWS_WITH_BARS).map(list.keyOf));
  return (
    <ListPage
      title="Monitors"
      label="Monitors"
      request={requestOf("monitors.list", {})}
      actions={
        <Button icon="new" scope="pulse:write" onClick={() => setQuery({ new: "heartbeat" })}>
          New heartbeat
        </Button>
      }
      create={["New monitor", "pulse:write"]}
      filters={[STATE]}
      list={list}
      none={{
        icon: "monitors",
        title: status === "" ? "No monitors yet" : "No monitor in this state",
        request: requestOf("monitors.create", { body: EXAMPLE }),
        text: (
          <>
            A monitor requests a URL at a fixed interval and alerts you when it fails. A heartbeat expects
            pings from a cron job or backup and alerts you when one is missing:{" "}
            <code>curl -fsS -m 10 --retry 5 $URL/ping/&lt;uuid&gt;</code>
          </>
        ),
      }}
      href={({ monitor_id }) => href(["monitors", monitor_id])}
      columns={columnsOf(withBars)}
      form={(close) =>
        place.value.query.get("new") === "heartbeat" ? (
          <HeartbeatForm onClose={close} />
        ) : (
          <MonitorForm onClose={close} />
        )
      }
    />
  );
}

/** Each row reads its own checks; longer lists show no bars. */
const ROWS_WITH_BARS = 30;

function columnsOf(withBars: ReadonlySet<string>): readonly Column<MonitorStatus>[] {
  return [
    {
      head: "Monitor",
      cell: (monitor) => (
        <>
          {monitor.group === null ? null : `${monitor.group} / `}
          {monitor.name}
          <span class="sub">{workOf(monitor)}</span>
          {certificateEnd(monitor) === null ? null : <span class="sub">{certificateEnd(monitor)}</span>}
        </>
      ),
    },
    {
      head: "Last checks",
      width: 14,
      layout: "wide",
      cell: ({ monitor_id, last_checked_at }) =>
        withBars.has(monitor_id) ? <RecentChecks id={monitor_id} checkedAt={last_checked_at} /> : null,
    },
    {
      head: "Latency",
      width: 6,
      layout: "end wide",
      cell: ({ latency_ms }) => (latency_ms === null ? "–" : `${latency_ms} ms`),
    },
    {
      head: "Last check",
      width: 7,
      layout: "wide",
      cell: ({ last_checked_at }) => <Ago at={last_checked_at} />,
    },
    { head: "State", layout: "fit", cell: (monitor) => <States of={monitor} /> },
  ];
}

/** The monitor's state, and why its alerts are suppressed. */
function States({ of: monitor }: { of: MonitorStatus }) {
  const flags = [monitor.flapping ? "flapping" : null, monitor.maintenance ? "maintenance" : null];
  const labels = flags.filter((flag) => flag !== null);
  return (
    <>
      <Status state={stateOf(monitor)} />
      {labels.length === 0 ? null : <span class="sub">{labels.join(", ")}</span>}
    </>
  );
}

const PLACES = 40;

/** Read again after a check of this monitor only. */
function RecentChecks({ id, checkedAt }: { id: string; checkedAt: number | null }) {
  const history = useCall(
    "monitors.history",
    { params: { monitorId: id }, query: { limit: PLACES } },
    [],
    checkedAt,
  );
  const checks: readonly MonitorCheck[] = history.data?.checks ?? [];
  return (
    <>
      <Bars bars={barsOf(checks)} places={PLACES} label={barsLabel(checks)} />
      <span class="sub">{percent(history.data?.uptime["24h"] ?? null)} in 24 h</span>
    </>
  );
}
