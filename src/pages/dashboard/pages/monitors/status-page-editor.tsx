import { useState } from "preact/hooks";
import type { MonitorStatus, StatusPage } from "../../../../client/generated/api.ts";
import { useCall } from "../../core/resource.ts";
import { Button } from "../../ui/button.tsx";
import type { Control } from "../../ui/data-form.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";
import { moved, Ordered } from "../../ui/ordered.tsx";
import { ColorField, LogoField } from "./brand-fields.tsx";

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
      operation="monitors.pages.update"
      params={{ page_id: page.id }}
      of={page}
      fields={[
        [
          { name: "title", hint: "" },
          { name: "slug", mono: true, hint: "The part of the URL after /status/." },
        ],
        { name: "description", rows: 2, hint: "" },
        { name: "website_url", label: "Website", hint: "Linked in the header of the page." },
        [
          { name: "logo", control: LogoField },
          { name: "color", control: ColorField },
        ],
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
  // A group has no id: its key moves with it.
  const [keys, setKeys] = useState<readonly number[]>(() => groups.map((_, at) => at));
  const change = (next: readonly Group[], nextKeys: readonly number[]): void => {
    setKeys(nextKeys);
    onChange(next);
  };
  return (
    <>
      <Ordered
        label="Groups"
        items={groups}
        keyOf={(_, at) => keys[at] ?? at}
        nameOf={({ name }) => `group ${name === "" ? "unnamed" : name}`}
        onMove={(from, to) => change(moved(groups, from, to), moved(keys, from, to))}
      >
        {(group, at) => (
          <GroupFields
            of={group}
            monitors={monitors}
            onChange={(changed) => change(groups.with(at, changed), keys)}
            onRemove={() => change(groups.toSpliced(at, 1), keys.toSpliced(at, 1))}
          />
        )}
      </Ordered>
      <p>
        <Button
          icon="new"
          onClick={() =>
            change([...groups, { name: "", monitor_ids: [] }], [...keys, Math.max(-1, ...keys) + 1])
          }
        >
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
      <Ordered
        label={`Monitors of group ${label}`}
        items={monitor_ids}
        keyOf={(id) => id}
        nameOf={nameOf}
        onMove={(from, to) => onChange({ name, monitor_ids: moved(monitor_ids, from, to) })}
      >
        {(id, at) => (
          <span class="actions">
            {nameOf(id)}
            <Button
              kind="quiet"
              icon="close"
              label={`Remove ${nameOf(id)}`}
              onClick={() => onChange({ name, monitor_ids: monitor_ids.toSpliced(at, 1) })}
            />
          </span>
        )}
      </Ordered>
      {left.length === 0 ? null : (
        <SelectField
          key={monitor_ids.length}
          name="add"
          label="Add monitor"
          value=""
          options={[["", "Choose…"], ...left.map((monitor) => [monitor.monitor_id, monitor.name] as const)]}
          onChange={(id) => onChange({ name, monitor_ids: [...monitor_ids, id] })}
        />
      )}
      <Button kind="danger" icon="delete" label={`Remove group ${label}`} onClick={onRemove}>
        Remove group
      </Button>
    </fieldset>
  );
}
