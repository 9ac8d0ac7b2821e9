import type { IncidentSummary, MonitorCheck } from "../../../../client/generated/api.ts";
import { duration } from "../../core/format.ts";
import { type List, useList } from "../../core/lists.ts";
import { now } from "../../core/now.ts";
import { href, setQuery } from "../../core/route.ts";
import { nameOfActor } from "../../core/session.ts";
import { Choice } from "../../ui/field.tsx";
import { lazy } from "../../ui/lazy.tsx";
import { filterValue, ListView } from "../../ui/list.tsx";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";
import { snoozedText } from "./incident-text.ts";

const LastPings = lazy(async () => (await import("./heartbeat.tsx")).LastPings);

const VIEWS = [
  ["", "Outages"],
  ["checks", "Checks"],
  ["pings", "Pings"],
] as const;

const AUTO = { key: "auto", matches: ({ kind }: IncidentSummary) => kind === "auto" };

/** Outages of a monitor, newest first: the incidents that it opened itself. */
export function useOutages(id: string): List<IncidentSummary> {
  return useList("monitors.incidents.list", "incidents", ["pulse"], {
    keyOf: (incident) => incident.id,
    query: { monitor_id: id },
    filter: AUTO,
  });
}

/** Outages of a monitor, its single checks, and the pings of a heartbeat. */
export function MonitorRows(props: { id: string; outages: List<IncidentSummary>; isHeartbeat: boolean }) {
  const { id, outages, isHeartbeat } = props;
  const views = isHeartbeat ? VIEWS : VIEWS.slice(0, 2);
  const view = filterValue({ name: "rows", label: "Show", options: views });
  const choice = <Choice label="Show" options={views} value={view} onChange={(rows) => setQuery({ rows })} />;
  return (
    <Panel title={views.find(([name]) => name === view)?.[1] ?? ""} actions={choice} flush>
      {view === "checks" ? <Checks id={id} isHeartbeat={isHeartbeat} /> : null}
      {view === "pings" ? <LastPings id={id} /> : null}
      {view === "" ? (
        <ListView
          list={outages}
          label="Outages"
          columns={OUTAGES}
          href={(incident) => href(["monitors", "incidents", incident.id])}
          empty={<p class="quiet pad">No outages yet.</p>}
        />
      ) : null}
    </Panel>
  );
}

const OUTAGES: readonly Column<IncidentSummary>[] = [
  { head: "Began", cell: ({ started_at }) => <DateTime at={started_at} /> },
  { head: "Duration", cell: (incident) => lengthOf(incident), width: 8 },
  {
    head: "Cause",
    cell: ({ cause, title }) => (cause === null ? title : <code>{cause}</code>),
    layout: "wide",
    width: 24,
  },
  { head: "Alerts", cell: (incident) => alertsOf(incident), layout: "wide", width: 17 },
];

function lengthOf({ started_at, resolved_at }: IncidentSummary) {
  const began = Date.parse(started_at);
  if (resolved_at !== null) return duration(Date.parse(resolved_at) - began);
  return <Status state={duration(Math.max(0, now.value - began))} tone="bad" />;
}

/** Who acknowledged an outage and when, or why nobody was notified. */
function alertsOf(incident: IncidentSummary): string {
  const { suppressed_by, started_at, acknowledged_at, acknowledged_by } = incident;
  if (suppressed_by !== null) return "suppressed: another outage explains it";
  if (acknowledged_at === null) return snoozedText(incident) ?? "not acknowledged";
  const after = duration(Date.parse(acknowledged_at) - Date.parse(started_at));
  return `acknowledged by ${nameOfActor(acknowledged_by ?? "")} after ${after}`;
}

function Checks({ id, isHeartbeat }: { id: string; isHeartbeat: boolean }) {
  const list = useList("monitors.history", "checks", ["pulse"], {
    keyOf: ({ checked_at, latency_ms }) => `${checked_at} ${latency_ms}`,
    params: { monitorId: id },
  });
  return (
    <ListView
      list={list}
      label="Checks"
      columns={checkColumns(isHeartbeat)}
      empty={<p class="quiet pad">No checks yet.</p>}
    />
  );
}

/** A ping has no latency; that of a run is the time since its start, if that was reported. */
function checkColumns(isHeartbeat: boolean): readonly Column<MonitorCheck>[] {
  const runText = (ms: number): string => (ms === 0 ? "–" : duration(ms));
  return [
    { head: "Time", cell: ({ checked_at }) => <DateTime at={checked_at} /> },
    { head: "State", cell: ({ status }) => <Status state={status} />, width: 6 },
    {
      head: "Response",
      cell: ({ error, response_status }) => error ?? response_status ?? "–",
      layout: "wide",
      width: 24,
    },
    isHeartbeat
      ? { head: "Run", cell: ({ latency_ms }) => runText(latency_ms), layout: "end wide", width: 7 }
      : { head: "Latency", cell: ({ latency_ms }) => `${latency_ms} ms`, layout: "end wide", width: 7 },
    { head: "Remark", cell: (check) => remarkOf(check), layout: "wide", width: 17 },
  ];
}

/** What distinguishes a check from a scheduled one that counts. */
function remarkOf(check: MonitorCheck): string {
  const from = check.probe === "local" ? "" : `from ${check.probe}`;
  return [from, markOf(check)].filter((text) => text !== "").join(", ");
}

function markOf({ manual, observer_offline, maintenance }: MonitorCheck): string {
  if (observer_offline) return "not counted: the server was offline";
  if (maintenance) return "not counted: maintenance";
  return manual ? "manual" : "";
}
