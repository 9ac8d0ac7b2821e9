import { useState } from "preact/hooks";
import type { MonitorCheck, MonitorStatus } from "../../../client/generated/api.ts";
import { Bars } from "../charts/bars.tsx";
import { LineChart } from "../charts/line.tsx";
import { call, requestOf } from "../core/api.ts";
import { count, percent, span } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import { go, href } from "../core/route.ts";
import { toast } from "../core/toasts.ts";
import { later } from "../shell/later.tsx";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Loaded } from "../ui/feedback.tsx";
import { Facts, Page, Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import { Table } from "../ui/table.tsx";
import { Ago, Moment } from "../ui/time.tsx";
import { History } from "./audit-list.tsx";
import { barsLabel, barsOf } from "./check-bars.ts";
import { assertionFacts, certificateFact } from "./monitor-facts.tsx";

const MonitorForm = later(async () => (await import("./monitor-form.tsx")).MonitorForm);

const CHECKS = 100;
const PLACES = 50;

/** One monitor: its checks as bars and as a line, its uptime. */
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
      lead={monitor.data === null ? undefined : monitor.data.url}
      request={requestOf("monitors.history", { params })}
      actions={
        <Actions
          id={id}
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
                  ["Checked", <Ago key="c" at={one.last_checked_at} />],
                  ["Latency", one.latency_ms === null ? "–" : `${one.latency_ms} ms`],
                  ["Failures in a row", one.consecutive_failures],
                  ...certificateFact(one),
                  ...(one.incident_id === null ? [] : [incidentOf(one.incident_id)]),
                  ...(one.flapping ? [["Flapping", "up and down: silent until it stays"] as const] : []),
                  ...(one.maintenance ? [["Planned work", "under way: nobody is told"] as const] : []),
                  ...UPTIMES.map(
                    (range) => [`Uptime, ${range}`, percent(history.data?.uptime[range] ?? null)] as const,
                  ),
                ]}
              />
            </Panel>
          )}
        </Loaded>
        <Loaded of={history}>{({ checks }) => <Checks of={checks} />}</Loaded>
        {monitor.data === null ? null : <Settings of={monitor.data} />}
        <History type="monitor" id={id} />
      </div>
      {open === "change" && monitor.data !== null ? (
        <MonitorForm of={monitor.data} onDone={monitor.reload} onClose={close} />
      ) : null}
      {open === "delete" ? <DeleteMonitor id={id} name={monitor.data?.name ?? id} onClose={close} /> : null}
    </Page>
  );
}

function DeleteMonitor({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  return (
    <Confirm
      title={`Delete ${name}?`}
      deed="Delete monitor"
      onClose={onClose}
      onConfirm={async () => {
        await call("monitors.delete", { params: { monitorId: id } });
        go(["monitors"]);
      }}
    >
      <p>
        <strong>{name}</strong> is no longer checked, and its history goes with it.
      </p>
    </Confirm>
  );
}

/** What it says of its target; a monitor that is paused says nothing. */
export function stateOf({ active, status, degraded }: MonitorStatus): string {
  if (!active) return "paused";
  return degraded ? "degraded" : status;
}

interface ActionsProps {
  readonly id: string;
  /** Null until that is known. */
  readonly active: boolean | null;
  readonly onChanged: () => void;
  readonly onOpen: (what: "change" | "delete") => void;
}

function Actions({ id, active, onChanged, onOpen }: ActionsProps) {
  const params = { monitorId: id };
  const check = async (): Promise<void> => {
    const { status, latency_ms } = await call("monitors.check", { params });
    toast(`${status}, ${latency_ms} ms`);
    onChanged();
  };
  const pause = async (): Promise<void> => {
    await call("monitors.update", { params, body: { active: active === false } });
    toast(active ? "Checks are paused" : "Checks go on");
    onChanged();
  };
  return (
    <>
      <Button icon="reload" scope="pulse:write" onClick={check}>
        Check now
      </Button>
      <Button scope="pulse:write" disabled={active === null} onClick={pause}>
        {active === false ? "Go on" : "Pause"}
      </Button>
      <Button scope="pulse:write" disabled={active === null} onClick={() => onOpen("change")}>
        Change…
      </Button>
      <Button
        kind="danger"
        icon="delete"
        scope="pulse:write"
        label="Delete the monitor"
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
          ["Method", monitor.method],
          ["Every", span(monitor.interval)],
          ["Answers within", span(monitor.timeout)],
          ...assertionFacts(monitor),
          ["Down after", count(failures, "failed check")],
          ["Alerts to", alerts.length === 0 ? "nobody" : alerts.join(" and ")],
          ["Told of recovery", monitor.notify_recovery ? "yes" : "no"],
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
          ["Told again after", span(monitor.cooldown_ms)],
          ["Headers", header_names.length === 0 ? "–" : header_names.join(", ")],
          ["Group", monitor.group ?? "–"],
          ["Created", <Ago key="c" at={monitor.created_at} />],
          [
            "Id",
            <code key="i" class="long">
              {monitor.monitor_id}
            </code>,
          ],
        ]}
      />
    </Panel>
  );
}

/** Why a failure counts for nothing. */
function uncountedOf({ observer_offline, maintenance }: MonitorCheck): string {
  if (observer_offline) return "no: the server's own line was cut";
  return maintenance ? "no: planned work" : "yes";
}

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
              { head: "Counts", cell: (check) => uncountedOf(check), look: "fit wide" },
            ]}
          />
        </Panel>
      )}
    </>
  );
}
