import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ServerStatus } from "../../../../client/generated/api.ts";
import { LineChart } from "../../charts/line.tsx";
import { BASE_URL, call, requestOf } from "../../core/api.ts";
import { bytes, formatNumber, MINUTE_MS } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { CurlButton } from "../../ui/button.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

const LOOK_MS = 5_000;
/** Samples of ten minutes. */
const SAMPLES_MAX = 120;
const MEBIBYTE = 1024 * 1024;

interface Sample {
  readonly at: number;
  readonly status: ServerStatus;
}

/** Samples since the page was opened. They are not stored. */
const samples = signal<readonly Sample[]>([]);

const CHARTS: readonly (readonly [title: string, unit: string, of: (status: ServerStatus) => number])[] = [
  ["Requests per second", "requests", (status) => status.requests_per_second],
  ["Event loop lag, p99 over a minute", "ms", (status) => status.event_loop_lag_p99_ms],
  ["Process memory", "MiB", ({ rss_bytes }) => Math.round(rss_bytes / MEBIBYTE)],
  ["Due jobs", "jobs", ({ jobs }) => jobs.due],
];

/** The server's state, for the operator. */
export function MetricsPage() {
  const status = useResource("status", [], async (aborted) => {
    const found = await call("admin.status.read", {}, aborted);
    samples.value = [...samples.value, { at: Date.now(), status: found }].slice(-SAMPLES_MAX);
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
      lead="Sampled every five seconds while this page is open. Samples are not stored."
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
  if (samples.value.length < 2)
    return <p class="quiet">Charts appear after the second sample, in five seconds.</p>;
  return (
    <div class="charts">
      {CHARTS.map(([title, unit, of]) => (
        <Panel key={title}>
          <LineChart
            title={title}
            unit={unit}
            points={samples.value.map((layout) => ({ at: layout.at, value: of(layout.status) }))}
          />
        </Panel>
      ))}
    </div>
  );
}

function StatusFacts({ of: status }: { of: ServerStatus }) {
  const { jobs, mail, disk_free_bytes: free } = status;
  return (
    <Facts
      of={[
        ["Version", status.version],
        ["Started", <Ago key="s" at={status.started_at} />],
        ["Database", bytes(status.database_bytes)],
        ["Write-ahead log", bytes(status.wal_bytes)],
        ["Free disk space", free === null ? "–" : bytes(free)],
        ["Requests in flight", formatNumber(status.requests_in_flight)],
        ["Jobs", `${formatNumber(jobs.waiting)} waiting · ${formatNumber(jobs.running)} running`],
        ["Most overdue job", `${formatNumber(Math.round(jobs.overdue_seconds))} s`],
        ...(mail.configured ? [["E-mails", mailText(mail)] as const] : []),
        ...(status.archive === null ? [] : [["Archive", archiveText(status.archive)] as const]),
        ...(status.cluster === null ? [] : [["Cluster", clusterText(status.cluster)] as const]),
        ["Data folder", <code key="d">{status.data_folder}</code>],
      ]}
    />
  );
}

function mailText({ queued, sent, last_error: error }: ServerStatus["mail"]): string {
  const counts = `${formatNumber(sent)} sent · ${formatNumber(queued)} queued`;
  return error === null ? counts : `${counts} · last error: ${error}`;
}

function clusterText({ cell, epoch, confirmed, nodes }: NonNullable<ServerStatus["cluster"]>): string {
  const others = nodes.map(
    ({ advertise, node_id, lag }) => `${advertise ?? node_id} is ${lag} entries behind`,
  );
  return [`${confirmed ? "leads" : "suspended"} ${cell}, epoch ${epoch}`, ...others].join(" · ");
}

function archiveText({ lag_seconds, base_at, last_error }: NonNullable<ServerStatus["archive"]>): string {
  if (last_error !== null) return `${formatNumber(Math.round(lag_seconds))} s behind · ${last_error}`;
  if (base_at === null) return "no base yet";
  return lag_seconds === 0 ? "complete" : `${formatNumber(Math.ceil(lag_seconds))} s behind`;
}

const SCRAPE = { method: "GET", path: "/metrics", body: undefined };

/** Counters, and their rate since the page was opened. */
function Counters() {
  const [first] = samples.value;
  const last = samples.value.at(-1);
  if (first === undefined || last === undefined) return null;
  const minutes = (last.at - first.at) / MINUTE_MS;
  const perMinute = (name: string, value: number): string => {
    const since = value - (first.status.counters[name] ?? 0);
    // Counters start at 0 after a restart.
    return minutes > 0 && since >= 0 ? formatNumber(Math.round(since / minutes)) : "–";
  };
  return (
    <Panel
      title="Counters since the start"
      flush
      actions={
        <div class="actions">
          <a href={`${BASE_URL}/metrics`}>All metrics (Prometheus)</a>
          <CurlButton request={SCRAPE} />
        </div>
      }
    >
      <Table
        label="Counters"
        rows={Object.entries(last.status.counters)}
        keyOf={([name]) => name}
        columns={[
          { head: "Counter", cell: ([name]) => <code>{name}</code> },
          { head: "Since the start", cell: ([, value]) => formatNumber(Math.round(value)), layout: "end" },
          { head: "Per minute", cell: ([name, value]) => perMinute(name, value), layout: "end" },
        ]}
      />
    </Panel>
  );
}
