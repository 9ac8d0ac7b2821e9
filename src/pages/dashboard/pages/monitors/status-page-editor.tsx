import type { MonitorStatus, StatusPage } from "../../../../client/generated/api.ts";
import { useCall } from "../../core/resource.ts";
import { Button } from "../../ui/button.tsx";
import type { Control } from "../../ui/data-form.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";

type Group = StatusPage["groups"][number];

const INCIDENTS = [
  ["none", "none"],
  ["manual", "published manually"],
  ["outages", "published manually, and outages with their duration"],
  ["all", "published manually and opened by monitors"],
] as const;

/** The settings of a status page. */
export function StatusPageEditor({ of: page, onSaved }: { of: StatusPage; onSaved: () => void }) {
  return (
    <DataForm
      submit="Save"
      scope="pulse:write"
      operation="monitors.pages.update"
      params={{ page_id: page.id }}
      of={page}
      fields={[
        [
          { name: "title", hint: "" },
          { name: "slug", mono: true, hint: "The part of the URL after /status/." },
        ],
        { name: "description", rows: 2, hint: "" },
        { name: "groups", control: Groups },
        { name: "footer", hint: "" },
        { name: "publish_incidents", label: "Incidents shown", options: INCIDENTS, hint: "" },
        { name: "published", label: "Published: visible without a key" },
        { name: "show_latency", label: "Show latency" },
        { name: "show_urls", label: "Show URLs, and the host of monitors without a name" },
        { name: "index", label: "Allow search engines to index it" },
      ]}
      done="Status page saved"
      onDone={onSaved}
    />
  );
}

/** The newest monitors, as options; others can be added with the API. */
const MONITORS = 100;

/** The groups of monitors in their order. */
const Groups: Control = ({ value, onChange }) => {
  const groups = value as readonly Group[];
  const list = useCall("monitors.list", { query: { limit: MONITORS } }, ["pulse"]);
  const monitors = list.data?.monitors ?? [];
  const replace = (at: number, ...by: Group[]) => onChange(groups.toSpliced(at, 1, ...by));
  return (
    <>
      {groups.map((group, at) => (
        <GroupFields
          // A group has no id but its position.
          key={`${at} of ${groups.length}`}
          of={group}
          monitors={monitors}
          onChange={(changed) => replace(at, changed)}
          onRemove={() => replace(at)}
        />
      ))}
      <p>
        <Button icon="new" onClick={() => onChange([...groups, { name: "", monitor_ids: [] }])}>
          Add group
        </Button>
      </p>
    </>
  );
};

interface GroupProps {
  readonly of: Group;
  readonly monitors: readonly MonitorStatus[];
  readonly onChange: (group: Group) => void;
  readonly onRemove: () => void;
}

function GroupFields({ of: { name, monitor_ids }, monitors, onChange, onRemove }: GroupProps) {
  const nameOf = (id: string): string => monitors.find(({ monitor_id }) => monitor_id === id)?.name ?? id;
  const left = monitors.filter(({ monitor_id }) => !monitor_ids.includes(monitor_id));
  const label = name === "" ? "unnamed" : name;
  return (
    <fieldset>
      <legend>Group {label}</legend>
      <TextField
        name="group"
        label="Group name"
        value={name}
        onInput={(text) => onChange({ name: text.trim(), monitor_ids })}
      />
      {monitor_ids.map((id, at) => (
        <p key={id} class="actions">
          {nameOf(id)}
          <Button
            kind="quiet"
            icon="close"
            label={`Remove ${nameOf(id)}`}
            onClick={() => onChange({ name, monitor_ids: monitor_ids.toSpliced(at, 1) })}
          />
        </p>
      ))}
      {left.length === 0 ? null : (
        <SelectField
          key={monitor_ids.length}
          name="add"
          label="Add monitor"
          value=""
          options={[["", "Choose…"], ...left.map((one) => [one.monitor_id, one.name] as const)]}
          onChange={(id) => onChange({ name, monitor_ids: [...monitor_ids, id] })}
        />
      )}
      <Button kind="danger" icon="delete" onClick={onRemove}>
        Remove group {label}
      </Button>
    </fieldset>
  );
}
