import type { IncidentSummary } from "../../../../client/generated/api.ts";
import { requestOf } from "../../core/api.ts";
import { useList } from "../../core/lists.ts";
import { go, href, place } from "../../core/route.ts";
import { DataForm } from "../../ui/form.tsx";
import { filterValue, ListPage } from "../../ui/list.tsx";
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
  const list = useList("monitors.incidents.list", "incidents", ["pulse"], {
    keyOf: (incident) => incident.id,
    query: { status },
  });
  return (
    <ListPage
      title="Incidents"
      label="Incidents"
      request={requestOf("monitors.incidents.list", {})}
      create={["New incident", "pulse:write"]}
      filters={[STATE]}
      list={list}
      none={{
        icon: "monitors",
        title: status === "open" ? "No open incident" : "No incidents here",
        request: requestOf("monitors.incidents.create", { body: EXAMPLE }),
        text: "Monitors open an incident when their target goes down and resolve it on recovery.",
      }}
      href={(incident) => href(["monitors", "incidents", incident.id], { status })}
      columns={COLUMNS}
      form={(close) => <IncidentForm onClose={close} />}
    />
  );
}

const COLUMNS: readonly Column<IncidentSummary>[] = [
  {
    head: "Incident",
    cell: ({ title }) => title,
    sub: ({ cause, impact }) => cause ?? impact,
  },
  { head: "Started", cell: ({ started_at }) => <Ago at={started_at} /> },
  { head: "Resolved", cell: ({ resolved_at }) => <Ago at={resolved_at} never="–" />, layout: "wide" },
  { head: "Acknowledged by", cell: ({ acknowledged_by }) => acknowledged_by ?? "–", layout: "wide" },
  { head: "State", cell: (incident) => <IncidentState of={incident} />, layout: "fit" },
];

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
