import { useState } from "preact/hooks";
import type { MonitorStatus, StatusPage } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Form } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";

type Group = StatusPage["groups"][number];
type Flags = Pick<StatusPage, "published" | "show_latency" | "show_urls" | "index">;

const INCIDENTS = [
  ["none", "none"],
  ["manual", "published manually"],
  ["all", "published manually and opened by monitors"],
] as const;

const FLAGS = [
  ["published", "Published: visible without a key"],
  ["show_latency", "Show latency"],
  ["show_urls", "Show URLs, and the host of monitors without a name"],
  ["index", "Allow search engines to index it"],
] as const;

/** The settings of a status page. */
export function StatusPageEditor({ of: page, onSaved }: { of: StatusPage; onSaved: () => void }) {
  const [groups, setGroups] = useState<readonly Group[]>(page.groups);
  const [flags, setFlags] = useState<Flags>(page);
  return (
    <Form
      submit="Save"
      scope="pulse:write"
      onSubmit={async (data) => {
        const { published, show_latency, show_urls, index } = flags;
        const body = {
          ...textsOf(data),
          published,
          show_latency,
          show_urls,
          index,
          groups: [...groups],
        };
        await call("monitors.pages.update", { params: { page_id: page.id }, body });
        toast("Status page saved");
        onSaved();
      }}
    >
      <div class="two">
        <TextField name="title" label="Title" value={page.title} required />
        <TextField
          name="slug"
          label="Slug"
          value={page.slug}
          mono
          required
          hint="The part of the URL after /status/."
        />
      </div>
      <TextField name="description" label="Description" value={page.description} rows={2} />
      <Groups of={groups} onChange={setGroups} />
      <TextField name="footer" label="Footer" value={page.footer} />
      <SelectField
        name="publish_incidents"
        label="Incidents shown"
        value={page.publish_incidents}
        options={INCIDENTS}
      />
      {FLAGS.map(([name, label]) => (
        <CheckField
          key={name}
          label={label}
          checked={flags[name]}
          onChange={(is) => setFlags({ ...flags, [name]: is })}
        />
      ))}
    </Form>
  );
}

function textsOf(data: FormData) {
  return {
    title: textOf(data, "title") ?? "",
    slug: textOf(data, "slug") ?? "",
    description: textOf(data, "description") ?? "",
    footer: textOf(data, "footer") ?? "",
    publish_incidents: INCIDENTS.find(([one]) => one === data.get("publish_incidents"))?.[0] ?? "manual",
  };
}

/** The newest monitors, as options; others can be added with the API. */
const MONITORS = 100;

interface GroupsProps {
  readonly of: readonly Group[];
  readonly onChange: (groups: readonly Group[]) => void;
}

/** The groups of monitors in their order. */
function Groups({ of: groups, onChange }: GroupsProps) {
  const list = useResource("monitors for pages", ["pulse"], (signal) =>
    call("monitors.list", { query: { limit: MONITORS } }, signal),
  );
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
}

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
    <fieldset class="field">
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
          >
            {null}
          </Button>
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
