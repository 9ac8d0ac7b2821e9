import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { EventItem } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { useList } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { messageOf } from "../../core/session.ts";
import { useSettled } from "../../core/settled.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, More } from "../../ui/feedback.tsx";
import { Choice, SearchField } from "../../ui/field.tsx";
import { ListPane } from "../../ui/list-pane.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { EventView } from "./event.tsx";
import { ReplayForm } from "./replay-form.tsx";

const STATES = [
  ["", "All"],
  ["pending", "Pending"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
] as const;

/** A bucket's events, with details of the selected event. */
export function BucketEvents({ id }: { id: string }) {
  const { query, rest } = place.value;
  const [, event] = rest;
  const status = STATES.find(([state]) => state === query.get("status"))?.[0] ?? "";
  const q = useSettled(query.get("q") ?? "");
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  // Each search costs the server work, so a new event does not repeat it.
  const list = useList(`events ${id} ${status} ${q}`, q === "" ? ["catch"] : [], async (page, signal) => {
    const filters = { ...page, ...(status === "" ? {} : { status }), ...(q === "" ? {} : { q }) };
    const found = await call("catch.events.list", { params: { bucket_id: id }, query: filters }, signal);
    return { items: found.events, cursor: found.cursor, isPartial: found.partial === true };
  });
  const replay = async (): Promise<void> => {
    await replayAll(id, [...ticked]);
    setTicked(new Set());
    list.reload();
  };
  return (
    <div>
      <div class="toolbar">
        <div class="actions">
          <Choice
            label="State"
            options={STATES}
            value={status}
            onChange={(one) => setQuery({ status: one })}
          />
          <SearchField
            label="Search headers and bodies"
            value={query.get("q") ?? ""}
            onInput={(text) => setQuery({ q: text })}
          />
        </div>
        <Replays ticked={ticked.size} onTicked={replay} />
      </div>
      <ListPane
        list={list}
        label="Events"
        empty={<NoEvents id={id} isSearch={q !== ""} more={<More of={list} />} />}
        keyOf={(one) => one.id}
        href={(one) => href(["catch", id, one.id], Object.fromEntries(query))}
        columns={[tickColumn(ticked, setTicked), ...COLUMNS]}
        narrow={["Select", "Event", "State"]}
        selected={event}
        detail={(one) => <EventView key={one} bucket={id} id={one} onReplayed={list.reload} />}
      />
      {query.has("replay") ? (
        <ReplayForm bucket={id} onDone={list.reload} onClose={() => setQuery({ replay: undefined })} />
      ) : null}
    </div>
  );
}

function Replays({ ticked, onTicked }: { ticked: number; onTicked: () => Promise<void> }) {
  return (
    <div class="actions">
      <Button scope="catch:write" onClick={() => setQuery({ replay: "1" })}>
        Replay events…
      </Button>
      <Button scope="catch:write" icon="reload" disabled={ticked === 0} onClick={onTicked}>
        Replay {ticked === 0 ? "ticked" : ticked}
      </Button>
    </div>
  );
}

function NoEvents({ id, isSearch, more }: { id: string; isSearch: boolean; more: ComponentChildren }) {
  if (isSearch)
    return (
      <Empty icon="search" title="No matching events">
        Searches bodies as received, and headers in the form <code>name: value</code>.{more}
      </Empty>
    );
  const request = { method: "POST", path: `/v1/catch/${id}`, body: { hello: "world" } };
  return (
    <Empty icon="catch" title="No events here" request={request}>
      Events appear here as they arrive. Send one:
    </Empty>
  );
}

/** Checkboxes that select events. */
function tickColumn(
  ticked: ReadonlySet<string>,
  onTick: (ticked: ReadonlySet<string>) => void,
): Column<EventItem> {
  const tick = (id: string, on: boolean): void => {
    const next = new Set(ticked);
    if (on) next.add(id);
    else next.delete(id);
    onTick(next);
  };
  return {
    head: "Select",
    layout: "tick",
    cell: ({ id }) => (
      <input
        type="checkbox"
        aria-label={`Select ${id}`}
        checked={ticked.has(id)}
        onChange={(event) => tick(id, event.currentTarget.checked)}
      />
    ),
  };
}

const COLUMNS: readonly Column<EventItem>[] = [
  {
    head: "Event",
    cell: ({ id, provider, event_type, received_at }) => (
      <>
        <code>{id}</code>
        <span class="sub">
          {[provider, event_type].map((one) => (one === null ? "" : `${one} · `)).join("")}
          <Ago at={received_at} />
        </span>
      </>
    ),
  },
  { head: "Signature", cell: ({ verification }) => <Status state={verification} />, layout: "wide" },
  { head: "Response", cell: ({ response_status, error }) => response_status ?? error ?? "–", layout: "wide" },
  { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
];

/** Replays one event after another and shows the result at the end. */
async function replayAll(bucket: string, ids: readonly string[]): Promise<void> {
  let arrived = 0;
  let problem = "";
  for (const event_id of ids) {
    try {
      const { status } = await call("catch.events.replay", { params: { bucket_id: bucket, event_id } });
      if (status === "replayed") arrived += 1;
    } catch (error) {
      problem = `: ${messageOf(error)}`;
    }
  }
  toast(`${arrived} of ${ids.length} replayed${problem}`);
}
