import { useState } from "preact/hooks";
import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { Bars } from "../../charts/bars.tsx";
import { hourBars } from "../../charts/hours.ts";
import { requestOf } from "../../core/api.ts";
import { duration, formatNumber, percent } from "../../core/format.ts";
import { usePagesOf, useWhole } from "../../core/lists.ts";
import { minute } from "../../core/now.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { NOTHING, type Selection, tickColumn } from "../../ui/bulk.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, Loaded, Pager } from "../../ui/feedback.tsx";
import { lazy } from "../../ui/lazy.tsx";
import { Filters, filterValue } from "../../ui/list.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { type Column, type Section, Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { MonitorBulk } from "./monitor-bulk.tsx";
import { certificateEnd, registrationEnd, workOf } from "./monitor-facts.tsx";
import { countsOf, type Group, groupsOf, matches, ORDERS, type Order, ordered } from "./monitor-order.ts";
import { stateOf } from "./monitor-state.ts";

const HeartbeatForm = lazy(async () => (await import("./heartbeat-form.tsx")).HeartbeatForm);
const MonitorForm = lazy(async () => (await import("./monitor-form.tsx")).MonitorForm);

const EXAMPLE = { url: "https://example.com/health", interval: 60_000 };
const SEARCH = { name: "q", label: "Search monitors" };
const ORDER = { name: "sort", label: "Order", asSelect: true, options: ORDERS };

/** States with a tab of their own; `rare`: only while a monitor has it. */
const STATES = [
  ["up", "Up"],
  ["down", "Down"],
  ["overdue", "Overdue"],
  ["degraded", "Slow", "rare"],
  ["unknown", "Not checked yet", "rare"],
  ["paused", "Paused"],
] as const;

/** All monitors: the worst first, in their groups, with a search, counts of states and actions for many. */
export function MonitorList() {
  const all = useWhole("monitors.list", "monitors", ["pulse"], { details: true });
  const { query } = place.value;
  const search = filterValue(SEARCH).trim();
  const order = filterValue(ORDER) as Order;
  const found = (all.data ?? []).filter((monitor) => matches(monitor, search));
  const state = stateFilter(found);
  const status = filterValue(state);
  const shown = found.filter((monitor) => status === "" || stateOf(monitor) === status);
  const rows = { ...all, data: all.data && ordered(shown, order) };
  const list = usePagesOf(rows, `${search} ${status} ${order}`, keyOf);
  const [selected, select] = useState<Selection>(NOTHING);
  const isEmpty = all.data?.length === 0;
  return (
    <Page
      title="Monitors"
      request={requestOf("monitors.list", {})}
      actions={
        <>
          <Button icon="new" operation="monitors.create" onClick={() => setQuery({ new: "heartbeat" })}>
            New heartbeat
          </Button>
          <Button
            kind="primary"
            icon="new"
            operation="monitors.create"
            onClick={() => setQuery({ new: "1" })}
          >
            New monitor
          </Button>
        </>
      }
    >
      {isEmpty ? null : <Filters of={[SEARCH, ORDER, state]} />}
      <Panel flush>
        <Loaded of={list}>
          {(page) =>
            isEmpty ? (
              <NoMonitors />
            ) : page.length === 0 ? (
              <Empty icon="search" title="No matching monitors">
                Change the search or the state above.
              </Empty>
            ) : (
              <>
                <Rows
                  of={page}
                  isGrouped={order === ""}
                  unfold={search !== ""}
                  selection={[selected, select]}
                />
                <Pager of={list} />
              </>
            )
          }
        </Loaded>
      </Panel>
      <MonitorBulk of={all.data ?? []} selection={[selected, select]} onDone={all.reload} />
      {query.get("new") === null ? null : query.get("new") === "heartbeat" ? (
        <HeartbeatForm onClose={() => setQuery({ new: undefined })} />
      ) : (
        <MonitorForm onClose={() => setQuery({ new: undefined })} />
      )}
    </Page>
  );
}

const keyOf = ({ monitor_id }: MonitorStatus): string => monitor_id;

/** The choice of a state, with the number of monitors in each. */
function stateFilter(monitors: readonly MonitorStatus[]) {
  const counts = countsOf(monitors);
  const chosen = place.value.query.get("status");
  const tabs = STATES.filter(
    ([state, , rare]) => rare === undefined || counts.has(state) || state === chosen,
  );
  const withCount = (label: string, count: number): string => `${label} ${formatNumber(count)}`;
  return {
    name: "status",
    label: "State",
    options: [
      ["", withCount("All", monitors.length)] as const,
      ...tabs.map(([state, label]) => [state, withCount(label, counts.get(state) ?? 0)] as const),
    ],
  };
}

function NoMonitors() {
  return (
    <Empty icon="monitors" title="No monitors yet" request={requestOf("monitors.create", { body: EXAMPLE })}>
      A monitor requests a URL at a fixed interval and alerts you when it fails. A heartbeat expects pings
      from a cron job or backup and alerts you when one is missing:{" "}
      <code>curl -fsS -m 10 --retry 5 $URL/ping/&lt;uuid&gt;</code>
    </Empty>
  );
}

const KEPT_FOLDED = "ninefold.folded";

interface RowsProps {
  readonly of: readonly MonitorStatus[];
  readonly isGrouped: boolean;
  /** Shows the rows of all groups. */
  readonly unfold: boolean;
  readonly selection: readonly [Selection, (next: Selection) => void];
}

/** Rows in their groups, each of which can be folded; this browser remembers which are. */
function Rows({ of: monitors, isGrouped, unfold, selection }: RowsProps) {
  const [folded, fold] = useState<readonly string[]>(() =>
    JSON.parse(localStorage.getItem(KEPT_FOLDED) ?? "[]"),
  );
  const toggle = (name: string): void => {
    const next = folded.includes(name) ? folded.filter((other) => other !== name) : [...folded, name];
    localStorage.setItem(KEPT_FOLDED, JSON.stringify(next));
    fold(next);
  };
  const groups = isGrouped ? groupsOf(monitors) : [];
  const hasGroups = groups.some(({ name }) => name !== null);
  const sections = groups.map((group): Section<MonitorStatus> => {
    const name = group.name ?? "";
    const isOpen = unfold || !folded.includes(name);
    return {
      key: name,
      head: <GroupHead of={group} isOpen={isOpen} onToggle={() => toggle(name)} />,
      rows: isOpen ? group.monitors : [],
    };
  });
  return (
    <Table
      fixed
      label="Monitors"
      rows={monitors}
      keyOf={keyOf}
      href={(monitor) => href(["monitors", keyOf(monitor)])}
      columns={[
        tickColumn(
          monitors,
          keyOf,
          () => true,
          selection,
          ({ name }) => name,
        ),
        ...columnsOf(!hasGroups),
      ]}
      {...(hasGroups ? { sections } : {})}
    />
  );
}

/** The name of a group, its worst state, and how many of its monitors are not up. */
function GroupHead(props: { of: Group; isOpen: boolean; onToggle: () => void }) {
  const { of: group, isOpen, onToggle } = props;
  const { name, monitors, worst } = group;
  const counts = [...countsOf(monitors)].map(([state, count]) => `${formatNumber(count)} ${state}`);
  return (
    <button type="button" class="fold" aria-expanded={isOpen} onClick={onToggle}>
      <span>{name ?? "No group"}</span>
      <Status state={worst} />
      <span class="quiet">{counts.join(", ")}</span>
    </button>
  );
}

function columnsOf(withGroup: boolean): readonly Column<MonitorStatus>[] {
  return [
    {
      head: "Monitor",
      cell: (monitor) => (
        <>
          {monitor.name}
          <span class="sub">
            {withGroup && monitor.group !== null ? `${monitor.group} · ` : ""}
            {workOf(monitor)}
          </span>
          {certificateEnd(monitor) === null ? null : <span class="sub">{certificateEnd(monitor)}</span>}
          {registrationEnd(monitor) === null ? null : <span class="sub">{registrationEnd(monitor)}</span>}
          <span class="narrow">
            <LastDay of={monitor} />
          </span>
        </>
      ),
    },
    { head: "Last 24 hours", width: 15, layout: "wide", cell: (monitor) => <LastDay of={monitor} /> },
    { head: "Latency", width: 6, layout: "end wide", cell: latencyText },
    {
      head: "Last check",
      width: 8,
      layout: "wide",
      cell: ({ last_checked_at }) => <Ago at={last_checked_at} />,
    },
    { head: "State", layout: "fit", cell: (monitor) => <States of={monitor} /> },
  ];
}

/** The latency of the last check; of a heartbeat, which has none, the duration of the last run. */
function latencyText({ type, latency_ms, last_duration_ms }: MonitorStatus): string {
  if (type === "heartbeat") return last_duration_ms == null ? "–" : duration(last_duration_ms);
  return latency_ms === null ? "–" : `${latency_ms} ms`;
}

/** The monitor's state, and why its alerts are suppressed. */
function States({ of: monitor }: { of: MonitorStatus }) {
  const flags = [monitor.flapping ? "flapping" : null, monitor.maintenance ? "maintenance" : null];
  const labels = flags.filter((flag) => flag !== null);
  return (
    <>
      <Status state={stateOf(monitor)} />
      {labels.length === 0 ? null : <span class="sub">{labels.join(", ")}</span>}
    </>
  );
}

/** A bar for each of the last 24 hours, and the uptime of the same hours. */
function LastDay({ of: { name, hours = [], uptime = null } }: { of: MonitorStatus }) {
  return (
    <span class="day">
      <Bars
        bars={hourBars(hours, minute.value)}
        places={hours.length}
        label={`${name}: up ${percent(uptime)} of 24 hours`}
      />
      <span class="sub">{percent(uptime)}</span>
    </span>
  );
}
