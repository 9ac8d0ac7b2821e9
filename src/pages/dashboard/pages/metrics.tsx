import { useEffect, useState } from "preact/hooks";
import { LineChart, type Point } from "../charts/line.tsx";
import { BASE_URL, call, requestOf } from "../core/api.ts";
import { bytes, figure } from "../core/format.ts";
import type { ServerStatus } from "../core/pending.ts";
import { useResource } from "../core/resource.ts";
import { Empty, Loaded } from "../ui/feedback.tsx";
import { Facts, Page, Panel } from "../ui/page.tsx";

const PERIOD_MS = 5_000;
/** Ten minutes. They are kept in this page alone. */
const POINTS_MAX = 120;

/** How the server is, now and since the page was opened. */
export function MetricsPage() {
  const status = useResource("status", [], (signal) => call("admin.status", {}, signal));
  const [samples, setSamples] = useState<readonly (readonly [at: number, status: ServerStatus])[]>([]);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) status.reload();
    }, PERIOD_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    const { data } = status;
    if (data !== null) setSamples((before) => [...before, [Date.now(), data] as const].slice(-POINTS_MAX));
  }, [status.data]);
  return (
    <Page
      title="Metrics"
      request={requestOf("admin.status", {})}
      actions={
        <a class="button" href={`${BASE_URL}/metrics`}>
          /metrics
        </a>
      }
    >
      <Loaded
        of={status}
        missing={
          <Empty icon="metrics" title="No figures">
            This server gives none.
          </Empty>
        }
      >
        {(now) => (
          <div class="stack">
            <Panel>
              <Facts of={numbersOf(now).map(([name, value]) => [worded(name), shown(name, value)])} />
            </Panel>
            {CHARTS.map(([name, title, unit, scale]) => (
              <Panel key={name}>
                <LineChart title={title} unit={unit} points={pointsOf(samples, name, scale)} />
              </Panel>
            ))}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

const CHARTS = [
  ["requests_per_second", "Requests a second", "", 1],
  ["loop_lag_p99_ms", "Lag of the event loop, p99", "ms", 1],
  ["rss_bytes", "Memory", "MB", 1_000_000],
  ["jobs_due", "Jobs due", "", 1],
] as const;

function numbersOf(status: ServerStatus): [string, unknown][] {
  return Object.entries(status).filter(([, value]) => typeof value === "number" || typeof value === "string");
}

function worded(name: string): string {
  const words = name.replaceAll("_", " ").replace(/ bytes$/, "");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function shown(name: string, value: unknown): string {
  if (typeof value !== "number") return String(value);
  return name.endsWith("_bytes") ? bytes(value) : figure(value);
}

function pointsOf(
  samples: readonly (readonly [number, ServerStatus])[],
  name: string,
  scale: number,
): Point[] {
  return samples.map(([at, status]) => {
    const value = status[name];
    return { at, value: typeof value === "number" ? value / scale : null };
  });
}
