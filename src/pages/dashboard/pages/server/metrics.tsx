import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ServerStatus } from "../../../../client/generated/api.ts";
import { LineChart } from "../../charts/line.tsx";
import { BASE_URL, call, requestOf } from "../../core/api.ts";
import { bytes, figure } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { CurlButton } from "../../ui/button.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

const LOOK_MS = 5_000;
/** Ten minutes of looks. */
const LOOKS_KEPT = 120;
const MEBIBYTE = 1024 * 1024;
const MINUTE_MS = 60_000;

interface Look {
  readonly at: number;
  readonly status: ServerStatus;
}

/** What was seen while the page was open. Nothing keeps it longer than this browser's page. */
const looks = signal<readonly Look[]>([]);

const CHARTS: readonly (readonly [title: string, unit: string, of: (status: ServerStatus) => number])[] = [
  ["Requests per second", "requests", (status) => status.requests_per_second],
  ["Lag of the event loop, 99th percentile of a minute", "ms", (status) => status.event_loop_lag_p99_ms],
  ["Memory of the process", "MiB", ({ rss_bytes }) => Math.round(rss_bytes / MEBIBYTE)],
  ["Jobs that are due", "jobs", ({ jobs }) => jobs.due],
];

/** How the server is, for the operator. */
export function MetricsPage() {
  const status = useResource("status", [], async (aborted) => {
    const found = await call("admin.status.read", {}, aborted);
    looks.value = [...looks.value, { at: Date.now(), status: found }].slice(-LOOKS_KEPT);
    return found;
  });
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) status.reload();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [status.reload]);
  return (
    <Page
      title="Metrics"
      lead="Looked at every five seconds while this page is open, and kept nowhere."
      request={requestOf("admin.status.read", {})}
    >
      <Loaded of={status}>
        {(now) => (
          <div class="stack">
            <Panel>
              <StatusFacts of={now} />
            </Panel>
            <Charts />
            <Counters />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Charts() {
  if (looks.value.length < 2)
    return <p class="quiet">Lines are drawn from the second look on, in five seconds.</p>;
  return (
    <div class="charts">
      {CHARTS.map(([title, unit, of]) => (
        <Panel key={title}>
          <LineChart
            title={title}
            unit={unit}
            points={looks.value.map((look) => ({ at: look.at, value: of(look.status) }))}
          />
        </Panel>
      ))}
    </div>
  );
}

function StatusFacts({ of: status }: { of: ServerStatus }) {
  const { jobs, disk_free_bytes: free } = status;
  return (
    <Facts
      of={[
        ["Version", status.version],
        ["Started", <Ago key="s" at={status.started_at} />],
        ["Database", bytes(status.database_bytes)],
        ["Write-ahead log", bytes(status.wal_bytes)],
        ["Free on its disk", free === null ? "–" : bytes(free)],
        ["Requests in flight", figure(status.requests_in_flight)],
        ["Jobs", `${figure(jobs.waiting)} waiting · ${figure(jobs.running)} running`],
        ["Most overdue job", `${figure(Math.round(jobs.overdue_seconds))} s`],
        ["Data folder", <code key="d">{status.data_folder}</code>],
      ]}
    />
  );
}

const SCRAPE = { method: "GET", path: "/metrics", body: undefined };

/** What is counted, and how quickly it grew while the page was open. */
function Counters() {
  const [first] = looks.value;
  const last = looks.value.at(-1);
  if (first === undefined || last === undefined) return null;
  const minutes = (last.at - first.at) / MINUTE_MS;
  const grown = (name: string, value: number): string => {
    const since = value - (first.status.counters[name] ?? 0);
    // A restart begins at 0.
    return minutes > 0 && since >= 0 ? figure(Math.round(since / minutes)) : "–";
  };
  return (
    <Panel
      title="Counted since the start"
      flush
      actions={
        <div class="actions">
          <a href={`${BASE_URL}/metrics`}>All of them, for Prometheus</a>
          <CurlButton request={SCRAPE} />
        </div>
      }
    >
      <Table
        label="Counters"
        rows={Object.entries(last.status.counters)}
        keyOf={([name]) => name}
        columns={[
          { head: "What", cell: ([name]) => <code>{name}</code> },
          { head: "Since the start", cell: ([, value]) => figure(Math.round(value)), look: "end" },
          { head: "A minute", cell: ([name, value]) => grown(name, value), look: "end" },
        ]}
      />
    </Panel>
  );
}
