import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ServerStatus } from "../../../../client/generated/api.ts";
import { BASE_URL, call, requestOf } from "../../core/api.ts";
import { bytes, formatNumber, MINUTE_MS } from "../../core/format.ts";
import { minute, serverNow } from "../../core/now.ts";
import { useCall, useResource } from "../../core/resource.ts";
import { place, setQuery } from "../../core/route.ts";
import { CurlButton } from "../../ui/button.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Choice } from "../../ui/field.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { HistoryCharts, Problems, Verdict } from "./history.tsx";

const LOOK_MS = 5_000;
/** Samples of ten minutes. */
const SAMPLES_MAX = 120;
const RANGES = [
  ["1", "1 h"],
  ["6", "6 h"],
  ["24", "24 h"],
  ["168", "7 d"],
] as const;
const DEFAULT_HOURS = 24;

interface Sample {
  readonly at: number;
  readonly status: ServerStatus;
}

/** Samples since the page was opened. They are not stored. */
const samples = signal<readonly Sample[]>([]);

/** The server's state, for the operator. */
export function MetricsPage() {
  const status = useResource("status", [], async (aborted) => {
    const found = await call("admin.status.read", {}, aborted);
    samples.value = [...samples.value, { at: serverNow(), status: found }].slice(-SAMPLES_MAX);
    return found;
  });
  const { query } = place.value;
  const hours = Number(RANGES.find(([range]) => range === query.get("hours"))?.[0] ?? DEFAULT_HOURS);
  const history = useCall("admin.history.read", { query: { hours } }, [], minute.value);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) status.reload();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [status.reload]);
  return (
    <Page
      title="Metrics"
      lead="The server stores measurements of itself, one row a minute, for seven days."
      request={requestOf("admin.history.read", { query: { hours } })}
      actions={
        <Choice
          label="Range"
          options={RANGES}
          value={String(hours)}
          onChange={(range) => setQuery({ hours: range })}
        />
      }
    >
      <div class="stack">
        <Loaded of={history}>
          {(found) => (
            <div class="stack">
              <Panel>
                <Verdict of={found} />
              </Panel>
              <Problems of={found} />
              <HistoryCharts of={found} />
            </div>
          )}
        </Loaded>
        <Loaded of={status}>
          {(now) => (
            <div class="stack">
              <Panel title="Now">
                <StatusFacts of={now} />
              </Panel>
              <Counters />
            </div>
          )}
        </Loaded>
      </div>
    </Page>
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
