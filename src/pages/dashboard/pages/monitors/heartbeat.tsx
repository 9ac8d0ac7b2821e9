import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { span } from "../../core/format.ts";
import { useResource } from "../../core/resource.ts";
import { pingLine } from "../../core/shell.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";

/** When a heartbeat expects pings, its ping URLs and its last pings. */
export function HeartbeatPanels({ of: beat, onChanged }: { of: MonitorStatus; onChanged: () => void }) {
  const id = beat.monitor_id;
  const pings = useResource(`pings ${id}`, ["pulse"], (signal) =>
    call("monitors.pings", { params: { monitorId: id } }, signal),
  );
  return (
    <>
      <Panel title="Ping URL">
        {beat.ping_url ? (
          <>
            <Code text={pingLine(beat.ping_url)} what="Command" />
            {beat.ping_slug_url ? (
              <Code text={pingLine(beat.ping_slug_url)} what="Command with the slug" />
            ) : null}
            <p class="quiet small">
              Append to the URL: <code>/start</code>, <code>/fail</code>, <code>/log</code> or an exit status.
              Anyone who knows the URL can send pings.
            </p>
            {beat.slug && !beat.ping_slug_url ? <MakePingKey onMade={onChanged} /> : null}
          </>
        ) : (
          <p class="quiet">The ping URL is visible to keys with the scope to change monitors.</p>
        )}
      </Panel>
      <Panel>
        <Facts
          of={[
            ["Last ping", <Ago key="l" at={beat.last_ping_at} />],
            ["Next expected", <Ago key="e" at={beat.expected_at} never="after the first success" />],
            ["Grace period", span(beat.grace_ms ?? 0)],
            ["Running since", <Ago key="s" at={beat.started_at} never="–" />],
            ["Last run took", beat.last_duration_ms ? span(beat.last_duration_ms) : "–"],
          ]}
        />
      </Panel>
      <Loaded of={pings}>
        {({ pings: rows }) => (
          <Panel title="Last pings" flush>
            {rows.length === 0 ? <p class="quiet pad">No pings yet.</p> : <Pings of={rows} />}
          </Panel>
        )}
      </Loaded>
    </>
  );
}

type Ping = Awaited<ReturnType<typeof call<"monitors.pings">>>["pings"][number];

function Pings({ of: pings }: { of: readonly Ping[] }) {
  return (
    <Table
      label="Last pings"
      rows={pings.map((ping, at) => ({ ...ping, number: pings.length - at }))}
      keyOf={({ at, number }) => `${at} ${number}`}
      columns={[
        { head: "Time", cell: ({ at }) => <DateTime at={at} />, layout: "fit" },
        {
          head: "Ping",
          cell: ({ kind, exit }) => (exit === null ? kind : `${kind}, exit ${exit}`),
          layout: "fit",
        },
        {
          head: "Duration",
          cell: ({ duration_ms }) => (duration_ms === null ? "–" : span(duration_ms)),
          layout: "fit wide",
        },
        { head: "From", cell: ({ ip }) => ip ?? "–", layout: "fit wide" },
        { head: "Output", cell: ({ body }) => (body === null ? "–" : <Output text={body} />) },
      ]}
    />
  );
}

const SHORT = 80;

/** A run's output: its first line, and the rest on request. */
function Output({ text }: { text: string }) {
  const [line = ""] = text.split("\n", 1);
  if (line.length <= SHORT && line.length === text.trimEnd().length) return <code>{line}</code>;
  return (
    <details>
      <summary>
        <code>{line.slice(0, SHORT)}</code>
      </summary>
      <Code text={text} what="Output" />
    </details>
  );
}

function MakePingKey({ onMade }: { onMade: () => void }) {
  return (
    <Button
      scope="pulse:write"
      onClick={async () => {
        await call("monitors.ping_key", {});
        onMade();
      }}
    >
      Create the project's ping key to use slugs
    </Button>
  );
}
