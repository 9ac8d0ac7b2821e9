import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { LineChart } from "../../charts/line.tsx";
import { call, requestOf } from "../../core/api.ts";
import { count, duration, span } from "../../core/format.ts";
import { minute, now } from "../../core/now.ts";
import { useCall, useResource } from "../../core/resource.ts";
import { go, href, setQuery } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Choice } from "../../ui/field.tsx";
import { lazy } from "../../ui/lazy.tsx";
import { filterValue } from "../../ui/list.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { History } from "../audit-list.tsx";
import { alertText } from "./alert-text.ts";
import { MonitorAlerts } from "./monitor-alerts.tsx";
import { assertionFacts, MonitorNumbers, workOf } from "./monitor-facts.tsx";
import { MonitorLink } from "./monitor-link.tsx";
import { MonitorRows, useOutages } from "./monitor-rows.tsx";
import { pointsOf, RANGES, type Range, spansOf, statusSince } from "./monitor-series.ts";
import { stateOf } from "./monitor-state.ts";

const MonitorForm = lazy(async () => (await import("./monitor-form.tsx")).MonitorForm);
const PingUrl = lazy(async () => (await import("./heartbeat.tsx")).PingUrl);
const MonitorProbes = lazy(async () => (await import("./monitor-probes.tsx")).MonitorProbes);
const HeartbeatForm = lazy(async () => (await import("./heartbeat-form.tsx")).HeartbeatForm);

/** More than a project can have. */
const CHANNELS_MAX = 100;
const RANGE = { name: "range", label: "Range", options: RANGES.map(([range]) => [range, range] as const) };

/** A monitor: who is notified, its uptime, availability and latency over time, its outages and checks. */
export function MonitorPage({ id }: { id: string }) {
  const params = { monitorId: id };
  const range = filterValue(RANGE) as Range;
  const monitor = useCall("monitors.read", { params }, ["pulse"]);
  const history = useResource(
    `history ${id}`,
    ["pulse"],
    (signal) => call("monitors.history", { params, query: { range, limit: 1 } }, signal),
    range,
  );
  const outages = useOutages(id);
  const status = monitor.data;
  const beat = status?.type === "heartbeat" ? <PingUrl of={status} onChanged={monitor.reload} /> : null;
  const since = status === null ? null : statusSince(status, outages.data ?? []);
  const up = [href(["monitors"]), status?.group ? `Monitors / ${status.group}` : "Monitors"] as const;
  // Nothing else is known of a monitor that does not exist.
  if (status === null && monitor.failure !== null)
    return (
      <Page title="Monitor" up={up}>
        <Loaded of={monitor}>{() => null}</Loaded>
      </Page>
    );
  return (
    <Page
      title={status?.name ?? "Monitor"}
      up={up}
      status={
        status === null ? null : (
          <>
            <Status state={stateOf(status)} />
            {since === null ? null : <span class="quiet">for {duration(now.value - since)}</span>}
          </>
        )
      }
      lead={status === null ? undefined : <Lead of={status} />}
      request={requestOf("monitors.history", { params, query: { range } })}
      actions={
        <Actions
          id={id}
          of={status}
          onChanged={() => {
            monitor.reload();
            history.reload();
          }}
        />
      }
    >
      <div class="stack">
        <Loaded of={monitor}>
          {(status) => (
            <>
              {status.last_ping_at == null ? beat : null}
              <Panel>
                <MonitorNumbers of={status} history={history.data} />
              </Panel>
            </>
          )}
        </Loaded>
        <Loaded of={history}>
          {({ series }) =>
            series === undefined ? null : (
              <Panel>
                <LineChart
                  title={
                    beat === null
                      ? "Availability and latency (faint: 95th percentile)"
                      : "Pings and duration of runs"
                  }
                  unit={beat === null ? "ms" : "s"}
                  points={pointsOf(series, beat !== null, spansOf(outages.data ?? [], series, minute.value))}
                  slotMs={series.bucket_ms}
                  spans={spansOf(outages.data ?? [], series, minute.value)}
                  actions={
                    <Choice
                      label="Range"
                      options={RANGE.options}
                      value={range}
                      onChange={(to) => setQuery({ range: to })}
                    />
                  }
                />
              </Panel>
            )
          }
        </Loaded>
        <MonitorRows id={id} outages={outages} isHeartbeat={beat !== null} />
        {status === null || status.probe_states.length === 0 ? null : <MonitorProbes of={status} />}
        {status?.last_ping_at == null ? null : beat}
        {status === null ? null : <MonitorAlerts of={status} />}
        {status === null ? null : <Settings of={status} />}
        <History type="monitor" id={id} />
      </div>
    </Page>
  );
}

/** How late a heartbeat's pings may be, and how long and how often its job may run. */
function limitsOf({
  grace_ms = 0,
  start_grace_ms: longest,
  max_runs_per_period: runs,
}: MonitorStatus): string {
  return [
    `grace period ${duration(grace_ms)}`,
    longest ? `longest run ${duration(longest)}` : "",
    runs ? `at most ${count(runs, "run")} per period` : "",
  ]
    .filter((limit) => limit !== "")
    .join(", ");
}

/** Why nothing is known of the target; empty before the first check. */
function unknownText({ probe_states: probes, error }: MonitorStatus): string {
  if (probes.length > 0 && probes.every(({ online }) => online === false))
    return " None of its probes is online.";
  return error === null ? "" : ` The last check could not be made: ${error}.`;
}

/** What is checked, who is notified, and why alerts are suppressed. */
function Lead({ of: monitor }: { of: MonitorStatus }) {
  const channels = useCall("monitors.channels.list", { query: { limit: CHANNELS_MAX } }, ["pulse"]);
  const { interval, consecutive_threshold: failures, flapping, maintenance, status } = monitor;
  if (monitor.type === "manual")
    return (
      <>
        Nothing is checked: its state is that of the open{" "}
        <a href={href(["monitors", "incidents"])}>incidents</a> that name it.
      </>
    );
  const limit = interval === null ? limitsOf(monitor) : `down after ${count(failures, "failed check")}`;
  return (
    <>
      {workOf(monitor)}, {limit}.{" "}
      {channels.data === null ? null : (
        <>
          Notifies <a href={href(["monitors", "channels"])}>{alertText(monitor, channels.data.channels)}</a>.
        </>
      )}
      {status === "unknown" ? unknownText(monitor) : null}
      {maintenance ? " Alerts are suppressed: a maintenance window is open." : null}
      {flapping ? " Alerts are suppressed until the status is stable: it changes too often." : null}
    </>
  );
}

function DeleteMonitor({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete monitor"
      onClose={onClose}
      onConfirm={async () => {
        await call("monitors.delete", { params: { monitorId: id } });
        go(["monitors"]);
      }}
    >
      <p>
        <strong>{name}</strong> will no longer be checked, and its history is deleted.
      </p>
    </Confirm>
  );
}

interface ActionsProps {
  readonly id: string;
  /** Null until it is read. */
  readonly of: MonitorStatus | null;
  readonly onChanged: () => void;
}

function Actions({ id, of: monitor, onChanged }: ActionsProps) {
  const { active = null, type, name = id } = monitor ?? {};
  const params = { monitorId: id };
  const check = async (): Promise<void> => {
    const { status, latency_ms, error } = await call("monitors.check", { params });
    toast(status === "unknown" && error !== null ? error : `${status}, ${latency_ms} ms`);
    onChanged();
  };
  const pause = async (): Promise<void> => {
    await call("monitors.update", { params, body: { active: active === false } });
    toast(active ? "Checks paused" : "Checks resumed");
    onChanged();
  };
  const edit = (): void => {
    if (monitor === null) return;
    const Changed = type === "heartbeat" ? HeartbeatForm : MonitorForm;
    openDialog((close) => <Changed of={monitor} onDone={onChanged} onClose={close} />);
  };
  return (
    <>
      {type !== "heartbeat" && type !== "manual" ? (
        <Button icon="reload" operation="monitors.check" onClick={check}>
          Check now
        </Button>
      ) : null}
      <Button operation="monitors.update" disabled={active === null} onClick={pause}>
        {active === false ? "Resume" : "Pause"}
      </Button>
      <Button operation="monitors.update" disabled={active === null} onClick={edit}>
        Edit…
      </Button>
      <Button
        kind="danger"
        icon="delete"
        operation="monitors.delete"
        label="Delete…"
        onClick={() => openDialog((close) => <DeleteMonitor id={id} name={name} onClose={close} />)}
      />
    </>
  );
}

function Settings({ of: monitor }: { of: MonitorStatus }) {
  const { header_names, interval, timeout } = monitor;
  return (
    <Panel title="Settings">
      <Facts
        of={[
          ...(interval === null ? [] : [["Timeout", span(timeout)] as const]),
          ...assertionFacts(monitor),
          [
            "Depends on",
            monitor.depends_on === null ? "nothing" : <MonitorLink key="d" id={monitor.depends_on} />,
          ],
          ...(header_names.length === 0 ? [] : [["Headers", header_names.join(", ")] as const]),
          ["Created", <Ago key="c" at={monitor.created_at} />],
          [
            "ID",
            <code key="i" class="long">
              {monitor.monitor_id}
            </code>,
          ],
        ]}
      />
    </Panel>
  );
}
