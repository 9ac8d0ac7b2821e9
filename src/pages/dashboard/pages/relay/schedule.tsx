import { useState } from "preact/hooks";
import type { Schedule } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useCall } from "../../core/resource.ts";
import { go, href } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Code, pretty } from "../../ui/code.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago, DateTime, ZonedTime } from "../../ui/time.tsx";

const RUNS_SHOWN = 10;

/** A schedule: its next and last runs. */
export function ScheduleView({ id }: { id: string }) {
  const params = { schedule_id: id };
  const schedule = useCall("relay.schedules.read", { params }, ["relay"]);
  return (
    <div class="inspector">
      <Loaded of={schedule}>
        {(loaded) => (
          <div class="stack">
            <Panel
              title={loaded.name ?? loaded.cron}
              actions={<Actions of={loaded} params={params} onChanged={schedule.reload} />}
            >
              <ScheduleFacts of={loaded} />
            </Panel>
            <Panel title="Next runs" flush>
              {loaded.next_runs.length === 0 ? (
                <p class="more quiet">No runs.</p>
              ) : (
                <Table
                  label="Next runs"
                  rows={loaded.next_runs}
                  keyOf={String}
                  columns={[
                    { head: "At", cell: (at) => <ZonedTime at={at} zone={loaded.time_zone} /> },
                    { head: "In", cell: (at) => <Ago at={at} />, layout: "fit" },
                  ]}
                />
              )}
            </Panel>
            <LastRuns id={id} />
            <Panel title="Body">
              <Code text={pretty(loaded.payload)} what="Body" />
            </Panel>
          </div>
        )}
      </Loaded>
    </div>
  );
}

interface ActionsProps {
  readonly of: Schedule;
  readonly params: { readonly schedule_id: string };
  readonly onChanged: () => void;
}

function Actions({ of: one, params, onChanged }: ActionsProps) {
  const [deleting, setDeleting] = useState(false);
  const state = one.state === "live" ? "paused" : "live";
  const change = async (): Promise<void> => {
    await call("relay.schedules.update", { params, body: { state } });
    onChanged();
  };
  const run = async (): Promise<void> => {
    await call("relay.schedules.run", { params });
    toast("Run started");
    onChanged();
  };
  return (
    <div class="actions">
      <CurlButton request={requestOf("relay.schedules.read", { params })} />
      <Button operation="relay.schedules.run" onClick={run}>
        Run now
      </Button>
      <Button operation="relay.schedules.update" onClick={change}>
        {state === "paused" ? "Pause" : "Resume"}
      </Button>
      <Button kind="danger" operation="relay.schedules.delete" onClick={() => setDeleting(true)}>
        Delete…
      </Button>
      {deleting ? (
        <Confirm
          title={`Delete ${one.name ?? one.cron}?`}
          action="Delete schedule"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call("relay.schedules.delete", { params });
            go(["relay", "schedules"]);
          }}
        >
          <p>The schedule stops. Its deliveries stay in the list.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

function ScheduleFacts({ of: one }: { of: Schedule }) {
  return (
    <Facts
      of={[
        ["State", <Status key="s" state={one.state} />],
        [
          "Schedule",
          <>
            <code>{one.cron}</code> {one.time_zone}
          </>,
        ],
        one.event_type === null
          ? ["Target", `${one.method} ${one.target_url ?? "–"}`]
          : ["Event type", one.event_type],
        ["Starts at", <DateTime key="f" at={one.starts_at} />],
        ["Ends at", <DateTime key="u" at={one.ends_at} />],
        ["Missed runs", one.missed === "once" ? "run once" : "skipped"],
        ["Overlapping runs", one.overlap === "allow" ? "allowed" : "skipped"],
        ["Runs", one.runs],
        ["Skipped", one.skipped],
        ...(one.last_error === null ? [] : [["Last error", one.last_error] as const]),
        ["ID", <code key="i">{one.schedule_id}</code>],
      ]}
    />
  );
}

/** The newest deliveries of its runs. */
function LastRuns({ id }: { id: string }) {
  const runs = useCall("relay.list", { query: { schedule_id: id, limit: RUNS_SHOWN } }, ["relay"]);
  return (
    <Panel title="Last runs" flush>
      <Loaded of={runs}>
        {({ deliveries }) =>
          deliveries.length === 0 ? (
            <p class="more quiet">No runs yet.</p>
          ) : (
            <Table
              label="Last runs"
              rows={deliveries}
              keyOf={({ relay_id }) => relay_id}
              href={({ relay_id }) => href(["relay", relay_id])}
              columns={[
                { head: "Due", cell: ({ scheduled_for }) => <DateTime at={scheduled_for} /> },
                { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
              ]}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}
