import type { MonitorCheck, MonitorStatus } from "../../../client/generated/api.ts";
import { type Bar, Bars } from "../charts/bars.tsx";
import { call } from "../core/api.ts";
import { count } from "../core/format.ts";
import { minute } from "../core/now.ts";
import { useResource } from "../core/resource.ts";
import { href } from "../core/route.ts";
import { Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import { Ago } from "../ui/time.tsx";

const INCIDENTS_SHOWN = 10;

/** The newest open incidents. */
export function OpenIncidents({ open }: { open: number }) {
  const { data } = useResource(
    "incidents",
    [],
    (signal) =>
      call("monitors.incidents.list", { query: { status: "open", limit: INCIDENTS_SHOWN } }, signal),
    open,
  );
  return (
    <Panel title={`Open incidents (${open})`}>
      {open === 0 ? <p class="quiet">No open incidents.</p> : null}
      <ul class="log">
        {(data?.incidents ?? []).map(({ id, title, started_at }) => (
          <li key={id}>
            <span>
              <Status state="down" /> <a href={href(["monitors", "incidents", id])}>{title}</a>
            </span>
            <span class="quiet small">
              since <Ago at={started_at} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const MINUTE_MS = 60_000;
const PLACES = 30;
const PLACE_MS = 2 * MINUTE_MS;
/** Most monitors whose checks are read: each is a request. */
const MONITORS_MAX = 10;
const CHECKS_MAX = 100;
const LEAST_HEIGHT = 0.3;

/** The checks of the last hour of all monitors. Read once a minute. */
export function LastHour() {
  const { data } = useResource("last hour", [], lastChecks, minute.value);
  if (data === null) return null;
  const { checks, monitors } = data;
  const bars = hourOf(checks, minute.value + MINUTE_MS);
  const made = bars.filter(({ tone }) => tone !== "none").length;
  const down = checks.filter(({ status }) => status === "down").length;
  return (
    <Panel title="Checks in the last hour">
      <Bars
        bars={bars}
        places={PLACES}
        label={
          made === 0 ? "No checks in the last hour" : `${count(down, "check")} of ${checks.length} failed`
        }
      />
      <p class="quiet small">
        {checks.length === 0
          ? "No checks yet."
          : `${count(checks.length, "check")} of ${count(monitors, "monitor")}, ${down} failed`}
      </p>
    </Panel>
  );
}

async function lastChecks(signal: AbortSignal) {
  const { monitors } = await call("monitors.list", { query: { limit: MONITORS_MAX } }, signal);
  const read = async ({ monitor_id }: MonitorStatus): Promise<readonly MonitorCheck[]> =>
    (
      await call(
        "monitors.history",
        { params: { monitorId: monitor_id }, query: { limit: CHECKS_MAX } },
        signal,
      )
    ).checks;
  const since = Date.now() / 1000 - (PLACES * PLACE_MS) / 1000;
  const checks = (await Promise.all(monitors.map(read)))
    .flat()
    .filter(({ checked_at }) => checked_at >= since);
  return { checks, monitors: monitors.length };
}

/** One bar for every two minutes: the more checks failed, the shorter the bar. */
function hourOf(checks: readonly MonitorCheck[], end: number): Bar[] {
  return Array.from({ length: PLACES }, (_, at) => {
    const from = end - (PLACES - at) * PLACE_MS;
    const within = checks.filter(({ checked_at }) => {
      const moment = checked_at * 1000;
      return moment >= from && moment < from + PLACE_MS;
    });
    const up = within.filter(({ status }) => status === "up").length;
    const when = new Date(from).toLocaleTimeString("en-GB", { timeStyle: "short" });
    if (within.length === 0) return { height: 1, tone: "none", title: `${when}: no checks` };
    return {
      height: Math.max(LEAST_HEIGHT, up / within.length),
      tone: up === within.length ? "good" : up === 0 ? "bad" : "warn",
      title: `${when}: ${up} of ${within.length} up`,
    };
  });
}
