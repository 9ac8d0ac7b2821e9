import type { ComponentType } from "preact";
import { useRef, useState } from "preact/hooks";
import type { RelayStats } from "../../../../client/generated/api.ts";
import { Bars } from "../../charts/bars.tsx";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber, titled } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { useSettled } from "../../core/settled.ts";
import { shortTime } from "../../core/times.ts";
import { BulkRun, NOTHING, type Selection, tickColumn } from "../../ui/bulk.tsx";
import { CheckField } from "../../ui/field.tsx";
import { lazy } from "../../ui/lazy.tsx";
import { type Filter, ListPage, useRange } from "../../ui/list.tsx";
import { Delivery } from "./delivery.tsx";
import { deliveryColumns } from "./delivery-columns.tsx";
import { OpenButton } from "./open-button.tsx";
import { RelayForm } from "./relay-form.tsx";
import { SigningSecret } from "./signing-secret.tsx";

const STATES = ["scheduled", "delivering", "delivered", "failed", "cancelled"] as const;
const SEARCH = { name: "q", label: "Search URL, id, event, body" };
const ERRORS: readonly (readonly [string, string])[] = [
  ["", "Any response"],
  ["2xx", "HTTP 2xx"],
  ["4xx", "HTTP 4xx"],
  ["5xx", "HTTP 5xx"],
  ["timeout", "Timeout"],
  ["network", "Connection error"],
  ["blocked", "Blocked address"],
  ["disabled", "Disabled endpoint"],
];

const EXAMPLE = {
  target_url: "https://example.com/hook",
  method: "POST",
  delay: "10s",
  payload: { hello: "world" },
  headers: {},
} as const;

const LISTS: Readonly<Record<string, ComponentType>> = {
  endpoints: lazy(async () => (await import("./endpoints.tsx")).EndpointsPage),
  messages: lazy(async () => (await import("./messages.tsx")).MessagesPage),
  "event-types": lazy(async () => (await import("./event-types.tsx")).EventTypesPage),
  schedules: lazy(async () => (await import("./schedules.tsx")).SchedulesPage),
};

/** Deliveries, endpoints, messages, event types or schedules, with details of the selected item. */
export function RelayPage() {
  const List = LISTS[place.value.rest[0] ?? ""] ?? DeliveriesPage;
  return <List />;
}

function DeliveriesPage() {
  const { query, rest } = place.value;
  const [id] = rest;
  const value = (name: string): string => query.get(name) ?? "";
  const q = useSettled(value("q"));
  const [range, since] = useRange("Created");
  const [error, status, target, showsAlerts] = [
    value("error"),
    value("status"),
    value("target"),
    query.has("alerts"),
  ];
  const filters = {
    ...(showsAlerts ? {} : { filter: "deliveries" as const }),
    ...(since === undefined ? {} : { since }),
    ...(value("event") === "" ? {} : { event_type: value("event") }),
    ...(value("endpoint") === "" ? {} : { endpoint_id: value("endpoint") }),
    ...(target === "" ? {} : { target_url: target }),
    ...(/^\d/.test(error) ? { response_status: error } : error === "" ? {} : { error: error as "timeout" }),
  };
  const key = JSON.stringify(filters);
  const [selected, select] = useState<Selection & { key?: string }>(NOTHING);
  const selection = selected.key === key + status + q ? selected : NOTHING;
  const list = useList("relay.list", "deliveries", ["relay"], {
    keyOf: ({ relay_id }) => relay_id,
    query: { ...filters, status, q },
  });
  // The first rows do not wait for the counts.
  const hasRows = useRef(false);
  hasRows.current ||= list.data !== null;
  const { data: stats } = useCall("relay.stats", hasRows.current ? { query: filters } : null, ["relay"]);
  const { data: endpoints } = useCall(
    "relay.endpoints.list",
    hasRows.current ? { query: { limit: 100 } } : null,
  );
  const counts = q === "" ? stats?.counts : undefined;
  const total = counts && Object.values(counts).reduce((sum, count) => sum + count, 0);
  const matched = counts?.failed ?? 0;
  const ticks = [selection, (next: Selection) => select({ ...next, key: key + status + q })] as const;
  const tick = tickColumn(list.data ?? [], list.keyOf, (row) => row.status === "failed", ticks);
  return (
    <ListPage
      title="Deliveries"
      label="Deliveries"
      request={requestOf("relay.list", { query: filters })}
      actions={
        <OpenButton name="secret" operation="relay.secret.reveal">
          Signing secret
        </OpenButton>
      }
      create={["Schedule", "relay.schedule"]}
      filters={[
        SEARCH,
        range,
        selectOf("event", "Event type", "Any event type", [
          value("event"),
          ...(list.data ?? []).flatMap(({ event }) => event ?? []),
        ]),
        {
          ...selectOf("endpoint", "Endpoint", "Any endpoint", []),
          options: [
            ["", "Any endpoint"],
            ...(endpoints?.endpoints ?? []).map(
              ({ endpoint_id, name, url }) => [endpoint_id, name ?? url] as const,
            ),
          ],
        },
        {
          ...selectOf("error", "Response", "", []),
          options: ERRORS.some(([value]) => value === error) ? ERRORS : [...ERRORS, [error, `HTTP ${error}`]],
        },
        ...(target === "" ? [] : [selectOf("target", "Target", "Any target", [target])]),
        {
          name: "status",
          label: "State",
          options: [
            ["", withCount("All", total)],
            ...STATES.map((state) => [state, withCount(titled(state), counts?.[state])] as const),
          ],
        },
      ]}
      tools={<Overview of={stats} showsAlerts={showsAlerts} />}
      list={list}
      none={{
        icon: "relay",
        title: "No deliveries here",
        request: requestOf("relay.schedule", { body: EXAMPLE }),
        text: "A delivery is a signed HTTP request that the server sends at a chosen time and retries until it succeeds.",
      }}
      href={({ relay_id }) => href(["relay", relay_id], Object.fromEntries(query))}
      columns={[tick, ...deliveryColumns()]}
      selected={id}
      detail={(id) => <Delivery key={id} id={id} />}
    >
      <BulkRun
        verb="Resend"
        singular="delivery"
        plural="deliveries"
        operation="relay.resends.start"
        selection={ticks}
        matching={q === "" ? { matched, more: stats?.more === true } : null}
        note="Each is sent again with its original id to the current URL of its endpoint, with all retries, for 1 credit."
        start={async ({ ids, all }, per_second) => {
          const chosen = all ? { since: 0, ...filters } : { relay_ids: [...ids] };
          const started = await call("relay.resends.start", { body: { ...chosen, per_second } });
          return "resend_id" in started ? started.resend_id : "";
        }}
        read={async (resend_id, signal) => {
          const run = await call("relay.resends.read", { params: { resend_id } }, signal);
          return { ...run, sent: run.resent };
        }}
        stop={(resend_id) => call("relay.resends.stop", { params: { resend_id } })}
        onDone={list.reload}
      />
      <Dialogs query={query} onDone={list.reload} />
    </ListPage>
  );
}

function withCount(label: string, count: number | undefined): string {
  return count === undefined ? label : `${label} ${formatNumber(count)}`;
}

/** A filter with the given values. */
function selectOf(name: string, label: string, any: string, values: readonly string[]): Filter {
  const found = [...new Set(values)].filter((value) => value !== "").sort();
  return {
    name,
    label,
    asSelect: true,
    options: [["", any], ...found.map((value) => [value, value] as const)],
  };
}

/** Successes and failures over time, and whether alerts are listed. */
function Overview({ of: stats, showsAlerts }: { of: RelayStats | null; showsAlerts: boolean }) {
  if (stats === null) return <div class="over" />;
  const most = Math.max(1, ...stats.points.map(({ delivered, failed }) => delivered + failed));
  const bars = stats.points.map(({ at, delivered, failed }) => ({
    height: (delivered + failed) / most,
    tone: failed > 0 ? ("bad" as const) : delivered > 0 ? ("good" as const) : ("none" as const),
    title: `${shortTime(at)}: ${delivered} delivered, ${failed} failed`,
  }));
  const { delivered, failed } = stats.counts;
  return (
    <div class="over">
      {stats.alerts === 0 && !showsAlerts ? null : (
        <CheckField
          label={`Show the server's own alerts (${formatNumber(stats.alerts)})`}
          checked={showsAlerts}
          onChange={(on) => setQuery({ alerts: on ? "1" : undefined })}
        />
      )}
      <Bars
        bars={bars}
        places={bars.length}
        label={`Deliveries over time: ${formatNumber(delivered)} delivered, ${formatNumber(failed)} failed`}
      />
    </div>
  );
}

/** The open dialog. */
function Dialogs({ query, onDone }: { query: URLSearchParams; onDone: () => void }) {
  const close = (name: string) => () => setQuery({ [name]: undefined });
  if (query.has("new")) return <RelayForm onClose={close("new")} onDone={onDone} />;
  return query.has("secret") ? <SigningSecret onClose={close("secret")} /> : null;
}
