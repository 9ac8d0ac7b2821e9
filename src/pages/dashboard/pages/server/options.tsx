import { useState } from "preact/hooks";
import type { ServerOption } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { Loaded } from "../../ui/feedback.tsx";
import { CheckField } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";

/** The server's options as they came to be, for the operator: they are set where it is started. */
export function Options() {
  const [all, setAll] = useState(false);
  const read = useResource("options", [], (signal) => call("admin.options.list", {}, signal));
  return (
    <Panel
      title="Server options"
      flush
      actions={<CheckField label="Those at their defaults, too" checked={all} onChange={setAll} />}
    >
      <Loaded of={read}>
        {({ options }) => (
          <Table
            label="Server options"
            rows={options.filter(({ source }) => all || source !== "default")}
            keyOf={({ name }) => name}
            columns={[
              { head: "Option", cell: ({ name }) => <code>{name}</code> },
              { head: "Value", cell: ({ value }) => <code>{shown(value)}</code> },
              { head: "From", cell: ({ source }) => source, look: "fit wide" },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

function shown(value: ServerOption["value"]): string {
  if (Array.isArray(value)) return value.length === 0 ? "–" : value.join(", ");
  return value === null ? "–" : String(value);
}
