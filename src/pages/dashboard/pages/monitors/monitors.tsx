import type { ComponentType } from "preact";
import type { MonitorCheck, MonitorStatus } from "../../../../client/generated/api.ts";
import { Bars } from "../../charts/bars.tsx";
import { call, requestOf } from "../../core/api.ts";
import { percent, span } from "../../core/format.ts";
import { useList, useResource } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { lazy } from "../../shell/lazy.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { Choice } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { barsLabel, barsOf } from "./check-bars.ts";
import { certificateEnd, stateOf } from "./monitor-facts.tsx";
import { MonitorViews } from "./monitor-views.tsx";

const STATES = [
  ["", "All"],
  ["up", "Up"],
  ["down", "Down"],
  ["degraded", "Slow"],
  ["unknown", "Not checked yet"],
  ["paused", "Paused"],
] as const;

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
  const { query } = place.value;
  const status = STATES.find(([state]) => state === query.get("status"))?.[0] ?? "";
  const list = useList(`monitors ${status}`, ["pulse"], async (page, signal) => {
    const filtered = status === "" ? {} : status === "paused" ? { active: false } : { status };
    const { monitors, cursor = null } = await call(
      "monitors.list",
      { query: { ...page, ...filtered } },
      signal,
    );
    return { items: monitors, cursor, isPartial: cursor !== null && monitors.length < page.limit };
  });
  return (
    <Page
      title="Monitors"
      request={requestOf("monitors.list", {})}
      actions={
        <>
          <Button icon="new" scope="pulse:write" onClick={() => setQuery({ new: "heartbeat" })}>
            New heartbeat
          </Button>
          <Button kind="primary" icon="new" scope="pulse:write" onClick={() => setQuery({ new: "1" })}>
            New monitor
          </Button>
        </>
      }
    >
      <MonitorViews view="monitors" />
      <div class="toolbar">
        <Choice label="State" options={STATES} value={status} onChange={(one) => setQuery({ status: one })} />
      </div>
      <Loaded of={list}>
        {(monitors) =>
          monitors.length === 0 ? (
            <>
              <Empty
                icon="monitors"
                title={status === "" ? "No monitors yet" : "No monitor in this state"}
                request={requestOf("monitors.create", { body: EXAMPLE })}
              >
                A monitor requests a URL at a fixed interval and alerts you when it fails. A heartbeat expects
                pings from a cron job or backup and alerts you when one is missing:{" "}
                <code>curl -fsS -m 10 --retry 5 $URL/ping/&lt;uuid&gt;</code>
              </Empty>
              <More of={list} />
            </>
          ) : (
            <Panel flush>
              <MonitorTable of={monitors} />
              <More of={list} />
            </Panel>
          )
        }
      </Loaded>
      <NewMonitor what={query.get("new")} />
    </Page>
  );
}

function NewMonitor({ what }: { what: string | null }) {
  if (what === null) return null;
  const Made = what === "heartbeat" ? HeartbeatForm : MonitorForm;
  return <Made onClose={() => setQuery({ new: undefined })} />;
}

/** What it does, in one line. */
function workOf({ method, url, interval, schedule, period_ms }: MonitorStatus): string {
  if (interval !== null) return `${method} ${url}, every ${span(interval)}`;
  return schedule ? `pinged at ${schedule}` : `pinged every ${span(period_ms ?? 0)}`;
}

/** Each row reads its own checks; longer lists show no bars. */
const ROWS_WITH_BARS = 30;

function MonitorTable({ of: monitors }: { of: readonly MonitorStatus[] }) {
  const withBars = new Set(monitors.slice(0, ROWS_WITH_BARS).map(({ monitor_id }) => monitor_id));
  return (
    <Table
      label="Monitors"
      rows={monitors}
      keyOf={({ monitor_id }) => monitor_id}
      href={({ monitor_id }) => href(["monitors", monitor_id])}
      columns={[
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
          layout: "wide",
          cell: ({ monitor_id, last_checked_at }) =>
            withBars.has(monitor_id) ? <RecentChecks id={monitor_id} checkedAt={last_checked_at} /> : null,
        },
        {
          head: "Latency",
          layout: "end wide",
          cell: ({ latency_ms }) => (latency_ms === null ? "–" : `${latency_ms} ms`),
        },
        { head: "Last check", layout: "wide", cell: ({ last_checked_at }) => <Ago at={last_checked_at} /> },
        { head: "State", layout: "fit", cell: (monitor) => <States of={monitor} /> },
      ]}
    />
  );
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
  const history = useResource(
    `checks ${id}`,
    [],
    (signal) => call("monitors.history", { params: { monitorId: id }, query: { limit: PLACES } }, signal),
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
