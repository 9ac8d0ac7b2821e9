import { useState } from "preact/hooks";
import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count, percent, span } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { go, href } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { lazy } from "../../shell/lazy.tsx";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { History } from "../server/audit-list.tsx";
import { Checks } from "./monitor-checks.tsx";
import { assertionFacts, certificateFact, stateOf } from "./monitor-facts.tsx";

const MonitorForm = lazy(async () => (await import("./monitor-form.tsx")).MonitorForm);
const HeartbeatPanels = lazy(async () => (await import("./heartbeat.tsx")).HeartbeatPanels);
const HeartbeatForm = lazy(async () => (await import("./heartbeat-form.tsx")).HeartbeatForm);

const CHECKS = 100;

/** A monitor: its checks as bars and as a chart, and its uptime. */
export function MonitorPage({ id }: { id: string }) {
  const params = { monitorId: id };
  const [open, setOpen] = useState<"change" | "delete" | null>(null);
  const close = (): void => setOpen(null);
  const monitor = useResource(`monitor ${id}`, ["pulse"], (signal) =>
    call("monitors.read", { params }, signal),
  );
  const history = useResource(`history ${id}`, ["pulse"], (signal) =>
    call("monitors.history", { params, query: { limit: CHECKS } }, signal),
  );
  return (
    <Page
      title={monitor.data?.name ?? "Monitor"}
      up={["#/monitors", "Monitors"]}
      status={monitor.data === null ? null : <Status state={stateOf(monitor.data)} />}
      lead={monitor.data?.interval ? monitor.data.url : undefined}
      request={requestOf("monitors.history", { params })}
      actions={
        <Actions
          id={id}
          isCheckable={monitor.data?.type !== "heartbeat"}
          active={monitor.data?.active ?? null}
          onChanged={() => {
            monitor.reload();
            history.reload();
          }}
          onOpen={setOpen}
        />
      }
    >
      <div class="stack">
        <Loaded of={monitor}>
          {(one) => (
            <Panel>
              <Facts
                of={[
                  ["Last check", <Ago key="c" at={one.last_checked_at} />],
                  ["Latency", one.latency_ms === null ? "–" : `${one.latency_ms} ms`],
                  ["Consecutive failures", one.consecutive_failures],
                  ...certificateFact(one),
                  ...(one.incident_id === null ? [] : [incidentOf(one.incident_id)]),
                  ...(one.flapping
                    ? [["Flapping", "yes: alerts are suppressed until it is stable"] as const]
                    : []),
                  ...(one.maintenance
                    ? [["Maintenance", "in progress: alerts are suppressed"] as const]
                    : []),
                  ...UPTIMES.map(
                    (range) => [`Uptime, ${range}`, percent(history.data?.uptime[range] ?? null)] as const,
                  ),
                ]}
              />
            </Panel>
          )}
        </Loaded>
        {monitor.data?.type === "heartbeat" ? (
          <HeartbeatPanels of={monitor.data} onChanged={monitor.reload} />
        ) : null}
        <Loaded of={history}>{({ checks }) => <Checks of={checks} />}</Loaded>
        {monitor.data === null ? null : <Settings of={monitor.data} />}
        <History type="monitor" id={id} />
      </div>
      {open === "change" && monitor.data !== null ? (
        <ChangeForm of={monitor.data} onDone={monitor.reload} onClose={close} />
      ) : null}
      {open === "delete" ? <DeleteMonitor id={id} name={monitor.data?.name ?? id} onClose={close} /> : null}
    </Page>
  );
}

function ChangeForm(props: { of: MonitorStatus; onDone: () => void; onClose: () => void }) {
  return props.of.type === "heartbeat" ? <HeartbeatForm {...props} /> : <MonitorForm {...props} />;
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
  /** Whether it is active and can be checked now. */
  readonly isCheckable: boolean;
  /** Null until it is known. */
  readonly active: boolean | null;
  readonly onChanged: () => void;
  readonly onOpen: (what: "change" | "delete") => void;
}

function Actions({ id, isCheckable, active, onChanged, onOpen }: ActionsProps) {
  const params = { monitorId: id };
  const check = async (): Promise<void> => {
    const { status, latency_ms } = await call("monitors.check", { params });
    toast(`${status}, ${latency_ms} ms`);
    onChanged();
  };
  const pause = async (): Promise<void> => {
    await call("monitors.update", { params, body: { active: active === false } });
    toast(active ? "Checks paused" : "Checks resumed");
    onChanged();
  };
  return (
    <>
      {isCheckable ? (
        <Button icon="reload" scope="pulse:write" onClick={check}>
          Check now
        </Button>
      ) : null}
      <Button scope="pulse:write" disabled={active === null} onClick={pause}>
        {active === false ? "Resume" : "Pause"}
      </Button>
      <Button scope="pulse:write" disabled={active === null} onClick={() => onOpen("change")}>
        Edit…
      </Button>
      <Button
        kind="danger"
        icon="delete"
        scope="pulse:write"
        label="Delete…"
        onClick={() => onOpen("delete")}
      >
        {null}
      </Button>
    </>
  );
}

function incidentOf(id: string) {
  return [
    "Incident",
    <a key="i" href={href(["monitors", "incidents", id])}>
      open
    </a>,
  ] as const;
}

const UPTIMES = ["24h", "7d", "30d"] as const;

function Settings({ of: monitor }: { of: MonitorStatus }) {
  const { webhook_url, email_alert, header_names, consecutive_threshold: failures } = monitor;
  const alerts = [webhook_url, email_alert ? "e-mail" : null].filter((one) => one !== null);
  return (
    <Panel title="Settings">
      <Facts
        of={[
          ...checkSettings(monitor),
          ...assertionFacts(monitor),
          ["Down after", count(failures, "failed check")],
          ["Alerts to", alerts.length === 0 ? "nobody" : alerts.join(" and ")],
          ["Notify on recovery", monitor.notify_recovery ? "yes" : "no"],
          [
            "Depends on",
            monitor.depends_on === null ? (
              "nothing"
            ) : (
              <a key="d" href={href(["monitors", monitor.depends_on])}>
                {monitor.depends_on}
              </a>
            ),
          ],
          ["Reminder after", span(monitor.cooldown_ms)],
          ["Headers", header_names.length === 0 ? "–" : header_names.join(", ")],
          ["Group", monitor.group ?? "–"],
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

/** How the target is checked; a heartbeat sends no requests. */
function checkSettings({ method, interval, timeout, schedule, tz, period_ms }: MonitorStatus) {
  if (interval === null)
    return [["Pings", schedule ? `at ${schedule}, ${tz}` : `every ${span(period_ms ?? 0)}`] as const];
  return [
    ["Method", method],
    ["Interval", span(interval)],
    ["Timeout", span(timeout)],
  ] as const;
}
