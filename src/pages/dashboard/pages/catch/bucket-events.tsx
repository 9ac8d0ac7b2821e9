import { useState } from "preact/hooks";
import type { Bucket, EventItem } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { count, formatNumber, titled } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { useResource } from "../../core/resource.ts";
import { href, place } from "../../core/route.ts";
import { useSettled } from "../../core/settled.ts";
import { BulkRun, NOTHING, type Selection, tickColumn } from "../../ui/bulk.tsx";
import { Empty } from "../../ui/feedback.tsx";
import { InlineSelect } from "../../ui/inline.tsx";
import { Filters, filterValue, ListView, useRange } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { EventView } from "./event.tsx";
import { useBucketEndpoints } from "./target-fields.tsx";

const STATES = ["pending", "delivered", "failed"] as const;
const STATE = {
  name: "status",
  label: "State",
  options: [["", "All"] as const, ...STATES.map((state) => [state, state] as const)],
};
const SEARCH = { name: "q", label: "Search headers and bodies" };

/** A bucket's events, with details of the selected event. */
export function BucketEvents({ of: { id, events, target_url, targets } }: { of: Bucket }) {
  const { query, rest } = place.value;
  const [, event] = rest;
  const target = target_url ?? (targets.length === 0 ? null : count(targets.length, "endpoint"));
  const status = filterValue(STATE) as "" | (typeof STATES)[number];
  const [range, start] = useRange("Received");
  const since = start === undefined ? "" : new Date(start).toISOString();
  const q = useSettled(filterValue(SEARCH));
  const key = JSON.stringify([status, since, q]);
  const [selected, select] = useState<Selection & { key?: string }>(NOTHING);
  const selection = selected.key === key ? selected : NOTHING;
  const ticks = [selection, (next: Selection) => select({ ...next, key })] as const;
  // Each search costs the server work, so a new event does not repeat it.
  const list = useList("catch.events.list", "events", q === "" ? ["catch"] : [], {
    keyOf: (event) => event.id,
    params: { bucket_id: id },
    query: { status, since, q, details: true },
  });
  const params = { bucket_id: id };
  const [endpoint, setEndpoint] = useState("");
  const missed = endpoint === "" ? {} : { endpoint_id: endpoint };
  const filters = {
    ...(status === "" ? {} : { status }),
    ...(since === "" ? {} : { since }),
    ...missed,
  };
  const { data: matching } = useResource(
    selection.ids.size === 0 || q !== "" ? null : `replay ${id} ${key} ${endpoint}`,
    [],
    (signal) => call("catch.replays.start", { params, body: { ...filters, dry_run: true } }, signal),
  );
  const tick = tickColumn(list.data ?? [], list.keyOf, (row) => row.verification !== "invalid", ticks);
  const counted = [
    ["", `All ${formatNumber(events.pending + events.delivered + events.failed)}`],
    ...STATES.map((state) => [state, `${titled(state)} ${formatNumber(events[state])}`] as const),
  ] as const;
  return (
    <div>
      <Filters of={[SEARCH, range, { ...STATE, options: counted }]} />
      <ListView
        list={list}
        label="Events"
        empty={<NoEvents id={id} isSearch={q !== ""} />}
        href={(event) => href(["catch", id, event.id], Object.fromEntries(query))}
        columns={[tick, ...COLUMNS]}
        selected={event}
        detail={(eventId) => <EventView key={eventId} bucket={id} id={eventId} onReplayed={list.reload} />}
      />
      <BulkRun
        verb="Replay"
        singular="event"
        operation="catch.replays.start"
        selection={ticks}
        matching={q === "" ? matching : null}
        choice={
          targets.length === 0 ? null : <EndpointChoice of={targets} value={endpoint} onInput={setEndpoint} />
        }
        note={
          target === null
            ? "This bucket has no target to replay to."
            : `Each is sent to the current target of the bucket, ${target}, and costs 1 credit if it is delivered. A replay does not redirect live traffic. To replay to another target, change the target of the bucket: new events then go there too.`
        }
        start={async ({ ids, all }, per_second) => {
          const chosen = all ? filters : { event_ids: [...ids], ...missed };
          const started = await call("catch.replays.start", { params, body: { ...chosen, per_second } });
          return "replay_id" in started ? started.replay_id : "";
        }}
        read={async (replay_id, signal) => {
          const run = await call("catch.replays.get", { params: { ...params, replay_id } }, signal);
          const { delivered, failed, queued } = run;
          const outcome = [
            [delivered, "delivered"] as const,
            [failed, "failed"] as const,
            [queued, "queued"] as const,
          ]
            .filter(([number]) => number > 0)
            .map(([number, word]) => ` · ${formatNumber(number)} ${word}`)
            .join("");
          return { ...run, sent: delivered + failed + queued, outcome };
        }}
        stop={(replay_id) => call("catch.replays.stop", { params: { ...params, replay_id } })}
        onDone={list.reload}
      />
    </div>
  );
}

/** All endpoints of a bucket, or one that is sent what it never got. */
function EndpointChoice({
  of: targets,
  value,
  onInput,
}: {
  of: Bucket["targets"];
  value: string;
  onInput: (value: string) => void;
}) {
  const endpoints = useBucketEndpoints();
  const nameOf = (id: string): string => {
    const found = endpoints.data?.find(({ endpoint_id }) => endpoint_id === id);
    return found?.name ?? found?.url ?? id;
  };
  const options = targets.map(
    ({ endpoint_id }) => [endpoint_id, `only what ${nameOf(endpoint_id)} missed`] as const,
  );
  return (
    <InlineSelect
      label="Endpoint"
      value={value}
      options={[["", "to all endpoints"], ...options]}
      onInput={onInput}
    />
  );
}

function NoEvents({ id, isSearch }: { id: string; isSearch: boolean }) {
  if (isSearch)
    return (
      <Empty icon="search" title="No matching events">
        Searches bodies as received, and headers in the form <code>name: value</code>.
      </Empty>
    );
  const request = { method: "POST", path: `/v1/catch/${id}`, body: { hello: "world" } };
  return (
    <Empty icon="catch" title="No events here" request={request}>
      Events appear here as they arrive. Send one:
    </Empty>
  );
}

const COLUMNS: readonly Column<EventItem>[] = [
  {
    head: "Event",
    cell: ({ id, event_type, received_at, method = "POST", preview }) => (
      <>
        {event_type ?? <code>{id}</code>}
        <span class="sub">
          {method} <code>{preview ?? (event_type === null ? "" : id)}</code>
        </span>
        <span class="narrow">
          <span class="sub">
            <Ago at={received_at} />
          </span>
        </span>
      </>
    ),
  },
  { head: "Provider", cell: ({ provider }) => provider ?? "–", layout: "wide", width: 7 },
  { head: "Received", cell: ({ received_at }) => <Ago at={received_at} />, layout: "wide", width: 7 },
  {
    head: "Signature",
    cell: ({ verification }) => <Status state={verification} />,
    layout: "wide",
    width: 7,
  },
  {
    head: "Response",
    cell: ({ response_status, error }) => response_status ?? error ?? "–",
    layout: "wide",
    width: 9,
  },
  { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
];
