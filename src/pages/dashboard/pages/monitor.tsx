import { useState } from "preact/hooks";
import type { MonitorCheck } from "../../../client/generated/api.ts";
import { Bars } from "../charts/bars.tsx";
import { LineChart } from "../charts/line.tsx";
import { call, requestOf } from "../core/api.ts";
import { count, percent } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import { go } from "../core/route.ts";
import { toast } from "../core/toasts.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Loaded } from "../ui/feedback.tsx";
import { Facts, Page, Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import { Table } from "../ui/table.tsx";
import { Ago, Moment } from "../ui/time.tsx";
import { History } from "./audit-list.tsx";
import { barsLabel, barsOf } from "./check-bars.ts";

const CHECKS = 100;
const PLACES = 50;

/** One monitor: its checks as bars and as a line, its uptime. */
export function MonitorPage({ id }: { id: string }) {
  const params = { monitorId: id };
  const [deleting, setDeleting] = useState(false);
  const monitor = useResource(`monitor ${id}`, ["pulse"], (signal) =>
    call("monitors.read", { params }, signal),
  );
  const history = useResource(`history ${id}`, ["pulse"], (signal) =>
    call("monitors.history", { params, query: { limit: CHECKS } }, signal),
  );
  return (
    <Page
      title={monitor.data === null ? "Monitor" : monitor.data.url}
      up={["#/monitors", "Monitors"]}
      status={monitor.data === null ? null : <Status state={monitor.data.status} />}
      request={requestOf("monitors.history", { params })}
      actions={
        <Actions
          id={id}
          onChanged={() => {
            monitor.reload();
            history.reload();
          }}
          onDelete={() => setDeleting(true)}
        />
      }
    >
      <div class="stack">
        <Loaded of={monitor}>
          {(one) => (
            <Panel>
              <Facts
                of={[
                  ["Checked", <Ago key="c" at={one.last_checked_at} />],
                  ["Latency", one.latency_ms === null ? "–" : `${one.latency_ms} ms`],
                  ["Failures in a row", one.consecutive_failures],
                  ...UPTIMES.map(
                    (range) => [`Uptime, ${range}`, percent(history.data?.uptime[range] ?? null)] as const,
                  ),
                ]}
              />
            </Panel>
          )}
        </Loaded>
        <Loaded of={history}>{({ checks }) => <Checks of={checks} />}</Loaded>
        <History type="monitor" id={id} />
      </div>
      {deleting ? (
        <Confirm
          title="Delete this monitor?"
          deed="Delete monitor"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call("monitors.delete", { params });
            go(["monitors"]);
          }}
        >
          <p>
            <strong>{monitor.data?.url}</strong> is no longer checked, and its history goes with it.
          </p>
        </Confirm>
      ) : null}
    </Page>
  );
}

function Actions(props: { id: string; onChanged: () => void; onDelete: () => void }) {
  const { id, onChanged, onDelete } = props;
  const params = { monitorId: id };
  const check = async (): Promise<void> => {
    const { status, latency_ms } = await call("monitors.check", { params });
    toast(`${status}, ${latency_ms} ms`);
    onChanged();
  };
  const setActive = async (active: boolean): Promise<void> => {
    await call("monitors.update", { params, body: { active } });
    toast(active ? "Checks go on" : "Checks are paused");
    onChanged();
  };
  return (
    <>
      <Button icon="reload" scope="pulse:write" onClick={check}>
        Check now
      </Button>
      <Button scope="pulse:write" onClick={() => setActive(false)}>
        Pause
      </Button>
      <Button scope="pulse:write" onClick={() => setActive(true)}>
        Go on
      </Button>
      <Button kind="danger" icon="delete" scope="pulse:write" label="Delete the monitor" onClick={onDelete}>
        {null}
      </Button>
    </>
  );
}

const UPTIMES = ["24h", "7d", "30d"] as const;

function Checks({ of: checks }: { of: readonly MonitorCheck[] }) {
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
              { head: "When", cell: ({ checked_at }) => <Moment at={checked_at} />, look: "fit" },
              { head: "Answer", cell: ({ response_status }) => response_status ?? "none", look: "fit wide" },
              { head: "Why", cell: ({ error }) => error ?? "–" },
              { head: "By hand", cell: ({ manual }) => (manual ? "yes" : ""), look: "fit wide" },
            ]}
          />
        </Panel>
      )}
    </>
  );
}
