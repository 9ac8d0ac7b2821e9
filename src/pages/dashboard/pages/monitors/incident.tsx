import type { Incident } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Form } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";
import { History } from "../server/audit-list.tsx";

type Updated = Incident["status"];

/** An incident: its updates, and the form for a new one. */
export function IncidentView({ id }: { id: string }) {
  const params = { incident_id: id };
  const incident = useResource(`incident ${id}`, ["pulse"], (signal) =>
    call("monitors.incidents.read", { params }, signal),
  );
  return (
    <div class="inspector">
      <Loaded of={incident}>
        {(one) => (
          <div class="stack">
            <Panel title={one.title} actions={<Actions of={one} onChanged={incident.reload} />}>
              <IncidentFacts of={one} />
            </Panel>
            <Updates of={one} />
            {one.resolved_at === null ? (
              <UpdateForm key={one.updates.length} of={one} onPosted={incident.reload} />
            ) : null}
            <History type="incident" id={id} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

const TONES = { investigating: "bad", identified: "bad", monitoring: "warn", resolved: "good" } as const;

/** Status of an incident. */
export function IncidentState({ of: { status } }: { of: Pick<Incident, "status"> }) {
  return <Status state={status} tone={TONES[status]} />;
}

function Actions({ of: one, onChanged }: { of: Incident; onChanged: () => void }) {
  const params = { incident_id: one.id };
  const isDone = one.resolved_at !== null || one.acknowledged_at !== null;
  return (
    <div class="actions">
      <CurlButton request={requestOf("monitors.incidents.read", { params })} />
      <Button
        scope="pulse:write"
        onClick={async () => {
          await call("monitors.incidents.change", { params, body: { public: !one.public } });
          toast(one.public ? "Hidden from status pages" : "Shown on status pages");
          onChanged();
        }}
      >
        {one.public ? "Hide" : "Publish"}
      </Button>
      {isDone ? null : (
        <Button
          kind="primary"
          scope="pulse:write"
          onClick={async () => {
            await call("monitors.incidents.acknowledge", { params });
            toast("Acknowledged. The alert will not be repeated.");
            onChanged();
          }}
        >
          Acknowledge
        </Button>
      )}
    </div>
  );
}

function IncidentFacts({ of: one }: { of: Incident }) {
  const monitors = one.monitor_ids.map((id) => (
    <div key={id}>
      <a href={href(["monitors", id])}>{id}</a>
    </div>
  ));
  return (
    <Facts
      of={[
        ["State", <IncidentState key="s" of={one} />],
        ["Impact", one.impact],
        ["Source", one.kind === "auto" ? "a monitor" : "people"],
        ["Cause", one.cause ?? "–"],
        ["Started", <DateTime key="b" at={one.started_at} />],
        ["Resolved", one.resolved_at === null ? "–" : <DateTime key="r" at={one.resolved_at} />],
        ["Acknowledged by", one.acknowledged_by ?? "nobody"],
        ["On status pages", one.public ? "yes" : "no"],
        ...(one.suppressed_by === null ? [] : [["Suppressed by", one.suppressed_by] as const]),
        ["Monitors", monitors.length === 0 ? "–" : monitors],
      ]}
    />
  );
}

/** Statuses that can be posted next. Only a check resolves an incident that a monitor opened. */
function statusesOf({ kind }: Incident): readonly (readonly [Updated, string])[] {
  const open = [
    ["investigating", "investigating"],
    ["identified", "identified"],
    ["monitoring", "monitoring"],
  ] as const;
  return kind === "auto" ? open : [...open, ["resolved", "resolved"]];
}

function Updates({ of: { updates } }: { of: Incident }) {
  return (
    <Panel title="Updates" flush>
      {updates.length === 0 ? (
        <p class="more quiet">No updates yet.</p>
      ) : (
        <Table
          label="Updates"
          rows={updates.toReversed()}
          keyOf={({ at, message }) => at + message}
          columns={[
            { head: "Time", cell: ({ at }) => <DateTime at={at} />, layout: "fit wide" },
            { head: "State", cell: (update) => <IncidentState of={update} />, layout: "fit" },
            { head: "Message", cell: ({ message }) => message },
          ]}
        />
      )}
    </Panel>
  );
}

function UpdateForm({ of: one, onPosted }: { of: Incident; onPosted: () => void }) {
  const statuses = statusesOf(one);
  const submit = async (data: FormData): Promise<void> => {
    const status = statuses.find(([status]) => status === data.get("status"))?.[0] ?? one.status;
    const body = { status, message: textOf(data, "message") ?? "" };
    await call("monitors.incidents.update", { params: { incident_id: one.id }, body });
    onPosted();
  };
  return (
    <Panel title="Post an update">
      <Form submit="Post update" scope="pulse:write" onSubmit={submit}>
        <SelectField name="status" label="State" value={one.status} options={statuses} />
        <TextField name="message" label="Message" rows={3} required />
      </Form>
    </Panel>
  );
}
