import { useState } from "preact/hooks";
import type { ServerOption } from "../../../../client/generated/api.ts";
import { useCall } from "../../core/resource.ts";
import { Loaded } from "../../ui/feedback.tsx";
import { CheckField } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";

/** Characters of a value that are shown: a logo has thousands. */
const LENGTH_MAX = 200;

/** The server's effective options, for the operator. They are set at the start of the server. */
export function Options() {
  const [all, setAll] = useState(false);
  const read = useCall("admin.options.list", {});
  return (
    <Panel
      title="Server options"
      flush
      actions={<CheckField label="Show defaults" checked={all} onChange={setAll} />}
    >
      <Loaded of={read}>
        {({ options }) => (
          <Table
            label="Server options"
            rows={options.filter(({ source }) => all || source !== "default")}
            keyOf={({ name }) => name}
            columns={[
              { head: "Option", cell: ({ name }) => <code>{name}</code> },
              { head: "Value", cell: ({ value }) => <code>{textOf(value)}</code> },
              { head: "Source", cell: ({ source }) => source, layout: "fit wide" },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

function textOf(value: ServerOption["value"]): string {
  if (Array.isArray(value)) return value.length === 0 ? "–" : value.join(", ");
  const text = value === null ? "–" : String(value);
  return text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)}…` : text;
}
