import type { ServerHistory, ServerProblem, ServerStep } from "../../../../client/generated/api.ts";
import type { Point } from "../../charts/axis.ts";
import { LineChart } from "../../charts/line.tsx";
import { count, duration, formatNumber, instant } from "../../core/format.ts";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";

const SECONDS_MS = 1_000;
const MEBIBYTE = 1024 * 1024;
const GIBIBYTE = 1024 * MEBIBYTE;

const KINDS: Readonly<Record<ServerProblem["kind"], string>> = {
  errors: "at least 1 % of the requests failed",
  commits: "changes could not be stored",
  jobs: "jobs were more than a minute late",
  event_loop: "the event loop was delayed",
  disk: "less than 1 GiB of the disk was free",
  offline: "the server was stopped or suspended",
};

type Read = (step: ServerStep, minutes: number) => number | null;

const CHARTS: readonly (readonly [title: string, unit: string, read: Read])[] = [
  ["Requests per minute", "requests", ({ requests }, minutes) => requests / minutes],
  ["Requests with a server error", "requests", ({ errors }) => errors],
  ["Duration of requests, p99", "ms", ({ p99_ms }) => p99_ms],
  ["Event loop lag, p99", "ms", ({ event_loop_lag_p99_ms: lag }) => lag],
  ["Commits per minute", "commits", ({ commits }, minutes) => commits / minutes],
  ["Due jobs", "jobs", ({ jobs_due }) => jobs_due],
  ["Process memory", "MiB", ({ memory_bytes }) => memory_bytes / MEBIBYTE],
  ["Free disk space", "GiB", ({ disk_free_bytes: free }) => (free === null ? null : free / GIBIBYTE)],
];

/** Whether the server is healthy, and since when it is not. */
export function Verdict({ of: { problems, points } }: { of: ServerHistory }) {
  const current = problems.filter(({ until }) => until === null);
  const oldest = current.at(-1);
  if (oldest !== undefined)
    return (
      <div class="stack">
        <p>
          <Status state="not healthy" tone="bad" /> since <DateTime at={oldest.since} />
        </p>
        <ul>
          {current.map(({ kind, since }) => (
            <li key={kind}>
              {KINDS[kind]}, since <DateTime at={since} />
            </li>
          ))}
        </ul>
      </div>
    );
  const last = problems[0];
  if (points.length === 0)
    return <p class="quiet">The first measurement is stored a minute after the start.</p>;
  return (
    <p>
      <Status state="healthy" tone="good" />{" "}
      {last?.until === undefined ? (
        "in all of this time"
      ) : (
        <>
          since <DateTime at={last.until} />
        </>
      )}
    </p>
  );
}

/** The times in which the server was not healthy. */
export function Problems({ of: { problems } }: { of: ServerHistory }) {
  if (problems.length === 0) return null;
  return (
    <Panel title={count(problems.length, "problem")} flush>
      <Table
        label="Problems"
        rows={problems}
        keyOf={({ kind, since }) => `${kind} ${since}`}
        columns={[
          { head: "What", cell: ({ kind }) => KINDS[kind] },
          { head: "From", cell: ({ since }) => <DateTime at={since} /> },
          {
            head: "Duration",
            cell: ({ since, until }) =>
              until === null ? (
                <Status state="continues" tone="bad" />
              ) : (
                duration(instant(until) - instant(since))
              ),
            layout: "fit",
          },
        ]}
      />
    </Panel>
  );
}

/** Charts of the measurements; periods without any interrupt the lines and are marked. */
export function HistoryCharts({ of: history }: { of: ServerHistory }) {
  const { points, problems, step_seconds, from, to } = history;
  if (points.length < 2) return null;
  const minutes = step_seconds / 60;
  const spans = problems
    .filter(({ kind }) => kind === "offline")
    .map(({ since, until }) => ({
      from: instant(since),
      to: instant(until ?? to),
      label: "offline",
    }));
  return (
    <div class="charts">
      {CHARTS.map(([title, unit, read]) => (
        <Panel key={title}>
          <LineChart
            title={title}
            unit={unit}
            points={pointsOf(points, step_seconds * SECONDS_MS, instant(from), (step) => read(step, minutes))}
            spans={spans}
          />
        </Panel>
      ))}
      <p class="quiet">
        {formatNumber(points.length)} steps of {duration(step_seconds * SECONDS_MS)}; of several minutes, the
        worst value is shown.
      </p>
    </div>
  );
}

/** A point per step; one of null where steps are missing. */
function pointsOf(
  steps: readonly ServerStep[],
  stepMs: number,
  from: number,
  read: (step: ServerStep) => number | null,
): Point[] {
  const points: Point[] = [];
  let last = from;
  for (const step of steps) {
    const at = instant(step.at);
    if (points.length > 0 && at - last > 1.5 * stepMs) points.push({ at: last + stepMs, value: null });
    const value = read(step);
    points.push(value === null ? { at } : { at, value: Math.round(value * 100) / 100 });
    last = at;
  }
  return points;
}
