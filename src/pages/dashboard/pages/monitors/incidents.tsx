import type { IncidentSummary, MonitorStatus } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { duration } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { now } from "../../core/now.ts";
import { useCall } from "../../core/resource.ts";
import { go, href, place, setQuery } from "../../core/route.ts";
import { nameOfActor } from "../../core/session.ts";
import { CheckField } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";
import { type Filter, filterValue, ListPage } from "../../ui/list.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { AFFECTED, IMPACTS, IncidentPage, IncidentState } from "./incident.tsx";

const STATE = {
  name: "status",
  label: "State",
  options: [
    ["", "All"],
    ["open", "Open"],
    ["resolved", "Resolved"],
  ],
} as const;

const EXAMPLE = { title: "Payments fail", message: "Our provider has an outage.", public: true };

/** The incidents of the project, or one of them. */
export function IncidentsPage() {
  const [, id] = place.value.rest;
  return id === undefined ? <IncidentList /> : <IncidentPage key={id} id={id} />;
}

function IncidentList() {
  const status = filterValue(STATE);
  const monitors = useCall("monitors.list", { query: { limit: MONITORS_SHOWN } });
  const monitor = monitorFilter(monitors.data?.monitors ?? []);
  const monitorId = place.value.query.get("monitor") ?? "";
  const list = useList("monitors.incidents.list", "incidents", ["pulse"], {
    keyOf: (incident) => incident.id,
    query: { status, monitor_id: monitorId },
  });
  const isWhole = monitorId !== "" || place.value.query.has("all");
  const { rows, earlier } = isWhole
    ? { rows: list.data, earlier: new Map<string, number>() }
    : newestOfEach(list.data);
  return (
    <ListPage
      title="Incidents"
      label="Incidents"
      request={requestOf("monitors.incidents.list", {})}
      create={["New incident", "monitors.incidents.create"]}
      filters={[monitor, STATE]}
      tools={
        monitorId === "" ? (
          <CheckField
            label="Show earlier ones of each monitor"
            checked={isWhole}
            onChange={(on) => setQuery({ all: on ? "1" : undefined })}
          />
        ) : null
      }
      list={{ ...list, data: rows }}
      none={{
        icon: "monitors",
        title: status === "open" ? "No open incident" : "No incidents here",
        request: requestOf("monitors.incidents.create", { body: EXAMPLE }),
        text: "Monitors open an incident when their target goes down and resolve it on recovery.",
      }}
      href={(incident) => href(["monitors", "incidents", incident.id], Object.fromEntries(place.value.query))}
      columns={columnsOf(earlier, status)}
      form={(close) => <IncidentForm onClose={close} />}
    />
  );
}

/** Most monitors that can be chosen from. */
const MONITORS_SHOWN = 100;

function monitorFilter(monitors: readonly MonitorStatus[]): Filter {
  const chosen = place.value.query.get("monitor") ?? "";
  const isKnown = chosen === "" || monitors.some(({ monitor_id }) => monitor_id === chosen);
  return {
    name: "monitor",
    label: "Monitor",
    asSelect: true,
    options: [
      ["", "Any monitor"],
      ...(isKnown ? [] : [[chosen, chosen] as const]),
      ...monitors
        .map(
          ({ monitor_id, name, group }) =>
            [monitor_id, group === null ? name : `${group} / ${name}`] as const,
        )
        .sort(([, a], [, b]) => a.localeCompare(b)),
    ],
  };
}

/** The newest outage of each monitor, with the number of its earlier ones; manual incidents and open ones stay. */
export function newestOfEach(incidents: readonly IncidentSummary[] | null): {
  readonly rows: readonly IncidentSummary[] | null;
  readonly earlier: ReadonlyMap<string, number>;
} {
  const newest = new Map<string, string>();
  const earlier = new Map<string, number>();
  const rows = (incidents ?? []).filter(({ id, kind, monitor_ids, resolved_at }) => {
    const [monitor = ""] = monitor_ids;
    if (kind !== "auto" || monitor === "") return true;
    const first = newest.get(monitor);
    if (first === undefined) newest.set(monitor, id);
    else if (resolved_at !== null) earlier.set(first, (earlier.get(first) ?? 0) + 1);
    return first === undefined || resolved_at === null;
  });
  return { rows: incidents === null ? null : rows, earlier };
}

const columnsOf = (
  earlier: ReadonlyMap<string, number>,
  status: string,
): readonly Column<IncidentSummary>[] => [
  {
    head: "Incident",
    cell: ({ title }) => title,
    sub: ({ id, cause, impact, monitor_ids: [monitor = ""] }) => (
      <>
        {cause ?? impact}
        {earlier.has(id) ? (
          <>
            {" · "}
            <a href={href(["monitors", "incidents"], { monitor, status })}>{earlier.get(id)} earlier</a>
          </>
        ) : null}
      </>
    ),
  },
  { head: "Started", cell: ({ started_at }) => <Ago at={started_at} /> },
  { head: "Duration", cell: (incident) => durationOf(incident), layout: "wide" },
  {
    head: "Acknowledged by",
    cell: ({ acknowledged_by }) => (acknowledged_by === null ? "–" : nameOfActor(acknowledged_by)),
    layout: "wide",
  },
  { head: "State", cell: (incident) => <IncidentState of={incident} />, layout: "fit" },
];

/** How long an incident lasted, or has lasted so far. */
function durationOf({ started_at, resolved_at }: IncidentSummary): string {
  const end = resolved_at === null ? now.value : Date.parse(resolved_at);
  return duration(Math.max(0, end - Date.parse(started_at))) + (resolved_at === null ? " so far" : "");
}

/** The form of a new incident. */
function IncidentForm({ onClose }: { onClose: () => void }) {
  return (
    <DataForm
      title="New incident"
      submit="Open incident"
      operation="monitors.incidents.create"
      fields={[
        { name: "title", placeholder: "Payments fail" },
        { name: "message", rows: 4, hint: "Plain text." },
        { name: "impact", options: IMPACTS },
        AFFECTED,
        { name: "public", label: "Shown on status pages" },
      ]}
      onDone={({ id }) => go(["monitors", "incidents", id])}
      onClose={onClose}
    />
  );
}
