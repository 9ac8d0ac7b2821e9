import type { MonitorCheck } from "../../../../client/generated/api.ts";
import { Bars } from "../../charts/bars.tsx";
import { LineChart } from "../../charts/line.tsx";
import { count } from "../../core/format.ts";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";
import { barsLabel, barsOf } from "./check-bars.ts";

const PLACES = 50;

/** The last checks of a monitor: as bars, as a chart, and the failed ones as a table. */
export function Checks({ of: checks }: { of: readonly MonitorCheck[] }) {
  const failures = checks.filter(({ status }) => status === "down");
  const points = checks.toReversed().map(({ checked_at, latency_ms, status }) => ({
    at: checked_at * 1000,
    value: status === "up" ? latency_ms : null,
  }));
  return (
    <>
      <Panel title={`Last ${count(Math.min(checks.length, PLACES), "check")}`}>
        <Bars bars={barsOf(checks)} places={PLACES} label={barsLabel(checks.slice(0, PLACES))} />
      </Panel>
      <Panel>
        <LineChart title="Latency" unit="ms" points={points} />
      </Panel>
      {failures.length === 0 ? null : (
        <Panel title="Failed checks" flush>
          <Table
            label="Failed checks"
            rows={failures}
            keyOf={({ checked_at }) => String(checked_at)}
            columns={[
              { head: "Time", cell: ({ checked_at }) => <DateTime at={checked_at} />, layout: "fit" },
              {
                head: "Response",
                cell: ({ response_status }) => response_status ?? "none",
                layout: "fit wide",
              },
              { head: "Error", cell: ({ error }) => error ?? "–" },
              { head: "Manual", cell: ({ manual }) => (manual ? "yes" : ""), layout: "fit wide" },
              { head: "Counted", cell: (check) => uncountedOf(check), layout: "fit wide" },
            ]}
          />
        </Panel>
      )}
    </>
  );
}

/** Why a failed check was not counted. */
function uncountedOf({ observer_offline, maintenance }: MonitorCheck): string {
  if (observer_offline) return "no: the server was offline";
  return maintenance ? "no: maintenance" : "yes";
}
