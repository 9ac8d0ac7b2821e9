import type { Channel, MonitorStatus } from "../../../../client/generated/api.ts";
import { duration } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { Panel } from "../../ui/page.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { notifiedOf } from "./alert-text.ts";

/** More than a project can have. */
const CHANNELS_MAX = 100;

/** A recipient of a monitor's alerts, with what it is sent. */
interface Recipient {
  readonly name: string;
  readonly kind: string;
  /** Null for one that is no channel. */
  readonly id: string | null;
  readonly recovery: boolean;
  readonly reminders: string;
  readonly slow: boolean;
}

/** Who is sent alerts of a monitor, and which: what its channels do, and its own webhook and e-mail if it has them. */
export function MonitorAlerts({ of: monitor }: { of: MonitorStatus }) {
  const { data } = useCall("monitors.channels.list", { query: { limit: CHANNELS_MAX } }, ["pulse"]);
  if (data === null) return null;
  const slow = monitor.interval !== null && monitor.degraded_ms !== null && monitor.notify_degraded;
  const all = [...notifiedOf(monitor, data.channels).map(recipientOf), ...ownOf(monitor)];
  return (
    <Panel title="Alerts" actions={<a href={href(["monitors", "channels"])}>Channels</a>} flush>
      {all.length === 0 ? (
        <p class="quiet pad">Nobody is notified when the target goes down.</p>
      ) : (
        <Table
          label="Alerts"
          rows={all}
          keyOf={({ id, name }) => id ?? name}
          columns={slow ? [...COLUMNS, SLOW] : COLUMNS}
        />
      )}
    </Panel>
  );
}

const yesNo = (is: boolean): string => (is ? "yes" : "no");

const COLUMNS: readonly Column<Recipient>[] = [
  { head: "Recipient", cell: ({ name }) => name, sub: ({ kind }) => kind },
  { head: "Recovery", cell: ({ recovery }) => yesNo(recovery), layout: "fit" },
  { head: "Reminders", cell: ({ reminders }) => reminders, layout: "fit" },
];
const SLOW: Column<Recipient> = { head: "Slow", cell: ({ slow }) => yesNo(slow), layout: "fit wide" };

function recipientOf({ id, name, kind, events, remind }: Channel): Recipient {
  return {
    id,
    name,
    kind,
    recovery: events.includes("monitor.up"),
    reminders: remind === "never" ? "never" : `every ${remind}`,
    slow: events.includes("monitor.degraded"),
  };
}

/** The webhook and the e-mail of the monitor itself, which are not sent that a target is slow. */
function ownOf(monitor: MonitorStatus): Recipient[] {
  const { webhook_url, email_alert, notify_recovery: recovery, cooldown_ms } = monitor;
  const common = { id: null, recovery, slow: false };
  const repeated = `every ${duration(cooldown_ms)}`;
  return [
    ...(webhook_url === null
      ? []
      : [{ ...common, name: webhook_url, kind: "signed webhook", reminders: repeated }]),
    ...(email_alert ? [{ ...common, name: "e-mail", kind: "to the account", reminders: "never" }] : []),
  ];
}
