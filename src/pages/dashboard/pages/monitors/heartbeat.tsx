import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { span } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { pingLine } from "../../core/shell.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";

/** The ping URLs of a heartbeat. */
export function PingUrl({ of: beat, onChanged }: { of: MonitorStatus; onChanged: () => void }) {
  return (
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
  );
}

/** The last pings of a heartbeat. */
export function LastPings({ id }: { id: string }) {
  const pings = useCall("monitors.pings", { params: { monitorId: id } }, ["pulse"]);
  return (
    <Loaded of={pings}>
      {({ pings: rows }) =>
        rows.length === 0 ? <p class="quiet pad">No pings yet.</p> : <Pings of={rows} />
      }
    </Loaded>
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
      operation="monitors.ping_key"
      onClick={async () => {
        await call("monitors.ping_key", {});
        onMade();
      }}
    >
      Create the project's ping key to use slugs
    </Button>
  );
}
