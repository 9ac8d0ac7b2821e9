import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { href } from "../../core/route.ts";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

type ProbeState = MonitorStatus["probe_states"][number];

const COLUMNS: readonly Column<ProbeState>[] = [
  { head: "Probe", cell: ({ name }) => name },
  {
    head: "State",
    cell: ({ online, status }) => <Status state={online ? status : "offline"} />,
    width: 6,
  },
  { head: "Error", cell: ({ error }) => (error === null ? "–" : <code>{error}</code>), layout: "wide" },
  {
    head: "Latency",
    cell: ({ latency_ms }) => (latency_ms === null ? "–" : `${latency_ms} ms`),
    layout: "end wide",
    width: 7,
  },
  {
    head: "Last check",
    cell: ({ last_checked_at }) => <Ago at={last_checked_at} />,
    width: 10,
  },
];

/** What each probe sees of a monitor. `note`: when, or when the monitor is down. */
export function ProbeStates({ states, note }: { states: readonly ProbeState[]; note: string }) {
  return (
    <Panel
      title="Probes"
      actions={
        <span class="quiet">
          {note} · <a href={href(["monitors", "probes"])}>All probes</a>
        </span>
      }
      flush
    >
      <Table label="Probes" columns={COLUMNS} rows={states} keyOf={({ name }) => name} />
    </Panel>
  );
}
