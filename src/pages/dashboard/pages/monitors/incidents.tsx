import type { IncidentSummary } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useList } from "../../core/resource.ts";
import { go, href, place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { CheckField, Choice, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { IncidentState, IncidentView } from "./incident.tsx";
import { MonitorViews } from "./monitor-views.tsx";

const STATES = [
  ["", "All"],
  ["open", "Open"],
  ["resolved", "Resolved"],
] as const;

const EXAMPLE = { title: "Payments fail", message: "Our provider has an outage.", public: true };

/** Incidents, with details of the selected incident. */
export function IncidentsPage() {
  const { query, rest } = place.value;
  const [, id] = rest;
  const status = STATES.find(([state]) => state === query.get("status"))?.[0] ?? "";
  const list = useList(`incidents ${status}`, ["pulse"], async (page, signal) => {
    const filtered = status === "" ? page : { ...page, status };
    const { incidents, cursor = null } = await call("monitors.incidents.list", { query: filtered }, signal);
    return { items: incidents, cursor };
  });
  return (
    <Page
      title="Incidents"
      request={requestOf("monitors.incidents.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="pulse:write" onClick={() => setQuery({ new: "1" })}>
          New incident
        </Button>
      }
    >
      <MonitorViews view="incidents" />
      <div class="toolbar">
        <Choice label="State" options={STATES} value={status} onChange={(one) => setQuery({ status: one })} />
      </div>
      <div class={id === undefined ? "" : "panes"}>
        <Panel flush>
          <Loaded of={list}>
            {(incidents) =>
              incidents.length === 0 ? (
                <Empty
                  icon="monitors"
                  title={status === "open" ? "No open incident" : "No incidents here"}
                  request={requestOf("monitors.incidents.create", { body: EXAMPLE })}
                >
                  Monitors open an incident when their target goes down and resolve it on recovery.
                </Empty>
              ) : (
                <>
                  <Table
                    label="Incidents"
                    rows={incidents}
                    keyOf={(incident) => incident.id}
                    href={(incident) => href(["monitors", "incidents", incident.id])}
                    selected={id}
                    columns={id === undefined ? COLUMNS : COLUMNS.filter(({ head }) => NARROW.includes(head))}
                  />
                  <More of={list} />
                </>
              )
            }
          </Loaded>
        </Panel>
        {id === undefined ? null : <IncidentView key={id} id={id} />}
      </div>
      {query.has("new") ? <IncidentForm onClose={() => setQuery({ new: undefined })} /> : null}
    </Page>
  );
}

/** Columns next to the details of an incident. */
const NARROW = ["Incident", "State"];

const COLUMNS: readonly Column<IncidentSummary>[] = [
  {
    head: "Incident",
    cell: ({ title, cause, impact }) => (
      <>
        {title}
        <span class="sub">{cause ?? impact}</span>
      </>
    ),
  },
  { head: "Started", cell: ({ started_at }) => <Ago at={started_at} /> },
  { head: "Resolved", cell: ({ resolved_at }) => <Ago at={resolved_at} never="–" />, layout: "wide" },
  { head: "Acknowledged by", cell: ({ acknowledged_by }) => acknowledged_by ?? "–", layout: "wide" },
  { head: "State", cell: (incident) => <IncidentState of={incident} />, layout: "fit" },
];

const IMPACTS = [
  ["outage", "Outage"],
  ["degraded", "Degraded"],
] as const;

/** The form of a new incident. */
function IncidentForm({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="New incident" onClose={onClose}>
      <Form
        submit="Open incident"
        onCancel={onClose}
        onSubmit={async (data) => {
          const made = await call("monitors.incidents.create", {
            body: {
              title: textOf(data, "title") ?? "",
              message: textOf(data, "message") ?? "",
              impact: data.get("impact") === "degraded" ? "degraded" : "outage",
              public: data.has("public"),
            },
          });
          go(["monitors", "incidents", made.id]);
        }}
      >
        <TextField name="title" label="Title" placeholder="Payments fail" required />
        <TextField name="message" label="Message" rows={4} hint="Plain text." />
        <SelectField name="impact" label="Impact" value="outage" options={IMPACTS} />
        <CheckField name="public" value="1" label="Shown on status pages" />
      </Form>
    </Dialog>
  );
}
