import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { href } from "../../core/route.ts";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { CONFIRM } from "./monitor-more.tsx";

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

/** What each probe sees of a monitor. */
export function ProbeStates({ of: { probe_states, confirm } }: { of: MonitorStatus }) {
  return (
    <Panel
      title="Probes"
      actions={
        <span class="quiet">
          Down when {CONFIRM.find(([name]) => name === confirm)?.[1]} ·{" "}
          <a href={href(["monitors", "probes"])}>All probes</a>
        </span>
      }
      flush
    >
      <Table label="Probes" columns={COLUMNS} rows={probe_states} keyOf={({ name }) => name} />
    </Panel>
  );
}
