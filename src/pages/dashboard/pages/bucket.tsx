import { useState } from "preact/hooks";
import type { Bucket, EventItem } from "../../../client/generated/api.ts";
import { BASE_URL, call, requestOf } from "../core/api.ts";
import { useList, useResource } from "../core/resource.ts";
import { go, href, place, setQuery } from "../core/route.ts";
import { messageOf } from "../core/session.ts";
import { toast } from "../core/toasts.ts";
import { Button, CopyButton } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Empty, Loaded, More } from "../ui/feedback.tsx";
import { Choice } from "../ui/field.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import { Table } from "../ui/table.tsx";
import { Ago } from "../ui/time.tsx";
import { History } from "./audit-list.tsx";
import { EventView } from "./event.tsx";

const STATES = [
  ["", "All"],
  ["pending", "Pending"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
] as const;

/** A bucket and its events; beside them one of them. */
export function BucketPage({ id }: { id: string }) {
  const params = { bucket_id: id };
  const [deleting, setDeleting] = useState(false);
  const bucket = useResource(`bucket ${id}`, ["catch"], (signal) =>
    call("catch.buckets.get", { params }, signal),
  );
  const { data } = bucket;
  const isLive = data?.state === "live";
  const setState = async (): Promise<void> => {
    await call("catch.buckets.update", { params, body: { state: isLive ? "paused" : "live" } });
    bucket.reload();
  };
  return (
    <Page
      title={id}
      up={["#/catch", "Catch"]}
      status={data === null ? null : <Status state={data.state} />}
      lead={data === null ? undefined : <Addresses of={data} />}
      request={requestOf("catch.events.list", { params })}
      actions={
        <>
          <Button
            scope="catch:write"
            disabled={data === null}
            kind={isLive ? undefined : "primary"}
            onClick={setState}
          >
            {isLive ? "Pause" : "Go live"}
          </Button>
          <Button
            kind="danger"
            icon="delete"
            scope="catch:write"
            label="Delete the bucket"
            disabled={data === null}
            onClick={() => setDeleting(true)}
          >
            {null}
          </Button>
        </>
      }
    >
      <div class="stack">
        <Loaded of={bucket}>{() => <Events id={id} />}</Loaded>
        <History type="bucket" id={id} />
      </div>
      {deleting ? (
        <Confirm
          title="Delete this bucket?"
          deed="Delete bucket"
          typed={id}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call("catch.buckets.delete", { params });
            go(["catch"]);
          }}
        >
          <p>All of its events go with it, and what is sent to its address from now on is thrown away.</p>
        </Confirm>
      ) : null}
    </Page>
  );
}

function Addresses({ of: { id, target_url } }: { of: Bucket }) {
  const url = `${BASE_URL}/v1/catch/${id}`;
  return (
    <>
      <code>{url}</code> <CopyButton text={url} what="Address" /> sends on to <code>{target_url}</code>
    </>
  );
}

function Events({ id }: { id: string }) {
  const { query, rest } = place.value;
  const [, event] = rest;
  const status = STATES.find(([state]) => state === query.get("status"))?.[0] ?? "";
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const list = useList(`events ${id} ${status}`, ["catch"], async (page, signal) => {
    const wanted = { ...page, ...(status === "" ? {} : { status }) };
    const found = await call("catch.events.list", { params: { bucket_id: id }, query: wanted }, signal);
    return { items: found.events, cursor: found.cursor };
  });
  const replay = async (): Promise<void> => {
    await replayAll(id, [...ticked]);
    setTicked(new Set());
    list.reload();
  };
  return (
    <div>
      <div class="toolbar">
        <Choice label="State" options={STATES} value={status} onChange={(one) => setQuery({ status: one })} />
        <Button scope="catch:write" icon="reload" disabled={ticked.size === 0} onClick={replay}>
          Replay {ticked.size === 0 ? "ticked" : ticked.size}
        </Button>
      </div>
      <div class={event === undefined ? "stack" : "panes"}>
        <Panel flush>
          <Loaded of={list}>
            {(events) =>
              events.length === 0 ? (
                <Empty
                  icon="catch"
                  title="No events here"
                  request={requestOf("catch.ingest", {
                    params: { bucket_id: id },
                    body: '{"hello":"world"}',
                  })}
                >
                  Events appear the moment that they arrive. Send one:
                </Empty>
              ) : (
                <>
                  <EventTable
                    bucket={id}
                    events={events}
                    selected={event}
                    ticked={ticked}
                    onTick={setTicked}
                  />
                  <More of={list} />
                </>
              )
            }
          </Loaded>
        </Panel>
        {event === undefined ? null : (
          <EventView key={event} bucket={id} id={event} onReplayed={list.reload} />
        )}
      </div>
    </div>
  );
}

interface EventTableProps {
  readonly bucket: string;
  readonly events: readonly EventItem[];
  readonly selected: string | undefined;
  readonly ticked: ReadonlySet<string>;
  readonly onTick: (ticked: ReadonlySet<string>) => void;
}

function EventTable({ bucket, events, selected, ticked, onTick }: EventTableProps) {
  const tick = (id: string, on: boolean): void => {
    const next = new Set(ticked);
    if (on) next.add(id);
    else next.delete(id);
    onTick(next);
  };
  return (
    <Table
      label="Events"
      rows={events}
      keyOf={({ id }) => id}
      href={({ id }) => href(["catch", bucket, id], Object.fromEntries(place.value.query))}
      selected={selected}
      columns={[
        {
          head: "Pick",
          look: "tick",
          cell: ({ id }) => (
            <input
              type="checkbox"
              aria-label={`Pick ${id}`}
              checked={ticked.has(id)}
              onChange={(event) => tick(id, event.currentTarget.checked)}
            />
          ),
        },
        {
          head: "Event",
          cell: ({ id, provider, received_at }) => (
            <>
              <code>{id}</code>
              <span class="sub">
                {provider ?? "any"} · <Ago at={received_at} />
              </span>
            </>
          ),
        },
        ...(selected === undefined
          ? [
              {
                head: "Signature",
                cell: ({ verification }: EventItem) => <Status state={verification} />,
                look: "wide",
              },
              {
                head: "Answer",
                cell: ({ response_status, error }: EventItem) => response_status ?? error ?? "–",
                look: "wide",
              },
            ]
          : []),
        { head: "State", cell: ({ status }) => <Status state={status} />, look: "fit" },
      ]}
    />
  );
}

/** One after another: what each came to is told at the end. */
async function replayAll(bucket: string, ids: readonly string[]): Promise<void> {
  let arrived = 0;
  let trouble = "";
  for (const event_id of ids) {
    try {
      const { status } = await call("catch.events.replay", { params: { bucket_id: bucket, event_id } });
      if (status === "replayed") arrived += 1;
    } catch (error) {
      trouble = `: ${messageOf(error)}`;
    }
  }
  toast(`${arrived} of ${ids.length} replayed${trouble}`);
}
