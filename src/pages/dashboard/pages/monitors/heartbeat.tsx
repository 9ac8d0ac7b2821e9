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
import { Ago, Moment } from "../../ui/time.tsx";

/** What a heartbeat waits for, how it is pinged, and its last pings. */
export function HeartbeatPanels({ of: beat, onChanged }: { of: MonitorStatus; onChanged: () => void }) {
  const id = beat.monitor_id;
  const pings = useResource(`pings ${id}`, ["pulse"], (signal) =>
    call("monitors.pings", { params: { monitorId: id } }, signal),
  );
  return (
    <>
      <Panel title="Ping it">
        {beat.ping_url ? (
          <>
            <Code text={pingLine(beat.ping_url)} what="Line" />
            {beat.ping_slug_url ? <Code text={pingLine(beat.ping_slug_url)} what="Line by slug" /> : null}
            <p class="quiet small">
              Behind the address: <code>/start</code>, <code>/fail</code>, <code>/log</code> or an exit
              status. Who knows it may ping.
            </p>
            {beat.slug && !beat.ping_slug_url ? <MakePingKey onMade={onChanged} /> : null}
          </>
        ) : (
          <p class="quiet">Where its pings go is shown to keys that may change monitors.</p>
        )}
      </Panel>
      <Panel>
        <Facts
          of={[
            ["Last ping", <Ago key="l" at={beat.last_ping_at} />],
            ["Expected", <Ago key="e" at={beat.expected_at} never="after the first success" />],
            ["Grace", span(beat.grace_ms ?? 0)],
            ["Run under way since", <Ago key="s" at={beat.started_at} never="–" />],
            ["Last run took", beat.last_duration_ms ? span(beat.last_duration_ms) : "–"],
          ]}
        />
      </Panel>
      <Loaded of={pings}>
        {({ pings: rows }) => (
          <Panel title="Last pings" flush>
            {rows.length === 0 ? <p class="quiet pad">None yet.</p> : <Pings of={rows} />}
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
        { head: "When", cell: ({ at }) => <Moment at={at} />, look: "fit" },
        {
          head: "Ping",
          cell: ({ kind, exit }) => (exit === null ? kind : `${kind}, exit ${exit}`),
          look: "fit",
        },
        {
          head: "Took",
          cell: ({ duration_ms }) => (duration_ms === null ? "–" : span(duration_ms)),
          look: "fit wide",
        },
        { head: "From", cell: ({ ip }) => ip ?? "–", look: "fit wide" },
        { head: "Said", cell: ({ body }) => (body === null ? "–" : <Said text={body} />) },
      ]}
    />
  );
}

const SHORT = 80;

/** What a run said: its first line, and the rest once it is asked for. */
function Said({ text }: { text: string }) {
  const [line = ""] = text.split("\n", 1);
  if (line.length <= SHORT && line.length === text.trimEnd().length) return <code>{line}</code>;
  return (
    <details>
      <summary>
        <code>{line.slice(0, SHORT)}</code>
      </summary>
      <Code text={text} what="Text" />
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
      Make the project's ping key, to ping by slug
    </Button>
  );
}
